# SPDX-License-Identifier: BSD-2-Clause
"""What the score is made of, before and after."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final

from markupsafe import Markup

from moorage.htools.constants import fixed
from moorage.htools.metrics import METRICS, measure
from moorage.htools.node import Node

from .ink import drawn

_SHOWN: Final = 8
_LEAST: Final = 0.00005
"""A contribution that would be printed as 0."""
_WIDTH: Final = 120
_TWIN: Final = "_forth"

_MEANINGS: Final = {metric.name: metric.meaning for metric in METRICS}

Row = tuple[str, str, float, float]
"""Words, name, and what a metric adds to the score before and after."""


def rows(before: Sequence[Node], after: Sequence[Node]) -> list[Row]:
    """Return what each metric adds, what changes most first; the rest as one."""
    pairs = zip(METRICS, _measured(before), _measured(after), strict=True)
    every = _folded(
        (metric.name, old * metric.weight, new * metric.weight)
        for metric, old, new in pairs
    )
    every.sort(key=lambda row: (-abs(row[2] - row[3]), -row[2]))
    some = [row for row in every if not max(row[2:]) < _LEAST]
    rest = some[_SHOWN:]
    if len(rest) < 2:
        return some
    old, new = sum(row[2] for row in rest), sum(row[3] for row in rest)
    return [*some[:_SHOWN], (f"{len(rest)} others", "", old, new)]


def _folded(parts: Iterable[tuple[str, float, float]]) -> list[Row]:
    """Return rows; a metric and its equal twin with planned instances are one."""
    found = {name: (old, new) for name, old, new in parts}
    made: list[Row] = []
    for name, (old, new) in found.items():
        plain = name.removesuffix(_TWIN)
        if plain != name and found[plain] == (old, new):
            continue
        both = found.get(name + _TWIN) == (old, new)
        times = 2 if both else 1
        title = f"{name}, {_TWIN}" if both else name
        made.append((_MEANINGS[name], title, old * times, new * times))
    return made


def _measured(nodes: Sequence[Node]) -> Sequence[float]:
    return measure(nodes) or [0.0] * len(METRICS)


def metric_table(before: Sequence[Node], after: Sequence[Node]) -> Markup:
    """Return the parts of the score as a table with bars."""
    found = rows(before, after)
    finite = [value for row in found for value in row[2:] if isfinite(value)]
    most = max(finite, default=0.0) or 1.0
    return drawn(
        "scoring.html",
        width=_WIDTH,
        rows=[
            {
                "words": words,
                "name": name,
                "values": [fixed(value, 4) for value in values],
                "widths": [_wide(value / most) for value in values],
            }
            for words, name, *values in found
        ],
    )


def _wide(share: float) -> float:
    """Return the width of a bar; a node without memory makes a metric infinite."""
    return share * _WIDTH if isfinite(share) else 0.0
