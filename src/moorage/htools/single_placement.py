# SPDX-License-Identifier: BSD-2-Clause
"""One new instance on given nodes: what that changes, or why it cannot be.

A pair of nodes is scored from running sums (`moorage.htools.incremental_score.Sums`),
one node by a full score; the two differ in their last digits, and so do decisions: so
both exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.htools.assignment import add_primary, add_secondary
from moorage.htools.constraints.admission import policy, pool, reach
from moorage.htools.constraints.violation import Violation, violation_in
from moorage.htools.incremental_score import Sums
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import score
from moorage.htools.moves import Moved, shared_domains
from moorage.htools.node import Node
from moorage.htools.state import State


@dataclass(frozen=True, slots=True)
class Placement:
    """One way to place an instance.

    Attributes
    ----------
    moved : Moved
        The instance on its nodes, and the nodes with it, primary first.
    score : float
        The score with it.
    """

    moved: Moved
    score: float

    @property
    def nodes(self) -> tuple[int, ...]:
        """Indices of its nodes, primary first."""
        return tuple(node.idx for node in self.moved.nodes)


def place_one(
    state: State, inst: Inst, at: int, *, force: bool = False
) -> Placement | Violation:
    """Return the placement of an instance on one node, or why not."""
    moved = on_one(state, inst, at, force=force)
    if isinstance(moved, Violation):
        return moved
    seen = [moved.nodes[0] if idx == at else state.nodes[idx] for idx in state.view]
    return Placement(moved, score(seen))


def on_nodes(
    state: State, inst: Inst, nodes: Sequence[int], *, force: bool
) -> Moved | Violation:
    """Return what an instance changes on one node, or on a pair, primary first."""
    if len(nodes) == 1:
        return on_one(state, inst, nodes[0], force=force)
    return Half(state, inst, nodes[0], force=force).joined(nodes[1])


def on_one(state: State, inst: Inst, at: int, *, force: bool) -> Moved | Violation:
    """Return what an instance changes on one node, or why it cannot be there."""
    node = state.nodes[at]
    barred = (
        policy(node, inst) or reach(node, inst, state) or full_pool(state, inst, node)
    )
    if barred is not None:
        return barred
    made = add_primary(node, inst, force=force, names=state)
    if isinstance(made, Violation):
        return made
    return Moved((made,), inst.moved(at, NOWHERE))


def full_pool(state: State, inst: Inst, node: Node) -> Violation | None:
    """Return which shared unit has no room for a newcomer; others have theirs."""
    return None if inst.idx < len(state.insts) else pool(node, inst)


def why_place(
    state: State, inst: Inst, nodes: Sequence[int], *, force: bool = False
) -> Violation | None:
    """Return why a new instance cannot go to one node, or to a pair.

    Parameters
    ----------
    nodes
        The node, or primary and secondary.
    """
    return violation_in(on_nodes(state, inst, nodes, force=force))


class Half:
    """A mirrored instance on its primary, while its secondary is still open.

    Attributes
    ----------
    barred : Violation or None
        Why it cannot run there, whatever its secondary.
    """

    def __init__(self, state: State, inst: Inst, at: int, *, force: bool) -> None:
        self.state, self.inst, self.at, self.force = state, inst, at, force
        self.node = state.nodes[at]
        self.hosts: dict[int, Node] = {}
        self.sums: dict[int, Sums] = {}
        self.barred = policy(self.node, inst)
        if self.barred is None:
            host = add_primary(self.node, inst, force=force, names=state)
            if isinstance(host, Violation):
                self.barred = host
            else:
                self.hosts[inst.location] = host

    def joined(self, at: int) -> Moved | Violation:
        """Return what the instance changes with a secondary, or why it cannot."""
        if self.barred is not None:
            return self.barred
        other = self.state.nodes[at]
        new = self.inst.moved(self.at, at, shared_domains(self.node, other))
        new_s = add_secondary(other, new, self.at, names=self.state)
        if isinstance(new_s, Violation):
            return new_s
        return Moved((self._host(new), new_s), new)

    def _host(self, inst: Inst) -> Node:
        """Return the primary; its location depends on what the two nodes share."""
        host = self.hosts.get(inst.location)
        if host is None:
            made = add_primary(self.node, inst, force=self.force)
            assert not isinstance(made, Violation)  # noqa: S101 - nor was it before
            host = self.hosts[inst.location] = made
        return host

    def score(self, sums: Sums, moved: Moved) -> float:
        """Return the score with both; `sums` are those without the instance."""
        shared = moved.inst.location
        if shared not in self.sums:
            self.sums[shared] = sums.changed(self.node, moved.nodes[0])
        after = moved.nodes[1]
        return self.sums[shared].changed(self.state.nodes[after.idx], after).score()
