# SPDX-License-Identifier: BSD-2-Clause
"""Where a new instance goes: every place tried, the best that is safe taken.

Places are tried in parts: all single nodes are one, all pairs with the same
primary are another. Ties go to the place that was tried last.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from moorage.htools.constants import PAIRED, Fail, Mirror
from moorage.htools.constraints.violation import Violation
from moorage.htools.incremental_score import Sums
from moorage.htools.inst import Inst
from moorage.htools.moves import Moved
from moorage.htools.placement.allocation import (
    DEFAULT_ASKING,
    FAILS,
    Allocation,
    Asking,
    Batch,
    Places,
    Refusal,
    described,
    targets,
)
from moorage.htools.placement.kernel_search import ArrayCache, Placer, Scored, Spot
from moorage.htools.single_placement import (
    Half,
    Placement,
    on_nodes,
    on_one,
    place_one,
)
from moorage.htools.state import State

__all__ = [
    "DEFAULT_ASKING",
    "Allocation",
    "Asking",
    "Places",
    "Predicate",
    "Refusal",
    "as_drbd",
    "described",
    "place_one",
    "tally",
    "targets",
    "try_allocate",
]  # fmt: skip


class Predicate(Protocol):
    """Says whether a state may be reached."""

    def __call__(self, state: State, /) -> bool:
        """Say whether a state may be reached."""

    def foresee(self, state: State, inst: Inst, nodes: Spot, /) -> bool | None:
        """Say so of a state with one more instance; None when that takes trying."""


class Part(Protocol):
    """Some places, tried.

    Attributes
    ----------
    counts : sequence of int
        How often each reason occurred, by the kernel's numbers; 0 is success.
    best : Scored or None
        The last of the best places.
    """

    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def best(self) -> Scored | None: ...
    def ranked(self) -> list[Scored]:
        """Return the places that would do, the best first."""

    def refusals(self) -> list[Refusal]:
        """Return every refusal with its place."""


def try_allocate(
    state: State,
    inst: Inst,
    places: Places,
    asking: Asking = DEFAULT_ASKING,
    safe: Predicate | None = None,
    shelf: ArrayCache | None = None,
) -> Allocation:
    """Return the best of some places for an instance.

    Parameters
    ----------
    places
        As `targets` returns them.
    safe
        Refuses states; those it refuses count as `Fail.N1`.
    shelf
        Keeps the arrays of a state from one question to the next.
    """
    found = Allocation()
    best: Scored | None = None
    for part in _parts(state, inst, places, asking, shelf, whole=safe is None):
        found.batches.append(Batch(part.counts, part.refusals))
        found.successes += part.counts[0]
        one = part.best
        if one is not None and safe is not None:
            one = _safest(found, state, inst, part, _Check(safe, asking.force))
        if one is not None and (best is None or one[0] <= best[0]):
            best = one
    if best is not None:
        found.best = Placement(_placed(state, inst, best[1], asking.force), best[0])
    return found


def tally(
    state: State, inst: Inst, places: Places, asking: Asking, shelf: ArrayCache | None
) -> list[int]:
    """Return how often each reason occurs, by the kernel's numbers, 0 for success.

    Nothing is scored where that takes time.
    """
    if Placer.knows(state, inst, shelf):
        parts = _parts(state, inst, places, asking, shelf, whole=True)
        return [sum(column) for column in zip(*(p.counts for p in parts), strict=True)]
    counts = [0] * len(FAILS)
    for p, others in places:
        for why, count in _whys(state, inst, (p, others), asking.force):
            counts[why] += count
    return counts


def _whys(
    state: State, inst: Inst, place: tuple[int, Sequence[int]], force: bool
) -> Iterator[tuple[int, int]]:
    """Yield reasons by number, each with how often it occurs."""
    p, others = place
    if not others:
        yield _number(on_one(state, inst, p, force=force)), 1
        return
    half = Half(state, inst, p, force=force)
    if half.barred is not None:
        yield _number(half.barred), len(others)
        return
    for s in others:
        yield _number(half.joined(s)), 1


def _number(found: Moved | Placement | Violation) -> int:
    return FAILS.index(found.fail, 1) if isinstance(found, Violation) else 0


def _parts(
    state: State,
    inst: Inst,
    places: Places,
    asking: Asking,
    shelf: ArrayCache | None,
    *,
    whole: bool,
) -> Iterator[Part]:
    """Yield the parts of the places; as one, if possible, where `whole` is true."""
    mirrored = any(others for _, others in places)
    # The kernel's pairs are of instances that can have a second copy.
    paired = not mirrored or inst.mirror is Mirror.INTERNAL
    placer = Placer.of(state, inst, shelf) if paired else None
    if placer is None:
        yield from _plain_parts(state, inst, places, asking, mirrored)
        return
    if whole or not mirrored or shelf is not None:
        part = placer.part(places, force=asking.force)
        if whole or not mirrored or not part.counts[0]:
            yield part
            return
    for place in places:
        yield placer.part([place], force=asking.force)


def _plain_parts(
    state: State, inst: Inst, places: Places, asking: Asking, mirrored: bool
) -> "Iterator[_PlainPart]":
    """Yield the parts with every place tried in full."""
    if not mirrored:
        ones: dict[Spot, Placement | Violation] = {}
        for at, _ in places:
            ones[at,] = place_one(state, inst, at, force=asking.force)
        yield _PlainPart(ones)
        return
    sums = Sums.of(state.seen)
    for p, others in places:
        half = Half(state, inst, p, force=asking.force)
        yield _PlainPart({(p, s): _pair(half, sums, s) for s in others})


def _pair(half: Half, sums: Sums, s: int) -> Placement | Violation:
    moved = half.joined(s)
    if isinstance(moved, Violation):
        return moved
    return Placement(moved, half.score(sums, moved))


@dataclass(frozen=True, slots=True)
class _PlainPart:
    """Places tried in full."""

    made: dict[Spot, Placement | Violation]

    @property
    def counts(self) -> list[int]:
        counts = [0] * len(FAILS)
        for one in self.made.values():
            counts[_number(one)] += 1
        return counts

    @property
    def best(self) -> Scored | None:
        return next(iter(self.ranked()), None)

    def ranked(self) -> list[Scored]:
        good = [
            (one.score, spot)
            for spot, one in self.made.items()
            if isinstance(one, Placement)
        ]
        good.reverse()
        return sorted(good, key=lambda pair: pair[0])

    def refusals(self) -> list[Refusal]:
        return [
            Refusal(spot, one.fail)
            for spot, one in self.made.items()
            if isinstance(one, Violation)
        ]


@dataclass(frozen=True, slots=True)
class _Check:
    """Says whether a place leaves the cluster safe."""

    safe: Predicate
    force: bool

    def __call__(self, state: State, inst: Inst, spot: Spot) -> bool:
        known = self.safe.foresee(state, inst, spot)
        if known is not None:
            return known
        return self.safe(state.placed(_placed(state, inst, spot, self.force)))


def _safest(
    found: Allocation,
    state: State,
    inst: Inst,
    part: Part,
    check: Callable[[State, Inst, Spot], bool],
) -> Scored | None:
    """Return the best place that stays safe; note those that do not."""
    best = part.best
    if best is not None and check(state, inst, best[1]):
        return best
    for score, spot in part.ranked():
        if (best is None or spot != best[1]) and check(state, inst, spot):
            return score, spot
        found.successes -= 1
        found.refused.append(Refusal(spot, Fail.N1))
    return None


def _placed(state: State, inst: Inst, spot: Spot, force: bool) -> Moved:
    """Return what an instance changes where there is room for it."""
    made = on_nodes(state, inst, spot, force=force)
    if isinstance(made, Violation):
        # Two answers to one question: better no answer.
        raise RuntimeError(f"two answers for {spot}: {made}")  # noqa: TRY004
    return made


def as_drbd(inst: Inst) -> Inst:
    """Return a local instance as it would be with a second copy."""
    return inst.copy(template=PAIRED, mirror=Mirror.INTERNAL, local=True, movable=True)
