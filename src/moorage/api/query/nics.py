# SPDX-License-Identifier: BSD-2-Clause
"""Network cards of instances as queries show them."""

from collections.abc import Callable
from typing import Any

from moorage.model import Instance, Nic, nicparams

from .field import nth, number, numbered, other, text
from .snapshot import Snapshot

_PARTS = {
    "ip": ("IP", "IP address"),
    "mac": ("MAC", "MAC address"),
    "name": ("Name", "Name"),
    "uuid": ("UUID", "Uuid"),
    "mode": ("Mode", "Mode"),
    "link": ("Link", "Link"),
    "bridge": ("Bridge", "Bridge"),
    "vlan": ("VLAN", "VLAN"),
    "filter": ("Filter", "Filter"),
    "network": ("Network", "Uuid of the network"),
    "network.name": ("NetworkName", "Name of the network"),
}
"""What is said of a card in titles, and in words."""
_ALIASES = {
    "ip": "ip",
    "mac": "mac",
    "bridge": "bridge",
    "nic_mode": "mode",
    "nic_link": "link",
    "nic_network": "network",
}
_PLURAL = {
    "ips": ("ip", "NIC_IPs"),
    "macs": ("mac", "NIC_MACs"),
    "names": ("name", "NIC_Names"),
    "uuids": ("uuid", "NIC_UUIDs"),
    "modes": ("mode", "NIC_modes"),
    "links": ("link", "NIC_links"),
    "bridges": ("bridge", "NIC_bridges"),
    "vlans": ("vlan", "NIC_VLANs"),
    "networks": ("network", "NIC_networks"),
    "networks.names": ("network.name", "NIC_networks_names"),
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
        "CustomNicParameters",
        "Its own",
        lambda _s, i: [nic.nicparams for nic in i.nics],
    ),
    *(
        other(f"nic.{name}", title, f"{_PARTS[one][1]} of each", _each(one))
        for name, (one, title) in _PLURAL.items()
    ),
    *(
        text(
            name,
            f"Nic{_PARTS[one][0]}/0",
            f"{_PARTS[one][1]} of the first",
            nth(_nth(one), 0),
        )
        for name, one in _ALIASES.items()
    ),
)
FAMILIES = tuple(
    numbered(f"nic.{name}", (f"Nic{title}", "text", f"{doc} of card"), _nth(name))
    for name, (title, doc) in _PARTS.items()
)
