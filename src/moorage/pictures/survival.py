# SPDX-License-Identifier: BSD-2-Clause
"""Survival: what each loss would do, and of one loss who restarts where and who cannot.

All losses are tiles: large ones with words where there are few, small ones with a mark
where there are many. One loss is drawn as lanes: who was on it, and where they go. What
is too much to be drawn one by one is added up, and that is said.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple
from urllib.parse import quote

from moorage.htools.survival.certificate import Certificate
from moorage.units import counted, format_size

from .ink import Picture, drawn, fitting, wrapped
from .losses import Fate, Kind, Lost, losses

WIDTH: Final = 360
"""Of a drawing; letters are as large on a telephone as they are here."""
FEW: Final = 24
"""Losses of one kind that have a tile with words each."""
MOST: Final = 400
"""Tiles of one kind; beyond, only those that are in trouble have one."""
ROWS: Final = 100
"""Rows of a table."""
TOLD: Final = 12
"""Losses that a document tells, beside all of them."""
ALONE: Final = 40
"""Instances that have a lane each."""
LANES: Final = 24
"""Nodes that have a box each."""

_TITLES: Final = {
    Kind.NODE: "Nodes",
    Kind.UNIT: "Storage units of one node",
    Kind.POOL: "Pools that nodes share",
}
_MARKS: Final = {"fine": "\N{CHECK MARK}", "warn": "!", "idle": "\N{EN DASH}"}


def look(lost: Lost) -> str:
    """Return how a loss is drawn: ``trouble``, ``warn``, ``fine`` or ``idle``."""
    if lost.down:
        return "trouble"
    if lost.data_lost:
        return "warn"
    return "fine" if lost.fates else "idle"


def survival(found: Certificate, address: str | None = None) -> Picture:
    """Return the picture of all losses.

    Parameters
    ----------
    address
        What the `key` of a loss is put behind to get to that loss: a page's address.
        Without one tiles lead nowhere, and the first losses that leave somebody down
        are told here.
    """
    return all_of(losses(found), address)


def all_of(every: Sequence[Lost], address: str | None = None) -> Picture:
    """Return the picture of all losses, as :func:`survival`, of what they would do."""
    bad = [] if address is not None else [lost for lost in every if lost.down]
    body = drawn(
        "survival.html",
        drawings=[_tiles(kind, every, address) for kind in Kind if _of(kind, every)],
        table=_table(every, address),
        told=[one_loss(lost) for lost in bad[:TOLD]],
        untold=len(bad[TOLD:]),
    )
    return Picture("What survives a loss", _lead(every), body)


def one_of(every: Sequence[Lost], key: str) -> Picture | None:
    """Return the picture of the loss that a key names; None if there is none."""
    return next((one_loss(lost) for lost in every if lost.key == key), None)


def _of(kind: Kind, every: Iterable[Lost]) -> list[Lost]:
    return [lost for lost in every if lost.kind is kind]


def _lead(every: Sequence[Lost]) -> str:
    nodes = _of(Kind.NODE, every)
    bad = [lost for lost in nodes if lost.down]
    if not nodes:
        return "There is no node."
    if not bad:
        return f"Any one of {counted(len(nodes), 'node')} can be lost."
    people = {fate.instance for lost in bad for fate in lost.down}
    return (
        f"{len(bad)} of {counted(len(nodes), 'node')} cannot be lost: "
        f"{counted(len(people), 'instance')} would stay down."
    )


class _Tile(NamedTuple):
    """A loss, at its place in a drawing."""

    x: int
    y: int
    look: str
    mark: str
    name: str
    words: str
    title: str
    href: str | None


@dataclass(frozen=True, slots=True)
class _Size:
    """How large tiles are, and how many are in a row."""

    width: int
    height: int
    gap: int

    @property
    def across(self) -> int:
        """How many fit side by side."""
        return (WIDTH + self.gap) // (self.width + self.gap)

    def place(self, at: int) -> tuple[int, int]:
        """Return where a tile is."""
        down, along = divmod(at, self.across)
        return along * (self.width + self.gap), down * (self.height + self.gap)

    def tall(self, many: int) -> int:
        """Return how high so many tiles are together."""
        return -(-many // self.across) * (self.height + self.gap) - self.gap


_LARGE: Final = _Size(116, 36, 6)
_SMALL: Final = _Size(18, 18, 2)


def _tiles(kind: Kind, every: Sequence[Lost], address: str | None) -> dict[str, object]:
    """Return a drawing of all losses of a kind."""
    some = _of(kind, every)
    shown = some
    if len(some) > MOST:
        shown = [lost for lost in some if look(lost) in ("trouble", "warn")][:MOST]
    size = _LARGE if len(some) <= FEW else _SMALL
    return {
        "title": _TITLES[kind],
        "desc": _summed(some),
        "left_out": len(some) - len(shown),
        "linked": address is not None,
        "large": size is _LARGE,
        "width": WIDTH,
        "tall": size.tall(len(shown)) if shown else 0,
        "size": size,
        "tiles": [
            _tile(lost, size, size.place(at), address) for at, lost in enumerate(shown)
        ],
    }


_SAID: Final = {
    "trouble": ("leaves somebody down", "leave somebody down"),
    "warn": ("takes data with it", "take data with them"),
    "fine": ("lets everybody restart", "let everybody restart"),
    "idle": ("stops nobody", "stop nobody"),
}
"""What a loss does, and what several do."""


def _summed(some: Iterable[Lost]) -> str:
    """Say how many losses do what."""
    sums = Counter(map(look, some))
    return ", ".join(
        f"{sums[name]} {words[sums[name] > 1]}"
        for name, words in _SAID.items()
        if sums[name]
    )


def _tile(
    lost: Lost, size: _Size, place: tuple[int, int], address: str | None
) -> _Tile:
    kind = look(lost)
    mark = _MARKS.get(kind) or str(len(lost.down))
    large = size is _LARGE
    away = ", offline or drained already" if lost.away else ""
    return _Tile(
        *place,
        look=kind,
        mark=mark if large or len(mark) < 3 else "\N{MULTIPLICATION SIGN}",
        name=fitting(lost.name, size.width - 28, 11) if large else "",
        words=lost.verdict if large else "",
        title=f"{lost.name}{away}: {lost.verdict}",
        href=None if address is None else _href(address, lost),
    )


def _href(address: str, lost: Lost) -> str:
    return address + quote(lost.key)


def _table(every: Sequence[Lost], address: str | None) -> dict[str, object]:
    """Return the same as rows: who is in trouble first, as many as a page can show."""
    order = list(_SAID)
    ranked = sorted(every, key=lambda lost: order.index(look(lost)))
    return {
        "rows": [
            {
                "name": lost.name,
                "href": None if address is None else _href(address, lost),
                "group": lost.group,
                "away": lost.away,
                "many": len(lost.fates),
                "restart": len(lost.fates) - len(lost.down),
                "down": len(lost.down),
                "data": len(lost.data_lost),
            }
            for lost in ranked[:ROWS]
        ],
        "left_out": _left_out(ranked[ROWS:]),
    }


def _left_out(rest: Sequence[Lost]) -> str:
    if not rest:
        return ""
    return f"{len(rest):,} more are not in this table: {_summed(rest)}."


# -- one loss --------------------------------------------------------------------------


class _Lane(NamedTuple):
    """Who goes to one node, or stays down."""

    title: str
    lines: list[str]
    names: list[tuple[str, str]]
    down: bool
    y: int
    tall: int


def one_loss(lost: Lost) -> Picture:
    """Return the picture of one loss."""
    lanes, added_up = _lanes(lost)
    tall = lanes[-1].y + lanes[-1].tall if lanes else 0
    body = drawn(
        "fate.html",
        lost=lost,
        lanes=lanes,
        added_up=added_up,
        width=WIDTH,
        tall=tall,
        row=_ROW,
        numbered=list(enumerate(lost.fates[:ROWS], 1)),
        more=max(0, len(lost.fates) - ROWS),
        format_size=format_size,
    )
    return Picture(f"If {lost.name} is lost", _sentence(lost), body)


def _sentence(lost: Lost) -> str:
    many, down = len(lost.fates), len(lost.down)
    if not many:
        return "Nobody runs on it." if lost.kind is Kind.NODE else "Nobody stops."
    if not down:
        ending = (
            f" {len(lost.data_lost)} of them without data." if lost.data_lost else ""
        )
        who = (
            "The one instance restarts"
            if many == 1
            else f"All {many} instances restart"
        )
        return f"{who}.{ending}"
    if down == many:
        return f"{counted(many, 'instance')} would stay down."
    return f"{many - down} of {many} instances restart, {down} would stay down."


_ROW: Final = 18


def _lanes(lost: Lost) -> tuple[list[_Lane], str]:
    """Return a lane for each node that somebody goes to, and what is added up."""
    groups: dict[str, list[Fate]] = {}
    for fate in lost.fates:
        groups.setdefault(fate.node, []).append(fate)
    down = groups.pop("", [])
    ranked = list(groups.items())
    told = []
    if len(ranked) > LANES:
        ranked.sort(key=lambda pair: -len(pair[1]))
        rest = [fate for _, fates in ranked[LANES - 1 :] for fate in fates]
        told.append(f"{len(ranked) - LANES + 1} nodes that take fewest are one box")
        ranked = [
            *ranked[: LANES - 1],
            (f"{len(ranked) - LANES + 1} more nodes", rest),
        ]
    alone = len(lost.fates) <= ALONE
    if not alone:
        told.append(f"{len(lost.fates):,} instances are counted by node")
    if down:
        ranked.append(("", down))
    lanes: list[_Lane] = []
    y = 0
    for name, fates in ranked:
        lane = _lane(name, fates, y, alone=alone)
        lanes.append(lane)
        y += lane.tall + 8
    return lanes, "; ".join(told)


def _lane(name: str, fates: Sequence[Fate], y: int, *, alone: bool) -> _Lane:
    if alone:
        names = [(fitting(fate.instance, 138, 11), _story(fate)) for fate in fates]
    else:
        count = counted(len(fates), "instance")
        names = [(count, f"{count}: {name or 'stay down'}")]
    words = _reason(fates) if not name else _arrivals(fates)
    tall = max(len(names) * _ROW, 2 * _ROW)
    return _Lane(
        title=fitting(name or f"{len(fates)} stay down", 150, 11),
        lines=wrapped(words, 150, 9, max(1, (tall - 22) // 11)),
        names=names,
        down=not name,
        y=y,
        tall=tall,
    )


def _story(fate: Fate) -> str:
    if not fate.node:
        return f"{fate.instance} stays down: {fate.reasons[0]}"
    return f"{fate.instance} {fate.way} on {fate.node}"


def _arrivals(fates: Sequence[Fate]) -> str:
    least = min(fate.left for fate in fates)
    return f"{len(fates)} arrive, {format_size(least)} left"


def _reason(fates: Sequence[Fate]) -> str:
    """Return the reason that most of them have."""
    reasons = sorted(fate.reasons[0] for fate in fates)
    runs = [(len(list(run)), reason) for reason, run in groupby(reasons)]
    return max(runs)[1]
