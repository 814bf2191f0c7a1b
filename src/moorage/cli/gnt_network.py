# SPDX-License-Identifier: BSD-2-Clause
"""gnt-network: address pools, and the node groups that they are connected to."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from moorage.errors import BadInput
from moorage.units import counted

from . import details, nic_options, tags
from .command import Call, Command, Example, Operand, Option, Program
from .follow import perform
from .listing import Listing
from .main import run
from .options import ASKING, DEBUG, JOB, JSON, names, refused

PREFIX = "gnt-network"
LISTING = Listing(
    "network", ("name", "network", "gateway", "mac_prefix", "group_list", "tags")
)
_INFO = (
    *("name", "uuid", "serial_no", "network", "gateway", "network6", "gateway6"),
    *("mac_prefix", "free_count", "reserved_count", "map", "external_reservations"),
    *("group_list", "inst_list"),
)
_CONNECTION = ("mode", "link", "vlan")
_LINE = 64
"""Addresses in a line of the map, as Ganeti draws it."""


def _given(call: Call) -> dict[str, Any]:
    found = call.given(
        gateway="gateway",
        network6="network6",
        gateway6="gateway6",
        mac_prefix="mac_prefix",
    )
    for name in ("add_reserved_ips", "remove_reserved_ips"):
        if call.option(name) is not None:
            found[name] = call.option(name)
    return found


def add(call: Call) -> int:
    """Make a network."""
    (name,) = call.words
    if not call.option("network"):
        raise BadInput(
            "a network needs IPv4 addresses, beside which it may have IPv6 ones",
            hint="--network=192.0.2.0/24",
        )
    perform(
        call,
        "OP_NETWORK_ADD",
        network_name=name,
        **call.given(network="network", tags="tags"),
        **_given(call),
        **nic_options.conflicts(call),
    )
    call.terminal.print(f"Added network {name}")
    return 0


def modify(call: Call) -> int:
    """Change a network."""
    (name,) = call.words
    fields = _given(call)
    if not fields:
        raise BadInput("nothing to change", hint=f"{PREFIX} modify --help")
    perform(call, "OP_NETWORK_SET_PARAMS", network_name=name, **fields)
    call.terminal.print(f"Modified network {name}")
    return 0


def remove(call: Call) -> int:
    """Remove a network that nothing is connected to."""
    (name,) = call.words
    call.ask(f"Remove network {name}?")
    perform(call, "OP_NETWORK_REMOVE", network_name=name)
    call.terminal.print(f"Removed network {name}")
    return 0


def rename(call: Call) -> int:
    """Give a network another name."""
    name, new = call.words
    perform(call, "OP_NETWORK_RENAME", network_name=name, new_name=new)
    call.terminal.print(f"Renamed network {name} to {new}")
    return 0


def connect(call: Call) -> int:
    """Let cards in a network be on the nodes of groups."""
    name, *groups = call.words
    fields = {f"network_{key}": one for key, one in _connection(call).items()}
    for group in groups or _all_groups(call):
        perform(
            call,
            "OP_NETWORK_CONNECT",
            network_name=name,
            group_name=group,
            **fields,
            **nic_options.conflicts(call),
        )
        call.terminal.print(f"Connected network {name} to {group}")
    return 0


def disconnect(call: Call) -> int:
    """Let no card in a network be on the nodes of groups any more."""
    name, *groups = call.words
    for group in groups or _connected(call, name):
        perform(call, "OP_NETWORK_DISCONNECT", network_name=name, group_name=group)
        call.terminal.print(f"Disconnected network {name} from {group}")
    return 0


def _connection(call: Call) -> dict[str, Any]:
    given = nic_options.params(call)
    for name in given:
        if name not in _CONNECTION:
            told = ", ".join(_CONNECTION)
            raise BadInput(f"a connection has no parameter '{name}': it has {told}")
    return given


def _all_groups(call: Call) -> list[str]:
    """Return the names of all node groups, as Ganeti takes them where none is named."""
    _, rows = call.client.query("group", ["name"], None)
    return [str(value) for ((_, value),) in rows]


def _connected(call: Call, name: str) -> list[str]:
    _, rows = call.client.query("network", ["group_list"], ["==", "name", name])
    return [str(group[0]) for ((_, groups),) in rows for group in groups or ()]


def info(call: Call) -> int:
    """Print all that is known of some networks, as Ganeti does."""
    found = details.look_up(call, "network", _INFO)
    if call.option("json"):
        return details.show(call, found, dict)
    for one in found:
        for line in (*_shown(one), *_users(call, one)):
            call.terminal.print(line)
    return 0


def _shown(one: Mapping[str, Any]) -> Iterator[str]:
    size = one["free_count"] + one["reserved_count"]
    yield f"Network name: {one['name']}"
    yield f"UUID: {one['uuid']}"
    yield f"Serial number: {one['serial_no']}"
    yield f"  Subnet: {one['network']}"
    yield f"  Gateway: {one['gateway']}"
    yield f"  IPv6 Subnet: {one['network6']}"
    yield f"  IPv6 Gateway: {one['gateway6']}"
    yield f"  Mac Prefix: {one['mac_prefix']}"
    yield f"  Size: {size}"
    yield f"  Free: {one['free_count']} ({100 * one['free_count'] / size:.2f}%)"
    yield "  Usage map:"
    for first in range(0, size, _LINE):
        part = one["map"][first : first + _LINE]
        yield f"     {first:>3} {part:<{_LINE}} {first + _LINE - 1}"
    yield "         (X) used    (.) free"
    yield "  externally reserved IPs:"
    yield from (f"    {line}" for line in wrap(one["external_reservations"], _LINE))
    yield from _groups(one["group_list"])


def _groups(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    if not groups:
        yield "  not connected to any node group"
        return
    yield "  connected to node groups:"
    for group, mode, link, vlan in groups:
        yield f"    {group} (mode:{mode} link:{link} vlan:{vlan})"


def _users(call: Call, one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the instances with cards in a network, and the addresses of these."""
    instances = one["inst_list"]
    if not instances:
        yield "  not used by any instances"
        return
    yield f"  used by {counted(len(instances), 'instance')}:"
    fields = ["name", "nic.ips", "nic.networks"]
    wanted = ["|", *(["==", "name", name] for name in instances)]
    _, rows = call.client.query("instance", fields, wanted)
    for (_, name), (_, ips), (_, networks) in rows:
        told = (
            f"{number}:{ip}"
            for number, (ip, uuid) in enumerate(zip(ips, networks, strict=True))
            if uuid == one["uuid"]
        )
        yield f"    {name}: {', '.join(told)}"


