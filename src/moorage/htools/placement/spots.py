# SPDX-License-Identifier: BSD-2-Clause
"""One new instance on given nodes: what that changes, or why it cannot be.

A pair of nodes is scored from running sums (`moorage.htools.placement.sums.Sums`), one
node by a full score; the two differ in their last digits, and so do decisions, which is
why both exist.
"""

from collections import Counter

from moorage.htools.fleet import UnitName
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import score
from moorage.htools.moves import Moved, shared_domains
from moorage.htools.node import Node
from moorage.htools.placement.allocation import Placement
from moorage.htools.placement.sums import Sums
from moorage.htools.policy import breach
from moorage.htools.state import State
from moorage.htools.verbs import add_primary, add_secondary
from moorage.htools.words import Fail


def place_one(
    state: State, inst: Inst, at: int, *, force: bool = False
) -> Placement | Fail:
    """Return the placement of an instance on one node, or why not."""
    moved = on_one(state, inst, at, force=force)
    if isinstance(moved, Fail):
        return moved
    seen = [moved.nodes[0] if idx == at else state.nodes[idx] for idx in state.view]
    return Placement(moved, score(seen))


def on_one(state: State, inst: Inst, at: int, *, force: bool) -> Moved | Fail:
    """Return what an instance changes on one node, or why it cannot be there."""
    found = _admitted(state, inst, state.nodes[at], force=force)
    return (
        found if isinstance(found, Fail) else Moved((found,), inst.moved(at, NOWHERE))
    )


def _admitted(state: State, inst: Inst, node: Node, *, force: bool) -> Node | Fail:
    """Return the node with the instance as primary, policy and reach observed."""
    fail = breach(node.policy, inst, exclusive=node.exclusive)
    if fail is not None:
        return fail
    if inst.reach is not None and node.idx not in inst.reach:
        return Fail.DISK
    if not shared_room(state, inst, node):
        return Fail.DISK
    return add_primary(node, inst, force=force)


def shared_room(state: State, inst: Inst, node: Node) -> bool:
    """Say whether shared units have room for disks that do not exist yet."""
    return full_pool(state, inst, node) is None


def full_pool(state: State, inst: Inst, node: Node) -> tuple[UnitName, int, int] | None:
    """Return a shared unit without room for new disks, what they ask, what is free."""
    if node.units is None or inst.idx < len(state.insts):
        return None
    need: Counter[UnitName] = Counter()
    for name, size in inst.wants:
        if name is not None:
            need[name] += size
    for name, size in need.items():
        at = node.units.place(name)
        free = None if at is None else node.units.free[at]
        if at is None or free is None or not node.units.shared[at] or free >= size:
            continue
        return name, size, free
    return None


def on_pair(
    state: State, inst: Inst, pair: tuple[int, int], *, force: bool
) -> Moved | Fail:
    """Return what a mirrored instance changes on two nodes, or why it cannot."""
    return Half(state, inst, pair[0], force=force).joined(pair[1])


class Half:
    """A mirrored instance on its primary, while its secondary is still open.

    Attributes
    ----------
    fail : Fail or None
        Why it cannot run there, whatever its secondary.
    """

    def __init__(self, state: State, inst: Inst, at: int, *, force: bool) -> None:
        self.state, self.inst, self.at, self.force = state, inst, at, force
        self.node = state.nodes[at]
        self.hosts: dict[int, Node] = {}
        self.sums: dict[int, Sums] = {}
        self.fail = breach(self.node.policy, inst, exclusive=self.node.exclusive)
        if self.fail is None:
            host = add_primary(self.node, inst, force=force)
            if isinstance(host, Fail):
                self.fail = host
            else:
                self.hosts[inst.location] = host

    def joined(self, at: int) -> Moved | Fail:
        """Return what the instance changes with a secondary, or why it cannot."""
        if self.fail is not None:
            return self.fail
        other = self.state.nodes[at]
        new = self.inst.moved(self.at, at, shared_domains(self.node, other))
        new_s = add_secondary(other, new, self.at)
        if isinstance(new_s, Fail):
            return new_s
        return Moved((self._host(new), new_s), new)

    def _host(self, inst: Inst) -> Node:
        """Return the primary; its location depends on what the two nodes share."""
        host = self.hosts.get(inst.location)
        if host is None:
            made = add_primary(self.node, inst, force=self.force)
            assert not isinstance(made, Fail)  # noqa: S101 - nor was it before
            host = self.hosts[inst.location] = made
        return host

    def score(self, sums: Sums, moved: Moved) -> float:
        """Return the score with both; `sums` are those without the instance."""
        shared = moved.inst.location
        if shared not in self.sums:
            self.sums[shared] = sums.changed(self.node, moved.nodes[0])
        after = moved.nodes[1]
        return self.sums[shared].changed(self.state.nodes[after.idx], after).score()
