# SPDX-License-Identifier: BSD-2-Clause
"""Tables: filtered in Ganeti's language, sorted, fifty rows a page.

Of many objects only the name and the field that sorts are asked for; all that is
shown, of those alone that stand on the page. The address says all that is shown.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from msgspec import json

from moorage.client import Field, MoorageError, qfilter
from moorage.client.told import NORMAL
from moorage.errors import NotFound

from . import deeds
from .kinds import KINDS, TITLES, Kind
from .values import ROOT, Cell, address, called, cell, in_shell
from .visit import Page, Visit

ROWS = 50
"""Rows of a page."""
_LISTED = 10
"""Values of a cell that has a list."""


class Row(NamedTuple):
    """An object in a table."""

    key: str
    name: str
    href: str
    cells: Sequence[Cell]


class Heading(NamedTuple):
    """A column's head: its title, its meaning, and where sorting by it leads."""

    title: str
    doc: str
    href: str
    sorted: str
    number: bool


class Listed(NamedTuple):
    """What an address asks for.

    Attributes
    ----------
    text
        The filter, as it was typed.
    sort
        A field; with ``-`` before it, downwards.
    page
        From 1.
    """

    kind: Kind
    text: str
    sort: str
    page: int

    @property
    def down(self) -> bool:
        """Whether the last comes first."""
        return self.sort.startswith("-")

    @property
    def field(self) -> str:
        """The field that sorts."""
        return self.sort.removeprefix("-")

    def href(self, **other: object) -> str:
        """Return the address of this table, but for some of it."""
        first = default_sort(self.kind)
        asked = {"filter": self.text, "sort": self.sort, "page": self.page, **other}
        usual = {"filter": "", "sort": first, "page": 1}
        told = {name: one for name, one in asked.items() if one != usual[name]}
        query = f"?{urlencode(told)}" if told else ""
        return f"{ROOT}/{self.kind.name}{query}"


def default_sort(kind: Kind) -> str:
    """Return what sorts a table if nobody says otherwise; new jobs come first."""
    return "-id" if kind.name == "job" else kind.columns[0]


def wanted(kind: Kind, visit: Visit) -> Listed:
    """Return what an address asks for; what makes no sense is left out."""
    sort, page = visit.asked("sort"), visit.asked("page", "1")
    known = sort.removeprefix("-") in kind.columns
    number = int(page) if page.isascii() and page.isdecimal() and len(page) < 9 else 1
    text = visit.asked("filter").strip()
    return Listed(kind, text, sort if known else default_sort(kind), max(1, number))


def filter_of(kind: Kind, text: str) -> list[Any] | None:
    """Return the filter that somebody typed; a lone word is a part of a name.

    Raises
    ------
    BadInput
        If it is neither.

    >>> filter_of(KINDS["node"], "de1"), filter_of(KINDS["node"], "not drained")
    (['=~', 'name', 'de1'], ['!', ['?', 'drained']])
    """
    if not text:
        return None
    name = kind.columns[0]
    if re.fullmatch(r"[\w.+-]+", text):
        if name == "id":
            return ["==", "id", int(text)] if _is_number(text) else _about(text)
        return ["=~", name, re.escape(text)]
    return qfilter.parse(text)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 16


def typed(kind: Kind, text: str) -> str:
    """Return the filter of a command that finds the same.

    >>> typed(KINDS["node"], "de1"), typed(KINDS["node"], "not drained")
    ('name =~ m/de1/', 'not drained')
    """
    if not re.fullmatch(r"[\w.+-]+", text):
        return text
    name, pattern = kind.columns[0], f"m/{re.escape(text)}/"
    if name != "id":
        return f"{name} =~ {pattern}"
    if _is_number(text):
        return f"id == {text}"
    return f"status == {json.encode(text).decode()} or caller =~ {pattern}"


def _about(word: str) -> list[Any]:
    return ["|", ["==", "status", word], ["=~", "caller", re.escape(word)]]


