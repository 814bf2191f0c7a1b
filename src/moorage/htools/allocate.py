# SPDX-License-Identifier: BSD-2-Clause
"""Where a new instance goes: every place tried, the best that is safe taken.

Ties go to the place that was tried last. A pair of nodes is scored from running
sums (`Sums`), one node by a full score; the two differ in their last digits,
and so do decisions, which is why both exist.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import (
    score,
)
from moorage.htools.moves import Moved, shared_domains
from moorage.htools.node import Node
from moorage.htools.placer import Placer, Shelf
from moorage.htools.policy import breach
from moorage.htools.state import State
from moorage.htools.sums import Sums
from moorage.htools.verbs import add_primary, add_secondary
from moorage.htools.words import Fail, Mirror, fixed

Predicate = Callable[[State], bool]
"""Says whether a state may be reached."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node, or a pair, was not taken."""

    nodes: tuple[int, ...]
    reason: Fail


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


FAILS: Final = (Fail.INTERNAL, *Fail)
"""Reasons by the kernel's numbers; 0 is none, and stands for success."""

Batch = tuple[Sequence[tuple[int, ...]], list[int]]
"""Places, and the kernel's number of the reason for each."""


@dataclass(slots=True)
class Allocation:
    """The outcome of a search for a place.

    Attributes
    ----------
    best : Placement or None
        Where the instance goes.
    successes : int
        How many places would have done.
    refused : list of Refusal
        Places that would not, with the reason.
    batches : list of Batch
        More of them, as the kernel counted them.
    counts : list of int
        How many more there are by the kernel's numbers, not told apart.
    log : list of str
        What to tell about it.
    loss : tuple or None
        On nodes with exclusive storage: what the best place spoils.
    hopeless : bool
        Whether no group could be considered at all, or none took it.
    """

    best: Placement | None = None
    successes: int = 0
    refused: list[Refusal] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0] * len(FAILS))
    log: list[str] = field(default_factory=list)
    loss: tuple[tuple[int, ...], int] | None = None
    hopeless: bool = False

    @property
    def refusals(self) -> list[Refusal]:
        """Every place that would not do, with the reason."""
        batched = [
            Refusal(nodes, FAILS[why])
            for places, whys in self.batches
            for nodes, why in zip(places, whys, strict=True)
            if why
        ]
        return [*batched, *self.refused]

    @property
    def failures(self) -> dict[Fail, int]:
        """How often each reason occurred, in the order of `Fail`."""
        counts = list(self.counts)
        for refusal in self.refused:
            counts[FAILS.index(refusal.reason, 1)] += 1
        for _, whys in self.batches:
            for why in set(whys):
                counts[why] += whys.count(why)
        return dict(zip(FAILS[1:], counts[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Asking:
    """How to look for a place.

    Attributes
    ----------
    force : bool
        Skip the checks that protect comfort only.
    capacity : bool
        Refuse places after which some node could no longer be lost.
    restrict : frozenset of str or None
        The only nodes to consider, by name.
    dedicated : bool
        Judge places by what they spoil (see `moorage.htools.dedicated`).
    """

    force: bool = False
    capacity: bool = True
    restrict: frozenset[str] | None = None
    dedicated: bool = False


DEFAULT_ASKING: Final = Asking()


def targets(
    state: State, inst_nodes: int, asking: Asking, groups: Iterable[int] | None = None
) -> list[tuple[int, list[int]]]:
    """Return primaries, each with the secondaries to try (none for one node).

    Parameters
    ----------
    inst_nodes
        How many nodes the instance needs, 1 or 2.
    groups
        Groups to choose from; None for those in view.
    """
    chosen = None if groups is None else set(groups)
    usable = [
        node
        for node in state.seen
        if not node.offline
        and (chosen is None or node.group in chosen)
        and (asking.restrict is None or node.name in asking.restrict)
    ]
    if inst_nodes == 1:
        return [(node.idx, []) for node in usable]
    pairs = (
        (p.idx, [s.idx for s in usable if s is not p and s.group == p.group])
        for p in usable
    )
    return [(p, others) for p, others in pairs if others]


def place_one(
    state: State, inst: Inst, at: int, *, force: bool = False
) -> Placement | Fail:
    """Return the placement of an instance on one node, or why not."""
    moved = _on_one(state, inst, at, force=force)
    if isinstance(moved, Fail):
        return moved
    seen = [moved.nodes[0] if idx == at else state.nodes[idx] for idx in state.view]
    return Placement(moved, score(seen))


def _on_one(state: State, inst: Inst, at: int, *, force: bool) -> Moved | Fail:
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
    if node.units is None or inst.idx < len(state.insts):
        return True
    need: Counter[tuple[str, ...]] = Counter()
    for name, size in inst.wants:
        if name is not None:
            need[name] += size
    for name, size in need.items():
        at = node.units.place(name)
        free = None if at is None else node.units.free[at]
        if (
            at is not None
            and node.units.shared[at]
            and free is not None
            and free < size
        ):
            return False
    return True


def place_pair(
    state: State, sums: Sums, inst: Inst, pair: tuple[int, int], *, force: bool = False
) -> Placement | Fail:
    """Return the placement of a mirrored instance on two nodes, or why not."""
    moved = _on_pair(state, inst, pair, force=force)
    if isinstance(moved, Fail):
        return moved
    for node in moved.nodes:
        sums = sums.changed(state.nodes[node.idx], node)
    return Placement(moved, sums.score())


def _on_pair(
    state: State, inst: Inst, pair: tuple[int, int], *, force: bool
) -> Moved | Fail:
    p, s = state.nodes[pair[0]], state.nodes[pair[1]]
    fail = breach(p.policy, inst, exclusive=p.exclusive)
    if fail is not None:
        return fail
    new = inst.moved(*pair, shared_domains(p, s))
    new_p = add_primary(p, new, force=force)
    if isinstance(new_p, Fail):
        return new_p
    new_s = add_secondary(s, new, p.idx)
    return new_s if isinstance(new_s, Fail) else Moved((new_p, new_s), new)


def try_allocate(
    state: State,
    inst: Inst,
    places: Sequence[tuple[int, list[int]]],
    asking: Asking = DEFAULT_ASKING,
    safe: Predicate | None = None,
    shelf: Shelf | None = None,
) -> Allocation:
    """Return the best of some places for an instance.

    Parameters
    ----------
    places
        As `targets` returns them.
    safe
        Refuses states; those it refuses count as `Fail.N1`.
    shelf
        Keeps the arrays of a state from one question to the next; refusals are
        then only counted where that will do.
    """
    placer = Placer.of(state, inst, shelf)
    mirrored = any(others for _, others in places)
    if placer is not None and shelf is not None and mirrored:
        counted = _counted(state, inst, places, asking, placer)
        if safe is None or counted.best is None:
            return counted
    found = Allocation()
    best: _Part | None = None
    for tried in _all_tried(state, inst, places, asking, placer):
        part = _choose(found, state, tried, safe)
        if part is not None and (best is None or not best.score < part.score):
            best = part
    if best is not None:
        found.best = best.placement()
    return found


def _counted(
    state: State,
    inst: Inst,
    places: Sequence[tuple[int, list[int]]],
    asking: Asking,
    placer: Placer,
) -> Allocation:
    """Return the best pair of nodes, with refusals counted only."""
    counts, best = placer.best_pair(places, force=asking.force)
    found = Allocation(successes=counts[0], counts=[0, *counts[1:]])
    if best is not None:
        make = partial(_on_spot, state, inst, asking)
        found.best = _Part(best[0], best[1:], make).placement()
    return found


def _all_tried(
    state: State,
    inst: Inst,
    places: Sequence[tuple[int, list[int]]],
    asking: Asking,
    placer: Placer | None,
) -> "Iterator[_Tried]":
    """Yield single nodes at once, or pairs by their primary."""
    if not any(others for _, others in places):
        yield _singles(state, inst, [at for at, _ in places], asking, placer)
        return
    sums = None if placer is not None else Sums.of(state.seen)
    for place in places:
        yield _pairs(state, inst, place, asking, placer or sums)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What was tried: places, reasons by number, scores of those that do."""

    places: Sequence[tuple[int, ...]]
    whys: list[int]
    scores: list[float]
    make: Callable[[tuple[int, ...]], Moved | Fail]


def _singles(
    state: State,
    inst: Inst,
    places: Sequence[int],
    asking: Asking,
    placer: Placer | None,
) -> _Tried:
    spots = [(at,) for at in places]
    if placer is not None:
        found = placer.singles(places, force=asking.force)
        return _Tried(spots, *found, partial(_on_spot, state, inst, asking))
    return _tried_all(
        spots, lambda nodes: place_one(state, inst, nodes[0], force=asking.force)
    )


def _on_spot(
    state: State, inst: Inst, asking: Asking, nodes: tuple[int, ...]
) -> Moved | Fail:
    """Put an instance on one node, or on two."""
    if len(nodes) == 1:
        return _on_one(state, inst, nodes[0], force=asking.force)
    return _on_pair(state, inst, (nodes[0], nodes[1]), force=asking.force)


def _pairs(
    state: State,
    inst: Inst,
    place: tuple[int, list[int]],
    asking: Asking,
    how: "Placer | Sums | None",
) -> _Tried:
    p, others = place
    spots = [(p, s) for s in others]
    if isinstance(how, Placer):
        found = how.pairs(p, others, force=asking.force)
        return _Tried(spots, *found, partial(_on_spot, state, inst, asking))
    sums = how or Sums.of(state.seen)
    return _tried_all(
        spots,
        lambda nodes: place_pair(
            state, sums, inst, (nodes[0], nodes[1]), force=asking.force
        ),
    )


def _tried_all(
    spots: Sequence[tuple[int, ...]],
    make: Callable[[tuple[int, ...]], Placement | Fail],
) -> _Tried:
    """Try every place in full."""
    made = {nodes: make(nodes) for nodes in spots}
    whys = [
        FAILS.index(one, 1) if isinstance(one, Fail) else 0 for one in made.values()
    ]
    scores = [one.score for one in made.values() if isinstance(one, Placement)]
    moved = {
        nodes: one if isinstance(one, Fail) else one.moved
        for nodes, one in made.items()
    }
    return _Tried(spots, whys, scores, moved.__getitem__)


@dataclass(frozen=True, slots=True)
class _Part:
    """The best of some places, made in full when it is the best of all."""

    score: float
    nodes: tuple[int, ...]
    make: Callable[[tuple[int, ...]], Moved | Fail]

    def placement(self) -> Placement:
        """Return the placement."""
        made = self.make(self.nodes)
        if isinstance(made, Fail):
            raise RuntimeError(  # noqa: TRY004 - a contradiction, not a type
                f"two answers for {self.nodes}: {made}"
            )
        return Placement(made, self.score)


def _choose(
    found: Allocation, state: State, tried: _Tried, safe: Predicate | None
) -> _Part | None:
    """Return the best place that `safe` approves; ties go to the last."""
    found.batches.append((tried.places, tried.whys))
    if not tried.scores:
        return None
    good = [
        nodes for nodes, why in zip(tried.places, tried.whys, strict=True) if not why
    ]
    found.successes += len(good)
    order = range(len(good) - 1, -1, -1) if safe else _last_least(tried.scores)
    for at in sorted(order, key=tried.scores.__getitem__):
        part = _Part(tried.scores[at], good[at], tried.make)
        if safe is None or safe(state.placed(part.placement().moved)):
            return part
        found.successes -= 1
        found.refused.append(Refusal(good[at], Fail.N1))
    return None


def _last_least(scores: list[float]) -> range:
    """Return the place of the last of the least scores, as a range of one."""
    if not scores:
        return range(0)
    least = min(scores)
    at = len(scores) - 1 - scores[::-1].index(least)
    return range(at, at + 1)


def described(state: State, found: Allocation) -> Allocation:
    """Return the outcome with a sentence about it."""
    reasons = ", ".join(
        f"{fail.value}: {count}" for fail, count in found.failures.items() if count
    )
    if found.best is None:
        text = "No valid allocation solutions, failure reasons: " + (
            reasons or "unknown reasons"
        )
    else:
        names = "/".join(state.nodes[at].name for at in found.best.nodes)
        text = (
            f"score: {fixed(found.best.score, 8)}, successes {found.successes}, "
            f"failures {sum(found.failures.values())} ({reasons}) for node(s) {names}"
        )
    found.log.insert(0, text)
    return found


def needed_nodes(inst: Inst) -> int:
    """Return how many nodes an instance lives on."""
    return 2 if inst.mirror is Mirror.INTERNAL else 1


def as_drbd(inst: Inst) -> Inst:
    """Return a local instance as it would be with a second copy."""
    return replace(
        inst, template="drbd", mirror=Mirror.INTERNAL, local=True, movable=True
    )
