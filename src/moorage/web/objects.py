# SPDX-License-Identifier: BSD-2-Clause
"""One object: facts, what belongs to it, its story, and what may be done with it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moorage.client import Field

from . import deeds
from .deed import Deed
from .kinds import DISK, KINDS, Kind
from .lookup import named, word_for
from .rooms import together
from .values import ABSENT, Cell, address, called, cell, moment, plain
from .visit import Page, Visit

_LINES = {"instance": deeds.LINES}


_EVENTS = 200
"""Events of a story that are shown: the last ones."""


class Fact(NamedTuple):
    """A value with what it is called and means."""

    field: Field
    cell: Cell


class May(NamedTuple):
    """A deed, and where it is done; else why it cannot be, and what would help.

    Attributes
    ----------
    helps, helps_href
        The label of the deed that would help, and where that is.
    """

    deed: Deed
    href: str
    why: str = ""
    helps: str = ""
    helps_href: str = ""


async def shown(visit: Visit) -> Page:
    """Show an object."""
    kind = KINDS[visit.path["kind"]]
    row, fields = await found(visit, kind, visit.path["name"])
    values = {name: value for name, (status, value) in row.items() if not status}
    key = values[kind.key]
    facts = {
        heading: [
            Fact(fields[one], cell(kind, fields[one], *row[one])) for one in group
        ]
        for heading, group in kind.facts.items()
    }
    told = {
        "kind": kind,
        "name": called(kind, values.get("name"), key),
        "key": key,
        "facts": facts,
        "state": cell(kind, fields[kind.state], *row[kind.state])
        if kind.state
        else None,
        "tags": sorted(values.get("tags", ())),
        "may": [
            *(_line(visit, one, key, values) for one in _LINES.get(kind.name, ())),
            *(_may(visit, one, key, values) for one in deeds.of(kind.name)),
        ],
        "command": _info(kind, await word_for(visit, kind, values.get("name"), key)),
    }
    more = {"instance": _instance, "disk": _disk, "node": _node}.get(kind.name)
    return Page("object", {**told, **(await more(visit, values) if more else {})})


def _info(kind: Kind, name: str) -> str:
    """Return the command that shows the same, of what that calls the object."""
    return f"{kind.command.removesuffix('list')}info {name}"


async def found(
    visit: Visit, kind: Kind, name: str
) -> tuple[dict[str, tuple[int, Any]], dict[str, Field]]:
    """Return status and value of each field of an object, and these fields."""
    table = await named(visit, kind, kind.fields, name)
    row = dict(zip(kind.fields, table.rows[0], strict=True))
    return row, {field.name: field for field in table.fields}


def _may(visit: Visit, deed: Deed, key: object, values: Mapping[str, Any]) -> May:
    href = deed.href(key)
    if refused := visit.wish(deed.op).refused:
        return May(deed, href, refused)
    why = deed.why_not(values)
    if why is None:
        return May(deed, href)
    helps = deeds.named(deed.kind, why.deed)
    if helps is None:
        return May(deed, href, why.sentence)
    return May(deed, href, why.sentence, helps.label, helps.href(key))


def _line(visit: Visit, deed: Deed, key: object, values: Mapping[str, Any]) -> May:
    found = _may(visit, deed, key, values)
    return found._replace(href=address(deed.word, key))


async def _instance(visit: Visit, values: Mapping[str, Any]) -> dict[str, Any]:
    chosen = ["==", "instance", values["name"]]
    return {
        "disks": await _beside(
            visit,
            DISK,
            ("name", "status", "size", "iv_name", "pool", "dev_type", "epoch"),
            chosen,
        )
    }


async def _beside(
    visit: Visit, kind: Kind, columns: Sequence[str], chosen: list[Any]
) -> dict[str, Any]:
    """Return a small table of what belongs to an object."""
    fields = (kind.key, *columns)
    table = await visit.client.query(kind.name, fields, chosen)
    rows = [
        (
            address(kind.name, row[0][1]),
            called(kind, row[1][1], row[0][1]),
            [cell(kind, *one) for one in _pairs(table.fields, row)][2:],
        )
        for row in table.rows
    ]
    return {"fields": table.fields[2:], "rows": rows, "first": table.fields[1]}


def _pairs(
    fields: Sequence[Field], row: Sequence[tuple[int, Any]]
) -> list[tuple[Field, int, Any]]:
    return [(field, *one) for field, one in zip(fields, row, strict=True)]


async def _disk(visit: Visit, values: Mapping[str, Any]) -> dict[str, Any]:
    story = await visit.client.story(values["uuid"])
    shown = story["events"][::-1][:_EVENTS]
    events = [
        {
            "time": moment(one["time"]),
            "what": one.get("what") or one.get("kind", "changed"),
            "job": one.get("job"),
            "by": one.get("by", ""),
            "changed": [
                (name, _short(before), _short(after))
                for name, (before, after) in one.get("changed", {}).items()
            ],
        }
        for one in shown
    ]
    more = len(story["events"]) - len(shown)
    return {"story": events, "left_out": story["left_out"], "more": more}


def _short(value: object) -> str:
    return ABSENT if value in (None, "", [], {}) else plain(value)


async def _node(_visit: Visit, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"room": together([values])}
