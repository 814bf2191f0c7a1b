# SPDX-License-Identifier: BSD-2-Clause
"""A constraint that is not met: which one, by whom, and with which numbers."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from moorage.htools.constants import Fail
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.units import shortened

MIB: Final = "MiB"


class Names(Protocol):
    """Whom indices mean; a `State` is one."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, by index."""

    @property
    def insts(self) -> Sequence[Inst]:
        """The instances, by index."""


class Violation(NamedTuple):
    """One check that failed.

    Attributes
    ----------
    node : int
        The node that says no; -1 when no single one does.
    fail : Fail
        The word that Ganeti's tools use for it.
    constraint : str
        Its name, as in ``memory`` or ``policy disk size``.
    facts : dict
        What was asked and what was there; JSON values.
    unit : str
        What the numbers count: ``MiB``, or nothing for plain counts.
    short : int
        By how much the node misses it at least, in that unit; 0 when that is
        no quantity, or not the node's.
    lacks : str
        What the node would need more of: ``memory``, ``disk``, ``processors``,
        ``spindles``, a storage unit's name, ``online`` to be there at all; nothing
        where more of nothing helps.
    because : tuple of Violation
        For survival: why each node that is left refuses the stranded one.
    """

    node: int
    fail: Fail
    constraint: str
    facts: dict[str, Any]
    unit: str = ""
    short: int = 0
    lacks: str = ""
    because: "tuple[Violation, ...]" = ()

    def sentence(self) -> str:
        """Return name and numbers in words."""
        if "strands" in self.facts:
            return self._loss()
        told = ", ".join(
            told_fact(key, self.facts[key], self.unit) for key in self.facts
        )
        return f"{self.constraint} ({told})" if told else self.constraint

    def _loss(self) -> str:
        """Return who would be stranded, and why, in words."""
        facts = self.facts
        who = shortened(facts["strands"], _STRANDED)
        verb = "strands" if facts["already"] else "would strand"
        ending = ", with or without this" if facts["already"] else ""
        why = "; ".join(facts["because"][:_STRANDED])
        why += "; ..." if len(facts["because"]) > _STRANDED else ""
        why = why or "no node is left"
        told = f"losing {facts['losing']} {verb} {who}{ending}"
        return f"{self.constraint} ({told}: {why})"


_STRANDED: Final = 2
"""Instances, and nodes that refuse them, in one sentence."""


def located(names: Names, found: Violation) -> str:
    """Return a violation in words, with the node that says no."""
    who = f"{names.nodes[found.node].name}: " if found.node >= 0 else ""
    return who + found.sentence()


def nearest(findings: Iterable[Violation]) -> list[Violation]:
    """Return violations, those that lack least first: there an operator would look."""
    return sorted(findings, key=lambda found: (not found.short, found.short))


def violation_in(outcome: object) -> Violation | None:
    """Return what forbids something; None where it can be done."""
    return outcome if isinstance(outcome, Violation) else None


def is_away(node: int, fail: Fail = Fail.INTERNAL) -> Violation:
    """Return that a node is not there to be asked."""
    return Violation(node, fail, "offline or drained", {}, lacks="online")


def told_fact(key: str, value: Any, unit: str = "") -> str:  # noqa: ANN401 - JSON
    """Return one fact in words.

    >>> told_fact("asked", 512, "MiB"), told_fact("allowed", [[1, 8]])
    ('asked 512 MiB', 'allowed 1..8')
    """
    if value is True or key == "why":
        return key if value is True else str(value)
    if value is None:
        return f"{key} unknown"
    return f"{key} {_told(value, unit)}"


def _told(value: Any, unit: str) -> str:  # noqa: ANN401 - a JSON value
    after = f" {unit}" if unit else ""
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return " or ".join(f"{low}..{high}" for low, high in value) + after
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}{after}"
    return f"{value}{after if isinstance(value, int) else ''}"
