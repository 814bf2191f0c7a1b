# SPDX-License-Identifier: BSD-2-Clause
"""moorage export-config: the configuration as a ``config.data`` of Ganeti's."""

from importlib import import_module
from ipaddress import ip_address
from pathlib import Path

from moorage.errors import BadInput, Failed

from .command import Call, Command, Operand, Option
from .daemons_side import daemons
from .state_backup import places


def _export(call: Call) -> None:
    target = Path(call.words[0])
    formats = import_module("moorage.config_data")
    said = call.option("to_version")
    version = formats.known_version(said) if said else formats.NEWEST
    address = None
    if ip := call.option("master_ip"):
        device = call.option("master_netdev") or ""
        master = import_module("moorage.model.master_address").MasterAddress
        address = master(_checked(ip), device, _bits(ip, call))
    elif call.option("master_netdev") or call.option("master_netmask"):
        raise BadInput("--master-netdev and --master-netmask are about --master-ip")
    module = daemons("config_export")
    try:
        made = module.export(places(call), target, version, address)
    except OSError as error:
        raise Failed(f"{error.filename or target}: {error.strerror}") from error
    call.terminal.print(
        f"{target} has the configuration of cluster {made.cluster} for Ganeti {version}"
    )
    for line in made.lost:
        call.terminal.talk(f"WARNING: Ganeti {version} cannot have {line}")
    for line in made.left:
        call.terminal.talk(f"WARNING: Ganeti has no place for {line}")
    for one in made.files[1:]:
        call.terminal.print(f"{one} has what Ganeti has no place for")


def _checked(ip: str) -> str:
    try:
        return str(ip_address(ip))
    except ValueError:
        raise BadInput(f"'{ip}' is no address") from None


def _bits(ip: str, call: Call) -> int:
    most = ip_address(ip).max_prefixlen
    said = call.option("master_netmask")
    bits = most if said is None else int(said)
    if not 0 < bits <= most:
        raise BadInput(f"a mask of {ip} has 1 to {most} bits, not {bits}")
    return bits


COMMANDS = (
    Command(
        "export-config",
        _export,
        (Operand("FILE"),),
        (
            Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR"),
            Option(
                ("--to-version",),
                "the Ganeti that is to read it, from 2.7 to 3.1 (3.1)",
                "VERSION",
            ),
            Option(
                ("--master-ip",),
                "the address that moves with Ganeti's master (the cluster's own)",
                "IP",
            ),
            Option(("--master-netdev",), "the device that it is set on", "DEVICE"),
            Option(
                ("--master-netmask",),
                "the bits of its mask (all)",
                "BITS",
                convert=int,
            ),
        ),
        examples={
            "moorage export-config --master-ip 192.0.2.9 /root/config.data": (
                "for Ganeti 3.1"
            ),
        },
        here="it reads the master's files",
    ),
)
