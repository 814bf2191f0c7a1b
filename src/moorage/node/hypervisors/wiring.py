# SPDX-License-Identifier: BSD-2-Clause
"""How a guest's interface is connected on its node: a few commands, or a script.

Who wants something else writes a script as Ganeti's: ``kvm-ifup-custom`` takes the
place of all commands here, ``kvm-ifdown-custom`` those that take a cable away. Both get
Ganeti's variables.
"""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import Failed
from moorage.model.nicparams import BRIDGED, OPENVSWITCH, ROUTED
from moorage.node.extensions.network_words import words
from moorage.node.hypervisors.base import Card
from moorage.node.machine.commands import PATH
from moorage.node.machine.links import OVS, setting
from moorage.node.text import clean
from moorage.storage import limits

Argv = tuple[str, ...]

SCRIPTS = "/etc/moorage"
"""Where scripts for networks are, unless the agent is told otherwise."""
_UP, _DOWN = ("kvm-ifup-custom", "kvm-vif-bridge"), ("kvm-ifdown-custom",)
_NET, _CONF = Path("/sys/class/net"), Path("/proc/sys/net")
_SAID = 500
_OTHERS = 0o022


@dataclass(frozen=True, slots=True)
class Bridge:
    """What must be known of a bridge of the kernel's.

    Attributes
    ----------
    vlans
        Whether it keeps VLANs apart.
    default
        The VLAN that a new member is in; 0 for none.
    uplinks
        Its members that are no guests'.
    """

    mtu: int = 1500
    vlans: bool = False
    default: int = 1
    uplinks: tuple[str, ...] = ()


def bridged(card: Card, interface: str, bridge: Bridge) -> Iterator[Argv]:
    """Yield what puts an interface into a bridge.

    Its own address is high: a bridge takes the lowest one of its members.
    """
    at = ("ip", "link", "set", "dev", interface)
    yield (*at, "address", f"fe{card.mac[2:]}", "mtu", str(bridge.mtu))
    yield (*at, "master", card.link, "up")
    if card.vlan:
        yield from _vlans(card, interface, bridge)


def _vlans(card: Card, interface: str, bridge: Bridge) -> Iterator[Argv]:
    access, trunks = card.wires.access(), card.wires.trunks()
    wanted = [access, *trunks] if access else trunks
    if bridge.default:
        yield _vlan("del", interface, bridge.default)
    for number in wanted:
        how = ("pvid", "untagged") if number == access else ()
        yield (*_vlan("add", interface, number), *how)
        for uplink in bridge.uplinks:
            yield _vlan("add", uplink, number)


def _vlan(verb: str, interface: str, number: int) -> Argv:
    return ("bridge", "vlan", verb, "dev", interface, "vid", str(number), "master")


def switched(card: Card, interface: str) -> Iterator[Argv]:
    """Yield what makes an interface a port of Open vSwitch's.

    A port outlives its interface, so one of that name may be left of another guest.
    """
    access, trunks = card.wires.access(), card.wires.trunks()
    wanted = [f"tag={access}"] if access else []
    if trunks:
        wanted.append(f"trunks={','.join(map(str, trunks))}")
    if access and trunks:
        wanted.append("vlan_mode=native-untagged")
    yield ("ip", "link", "set", "dev", interface, "up")
    gone = (*_ovs(), "--", "--if-exists", "del-port", interface)
    yield (*gone, "--", "add-port", card.link, interface, *wanted)


def unswitched(interface: str) -> Argv:
    """Return what takes a port of Open vSwitch's away."""
    return (*_ovs(), "--if-exists", "del-port", interface)


def _ovs() -> Argv:
    return (OVS, "--timeout=10")


def routed(card: Card, interface: str) -> Iterator[Argv]:
    """Yield what routes the card's address to an interface."""
    six = ":" in str(card.ip)
    ip = ("ip", "-6") if six else ("ip",)
    yield ("ip", "link", "set", "dev", interface, "up")
    table = ("table", card.link) if card.link else ()
    if table:
        yield (*ip, "rule", "add", "dev", interface, *table)
    route = (*ip, "route", "replace", str(card.ip), *table)
    yield (*route, "proto", "static", "dev", interface)


def settings(interface: str) -> dict[str, str]:
    """Return the settings of the kernel's by which it answers for a routed guest."""
    four, six = f"ipv4/conf/{interface}", f"ipv6/conf/{interface}"
    names = (f"{four}/proxy_arp", f"{four}/forwarding")
    return dict.fromkeys((*names, f"{six}/proxy_ndp", f"{six}/forwarding"), "1\n")


def environment(
    guest: str, tags: Sequence[str], card: Card, interface: str
) -> dict[str, str]:
    """Return the variables of a script, under Ganeti's names."""
    found: dict[str, str | None] = {
        "PATH": PATH,
        "INSTANCE": guest,
        "MAC": card.mac,
        "MODE": card.mode,
        "INTERFACE": interface,
        "INTERFACE_INDEX": str(card.index),
        "INTERFACE_UUID": card.uuid,
        "INTERFACE_NAME": card.name,
        "TAGS": " ".join(tags),
        "IP": card.ip,
        "LINK": card.link,
        "VLAN": card.vlan,
        "BRIDGE": card.link if card.mode == BRIDGED else None,
    }
    found |= words(card.network)
    always = {"PATH", "TAGS"}
    return {name: one or "" for name, one in found.items() if one or name in always}


