# SPDX-License-Identifier: BSD-2-Clause
"""Master candidates: how many there are to be, and which nodes become one."""

from collections.abc import Collection

from moorage.model import Config, Node, successor


def able(node: Node) -> bool:
    """Whether a node can be a candidate as it is."""
    return node.master_capable and not (node.offline or node.drained)


def missing(config: Config, without: Collection[str] = ()) -> int:
    """Return how many candidates there are too few, at least 0.

    Nodes `without`, by their uuids, do not count.
    """
    nodes = [node for node in config.named(Node) if node.uuid not in without]
    having = sum(node.master_candidate for node in nodes)
    wanted = min(config.cluster.candidate_pool_size, sum(map(able, nodes)))
    return max(wanted - having, 0)


def room_for_one(config: Config) -> bool:
    """Whether a node that comes is to be a candidate."""
    having = sum(node.master_candidate for node in config.named(Node))
    return having < config.cluster.candidate_pool_size


def promoted(
    config: Config, now: float, without: Collection[str] = ()
) -> tuple[Node, ...]:
    """Return the nodes that become candidates, so that there are enough of them.

    Nodes `without`, by their uuids, are none, and do not become one.
    """
    free = (
        node
        for node in config.named(Node)
        if able(node) and not node.master_candidate and node.uuid not in without
    )
    wanted = missing(config, without)
    return tuple(
        successor(node, now, master_candidate=True)
        for node, _ in zip(free, range(wanted), strict=False)
    )
