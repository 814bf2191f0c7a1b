# SPDX-License-Identifier: BSD-2-Clause
"""Charts of a whole cluster: the way of the score, and how even nodes are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from moorage.htools.constants import fixed
from moorage.htools.node import Node

from .bars import percent
from .ink import drawn, num
from .scenes import Scene, count

_BINS: Final = 50
_PANEL: Final = 210
_LEFT: Final = 42
_TALL: Final = 24


class Word(NamedTuple):
    """Words at a place of a drawing."""

    words: str
    x: float
    y: float
    kind: str = ""


def score_chart(scores: Sequence[float]) -> Markup:
    """Return the score before the first step and after each, as a line."""
    width, height, left, top = 420.0, 150.0, 34.0, 8.0
    most, steps = max(scores), len(scores) - 1
    across = (width - left - 30) / steps
    down = (height - top - 20) / most if most > 0 else 0

    def y(score: float) -> float:
        return top + (most - score) * down

    base, last = y(0), y(scores[-1])
    line = "".join(
        f"H{num(left + at * across)}V{num(y(score))}"
        for at, score in enumerate(scores[1:], 1)
    )
    return drawn(
        "score.svg",
        width=width,
        height=height,
        desc=_way(scores),
        axis=f"M{num(left)} {num(top)}V{num(base)}H{num(width)}",
        line=f"M{num(left)} {num(y(scores[0]))}{line}",
        words=[
            Word(fixed(most, 2), left - 4, y(most) + 3, "end faint"),
            Word(fixed(scores[-1], 2), width - 27, last + 3),
            Word("0", left - 4, base + 3, "end faint"),
            Word("start", left, base + 13, "faint"),
            Word(f"step {steps}", width - 30, base + 13, "end faint"),
        ],
    )


def _way(scores: Sequence[float]) -> str:
    """Say how the score falls."""
    return f"From {fixed(scores[0], 4)} to {fixed(scores[-1], 4)}. {early(scores)}"


def early(scores: Sequence[float]) -> str:
    """Say how soon most of the gain is there, if it comes early.

    >>> early([10.0, 1.0, 0.5, 0.0]), early([3.0, 2.0, 0.0])
    ('90% of the gain comes with the first of 3 steps.', '')
    """
    last = len(scores) - 1
    goal = scores[0] - 0.9 * (scores[0] - scores[-1])
    step = next(at for at, score in enumerate(scores) if score <= goal)
    if not 0 < step <= 0.75 * last:
        return ""
    first = "" if step == 1 else f" {step:,}"
    return f"90% of the gain comes with the first{first} of {last:,} steps."


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a node that should be even."""

    title: str
    of: Callable[[Node], float | None]
    say: Callable[[float], str]


def _of(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _disk(node: Node) -> tuple[float, float]:
    """Return the disk in use and in all, over the node's own units if it has any."""
    if node.units is None:
        return node.disk_total - node.disk_free, node.disk_total
    used = whole = 0
    for at in node.units.apart():
        total, free = node.units.total[at], node.units.free[at]
        if not node.units.shared[at] and total is not None and free is not None:
            used, whole = used + total - free, whole + total
    return used, whole


MEASURES: Final = (
    Measure("Instances per node", lambda node: len(node.primaries), count),
    Measure(
        "Memory in use",
        lambda node: _of(node.mem_total - node.unallocated, node.mem_total),
        percent,
    ),
    Measure(
        "Disk in use",
        lambda node: _of(*_disk(node)),
        percent,
    ),
    Measure(
        "Virtual CPUs per CPU",
        lambda node: _of(node.cpu_used, node.cpus),
        lambda ratio: f"{ratio:.1f}",
    ),
)


def evenness(scenes: Sequence[Scene]) -> Markup:
    """Return a panel for each measure: nodes along its axis, scene by scene."""
    panels = (_panel(measure, scenes) for measure in MEASURES)
    return drawn("evenness.html", panels=[one for one in panels if one is not None])


def _panel(measure: Measure, scenes: Sequence[Scene]) -> dict[str, object] | None:
    values = [_values(measure, scene) for scene in scenes]
    most = max((max(some, default=0.0) for some in values), default=0.0)
    if most <= 0:
        return None
    top = _nice(most) if measure.say is not percent else max(1.0, most)
    pairs = list(zip(scenes, values, strict=True))
    return {
        "title": measure.title,
        "ranges": [f"{scene.name} {_range(measure, some)}" for scene, some in pairs],
        "top": measure.say(top),
        "left": _LEFT,
        "panel": _PANEL,
        "width": _LEFT + _PANEL,
        "tall": len(values) * (_TALL + 4),
        "rows": [
            _row(scene.name, some, top, at) for at, (scene, some) in enumerate(pairs)
        ],
    }


def _values(measure: Measure, scene: Scene) -> list[float]:
    found = (measure.of(node) for node in scene.state.seen if not node.offline)
    return [value for value in found if value is not None]


def _range(measure: Measure, values: Sequence[float]) -> str:
    low, high = measure.say(min(values)), measure.say(max(values))
    return low if low == high else f"{low} to {high}"


def _nice(most: float) -> float:
    """Return a round number not below another.

    >>> _nice(17), _nice(3.2), _nice(120)
    (20.0, 4.0, 150.0)
    """
    power = 10.0 ** (len(str(int(most))) - 1)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return next(step * power for step in steps if step * power >= most)


def _row(name: str, values: Sequence[float], top: float, at: int) -> dict[str, object]:
    """Say how many nodes have which value, one column a bin."""
    bins = [0] * _BINS
    for value in values:
        bins[min(_BINS - 1, max(0, int(value / top * _BINS)))] += 1
    base = at * (_TALL + 4) + _TALL
    kind = "comes" if at else "own"
    return {
        "name": name,
        "base": base,
        "kind": kind,
        "columns": "".join(_columns(bins, base)),
    }


def _columns(bins: Sequence[int], base: float) -> Iterator[str]:
    wide = _PANEL / _BINS
    most = max(bins)
    for at, many in enumerate(bins):
        if many:
            high = num(max(1.5, many / most * (_TALL - 4)))
            yield f"M{num(_LEFT + at * wide)} {base}v-{high}h{num(wide)}v{high}z"
