# SPDX-License-Identifier: BSD-2-Clause
"""Network cards of instances as queries show them."""

from collections.abc import Callable
from typing import Any

from moorage.model import Instance, Nic, nicparams

from .field import nth, number, numbered, other, text
from .snapshot import Snapshot

_PARTS = {
    "ip": "IP address",
    "mac": "MAC address",
    "name": "Name",
    "uuid": "Uuid",
    "mode": "Mode",
    "link": "Link",
    "bridge": "Bridge",
    "vlan": "VLAN",
    "network": "Uuid of the network",
    "network.name": "Name of the network",
}
_ALIASES = {
    "ip": "ip",
    "mac": "mac",
    "bridge": "bridge",
    "nic_mode": "mode",
    "nic_link": "link",
    "nic_network": "network",
}
_PLURAL = {
    "ips": "ip",
    "macs": "mac",
    "names": "name",
    "uuids": "uuid",
    "modes": "mode",
    "links": "link",
    "bridges": "bridge",
    "vlans": "vlan",
    "networks": "network",
    "networks.names": "network.name",
}


def part(snapshot: Snapshot, one: Instance, nic: Nic, name: str) -> Any:  # noqa: ANN401
    """Return an attribute or a parameter of a card, filled in as in its node group."""
    if name in ("ip", "mac", "name", "uuid", "network"):
        return getattr(nic, name)
    if name == "network.name":
        return snapshot.config.network(nic.network).name if nic.network else None
    group = snapshot.config.group_of(one)
    filled = nicparams.filled(snapshot.config.cluster, group, nic)
    if name == "bridge":
        return filled.link if filled.mode == nicparams.BRIDGED else None
    return getattr(filled, name)


def _nth(name: str) -> Callable[[Snapshot, Any, int], Any]:
    def get(snapshot: Snapshot, one: Instance, number: int) -> Any:  # noqa: ANN401
        return part(snapshot, one, one.nics[number], name)

    return get


def _each(name: str) -> Callable[[Snapshot, Any], Any]:
    def get(snapshot: Snapshot, one: Instance) -> list[Any]:
        return [part(snapshot, one, nic, name) for nic in one.nics]

    return get


FIELDS = (
    number("nic.count", "NICs", "How many cards", lambda _s, i: len(i.nics)),
    other(
        "custom_nicparams",
        "CustomNicParams",
        "Its own",
        lambda _s, i: [nic.nicparams for nic in i.nics],
    ),
    *(
        other(f"nic.{name}", f"NIC_{name}", f"{_PARTS[one]} of each", _each(one))
        for name, one in _PLURAL.items()
    ),
    *(
        text(name, name.upper(), f"{_PARTS[one]} of the first", nth(_nth(one), 0))
        for name, one in _ALIASES.items()
    ),
)
FAMILIES = tuple(
    numbered(
        f"nic.{name}", (f"Nic{name.upper()}", "text", f"{doc} of card"), _nth(name)
    )
    for name, doc in _PARTS.items()
)
