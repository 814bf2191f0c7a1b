# SPDX-License-Identifier: BSD-2-Clause
"""Squeezing: nodes that can be powered off, or must be powered on.

A node may go if nobody's data is on it: it is no secondary, and its instances are
on shared storage. It goes if balancing then finds everybody an online node and
every node still has room for an instance of a given size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Final

from moorage.htools.assignment import add_primary
from moorage.htools.constraints.violation import Violation
from moorage.htools.fleet import InstanceRow
from moorage.htools.inst import NOWHERE, Inst, from_row
from moorage.htools.node import Node
from moorage.htools.plans.balancing import Plan, Rules, Search, balance, best_step
from moorage.htools.policy import Spec
from moorage.htools.state import State

STANDBY: Final = "htools:standby:"
"""How the tags begin that mark a node that waits switched off."""
STANDBY_AUTO: Final = STANDBY + "auto"
"""The tag of nodes that squeezing switched off."""

RULES: Final = Rules(min_gain=0.0, gain_limit=0.0, min_score=-inf)
"""Balance until nothing gains any more."""


@dataclass(frozen=True, slots=True)
class Squeeze:
    """Nodes that change, and the moves that go with it.

    Attributes
    ----------
    nodes : tuple of int
        Which, by index.
    plan : Plan
        The moves; it ends with the nodes changed.
    suffices : bool
        Whether every node has the room wanted then.
    """

    nodes: tuple[int, ...]
    plan: Plan
    suffices: bool = True


def probe(spec: Spec, factor: float) -> Inst:
    """Return an instance of `factor` times a size, each resource rounded down."""
    row = InstanceRow(
        name="probe",
        mem=floor(factor * spec.memory),
        disk=0,
        vcpus=floor(factor * spec.cpus),
        auto_balance=False,
        template="ext",
        spindle_use=floor(factor * spec.spindles),
    )
    return from_row(NOWHERE, row)


def can_leave(state: State) -> list[Node]:
    """Return the nodes that may be switched off, the fullest first."""
    free = (node for node in state.nodes if not node.offline and not node.master)
    found = [node for node in free if not node.secondaries and _all_shared(state, node)]
    return sorted(found, key=lambda node: len(node.primaries), reverse=True)


def _all_shared(state: State, node: Node) -> bool:
    return not any(state.insts[at].local for at in node.primaries)


def can_return(state: State) -> list[Node]:
    """Return the nodes that may be switched on, in order."""
    return [
        node
        for node in state.nodes
        if node.offline and any(tag.startswith(STANDBY) for tag in node.tags)
    ]


def has_room(state: State, room: Inst) -> bool:
    """Say whether every node, offline ones too, could take one more instance."""
    return not any(
        isinstance(add_primary(node, room), Violation) for node in state.nodes
    )


def switched(state: State, nodes: Sequence[int], *, offline: bool) -> State:
    """Return the state with some nodes offline, or online."""
    return state.with_nodes(state.nodes[at].copy(offline=offline) for at in nodes)


def balanced(state: State, search: Search = best_step) -> Plan:
    """Return the moves that balance a whole cluster as far as possible."""
    return balance(state, RULES, search=search)


def _try(
    state: State, nodes: Sequence[int], room: Inst, search: Search, *, offline: bool
) -> tuple[Plan, bool]:
    """Return the moves once nodes are switched, and whether all is well then.

    All is well if everybody is on an online node, and every node has room.
    """
    plan = balanced(switched(state, nodes, offline=offline), search)
    end = plan.end
    homeless = any(end.nodes[inst.p].offline for inst in end.insts)
    return plan, not homeless and has_room(end, room)


def squeeze(state: State, room: Inst, *, search: Search = best_step) -> Squeeze | None:
    """Switch off as many nodes as possible, those with the fewest instances first.

    Parameters
    ----------
    room
        What every node must still be able to take.

    Returns
    -------
    Squeeze or None
        None if no node can go.
    """
    found: Squeeze | None = None
    for node in reversed(can_leave(state)):
        wanted = (node.idx, *(found.nodes if found else ()))
        plan, works = _try(state, wanted, room, search, offline=True)
        if works:
            found = Squeeze(wanted, plan)
    return found


def expand(state: State, room: Inst, *, search: Search = best_step) -> Squeeze:
    """Switch on the fewest nodes, in order, that make room; all if none suffice."""
    every = tuple(node.idx for node in can_return(state))
    for count in range(len(every) + 1):
        plan, works = _try(state, every[:count], room, search, offline=False)
        if works:
            return Squeeze(every[:count], plan)
    return Squeeze(every, plan, suffices=False)
