# SPDX-License-Identifier: BSD-2-Clause
"""A reason: who says no to an instance, by which constraint, with its numbers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from moorage.htools.constants import Fail
from moorage.htools.constraints.violation import Violation, is_away
from moorage.htools.state import State
from moorage.units import shortened


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node, a pair of nodes, or a whole group was not taken.

    Attributes
    ----------
    nodes : tuple of str
        The node, or primary and secondary; empty for a group.
    constraint : str
        Its name, as in ``memory`` or ``policy disk size``.
    facts : dict
        What was asked and what was there, MiB or counts.
    role : str
        ``primary`` or ``secondary`` where the node is refused as such, whatever
        the other one is.
    group : str
        The group, where no node of it was tried.
    finding : Violation or None
        The check that failed, with indices.
    """

    nodes: tuple[str, ...]
    constraint: str
    facts: dict[str, Any]
    role: str = ""
    group: str = ""
    finding: Violation | None = field(default=None, repr=False, compare=False)

    @property
    def who(self) -> str:
        """Who says no."""
        if self.nodes:
            return "/".join(self.nodes)
        return f"group {self.group}" if self.group else "the cluster"

    @property
    def distance(self) -> float:
        """By how much it is missed; infinity where that is no quantity."""
        short = 0 if self.finding is None else self.finding.short
        return short or inf

    def what(self) -> str:
        """Return the constraint with its numbers, in words."""
        shown = self.finding or Violation(
            -1, Fail.INTERNAL, self.constraint, self.facts
        )
        return (f"as {self.role}: " if self.role else "") + shown.sentence()

    def sentence(self) -> str:
        """Return the reason in words."""
        return f"{self.who}{' ' if self.role else ': '}{self.what()}"

    def values(self) -> dict[str, Any]:
        """Return the reason as JSON values."""
        found: dict[str, Any] = {"nodes": list(self.nodes)}
        found |= {"role": self.role} if self.role else {}
        found |= {"group": self.group} if self.group else {}
        found |= {"constraint": self.constraint, **self.facts}
        return found | {"text": self.sentence()}


def named(
    state: State, nodes: Sequence[int], found: Violation, role: str = ""
) -> Reason:
    """Return the reason that a failed check gives."""
    names = tuple(state.nodes[at].name for at in nodes)
    return Reason(names, found.constraint, found.facts, role, finding=found)


def away(state: State) -> Iterator[Reason]:
    """Yield the nodes in view that are not there to be asked."""
    for node in state.seen:
        if node.offline:
            yield named(state, (node.idx,), is_away(node.idx))


def of_group(name: str, constraint: str, **facts: Any) -> Reason:  # noqa: ANN401
    """Return why a whole group is out; the facts by name."""
    told = {key.replace("_", " "): value for key, value in facts.items()}
    return Reason((), constraint, told, group=name)


def together(reasons: Iterable[Reason], most: int | None = None) -> list[str]:
    """Return reasons in words; those who say the same share a line.

    Parameters
    ----------
    most
        How many lines; of more, those are kept where least is missing.
    """
    lines: dict[tuple[str, str], list[Reason]] = {}
    for one in reasons:
        lines.setdefault((" " if one.role else ": ", one.what()), []).append(one)
    kept = list(lines.items())
    if most is not None and len(kept) > most:
        kept = sorted(kept, key=lambda line: line[1][0].distance)[:most]
    told = [
        listed([one.who for one in who]) + mark + what for (mark, what), who in kept
    ]
    left = len(lines) - len(kept)
    return [*told, f"and {left} more reasons like these"] if left else told


def listed(names: Sequence[str]) -> str:
    """Return names with commas between, the first few of many."""
    return shortened(list(dict.fromkeys(names)), _NAMED)


_NAMED: Final = 8
"""Names in one line."""
