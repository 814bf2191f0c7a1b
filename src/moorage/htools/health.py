# SPDX-License-Identifier: BSD-2-Clause
"""The health of a cluster, in numbers: what hcheck and verify report."""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.htools.metrics import least_score, score
from moorage.htools.plans.balancing import Rules, Search, balance, best_step
from moorage.htools.state import State
from moorage.htools.survival.n1 import unlosable


@dataclass(frozen=True, slots=True)
class Health:
    """What is wrong with a group, or with a cluster (their sum).

    Attributes
    ----------
    n1_fail : int
        Online nodes whose free memory does not cover a failover onto them.
    conflict_tags : int
        Nodes that hold two instances with one exclusion tag.
    offline_pri, offline_sec : int
        Instances whose primary, or secondary, is on an offline node.
    gn1_fail : int or None
        Nodes whose loss would strand somebody; None when not asked.
    """

    n1_fail: int = 0
    conflict_tags: int = 0
    offline_pri: int = 0
    offline_sec: int = 0
    gn1_fail: int | None = None

    @property
    def counters(self) -> tuple[int, ...]:
        """The counters, in the order of reports."""
        known = (self.n1_fail, self.conflict_tags, self.offline_pri, self.offline_sec)
        return known if self.gn1_fail is None else (*known, self.gn1_fail)

    @property
    def is_healthy(self) -> bool:
        """Whether every counter is 0."""
        return not any(self.counters)


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """The health and the score of one group, by index."""

    group: int
    health: Health
    score: float


def check(state: State, *, capacity: bool = True) -> list[GroupHealth]:
    """Return the health of every group that has nodes.

    Parameters
    ----------
    capacity
        Simulate the loss of every node, too.
    """
    return [
        GroupHealth(at, _health(view, capacity=capacity), score(view.seen))
        for at, view in state.split()
    ]


def _health(state: State, *, capacity: bool) -> Health:
    gone = [node for node in state.seen if node.offline]
    return Health(
        n1_fail=len(state.failing),
        conflict_tags=sum(node.conflicts > 0 for node in state.seen),
        offline_pri=sum(len(node.primaries) for node in gone),
        offline_sec=sum(len(node.secondaries) for node in gone),
        gn1_fail=len(unlosable(state)) if capacity else None,
    )


def summed(parts: Sequence[GroupHealth], *, capacity: bool = True) -> Health:
    """Return the health of the whole."""
    columns = list(zip(*(part.health.counters for part in parts), strict=True))
    sums = [sum(column) for column in columns] or [0] * (5 if capacity else 4)
    return Health(*sums)


def rebalanced(state: State, rules: Rules, *, search: Search = best_step) -> State:
    """Return the state after balancing every group that gains from it."""
    for _, view in state.split():
        now = score(view.seen)
        if now < rules.min_score + least_score(view.seen):
            continue
        end = balance(view, rules, search=search).end
        state = state.with_nodes(end.seen)
        insts = list(state.insts)
        for inst in end.people:
            insts[inst.idx] = inst
        state = state.with_insts(insts)
    return state