async def table(visit: Visit) -> Page:
    """Show a table."""
    kind = KINDS[visit.path["kind"]]
    asked = wanted(kind, visit)
    wrong: MoorageError | None = None
    keys: list[Any] = []
    try:
        keys = await _keys(visit, asked, filter_of(kind, asked.text))
    except MoorageError as error:
        if not asked.text:
            raise
        wrong = error
    last = max(1, -(-len(keys) // ROWS))
    asked = asked._replace(page=min(asked.page, last))
    shown = keys[(asked.page - 1) * ROWS : asked.page * ROWS]
    fields, rows = await _rows(visit, kind, shown)
    values = {
        "kind": kind,
        "asked": asked,
        "headings": [_heading(asked, one) for one in fields],
        "rows": rows,
        "number": len(keys),
        "last": last,
        "wrong": wrong,
        "names": [one.name for one in await visit.client.query_fields(kind.name)],
        "command": _command(asked._replace(text="") if wrong else asked),
        "deeds": deeds.of(kind.name),
        "making": deeds.making(kind.name),
    }
    return Page("table", values, 400 if wrong else 200)


def _command(asked: Listed) -> str:
    """Return the command that shows the same."""
    if not asked.text:
        return asked.kind.command
    told = in_shell([typed(asked.kind, asked.text)])
    return f"{asked.kind.command} --filter {told}"


async def _keys(visit: Visit, asked: Listed, chosen: list[Any] | None) -> list[Any]:
    """Return the keys of all objects that a filter fits, in order."""
    kind = asked.kind
    fields = list(dict.fromkeys((kind.key, kind.columns[0], asked.field)))
    found = await visit.client.query(kind.name, fields, chosen)
    at, name = fields.index(asked.field), fields.index(kind.columns[0])
    rows = sorted(found.rows, key=lambda row: natural(row[name][1]))
    rows.sort(key=lambda row: _order(*row[at]), reverse=asked.down)
    return [row[0][1] for row in rows]


def natural(value: object) -> list[tuple[int, int, str]]:
    """Return what sorts names as people do: node2 before node10.

    >>> sorted(["node10", "node2"], key=natural)
    ['node2', 'node10']
    """
    parts = re.findall(r"\d{1,18}|\D+|\d+", "" if value is None else str(value))
    return [
        (0, int(one), "") if one.isdecimal() and len(one) < 19 else (1, 0, one.lower())
        for one in parts
    ]


def _order(status: int, value: Any) -> tuple[int, float, Any]:  # noqa: ANN401
    """Return what sorts a value: what is absent stands last, upwards."""
    if status != NORMAL or value is None:
        return 2, 0.0, []
    if isinstance(value, int | float):
        return 0, float(value), []
    if isinstance(value, list) and value and isinstance(value[0], int):
        return 0, float(value[0]), []
    told = ", ".join(map(str, value)) if isinstance(value, list) else value
    return 1, 0.0, natural(told)


async def _rows(
    visit: Visit, kind: Kind, keys: Sequence[Any]
) -> tuple[list[Field], list[Row]]:
    """Return the rows of some objects, in the order of these."""
    fields = list(dict.fromkeys((*kind.columns, kind.key)))
    if not keys:
        return await visit.client.query_fields(kind.name, kind.columns), []
    chosen = ["|", *(["==", kind.key, key] for key in keys)]
    try:
        table = await visit.client.query(kind.name, fields, chosen)
    except NotFound:  # one has gone since: of all that there are, the others are shown
        table = await visit.client.query(kind.name, fields)
    at = fields.index(kind.key)
    by_key = {row[at][1]: row for row in table.rows}
    heads = list(table.fields)[: len(kind.columns)]
    rows = [_row(kind, heads, key, by_key[key]) for key in keys if key in by_key]
    return heads, rows


def _row(
    kind: Kind, fields: Sequence[Field], key: object, row: Sequence[tuple[int, Any]]
) -> Row:
    pairs = zip(fields, row, strict=False)
    cells = [cell(kind, field, *one, most=_LISTED) for field, one in pairs]
    name = called(kind, row[0][1], key)
    return Row(str(key), name, address(kind.name, key), cells)


def _heading(asked: Listed, field: Field) -> Heading:
    here = asked.field == field.name
    sign = "" if (here and asked.down) or not here else "-"
    states = {True: "descending", False: "ascending"}
    return Heading(
        TITLES.get(field.name, field.title),
        field.doc,
        asked.href(sort=f"{sign}{field.name}", page=1),
        states[asked.down] if here else "",
        field.kind in ("unit", "number"),
    )
