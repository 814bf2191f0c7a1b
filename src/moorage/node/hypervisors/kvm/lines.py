# SPDX-License-Identifier: BSD-2-Clause
"""Connections to a guest's serial console and to its screen.

QEMU listens for viewers nowhere by itself. The agent hands it connections, or the port
that was asked for, and a password with each: a ticket, or the one of the guest's file.
"""

from contextlib import closing
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from socket import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    SO_REUSEADDR,
    SOL_SOCKET,
    socket,
    socketpair,
)

from moorage.errors import Failed, NotSupported, WrongState
from moorage.model import GuestState, hvscreen
from moorage.model.hvparams import Parameters, parameters
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.machine.sockets import short_path
from moorage.node.machine.trust import distrust
from moorage.node.text import clean

from . import shapes
from .guest_dir import Home
from .monitor import Monitor, conversation
from .screen import X509

TICKET = 120
"""Seconds in which a ticket can be used."""
_LABELS = ("console", "serial0")
"""Of a serial console: as we call it, and as QEMU does for Ganeti."""
_FREE = "disconnected:"
_VIEWER, _PORT = "viewer", "vnc-port"
_PATIENCE = 5.0
_LONGEST = 8
"""Characters of a password that VNC looks at."""


async def connect(
    home: Home, found: GuestState | None, kind: str, ticket: str
) -> socket:
    """Return a connection to a guest's serial console, or to its screen.

    Raises
    ------
    NotSupported
        If it has none.
    WrongState
        If it does not run here, or somebody is at its console.
    """
    name = found.name if found else home.spec().name
    if found is None or not found.runs:
        state = f"is {found.state}" if found else "does not run"
        raise WrongState(
            f"guest {name} {state} on this node: it is down, or moves just now",
            hint="gnt-instance list -o name,pnode,status",
        )
    given = parameters(home.spec().hvparams)
    if kind == "vnc":
        return await _viewer(home, given, ticket)
    return await _serial(home, given)


async def _serial(home: Home, given: Parameters) -> socket:
    """Return a connection to a guest's serial console.

    Raises
    ------
    NotSupported
        If it has none.
    WrongState
        If somebody is there.
    """
    name = home.spec().name
    if not given.serial_console:
        raise NotSupported(
            f"instance {name} has no serial console",
            hint=f"gnt-instance modify -H serial_console=true {name}",
        )
    async with conversation(home) as monitor:
        lines = await monitor.read(shapes.Lines, "query-chardev")
    found = next((one.filename for one in lines if one.label in _LABELS), "")
    if not found.startswith(_FREE):
        raise WrongState(f"somebody is at the console of {name}: it has one line only")
    made = socket(AF_UNIX)
    try:
        made.settimeout(_PATIENCE)
        with short_path(home.file("console")) as path:
            made.connect(path)
    except OSError as error:
        made.close()
        raise Failed(f"the console of {name} cannot be reached: {error}") from None
    return made


async def _viewer(home: Home, given: Parameters, ticket: str) -> socket:
    """Return a connection to a guest's screen, which speaks VNC.

    Parameters
    ----------
    ticket
        The password that VNC asks for, unless the guest has one of its own.

    Raises
    ------
    NotSupported
        If it has no screen.
    """
    name = home.spec().name
    if not given.screen:
        raise NotSupported(
            f"instance {name} has no screen",
            hint=f"gnt-instance modify -H vga=std {name}, for its next start",
        )
    ours, theirs = socketpair()
    try:
        with closing(theirs):
            async with conversation(home) as monitor:
                if not given.vnc_password_file:
                    await _ask_for(monitor, ticket, f"+{TICKET}")
                await monitor.give(_VIEWER, theirs.fileno())
                words = {"protocol": "vnc", "fdname": _VIEWER, "skipauth": False}
                await monitor.ask("add_client", **words)
    except BaseException:
        ours.close()
        raise
    return ours


async def _ask_for(monitor: Monitor, password: str, time: str) -> None:
    await monitor.ask("set_password", protocol="vnc", password=password)
    await monitor.ask("expire_password", protocol="vnc", time=time)


def port(spec: GuestSpec, given: Parameters) -> socket | None:
    """Return a socket that listens where a guest's VNC has a port, if it has one.

    Raises
    ------
    BadInput
        If strangers reached it, and there is no password.
    Failed
        If the port cannot be had.
    """
    hvscreen.check_open(given)
    address = hvscreen.port_address(given)
    if not address:
        return None
    six = isinstance(ip_address(address), IPv6Address)
    if not spec.network_port:
        raise Failed(
            f"guest {spec.name} did not start: its VNC has no port",
            hint=f"gnt-instance modify -H vnc_bind_address={address} {spec.name}",
        )
    made = socket(AF_INET6 if six else AF_INET)
    try:
        made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        made.bind((address, spec.network_port))
        made.listen()
    except OSError as error:
        made.close()
        raise Failed(
            f"guest {spec.name} did not start: its VNC cannot listen at {address} port "
            f"{spec.network_port}: {error.strerror}"
        ) from None
    return made


def share_certificates(home: Home, given: Parameters) -> None:
    """Copy the certificates of a guest's VNC to where its QEMU reads them.

    Raises
    ------
    Failed
        If one cannot be read.
    """
    for name in X509 if given.vnc_tls and given.screen else ():
        path = Path(given.vnc_x509_path, name)
        home.write(name, _read(path), shared=True)


async def furnish(home: Home, given: Parameters, listener: socket | None) -> None:
    """Give a guest that was just started the password and the port of its VNC.

    Raises
    ------
    Failed
        If the password cannot be read, or QEMU does not take them.
    """
    if not given.screen or not (given.vnc_password_file or listener):
        return
    async with conversation(home) as monitor:
        if given.vnc_password_file:
            await _ask_for(monitor, _password(given.vnc_password_file), "never")
        if listener:
            await monitor.give(_PORT, listener.fileno())
            address = {"type": "fd", "str": _PORT}
            await monitor.ask("display-update", type="vnc", addresses=[address])


def _password(path: str) -> str:
    lines = _read(Path(path)).splitlines()
    if not lines or not lines[0]:
        raise Failed(f"there is no password in {path}")
    return lines[0][:_LONGEST]


def _read(path: Path) -> str:
    """Return the text of a file that is root's alone to change."""
    told = distrust(path)
    if told:
        raise Failed(f"the node does not believe {path}: {told}", path=str(path))
    try:
        return path.read_text()
    except (OSError, UnicodeError) as error:
        raise Failed(f"{path} cannot be read: {clean(str(error))}") from None
