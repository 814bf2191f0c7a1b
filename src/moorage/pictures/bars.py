# SPDX-License-Identifier: BSD-2-Clause
"""Bars: how full one resource is, in each of some scenes, one above the other.

Every bar of a drawing has the same scale, so that what stays is drawn in the
same place. Colour never says anything alone: what is kept for failover is
hatched, what moves carries the number of its step, and each drawing has its
numbers as a description.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final, NamedTuple

from markupsafe import Markup

from .ink import drawn, num

OWN, STAYS, COPY, GOES, COMES = "own", "stays", "copy", "goes", "comes"
THIN: Final = 2.5
"""Width below which parts of one kind are drawn as one."""
_DIGIT: Final = 5.2
_PERCENT: Final = 40


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a bar.

    Attributes
    ----------
    kind : str
        ``own`` (the node's own and what nobody accounts for), ``stays``,
        ``copy`` (the second copy of a mirrored disk), ``goes`` or ``comes``.
    label : str
        What stands in it where there is room: the step that moves it.
    """

    kind: str
    amount: float
    name: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One resource in one scene.

    Attributes
    ----------
    scene : str
        When this is.
    used, capacity, kept : float
        MiB or processors; `kept` is reserved on top of what is used.
    show : callable
        Says an amount in words.
    """

    scene: str
    parts: tuple[Part, ...]
    used: float
    capacity: float
    kept: float
    show: Callable[[float], str]

    @property
    def share(self) -> float:
        """How full it is; 0 without a capacity."""
        return self.used / self.capacity if self.capacity > 0 else 0.0

    @property
    def is_short(self) -> bool:
        """Whether more is used than there is, or what is kept does not fit."""
        unfit = self.kept > 0 and self.used + self.kept >= self.capacity
        return unfit or self.used > self.capacity

    def sentence(self) -> str:
        """Return the bar in words."""
        sums = {
            kind: [part.amount for part in self.parts if part.kind == kind]
            for kind in _WORDS
        }
        facts = [
            f"{word.format(len(sums[kind]))} {self.show(sum(sums[kind]))}"
            for kind, word in _WORDS.items()
            if sum(sums[kind]) > 0
        ]
        if self.kept:
            facts.append(f"reserved for failover {self.show(self.kept)}")
        facts.append(f"free {self.show(self.capacity - self.used)}")
        return f"{self.scene}: {', '.join(facts)}"


_WORDS: Final = {
    OWN: "system and other",
    STAYS: "{} instances",
    COPY: "{} secondary copies",
    GOES: "{} that leave",
    COMES: "{} that arrive",
}


def percent(share: float) -> str:
    """Return a share in whole percent.

    >>> percent(0.625), percent(1.026)
    ('62%', '103%')
    """
    return f"{100 * share:.0f}%"


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a drawing.

    Attributes
    ----------
    width, height, gap : float
        Of the drawing, of one bar, and between two.
    named : bool
        Whether every part can be pointed at, or only those that move.
    """

    width: float = 272
    height: float = 12
    gap: float = 3
    named: bool = True

    @property
    def room(self) -> float:
        """The width of a full bar."""
        return self.width - _PERCENT


class Shape(NamedTuple):
    """What is drawn in a bar: a box with a name, or the `outline` of several."""

    kind: str
    x: float = 0.0
    width: float = 0.0
    name: str = ""
    label: str = ""
    outline: str = ""


def drawing(name: str, bars: Sequence[Bar], frame: Frame) -> Markup:
    """Return bars as a picture with a title and a description."""
    if not any(bar.capacity > 0 or bar.used > 0 for bar in bars):
        return Markup('<span class="none">none</span>')
    span = max(max(bar.capacity, bar.used) for bar in bars)
    shares = ", ".join(f"{bar.scene} {percent(bar.share)}" for bar in bars)
    each = frame.height + frame.gap
    return drawn(
        "bars.svg",
        title=f"{name}: {shares}",
        desc="; ".join(bar.sentence() for bar in bars),
        frame=frame,
        tall=len(bars) * each - frame.gap,
        rows=[_row(bar, frame, span, at * each) for at, bar in enumerate(bars)],
    )


def _row(bar: Bar, frame: Frame, span: float, y: float) -> dict[str, object]:
    """Return what the template draws of a bar, in units of the drawing."""
    scale = frame.room / span
    ends = list(accumulate((part.amount * scale for part in bar.parts), initial=0.0))
    placed = zip(bar.parts, ends, strict=False)
    runs = groupby(placed, key=lambda pair: pair[0].kind)
    return {
        "y": y,
        "capacity": bar.capacity * scale,
        "shapes": [
            shape
            for kind, run in runs
            for shape in _shapes(kind, list(run), frame, scale)
        ],
        "used": bar.used * scale,
        # what is reserved, as far as it fits
        "kept": max(0.0, min(bar.kept, bar.capacity - bar.used) * scale),
        "short": bar.is_short,
        "said": percent(bar.share) + ("!" if bar.is_short else ""),
    }


def _shapes(
    kind: str, run: list[tuple[Part, float]], frame: Frame, scale: float
) -> Iterator[Shape]:
    """Yield neighbours of one kind: each alone, or as one where they are thin."""
    whole = sum(part.amount for part, _ in run) * scale
    if whole <= 0:
        return
    if whole / len(run) < THIN:
        yield Shape(kind, run[0][1], whole, f"{len(run)} instances")
    elif kind == OWN or (kind in (STAYS, COPY) and not frame.named):
        yield Shape(kind, outline=_outline(run, frame, scale))
    else:
        yield from (_one(part, x, scale) for part, x in run if part.amount > 0)


def _outline(run: list[tuple[Part, float]], frame: Frame, scale: float) -> str:
    """Return the outline of parts as one path, with a line between two of them."""
    there = [(x, part.amount * scale) for part, x in run if part.amount > 0]
    start, end = there[0][0], there[-1][0] + there[-1][1]
    tall = num(frame.height)
    box = f"M{num(start)} 0H{num(end)}V{tall}H{num(start)}z"
    return box + "".join(f"M{num(x)} 0V{tall}" for x, _ in there[1:])


def _one(part: Part, x: float, scale: float) -> Shape:
    width = part.amount * scale
    fits = width > len(part.label) * _DIGIT + 3
    return Shape(part.kind, x, width, part.name, part.label if fits else "")
