# SPDX-License-Identifier: BSD-2-Clause
"""How a network card is connected on its node: mode, link and VLAN, Ganeti's words.

A card's own parameters cover those of its network in the node group, and these the
cluster's. They are filled in where they are used, so a card that moves to another node
group is connected as its network is there.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moorage.errors import BadInput

from .objects import Cluster, Nic, NodeGroup

BRIDGED, ROUTED, OPENVSWITCH = MODES = ("bridged", "routed", "openvswitch")
WAYS = ("mode", "link", "vlan")
"""The parameters that say where a card is connected."""
NAMES = (*WAYS, "filter")
BY_MAC, BY_IP = "mac", "ip"
FILTERS = ("", BY_MAC, BY_IP)
"""What a card is held to, the laxest first: nothing, its MAC, its IP addresses, too."""
INITIAL = {"mode": BRIDGED, "link": "br0", "vlan": ""}
"""The defaults of a new cluster. One that has none connects a card to nothing."""
DEFAULT = "default"
"""The only profile of cards' parameters, as in Ganeti."""
_LINK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", re.ASCII)
_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")
_VLAN = re.compile(r"(?P<access>\.?[0-9]{1,4})?(?P<trunks>(:[0-9]{1,4})*)", re.ASCII)
_VLANS = range(1, 4095)


class NicParams(Struct, frozen=True):
    """How one card is connected.

    Attributes
    ----------
    mode
        ``bridged``, ``routed`` or ``openvswitch``.
    link
        The bridge, Open vSwitch's bridge, or the routing table; without a bridge the
        card has no cable, without a table its route is in the main one.
    vlan
        ``.5`` untagged, ``:10:20`` tagged, ``.5:10:20`` both; empty for none.
    filter
        ``mac``, and nothing is heard from the card under another MAC address; ``ip``,
        nor under another IP address; empty for neither.
    """

    mode: str = BRIDGED
    link: str = ""
    vlan: str = ""
    filter: str = ""

    @property
    def connected(self) -> bool:
        """Whether the card has a cable."""
        return bool(self.link) or self.mode == ROUTED

    @property
    def bridge(self) -> str:
        """The bridge that a node must have; empty for none."""
        return "" if self.mode == ROUTED else self.link

    def access(self) -> int | None:
        """Return the VLAN of untagged packets, if there is one."""
        found = _VLAN.fullmatch(self.vlan)
        word = found["access"] if found else None
        return int(word.removeprefix(".")) if word else None

    def trunks(self) -> list[int]:
        """Return the VLANs of tagged packets."""
        found = _VLAN.fullmatch(self.vlan)
        words = found["trunks"].split(":") if found else []
        return [int(word) for word in words if word]


def filled(cluster: Cluster, group: NodeGroup, nic: Nic) -> NicParams:
    """Return how a card is connected in a node group."""
    network = group.networks.get(nic.network, {}) if nic.network else {}
    usual = over(defaults(cluster), network)
    found = over(usual, nic.nicparams)
    filters = (one.get("filter", "") for one in (usual, found))
    found["filter"] = max(filters, key=FILTERS.index)
    return found.params()


class Given(dict[str, str]):
    """Parameters of cards, as far as they are given."""

    def params(self) -> NicParams:
        """Return them all."""
        return NicParams(**{name: self.get(name) or "" for name in NAMES})


def over(usual: Mapping[str, Any], own: Mapping[str, Any]) -> Given:
    """Return parameters that cover others.

    Another mode stands alone: a bridge is no routing table. A filter holds in any.
    """
    same = own.get("mode", usual.get("mode")) == usual.get("mode")
    kept = usual if same else {"filter": usual.get("filter", "")}
    return Given({name: str(one or "") for name, one in {**kept, **own}.items()})


def defaults(cluster: Cluster) -> dict[str, Any]:
    """Return the cluster's parameters of cards that have no others."""
    nothing = {"mode": BRIDGED, "link": "", "vlan": ""}
    return {**nothing, **cluster.nicparams.get(DEFAULT, {})}


def checked(given: Mapping[str, Any]) -> dict[str, str]:
    """Return parameters as they are kept.

    Raises
    ------
    BadInput
        If there is no such parameter, or it cannot have the value.
    """
    for name in given:
        if name not in NAMES:
            known = ", ".join(NAMES)
            raise BadInput(f"a network card has no parameter '{name}': it has {known}")
    found = {name: str(value) for name, value in given.items()}
    if found.get("filter") == "none":
        found["filter"] = ""
    if "mode" in found and found["mode"] not in MODES:
        raise BadInput(f"a mode is {', '.join(MODES)}, not '{found['mode']}'")
    if found.get("link") and not _LINK.fullmatch(found["link"]):
        raise BadInput(f"'{found['link']}' is not the name of a bridge or table")
    if "vlan" in found:
        found["vlan"] = _vlan(found["vlan"])
    if found.get("filter", "") not in FILTERS:
        raise BadInput(f"a filter is mac, ip or none, not '{found['filter']}'")
    return found


def check_whole(params: NicParams) -> None:
    """Raise `BadInput` for parameters that do not go together."""
    if params.vlan and params.mode == ROUTED:
        raise BadInput(f"a routed network card is in no VLAN: vlan={params.vlan}")
    if params.filter and params.mode == OPENVSWITCH:
        raise BadInput(
            f"filter={params.filter} does not hold in Open vSwitch, which has rules of "
            "its own"
        )
    if params.filter == BY_IP and params.trunks():
        raise BadInput(
            f"filter={BY_IP} does not hold behind the tags of a VLAN: "
            f"vlan={params.vlan}",
            hint=f"filter={BY_MAC}",
        )


def _vlan(word: str) -> str:
    found = _VLAN.fullmatch(word)
    if found is None:
        raise BadInput(
            f"'{word}' is not a VLAN: .5 is one without tags, :10:20 are two with tags"
        )
    access, trunks = found["access"] or "", found["trunks"]
    for number in (access.removeprefix("."), *trunks.split(":")):
        if number and int(number) not in _VLANS:
            raise BadInput(f"a VLAN has a number from 1 to 4094, not {number}")
    return f".{access.removeprefix('.')}{trunks}" if access else trunks


def checked_prefix(prefix: str) -> str:
    """Return the first three bytes of MAC addresses, in small letters.

    Raises
    ------
    BadInput
        If it is none, or one of groups of cards.
    """
    found = prefix.lower()
    if _PREFIX.fullmatch(found) and int(found[:2], 16) % 2:
        raise BadInput(
            f"a MAC prefix that begins with {found[:2]} is of groups of cards"
        )
    if not _PREFIX.fullmatch(found):
        raise BadInput(f"a MAC prefix is three bytes as aa:00:00, not '{prefix}'")
    return found