_NETWORK = (Operand("NETWORK"),)
_GROUPS = (*_NETWORK, Operand("GROUP", 0, None))
_WORDS = (
    Option(("--gateway",), "its IPv4 gateway, one of its addresses; none", "IP"),
    Option(("--network6",), "its IPv6 addresses", "NETWORK6"),
    Option(("--gateway6",), "its IPv6 gateway", "IP6"),
    Option(("-m", "--mac-prefix"), "first three bytes of its cards' MACs", "MAC"),
    Option(
        ("--add-reserved-ips",),
        "addresses that no card gets, or ranges A-B, with commas",
        "IPS",
        names,
    ),
)
_LIST = LISTING.commands(PREFIX, "free_count < 10")

PROGRAM = Program(
    "gnt-network",
    "networks, whose addresses network cards get",
    (
        Command(
            "add",
            add,
            "Make a network",
            _NETWORK,
            (
                Option(("--network",), "its IPv4 addresses", "NETWORK"),
                *_WORDS,
                nic_options.CONFLICTS._replace(
                    help="leave addresses of the cluster's nodes free"
                ),
                Option(("--tags",), "tags, with commas", "TAGS", names),
                *JOB,
            ),
            examples=(
                Example(
                    "gnt-network add --network=192.0.2.0/24 --gateway=192.0.2.1 lan",
                    "256 addresses, three of which no card gets",
                ),
            ),
        ),
        *_LIST,
        Command(
            "info",
            info,
            "Show all about networks",
            (Operand("NETWORK", 0, None),),
            (JSON, DEBUG),
            ("show",),
        ),
        Command(
            "modify",
            modify,
            "Change a network",
            _NETWORK,
            (
                *_WORDS,
                refused("--network", "a network keeps its addresses", "NETWORK"),
                Option(
                    ("--remove-reserved-ips",),
                    "addresses that cards may get again, or ranges A-B, with commas",
                    "IPS",
                    names,
                ),
                *JOB,
            ),
            examples=(
                Example(
                    "gnt-network modify --add-reserved-ips=192.0.2.2-192.0.2.9 lan",
                    "no card gets one of these",
                ),
            ),
        ),
        Command(
            "connect",
            connect,
            "Connect a network to node groups, or to all",
            _GROUPS,
            (
                nic_options.DEFAULTS,
                nic_options.CONFLICTS._replace(
                    help="let cards, or a network in the same link, have its addresses"
                ),
                *JOB,
            ),
            examples=(
                Example(
                    "gnt-network connect -N mode=bridged,link=br0 lan default",
                    "its cards are in bridge br0 there",
                ),
            ),
        ),
        Command(
            "disconnect",
            disconnect,
            "Disconnect a network from node groups",
            _GROUPS,
            JOB,
        ),
        Command(
            "remove",
            remove,
            "Remove a network that nothing is connected to",
            _NETWORK,
            (*ASKING, *JOB),
        ),
        Command(
            "rename",
            rename,
            "Give a network another name",
            (*_NETWORK, Operand("NEW_NAME")),
            JOB,
        ),
        *tags.commands(PREFIX),
    ),
)


def main() -> int:
    """Run gnt-network."""
    return run(PROGRAM)
