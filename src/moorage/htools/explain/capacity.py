# SPDX-License-Identifier: BSD-2-Clause
"""Why one instance more does not fit a cluster that was filled up."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from moorage.htools.constants import PAIRED
from moorage.htools.explain.explain import (
    Explanation,
    mended,
    refusal_reasons,
    unchecked,
)
from moorage.htools.explain.reason import Reason, away, of_group
from moorage.htools.placement.allocate import Asking, Predicate, try_allocate
from moorage.htools.placement.requests import Allocate, newcomer
from moorage.htools.placement.space import Filled, Filling, Safety, Size, row_of
from moorage.htools.state import State
from moorage.htools.survival.n1 import Guard


def explain_full(
    done: Filled, size: Size, template: str, spindle_use: int, how: Filling
) -> Explanation:
    """Return why the next instance of a size does not fit, and what would help.

    Parameters
    ----------
    done
        The cluster, filled up.
    how
        How it was filled; a limit is passed over.
    """
    row = row_of(f"new-{len(done.new)}", size, template, spindle_use)
    request = Allocate(row, 2 if template == PAIRED else 1)
    safe = None if template == PAIRED and not how.mirrors else how.safe
    fits = _fits(how, safe)
    if fits(done.state, request):
        return Explanation((), None, row.name, refused=False)
    told = _told(done.state, request, how)
    change = mended(done.state, request, fits, told)
    if change is None and safe is not None:
        change = unchecked(done.state, request, _fits(how, None))
    return Explanation(tuple(told), change, row.name)


def _fits(how: Filling, safe: Predicate | None) -> Callable[[State, Allocate], bool]:
    def fits(state: State, request: Allocate) -> bool:
        inst = newcomer(state, request.inst)
        asking = Asking(capacity=safe is not None)
        return try_allocate(state, inst, how.places, asking, safe).best is not None

    return fits


def _told(state: State, request: Allocate, how: Filling) -> list[Reason]:
    inst = newcomer(state, request.inst)
    safe = None if inst.template == PAIRED and not how.mirrors else how.safe
    found = try_allocate(state, inst, how.places, Asking(), safe)
    guard = _guard(safe) if isinstance(safe, Safety) else None
    return [
        *refusal_reasons(state, inst, found.refusals, guard=guard),
        *_left_out(state, request.nodes, {at for at, _ in how.places}),
    ]


def _guard(safe: Safety) -> Guard:
    known = safe.guard
    return Guard(
        online_only=known.online_only, skip_groups=known.skipped, start=known.start
    )


def _left_out(state: State, needed: int, tried: set[int]) -> Iterator[Reason]:
    """Yield the nodes, and the groups, that are not filled."""
    yield from away(state)
    for at, view in state.split():
        usable = [node.idx for node in view.seen if not node.offline]
        if tried.isdisjoint(usable):
            yield of_group(state.groups[at].name, _why_left_out(view, at, needed))


def _why_left_out(view: State, group: int, needed: int) -> str:
    if view.groups[group].alloc_policy == "unallocable":
        return "unallocable"
    online = sum(not node.offline for node in view.seen)
    return "too few nodes" if online < needed else "not N+1 redundant (hcheck tells)"


def explain_unfilled(state: State) -> Explanation:
    """Return why nothing is placed at all: nodes that are not N+1 happy."""
    from moorage.htools.explain.n1_report import N1, troubles  # noqa: PLC0415 - rarely needed

    told = [
        Reason((), "n+1", {"why": one.text})
        for one in troubles(state, capacity=False)
        if one.counter == N1
    ]
    return Explanation(tuple(told))


def next_size(done: Filled, first: Size) -> Size:
    """Return the size that would come next: the last one placed, or the first."""
    last = done.sizes[-1][0] if done.sizes else first
    return replace(last, spindles=last.spindles or first.spindles)
