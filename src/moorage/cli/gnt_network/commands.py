# SPDX-License-Identifier: BSD-2-Clause
"""gnt-network: address pools, and the node groups that they are connected to."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, get_args

from moorage.cli import nic_options
from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fills
from moorage.cli.follow import perform
from moorage.cli.listing import Listing
from moorage.cli.operation import Needs, Performs
from moorage.cli.options import ASKING, DEBUG, JOB, JSON, refused
from moorage.errors import BadInput
from moorage.units import counted

PREFIX = "gnt-network"
LISTING = Listing(
    "network", ("name", "network", "gateway", "mac_prefix", "group_list", "tags")
)
_INFO = (
    *("name", "uuid", "serial_no", "network", "gateway", "network6", "gateway6"),
    *("mac_prefix", "free_count", "reserved_count", "map", "external_reservations"),
    *("group_list", "inst_list"),
)
_CONNECTION = ("mode", "link", "vlan", "filter")
_LINE = 64
"""Addresses in a line of the map, as Ganeti draws it."""


def _is_mode(word: str) -> bool:
    from moorage.model.kinds import NicMode  # noqa: PLC0415 - slow to load

    return word in get_args(NicMode)


def connect(call: Call) -> None:
    """Let cards in a network be on the nodes of groups."""
    name, *groups = call.words
    connection = _connection(call)
    if not connection and len(groups) > 1 and _is_mode(groups[0]):
        mode, link, *others = groups
        if mode not in _all_groups(call):  # Ganeti's older order
            connection, groups = {"mode": mode, "link": link}, others
    fields = {f"network_{key}": one for key, one in connection.items()}
    if groups:  # none is connected while another one is not there
        call.rows("group", ["name"], ["|", *(["==", "name", one] for one in groups)])
    for group in groups or _all_groups(call):
        fields |= {**call.fields, "group_name": group}
        perform(call, **fields)
        call.terminal.print(f"Connected network {name} to {group}")


def _disconnect(call: Call) -> None:
    name, *groups = call.words
    for group in groups or _connected(call, name):
        perform(call, **call.fields, group_name=group)
        call.terminal.print(f"Disconnected network {name} from {group}")


def _connection(call: Call) -> dict[str, Any]:
    given = call.option("nicparams") or {}
    for name in given:
        if name not in _CONNECTION:
            told = ", ".join(_CONNECTION)
            raise BadInput(f"a connection has no parameter '{name}': it has {told}")
    return given


def _all_groups(call: Call) -> list[str]:
    """Return the names of all node groups, as Ganeti takes them where none is named."""
    return [row["name"] for row in call.rows("group", ["name"])]


def _connected(call: Call, name: str) -> list[str]:
    rows = call.rows("network", ["group_list"], ["==", "name", name])
    return [group[0] for row in rows for group in row["group_list"] or ()]


def _info(call: Call) -> None:
    found = call.look_up("network", _INFO)
    call.show(found, (line for one in found for line in _told(call, one)))


def _told(call: Call, one: Mapping[str, Any]) -> Iterator[str]:
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
    yield from _users(call, one)


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
    for row in call.rows("instance", fields, wanted):
        cards = enumerate(zip(row["nic.ips"], row["nic.networks"], strict=True))
        told = (f"{number}:{ip}" for number, (ip, net) in cards if net == one["uuid"])
        yield f"    {row['name']}: {', '.join(told)}"


_NETWORK = (Operand("NETWORK", field="network_name"),)
_MEMBERS = (*_NETWORK, Operand("GROUP", 0, None))
_ADDRESSES = Needs(
    ("network",),
    "a network needs IPv4 addresses, beside which it may have IPv6 ones",
    "--network=192.0.2.0/24",
)
_WORDS = fills("--gateway --network6 --gateway6 -m/--mac-prefix --add-reserved-ips")
_LIST = LISTING.commands(PREFIX, "free_count < 10")

COMMANDS = (
    Command(
        "add",
        Performs("Added network {network_name}", needs=_ADDRESSES),
        _NETWORK,
        (
            *fills("--network --tags"),
            *_WORDS,
            nic_options.CONFLICTS._replace(
                help="leave addresses of the cluster's nodes free"
            ),
            *JOB,
        ),
        examples={
            "gnt-network add --network=192.0.2.0/24 --gateway=192.0.2.1 lan": (
                "256 addresses, three of which no card gets"
            )
        },
        operation="OP_NETWORK_ADD",
    ),
    *_LIST,
    Command("info", _info, (Operand("NETWORK", 0, None),), (JSON, DEBUG)),
    Command(
        "modify",
        Performs("Modified network {network_name}", lacks=f"{PREFIX} modify --help"),
        _NETWORK,
        (
            *_WORDS,
            refused("--network", "a network keeps its addresses", "NETWORK"),
            *fills("--remove-reserved-ips"),
            *JOB,
        ),
        examples={
            "gnt-network modify --add-reserved-ips=192.0.2.2-192.0.2.9 lan": (
                "no card gets one of these"
            )
        },
        operation="OP_NETWORK_SET_PARAMS",
    ),
    Command(
        "connect",
        connect,
        _MEMBERS,
        (
            nic_options.DEFAULTS._replace(
                help="how its cards are connected: mode=bridged,link=br0,vlan=",
                metavar="KEY=VALUE,...",
                field=False,
            ),
            nic_options.CONFLICTS._replace(
                help="let cards, or a network in the same link, have its addresses"
            ),
            *JOB,
        ),
        examples={
            "gnt-network connect -N mode=bridged,link=br0 lan default": (
                "its cards are in bridge br0 there"
            ),
            "gnt-network connect lan bridged br0 default": (
                "the same, in the order of older Ganetis"
            ),
        },
        operation="OP_NETWORK_CONNECT",
    ),
    Command(
        "disconnect", _disconnect, _MEMBERS, JOB, operation="OP_NETWORK_DISCONNECT"
    ),
    Command(
        "remove",
        Performs(
            "Removed network {network_name}", warns="Remove network {network_name}?"
        ),
        _NETWORK,
        (*ASKING, *JOB),
        operation="OP_NETWORK_REMOVE",
    ),
    Command(
        "rename",
        Performs("Renamed network {network_name} to {new_name}"),
        (*_NETWORK, Operand("NEW_NAME", field="new_name")),
        JOB,
        operation="OP_NETWORK_RENAME",
    ),
)
