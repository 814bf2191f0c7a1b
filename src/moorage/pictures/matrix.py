# SPDX-License-Identifier: BSD-2-Clause
"""Pools by nodes: which node reaches which pool, and how full it is there.

Nodes are rows, pools are columns. A pool that nodes share is one room: its fill stands
at its head, and a node reaches it or does not. Many nodes are added up by group.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from moorage.units import counted, format_size

from .bars import percent
from .ink import Picture, drawn, fitting

MOST: Final = 60
"""Nodes that have a row each."""
_NAME: Final = 120
_COLUMN: Final = 112
_HEAD: Final = 52
_ROW: Final = 20
_BAR: Final = 66


class Reach(StrEnum):
    """Whether a node reaches a pool."""

    YES = "reached"
    NO = "not reached"
    SILENT = "no answer"


class Cell(NamedTuple):
    """A pool on a node; room in MiB, None where it cannot be told."""

    reach: Reach
    free: int | None = None
    total: int | None = None


class Column(NamedTuple):
    """A pool.

    Attributes
    ----------
    about : str
        How its disks are stored.
    shared : bool
        Whether it is one room for all nodes that reach it.
    disks, promised : int
        How many disks are in it, and their size in MiB.
    free, total : int or None
        In MiB, over all nodes; None where it cannot be told.
    """

    name: str
    about: str
    shared: bool
    disks: int
    promised: int
    free: int | None = None
    total: int | None = None


class Row(NamedTuple):
    """A node, with a cell for each column."""

    name: str
    group: str
    cells: tuple[Cell, ...]


def matrix(columns: Sequence[Column], rows: Sequence[Row]) -> Picture:
    """Return the picture of pools by nodes.

    Parameters
    ----------
    rows
        Sorted by group.
    """
    added_up = len(rows) > MOST
    lines = list(_groups(columns, rows)) if added_up else list(_nodes(columns, rows))
    body = drawn(
        "matrix.html",
        columns=[_head(one, at) for at, one in enumerate(columns)],
        rows=lines,
        added_up=added_up,
        nodes=len(rows),
        width=_NAME + _COLUMN * len(columns),
        tall=_HEAD + _ROW * len(lines),
        sizes={"name": _NAME, "column": _COLUMN, "bar": _BAR, "row": _ROW},
    )
    return Picture("Pools by nodes", _lead(columns, rows), body)


def _lead(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    if not columns:
        return "There is no storage pool: gnt-storage pool add makes one."
    size = f"{counted(len(columns), 'pool')}, {counted(len(rows), 'node')}"
    full = [
        (share, one.name)
        for one in columns
        if (share := _share(one.free, one.total)) is not None
    ]
    if not full:
        return f"{size}; none tells its room."
    share, name = max(full)
    return f"{size}; the fullest is {name}, {percent(share)}."


def _share(free: int | None, total: int | None) -> float | None:
    """Return how full something is; None where that cannot be told."""
    if free is None or not total:
        return None
    return min(1.0, max(0.0, 1 - free / total))


def _room(free: int | None, total: int | None) -> str:
    if free is None or not total:
        return "room not told"
    return f"{format_size(free)} of {format_size(total)} free"


def _head(one: Column, at: int) -> dict[str, object]:
    share = _share(one.free, one.total)
    promised = f"{counted(one.disks, 'disk')}, {format_size(one.promised)}"
    return {
        "x": _NAME + at * _COLUMN,
        "name": one.name,
        "short": fitting(one.name, _COLUMN - 8, 11),
        "about": fitting(one.about, _COLUMN - 8, 9),
        "shared": one.shared,
        "width": None if share is None else share * _BAR,
        "said": "?" if share is None else percent(share),
        "told": f"{one.about}; {promised}; {_room(one.free, one.total)}",
    }


class _Line(NamedTuple):
    """A row as it is drawn."""

    name: str
    short: str
    group: str
    y: int
    cells: list["_Drawn"]


class _Drawn(NamedTuple):
    """A cell as it is drawn: a bar of some width, or a mark."""

    x: int
    look: str
    width: float | None
    said: str
    words: str


def _nodes(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[_Line]:
    for at, row in enumerate(rows):
        cells = [
            _cell(one, cell, _NAME + n * _COLUMN)
            for n, (one, cell) in enumerate(zip(columns, row.cells, strict=True))
        ]
        name = fitting(row.name, _NAME - 8, 11)
        yield _Line(row.name, name, row.group, _HEAD + at * _ROW, cells)


def _cell(column: Column, cell: Cell, x: int) -> _Drawn:
    if cell.reach is Reach.NO:
        return _Drawn(x, "absent", None, "\N{EN DASH}", "not reached")
    if cell.reach is Reach.SILENT:
        return _Drawn(x, "warn", None, "?", "no answer")
    if column.shared:
        return _Drawn(x, "fine", None, "\N{CHECK MARK}", "reached")
    share = _share(cell.free, cell.total)
    words = _room(cell.free, cell.total)
    if share is None:
        return _Drawn(x, "fine", None, "\N{CHECK MARK}", words)
    return _Drawn(x, "", share * _BAR, percent(share), words)


def _groups(columns: Sequence[Column], rows: Sequence[Row]) -> Iterator[_Line]:
    """Yield a row for each group: how many nodes reach a pool, and the fullest one."""
    runs = groupby(rows, key=lambda row: row.group)
    for at, (group, run) in enumerate(runs):
        nodes = list(run)
        cells = [
            _sum(one, [(row.name, row.cells[n]) for row in nodes], _NAME + n * _COLUMN)
            for n, one in enumerate(columns)
        ]
        name = f"{group}, {counted(len(nodes), 'node')}"
        y = _HEAD + at * _ROW
        yield _Line(name, fitting(name, _NAME - 8, 11), group, y, cells)


def _sum(column: Column, cells: Sequence[tuple[str, Cell]], x: int) -> _Drawn:
    there = [(name, cell) for name, cell in cells if cell.reach is Reach.YES]
    silent = sum(cell.reach is Reach.SILENT for _, cell in cells)
    reach = f"{len(there):,} of {len(cells):,} nodes reach it"
    reach += f", {silent:,} give no answer" if silent else ""
    shares = [
        (share, name)
        for name, cell in there
        if (share := _share(cell.free, cell.total)) is not None
    ]
    if not there:
        look, mark = ("warn", "?") if silent else ("absent", "\N{EN DASH}")
        return _Drawn(x, look, None, mark, reach)
    if column.shared or not shares:
        whole = len(there) == len(cells)
        mark = "\N{CHECK MARK}" if whole else f"{len(there):,} of {len(cells):,}"
        return _Drawn(x, "fine" if whole else "warn", None, mark, reach)
    mean = sum(share for share, _ in shares) / len(shares)
    most, name = max(shares)
    words = f"{reach}; {percent(mean)} on average, {percent(most)} on {name}"
    return _Drawn(x, "", mean * _BAR, percent(mean), words)
