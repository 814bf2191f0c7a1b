# SPDX-License-Identifier: BSD-2-Clause
"""Why not there: every refusal by name, with its numbers, and what would help.

`place` is the library's allocator: its answer carries the refusals (`reasons`)
and the smallest change that would make the request fit (`change`), computed
when they are looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from moorage.htools.constants import Fail
from moorage.htools.constraints.violation import Violation
from moorage.htools.explain.node_remedy import node_change
from moorage.htools.explain.reason import Reason, named, together
from moorage.htools.explain.remedy import Change, Part, smallest_change
from moorage.htools.explain.skipped import untried
from moorage.htools.inst import Inst
from moorage.htools.moves import Moved
from moorage.htools.placement.allocate import (
    DEFAULT_ASKING,
    Allocation,
    Asking,
    Refusal,
)
from moorage.htools.placement.requests import Allocate, answer, find_place, newcomer
from moorage.htools.single_placement import on_nodes, why_place
from moorage.htools.state import State
from moorage.htools.survival.explain_loss import Breach
from moorage.htools.survival.n1 import Guard

NAMES: Final = {
    Fail.MEMORY: "memory",
    Fail.DISK: "disk",
    Fail.CPU: "cpu",
    Fail.N1: "n+1",
    Fail.TAGS: "exclusion tags",
    Fail.MIGRATION: "migration tags",
    Fail.DISK_COUNT: "disk count",
    Fail.SPINDLES: "spindles",
    Fail.INTERNAL: "internal",
}
"""Names where no single check is known."""
NO_CHANGE: Final = "no change of the request alone, or of one node, makes it fit"


def reasons(
    state: State, inst: Inst, found: Allocation, *, force: bool = False
) -> list[Reason]:
    """Return every refusal of a search, with its numbers.

    A node that is refused as primary, or as secondary of whomever, is named
    once.
    """
    return list(refusal_reasons(state, inst, found.refusals, force=force))


def refusal_reasons(
    state: State,
    inst: Inst,
    refusals: Iterable[Refusal],
    *,
    force: bool = False,
    guard: Guard | None = None,
) -> Iterator[Reason]:
    """Yield the reasons behind refusals.

    Parameters
    ----------
    guard
        Says which losses matter; `Guard.of_change` when None.
    """
    told: set[tuple[tuple[str, ...], str, str]] = set()
    breach: Breach | None = None
    for refusal in refusals:
        if refusal.reason is Fail.N1:
            breach = breach or Breach(state, guard)
            one = _lost(state, inst, refusal.nodes, breach, force=force)
        else:
            one = _refused(state, inst, refusal, force=force)
        key = (one.nodes, one.role, repr(one.facts) + one.constraint)
        if not one.role or key not in told:
            yield one
        told.add(key)


def _refused(state: State, inst: Inst, refusal: Refusal, *, force: bool) -> Reason:
    found = why_place(state, inst, refusal.nodes, force=force)
    if found is None or found.fail is not refusal.reason:
        found = Violation(refusal.nodes[0], refusal.reason, NAMES[refusal.reason], {})
    if len(refusal.nodes) == 1:
        return named(state, refusal.nodes, found)
    if found.node == refusal.nodes[0]:
        return named(state, refusal.nodes[:1], found, "primary")
    if "reserved" not in found.facts:
        return named(state, refusal.nodes[1:], found, "secondary")
    return named(state, refusal.nodes, found)


def _lost(
    state: State, inst: Inst, nodes: Sequence[int], breach: Breach, *, force: bool
) -> Reason:
    """Return whom a place would strand when some node is lost."""
    moved = on_nodes(state, inst, nodes, force=force)
    found = breach.finding(state.placed(moved)) if isinstance(moved, Moved) else None
    return named(state, nodes, found or Violation(-1, Fail.N1, NAMES[Fail.N1], {}))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request is refused, and what would help.

    Attributes
    ----------
    reasons : tuple of Reason
        Refusals first, then what was not even tried.
    change : Change or None
        The smallest change found; None when none helps, or none is needed.
    name : str
        The instance.
    refused : bool
        Whether the answer was no.
    """

    reasons: tuple[Reason, ...]
    change: Change | None = None
    name: str = ""
    refused: bool = True

    def sentences(self, most: int | None = None) -> list[str]:
        """Return the explanation in words, a line each, for `most` reasons."""
        told = together(self.reasons, most)
        if self.change is not None:
            return [*told, self.change.sentence()]
        return [*told, NO_CHANGE] if self.refused and told else told

    def values(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        change = self.change
        return {
            "refusals": [reason.values() for reason in self.reasons],
            "change": None if change is None else change.values(),
        }


def explain_place(
    state: State, request: Allocate, asking: Asking, found: Allocation
) -> Explanation:
    """Return why an instance went nowhere else, or nowhere at all."""
    inst = newcomer(state, request.inst)
    told = (
        *reasons(state, inst, found, force=asking.force),
        *untried(state, inst, request, asking),
    )

    if found.best is not None:
        return Explanation(told, None, request.inst.name, refused=False)
    if asking.capacity and not asking.dedicated:
        told = (*told, *_already(state, told))
    change = _mended(state, request, asking, told)
    return Explanation(told, change, request.inst.name)


def _already(state: State, told: Sequence[Reason]) -> Iterator[Reason]:
    """Yield which node cannot be lost even now, where then nothing may be placed."""
    known = any(one.constraint == "n+1" and one.finding for one in told)
    found = None if known else Breach(state).already
    if found is not None:
        yield Reason((), found.constraint, found.facts, finding=found)


def _mended(
    state: State, request: Allocate, asking: Asking, told: Sequence[Reason]
) -> Change | None:
    """Return the smallest change: of the request, of a node, of what is allowed."""

    def asked(how: Asking) -> Callable[[State, Allocate], bool]:
        return lambda here, one: answer(here, one, how).success

    change = mended(state, request, asked(asking), told)
    if change is None:
        change = _freed(state, request, asking)
    if change is None and asking.capacity:
        return unchecked(state, request, asked(replace(asking, capacity=False)))
    return change


def _freed(state: State, request: Allocate, asking: Asking) -> Change | None:
    """Return the tags, or the restriction, without which it would fit."""
    row = request.inst
    tags = tuple(tag for tag in row.tags if tag not in _excluding(state, request))
    plain = replace(request, inst=row._replace(tags=tags))
    if tags != row.tags and answer(state, plain, asking).success:
        return Change((Part("exclusion tags", None, 0),))
    anywhere = replace(request, restrict=None)
    if answer(state, anywhere, replace(asking, restrict=None)).success:
        return Change((Part("restriction", None, 0),))
    return None


def _excluding(state: State, request: Allocate) -> tuple[str, ...]:
    return newcomer(state, request.inst).excl_tags


def unchecked(
    state: State, request: Allocate, fits: Callable[[State, Allocate], bool]
) -> Change | None:
    """Return what is needed beside the capacity check off."""
    off = Part("capacity check", None, 0)
    if fits(state, request):
        return Change((off,))
    change = smallest_change(state, request, fits)
    return None if change is None else Change((*change.parts, off))


def mended(
    state: State,
    request: Allocate,
    fits: Callable[[State, Allocate], bool],
    told: Sequence[Reason],
) -> Change | None:
    """Return the smallest change of the request, or else of a node."""
    change = smallest_change(state, request, fits)
    if change is not None:
        return change
    findings = [one.finding for one in told if one.finding is not None]
    return node_change(state, lambda here: fits(here, request), findings)


@dataclass(slots=True)
class Answer(Allocation):
    """Where a new instance goes, with the reasons for every other place.

    Attributes
    ----------
    state, request, asking
        What was asked.
    """

    state: State | None = None
    request: Allocate | None = None
    asking: Asking = field(default_factory=Asking)
    told: Explanation | None = None

    @property
    def explanation(self) -> Explanation:
        """Every refusal, and what would help; computed at the first look."""
        if self.told is None:
            assert self.state is not None  # noqa: S101 - set by `place`
            assert self.request is not None  # noqa: S101 - set by `place`
            self.told = explain_place(self.state, self.request, self.asking, self)
        return self.told

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why not elsewhere: every refusal by name, with its numbers."""
        return self.explanation.reasons

    @property
    def change(self) -> Change | None:
        """The smallest change that makes it fit; None when it fits, or none does."""
        return self.explanation.change


def place(state: State, request: Allocate, asking: Asking = DEFAULT_ASKING) -> Answer:
    """Return where a new instance goes, with the reasons.

    Raises
    ------
    NotFound
        If the group does not exist.
    """
    found = find_place(state, request, asking)
    known = {one.name: getattr(found, one.name) for one in fields(found)}
    return Answer(**known, state=state, request=request, asking=asking)


__all__ = [
    "Answer",
    "Change",
    "Explanation",
    "Reason",
    "explain_place",
    "place",
    "reasons",
    "smallest_change",
]
