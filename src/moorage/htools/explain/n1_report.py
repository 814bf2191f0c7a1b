# SPDX-License-Identifier: BSD-2-Clause
"""Who makes the counters of `moorage.htools.health` nonzero, by name and number."""

from collections.abc import Iterator
from dataclasses import dataclass

from moorage.htools.constraints.violation import located, nearest
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.survival.explain_loss import lose
from moorage.htools.survival.n1 import Restart, unlosable

N1, TAGS, PRIMARY, SECONDARY, LOSS = (
    "n1_fail",
    "conflict_tags",
    "offline_pri",
    "offline_sec",
    "gn1_fail",
)
"""The counters, as `moorage.htools.health.Health` names them."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One node, or instance, that a counter counts.

    Attributes
    ----------
    counter : str
        Which counter.
    text : str
        Who and why, with the numbers.
    details : tuple of str
        For a loss: why each node that is left refuses.
    """

    counter: str
    text: str
    details: tuple[str, ...] = ()


def troubles(state: State, *, capacity: bool = True) -> list[Trouble]:
    """Return everything that the counters of a cluster count.

    Parameters
    ----------
    capacity
        Simulate the loss of every node, too.
    """
    found: list[Trouble] = []
    for _, view in state.split():
        for node in view.seen:
            found += _memory(view, node)
            found += _tags(view, node)
            found += _offline(view, node)
        if capacity:
            found += (_loss(view, at) for at in unlosable(view))
    return found


def _memory(state: State, node: Node) -> Iterator[Trouble]:
    if not node.fails_n1 or node.offline:
        return
    worst = max(node.peers, key=lambda at: node.peers[at], default=-1)
    short = node.mem_free < node.reserved
    free = node.mem_free if short else node.unallocated
    text = f"{node.name}: {free} MiB are free, {node.reserved} MiB are reserved"
    if worst >= 0:
        people = ", ".join(
            f"{inst.name} {inst.mem} MiB"
            for at in sorted(node.secondaries)
            if (inst := state.insts[at]).p == worst and inst.uses_sec_mem
        )
        text += f" for the loss of {state.nodes[worst].name} ({people})"
    yield Trouble(N1, text)


def _tags(state: State, node: Node) -> Iterator[Trouble]:
    for tag in sorted(tag for tag, count in node.excl.items() if count > 1):
        people = [
            state.insts[at].name
            for at in sorted(node.primaries)
            if tag in state.insts[at].excl_tags
        ]
        yield Trouble(TAGS, f"{node.name}: {', '.join(people)} share the tag {tag}")


def _offline(state: State, node: Node) -> Iterator[Trouble]:
    if not node.offline:
        return
    for at in sorted(node.primaries):
        yield Trouble(PRIMARY, f"{state.insts[at].name} on {node.name}")
    for at in sorted(node.secondaries):
        yield Trouble(SECONDARY, f"{state.insts[at].name} on {node.name}")


def _loss(state: State, at: int) -> Trouble:
    loss = lose(state, at)
    names = ", ".join(state.insts[one.inst].name for one in loss.stranded)
    details = [line for one in loss.stranded for line in _why(state, one)]
    if loss.way is not None:
        details.append("restarted one by one; by hand there is a way (--survive)")
    return Trouble(
        LOSS, f"{state.nodes[at].name}: its loss strands {names}", tuple(details)
    )


def _why(state: State, one: Restart) -> Iterator[str]:
    name = state.insts[one.inst].name
    if not one.reasons:
        yield f"{name}: no node is left"
    order = nearest(one.reasons)
    yield from (f"{name}: {located(state, found)}" for found in order[:_SHOWN])
    if len(order) > _SHOWN:
        yield f"{name}: and {len(order) - _SHOWN} more nodes (--survive -v)"


_SHOWN = 3
