# SPDX-License-Identifier: BSD-2-Clause
"""A cluster while planning: nodes and instances as they would be."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from moorage.htools.assignment import drop_primary, drop_secondary
from moorage.htools.constants import Mirror
from moorage.htools.fleet import Fleet, Group
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.moves import Moved
from moorage.htools.node import Node
from moorage.htools.policy import Policy


class State(NamedTuple):
    """Nodes and instances at one moment of a plan.

    Attributes
    ----------
    fleet : Fleet
        What it was loaded from.
    nodes : list of Node
        By index; a part of the cluster keeps the indices of the whole.
    insts : list of Inst
        By index.
    view : tuple of int
        Indices of the nodes in question, in order: all of them, or a group's.
    members : tuple of int
        Indices of the instances in question.
    """

    fleet: Fleet
    nodes: list[Node]
    insts: list[Inst]
    view: tuple[int, ...]
    members: tuple[int, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The node groups."""
        return self.fleet.groups

    @property
    def policy(self) -> Policy:
        """The cluster's instance policy."""
        return self.fleet.policy

    @property
    def has_shared(self) -> bool:
        """Whether somebody in question lives on storage that other nodes reach."""
        return any(inst.mirror is Mirror.EXTERNAL for inst in self.people)

    @property
    def seen(self) -> list[Node]:
        """The nodes in question, in order."""
        return [self.nodes[at] for at in self.view]

    @property
    def failing(self) -> list[Node]:
        """The nodes in question that are online and fail N+1."""
        return [node for node in self.seen if node.fails_n1 and not node.offline]

    @property
    def tells_units(self) -> bool:
        """Whether the master tells storage units: then it answers as is done here."""
        return any(node.units is not None for node in self.nodes)

    @property
    def is_alone(self) -> bool:
        """Whether at most one node is online: nobody can fail over anywhere."""
        return sum(not node.offline for node in self.nodes) < 2

    @property
    def people(self) -> list[Inst]:
        """The instances in question, in order."""
        return [self.insts[at] for at in self.members]

    def after(self, moved: Moved) -> Self:
        """Return the state after a move."""
        insts = list(self.insts)
        insts[moved.inst.idx] = moved.inst
        return self._replace(nodes=moved.on(self.nodes), insts=insts)

    def with_nodes(self, nodes: Iterable[Node]) -> Self:
        """Return the state with some nodes in another condition."""
        after = list(self.nodes)
        for node in nodes:
            after[node.idx] = node
        return self._replace(nodes=after)

    def with_insts(self, insts: list[Inst]) -> Self:
        """Return the state with other instances."""
        return self._replace(insts=insts)

    def with_new(self, moved: Moved) -> Self:
        """Return the state with one more instance, at the end.

        Its disks take their room of units that nodes share, on each of them.
        """
        idx = moved.inst.idx
        nodes = moved.on(self.nodes)
        if moved.inst.wants:
            nodes = [_spent(node, moved.inst) for node in nodes]
        return self._replace(
            nodes=nodes,
            insts=[*self.insts, moved.inst],
            members=(*self.members, idx),
        )

    def placed(self, moved: Moved) -> Self:
        """Return the state with an instance placed, be it new or not."""
        idx = moved.inst.idx
        if idx >= len(self.insts):
            return self.with_new(moved)
        old, kept = self.insts[idx], {node.idx for node in moved.nodes}
        left = []
        if old.p not in kept:
            left.append(drop_primary(self.nodes[old.p], old))
        if old.s != NOWHERE and old.s not in kept:
            left.append(drop_secondary(self.nodes[old.s], old))
        return self.with_nodes(left).after(moved)

    def group_view(self, group: int) -> Self:
        """Return the same state with one node group in question."""
        view = tuple(at for at in self.view if self.nodes[at].group == group)
        inside = set(view)
        members = tuple(at for at in self.members if self.insts[at].p in inside)
        return self._replace(view=view, members=members)

    def split(self) -> list[tuple[int, Self]]:
        """Return (group index, view of it) for each group that has nodes."""
        groups = sorted({self.nodes[at].group for at in self.view})
        return [(group, self.group_view(group)) for group in groups]

    def straddlers(self) -> list[Inst]:
        """Return instances whose two nodes are in different groups."""
        return [
            inst
            for inst in self.people
            if inst.s != NOWHERE
            and self.nodes[inst.p].group != self.nodes[inst.s].group
        ]


def _spent(node: Node, inst: Inst) -> Node:
    if node.units is None:
        return node
    units = node.units.spent(inst.wants)
    return node if units is node.units else node.copy(units=units)
