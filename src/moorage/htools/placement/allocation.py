# SPDX-License-Identifier: BSD-2-Clause
"""The search for a place of a new instance: what is asked, what comes of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from moorage.htools.constants import Fail, fixed
from moorage.htools.single_placement import Placement
from moorage.htools.state import State


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node, or a pair, was not taken."""

    nodes: tuple[int, ...]
    reason: Fail


FAILS: Final = (Fail.INTERNAL, *Fail)
"""Reasons by the kernel's numbers; 0 is none, and stands for success."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Places that were tried together.

    Attributes
    ----------
    counts : sequence of int
        How often each reason occurred, by the kernel's numbers.
    refusals : callable
        Returns each refusal with its place; it may try the places once more.
    """

    counts: Sequence[int]
    refusals: Callable[[], Iterable[Refusal]]


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
        More of them, told apart only for who asks.
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
    log: list[str] = field(default_factory=list)
    loss: tuple[tuple[int, ...], int] | None = None
    hopeless: bool = False

    @property
    def refusals(self) -> list[Refusal]:
        """Every place that would not do, with the reason."""
        batched = [one for batch in self.batches for one in batch.refusals()]
        return [*batched, *self.refused]

    @property
    def failures(self) -> dict[Fail, int]:
        """How often each reason occurred, in the order of `Fail`."""
        counts = [0] * len(FAILS)
        for refusal in self.refused:
            counts[FAILS.index(refusal.reason, 1)] += 1
        for batch in self.batches:
            for why, count in enumerate(batch.counts):
                counts[why] += count
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
    primary : str or None
        The only node to consider as the primary one of two, by name.
    dedicated : bool
        Judge places by what they spoil: `moorage.htools.placement.exclusive_storage`.
    """

    force: bool = False
    capacity: bool = True
    restrict: frozenset[str] | None = None
    primary: str | None = None
    dedicated: bool = False


DEFAULT_ASKING: Final = Asking()


Places = Sequence[tuple[int, Sequence[int]]]
"""Primaries, each with the secondaries to try (none for one node)."""


def targets(
    state: State, inst_nodes: int, asking: Asking, groups: Iterable[int] | None = None
) -> list[tuple[int, list[int]]]:
    """Return the places to try.

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
    mates: dict[int, list[int]] = {}
    for node in usable:
        mates.setdefault(node.group, []).append(node.idx)
    pairs = [(node.idx, _others(mates[node.group], node.idx)) for node in usable]
    first = asking.primary
    return [
        (p, others)
        for p, others in pairs
        if others and first in (None, state.nodes[p].name)
    ]


def _others(mates: list[int], but: int) -> list[int]:
    at = mates.index(but)
    return mates[:at] + mates[at + 1 :]


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