class Wiring:
    """Connects interfaces on this node.

    Parameters
    ----------
    scripts
        Directory of an administrator's scripts.
    """

    def __init__(self, scripts: Path = Path(SCRIPTS)) -> None:
        self._scripts = scripts

    async def up(
        self, guest: str, tags: Sequence[str], card: Card, interface: str
    ) -> None:
        """Connect an interface; twice is once.

        Raises
        ------
        Failed
            If there is no such bridge, or a command or script fails.
        """
        script = self._script(_UP)
        if script:
            variables = environment(guest, tags, card, interface)
            await _run((str(script),), f"{script} for {guest}", variables)
        elif card.mode == ROUTED:
            await self._route(guest, card, interface)
        else:
            await self._join(guest, card, interface)

    async def _join(self, guest: str, card: Card, interface: str) -> None:
        kernels = card.mode != OPENVSWITCH
        commands = (
            bridged(card, interface, _bridge(card, guest))
            if kernels
            else switched(card, interface)
        )
        for argv in commands:
            await _run(argv, f"network card {card.index} of {guest} in {card.link}")

    async def _route(self, guest: str, card: Card, interface: str) -> None:
        await _forget(interface)
        for argv in routed(card, interface):
            await _run(argv, f"the route to network card {card.index} of {guest}")
        for name, value in settings(interface).items():
            with suppress(OSError):  # a kernel without IPv6
                (_CONF / name).write_text(value)

    async def down(
        self, guest: str, tags: Sequence[str], card: Card, interface: str
    ) -> None:
        """Take away what outlives an interface; it is gone, or will be.

        Raises
        ------
        Failed
            If a command or script fails.
        """
        script = self._script(_DOWN)
        if script:
            variables = environment(guest, tags, card, interface)
            await _run((str(script),), f"{script} for {guest}", variables)
        elif self._script(_UP):
            return
        elif card.mode == OPENVSWITCH:
            await _run(unswitched(interface), f"port {interface} of {guest}")
        elif card.mode == ROUTED:
            await _forget(interface)

    def _script(self, names: Sequence[str]) -> Path | None:
        """Return the first script that is there.

        Raises
        ------
        Failed
            If others than root and the agent's user could write to it.
        """
        for name in names:
            path = self._scripts / name
            if os.access(path, os.X_OK) and path.is_file():
                about = path.stat()
                if about.st_mode & _OTHERS or about.st_uid not in (0, os.geteuid()):
                    raise Failed(
                        f"{path} is not run: others than root could write to it",
                        hint=f"chown root {path}; chmod go-w {path}",
                    )
                return path
        return None


def _bridge(card: Card, guest: str) -> Bridge:
    """Return a bridge of the kernel's as it is now."""
    at = _NET / card.link
    if not (at / "bridge").is_dir():
        raise Failed(
            f"there is no bridge {card.link} on this node, which network card "
            f"{card.index} of {guest} is to be in",
            hint=f"ip link add {card.link} type bridge; ip link set {card.link} up",
            bridge=card.link,
        )
    members = sorted(path.name for path in (at / "brif").iterdir())
    found = Bridge(
        mtu=int((at / "mtu").read_text()),
        vlans=setting(at, "vlan_filtering") == 1,
        default=setting(at, "default_pvid"),
        uplinks=tuple(n for n in members if not (_NET / n / "tun_flags").exists()),
    )
    if card.vlan and not found.vlans:
        raise Failed(
            f"bridge {card.link} does not keep VLANs apart, and network card "
            f"{card.index} of {guest} is to be in {card.vlan}",
            hint=f"ip link set {card.link} type bridge vlan_filtering 1",
            bridge=card.link,
        )
    return found


async def _forget(interface: str) -> None:
    """Take the rules away that name an interface: they outlive it."""
    for family in ("-4", "-6"):
        rule = ("ip", family, "rule", "del", "dev", interface)
        while await _code(rule) == 0:
            pass


async def _code(argv: Argv) -> int:
    asked = await asyncio.create_subprocess_exec(*argv, stdout=DEVNULL, stderr=DEVNULL)
    return await asked.wait()


async def _run(argv: Argv, what: str, variables: dict[str, str] | None = None) -> None:
    """Run a program; raise `Failed` with its last words if it fails."""
    try:
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            env=variables or {"PATH": PATH, "LC_ALL": "C"},
        )
    except OSError as error:
        raise Failed(
            f"{what}: {argv[0]} cannot be run: {error.strerror}",
            hint=_PACKAGES.get(argv[0], ""),
        ) from None
    try:
        async with asyncio.timeout(limits.WIRING):
            said, _ = await child.communicate()
    except TimeoutError:
        child.kill()
        await child.wait()
        raise Failed(f"{what}: {' '.join(argv)} lasted {limits.WIRING:.0f} s") from None
    if child.returncode:
        last = clean(said.decode(errors="replace"))[-_SAID:].strip()
        raise Failed(f"{what}: {' '.join(argv)} failed: {last or child.returncode}")


_PACKAGES = {
    "ip": "apt-get install iproute2",
    "bridge": "apt-get install iproute2",
    OVS: "apt-get install openvswitch-switch",
}
