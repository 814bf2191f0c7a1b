# SPDX-License-Identifier: BSD-2-Clause
"""Whether what clients saw could have come from one master that does one thing a time.

A history is what clients asked for and were told, with the times of both. It is
linearizable if each operation can be given one moment between its request and its
answer such that all answers come out as they did (Herlihy and Wing). Registers and sets
are searched as Wing and Gong, and Lowe, do; a counter needs only bounds.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

WRITE, ADD, READ = "write", "add", "read"


@dataclass(frozen=True)
class Op:
    """What a client asked for.

    Attributes
    ----------
    kind
        ``write`` a register; ``add`` to a set, or one to a counter; ``read``.
    value
        What was written or added, once in a history; or what was read. A counter's
        `value` is its reading, and is not looked at otherwise.
    begun, ended
        When it was asked for and answered, in seconds; `ended` is infinite where nobody
        was told: it may have been done at any time from then on, or never.
    """

    kind: str
    value: Any
    begun: float
    ended: float = math.inf

    @property
    def known(self) -> bool:
        """Whether it was acknowledged."""
        return self.ended < math.inf


Step = Callable[[Any, Op], Any]
"""Returns the state after an operation; None where it can not have that answer."""


def register(state: Any, op: Op) -> Any:
    """Step of a register, whose last write is read."""
    return op.value if op.kind == WRITE or op.value == state else None


def grown(state: frozenset[Any], op: Op) -> frozenset[Any] | None:
    """Step of a set that only grows, and is read as a whole."""
    if op.kind == ADD:
        return state | {op.value}
    return state if op.value == state else None


def linearizable(history: Sequence[Op], initial: Any, step: Step) -> bool:
    """Whether a register's or a set's history is linearizable; values are unique.

    Configurations are followed from answer to answer: a state, and which operations
    without an answer so far have taken effect in it.
    """
    ops = _settled(history)
    # Of two at one moment, requests come first: they overlap.
    events = sorted(
        [(op.begun, 0, at) for at, op in enumerate(ops)]
        + [(op.ended, 1, at) for at, op in enumerate(ops)]
    )
    pending: set[int] = set()
    found = {(initial, frozenset[int]())}
    for _, answered, at in events:
        if not answered:
            pending.add(at)
            continue
        found = {
            (state, done - {at})
            for state, done in _reached(found, pending, ops, step)
            if at in done
        }
        pending.discard(at)
        if not found:
            return False
    return True


def _settled(history: Sequence[Op]) -> list[Op]:
    """Return a history without operations of which nobody was told.

    One whose value was never read need not have been done. One whose value was read
    was done by the end of the first such read.
    """
    reads = sorted((op for op in history if op.kind == READ), key=lambda op: op.ended)
    ops = []
    for op in history:
        if op.known:
            ops.append(op)
            continue
        seen = [read.ended for read in reads if _shows(read, op)]
        if op.kind != READ and seen:
            ops.append(replace(op, ended=seen[0]))
    return ops


def _shows(read: Op, op: Op) -> bool:
    return bool(op.value in read.value if op.kind == ADD else op.value == read.value)


Configuration = tuple[Any, frozenset[int]]


def _reached(
    found: set[Configuration], pending: set[int], ops: Sequence[Op], step: Step
) -> set[Configuration]:
    """Return all configurations that pending operations lead to."""
    reached, new = set(found), list(found)
    while new:
        state, done = new.pop()
        for at in pending - done:
            after = step(state, ops[at])
            one = (after, done | {at})
            if after is not None and one not in reached:
                reached.add(one)
                new.append(one)
    return reached


def miscounted(history: Sequence[Op], initial: int) -> Iterator[str]:
    """Yield what is wrong with the history of a counter, to which each adds one.

    A read shows all that were acknowledged before it was asked for, none that was asked
    for after its answer, and no less than a read that was over before.
    """
    adds = [op for op in history if op.kind == ADD]
    reads = [op for op in history if op.kind == READ and op.known]
    for read in reads:
        least = initial + sum(op.ended < read.begun for op in adds)
        most = initial + sum(op.begun <= read.ended for op in adds)
        if not least <= read.value <= most:
            yield f"{read.value} was read, and it was {least} to {most}"
        before = [op.value for op in reads if op.ended < read.begun]
        if before and max(before) > read.value:
            yield f"{read.value} was read after {max(before)}"


@dataclass(frozen=True)
class Obeyed:
    """An order that a node obeyed: when, in seconds, and in which term it was given."""

    at: float
    term: int
    node: str


def two_masters(orders: Sequence[Obeyed]) -> Iterator[str]:
    """Yield each order that a node obeyed after one of a later term was obeyed."""
    newest: Obeyed | None = None
    for one in sorted(orders, key=lambda one: one.at):
        if newest and one.term < newest.term:
            yield (
                f"{one.node} obeyed term {one.term}, {one.at - newest.at:.3f} s after "
                f"{newest.node} obeyed term {newest.term}"
            )
        elif newest is None or one.term > newest.term:
            newest = one
