# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of nodes: what one can be, and that no two nodes have the same.

The primary address is where the agent is asked. By the secondary one, which may be in
a network of its own, disks are mirrored and guests migrate.
"""

from collections.abc import Iterator
from ipaddress import ip_address

from moorage.errors import BadInput, Exists
from moorage.model import Config, Node
from moorage.model.addresses import is_v6


def check(word: str, what: str, option: str) -> None:
    """Raise `BadInput` unless others reach a node at a word, its `what` IP address."""
    try:
        found = ip_address(word)
    except ValueError:
        raise BadInput(f"the {what} IP is an address, not '{word}'") from None
    if found.is_unspecified or found.is_multicast:
        raise BadInput(f"no node is reached at {word}: give its address with {option}")
    if found.version > 4 and (found.is_link_local or "%" in word):
        raise BadInput(
            f"the {what} IP {word} needs the name of an interface: give one that is "
            f"valid everywhere, with {option}"
        )


def check_unused(config: Config, node: str, *words: str) -> None:
    """Raise `Exists` if another node has one of some addresses with the same port.

    Loopback addresses are left out: nodes of a scratch cluster share one.

    Parameters
    ----------
    node
        Name of the node that is to have them.
    """
    wanted = {word for word in words if not ip_address(word).is_loopback}
    for other in config.all(Node):
        both = wanted & {other.primary_ip, other.secondary_ip}
        if both and other.name != node:
            raise Exists(f"node {other.name} has the address {both.pop()} already")


def warnings(config: Config, node: Node) -> Iterator[str]:
    """Tell of addresses between which no traffic may go."""
    master = config.node(config.cluster.master_node)
    apart = node.secondary_ip != node.primary_ip
    if apart != (master.secondary_ip != master.primary_ip) and node != master:
        has, lacks = (node, master) if apart else (master, node)
        yield (
            f"node {has.name} has a secondary address and node {lacks.name} has none: "
            "mirrors and migrations between them go from one network to the other"
        )
    if is_v6(node.secondary_ip) != is_v6(master.secondary_ip):
        yield (
            f"the addresses {node.secondary_ip} of node {node.name} and "
            f"{master.secondary_ip} of node {master.name} are of two versions of IP"
        )
