# SPDX-License-Identifier: BSD-2-Clause
"""Whether a node has the bridges that network cards are to be in.

Nodes tell with their room what bridges they have; one with an older agent does not.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from moorage.errors import WrongState
from moorage.jobs import View
from moorage.model import Config, Link, Nic, Node, nicparams
from moorage.model.nicparams import OPENVSWITCH, NicParams
from moorage.ops.guests import cabling

from . import placement


class Wanted(NamedTuple):
    """A bridge that a node must have.

    Attributes
    ----------
    vlans
        Whether it must keep VLANs apart.
    """

    name: str
    switch: bool
    vlans: bool


def wanted(params: NicParams) -> Wanted | None:
    """Return the bridge that a card needs; None if it needs none."""
    if not params.bridge:
        return None
    return Wanted(params.bridge, params.mode == OPENVSWITCH, bool(params.vlan))


def problem(links: Iterable[Link], want: Wanted) -> str:
    """Return why a node with some links is not fit; empty if it is."""
    kind = "openvswitch" if want.switch else "bridge"
    found = next((one for one in links if one.name == want.name), None)
    if found is None or found.kind != kind:
        word = "bridge of Open vSwitch" if want.switch else "bridge"
        return f"it has no {word} {want.name}"
    if want.vlans and not found.vlans:
        return f"its bridge {want.name} does not keep VLANs apart"
    return ""


def remedy(links: Iterable[Link], want: Wanted) -> str:
    """Return what to type on a node with some links, which is not fit."""
    if want.switch:
        return f"ovs-vsctl add-br {want.name}"
    if any(one.name == want.name and one.kind == "bridge" for one in links):
        return f"ip link set {want.name} type bridge vlan_filtering 1"
    vlans = " vlan_filtering 1" if want.vlans else ""
    add = f"ip link add {want.name} type bridge{vlans}"
    return f"{add}; ip link set {want.name} up"


def needed(config: Config, node: Node, cards: Sequence[Nic]) -> Iterator[Wanted]:
    """Yield the bridges that cards need on a node."""
    group = config.group(node.group)
    for nic in cards:
        want = wanted(nicparams.filled(config.cluster, group, nic))
        if want:
            yield want


def check(view: View, node: Node, cards: Sequence[Nic]) -> None:
    """Raise unless cards can be connected on a node, which was asked for its room.

    Raises
    ------
    WrongState
        If a network is not connected to its node group, or a bridge is missing; or the
        node cannot hold a card to its addresses.
    BadInput
        If a card has no address, and is routed or held to one.
    """
    config = view.config
    cabling.check_connected(config, config.group(node.group), cards)
    cabling.check_routed(config, node, cards)
    filtered = cabling.check_filtered(config, node, cards)
    wants = list(needed(config, node, cards))
    facts = None
    if wants or filtered:
        facts = view.answer(placement.room_on(config, node))
    if facts and filtered and not facts.filters:
        raise WrongState(
            f"network cards cannot be filtered on node {node.name}: it has no nftables",
            hint=f"on {node.name}: apt-get install nftables",
            node=node.name,
        )
    if facts is None or facts.links is None:
        return
    for want in wants:
        why = problem(facts.links, want)
        if why:
            raise WrongState(
                f"network cards cannot be connected on node {node.name}: {why}",
                hint=f"on {node.name}: {remedy(facts.links, want)}",
                node=node.name,
                bridge=want.name,
            )
