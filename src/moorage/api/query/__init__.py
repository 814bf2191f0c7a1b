# SPDX-License-Identifier: BSD-2-Clause
"""Queries: tables of fields, filters, and the nodes' facts where a field needs them.

Fetching (:func:`query`) and evaluating (:func:`rows`) are apart; the latter is pure.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from moorage.errors import BadInput, NotFound
from moorage.units import is_whole

from .disk import DISK
from .export import EXPORT
from .field import Cell, Field, Resource, cell
from .filter import FILTER
from .group import GROUP
from .instance import INSTANCE
from .job import JOB, LOCK
from .live import Sources, ask, ask_exports, recall
from .network import NETWORK
from .node import NODE
from .pool import POOL
from .qfilter import Filter
from .select import Selection, check_known, names_in, with_full_names
from .snapshot import Snapshot

_ALL = (DISK, EXPORT, FILTER, GROUP, INSTANCE, JOB, LOCK, NETWORK, NODE, POOL)
RESOURCES = {one.name: one for one in _ALL}
"""Everything that can be queried, by its name."""

Answer = tuple[list[Field], list[list[Cell]]]
T = TypeVar("T")
MANY = 1_000
"""Objects that are too many to be looked at while everybody else waits."""

__all__ = [
    "MANY",
    "RESOURCES",
    "Snapshot",
    "Sources",
    "fields_of",
    "old_style",
    "query",
    "recall",
    "resource_named",
    "rows",
]


def resource_named(name: object) -> Resource:
    """Return a resource.

    Raises
    ------
    NotFound
        If there is none; the sentence names those that exist.
    """
    if not isinstance(name, str) or name not in RESOURCES:
        known = ", ".join(sorted(RESOURCES))
        raise NotFound(f"there is nothing called '{name}' to query: there is {known}")
    return RESOURCES[name]


def fields_of(name: str, wanted: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the definitions of some fields of a resource, or of all by name."""
    resource = resource_named(name)
    if wanted:
        found = [resource.find(one) for one in wanted]
    else:
        found = sorted(resource.all_fields(), key=lambda field: field.name)
    return {"fields": [field.to_json() for field in found]}


def rows(
    fields: Sequence[Field], found: Sequence[Any], snapshot: Snapshot
) -> list[list[Cell]]:
    """Return a row of cells for each object. Pure."""
    getters = [field.get for field in fields]
    return [[cell(get(snapshot, one)) for get in getters] for one in found]


async def query(
    name: str, wanted: Sequence[str], qfilter: Filter | None, sources: Sources
) -> dict[str, Any]:
    """Answer a query.

    Nodes are asked when a field needs them, or a filter on one: each once, and only
    those that the objects need. Fields that are not known have status 1 in each row.

    Returns
    -------
    ``{"fields": [{name, title, kind, doc}], "data": [[[status, value]]]}``

    Raises
    ------
    NotFound
        If there is no such resource, or a filter of names alone has one that nothing
        goes by.
    BadInput
        If the filter is none.
    """
    fields, data = await _answer(name, wanted, qfilter, sources)
    return {"fields": [field.to_json() for field in fields], "data": data}


async def old_style(
    name: str,
    names: Sequence[str | int] | None,
    wanted: Sequence[str],
    sources: Sources,
) -> list[list[Any]]:
    """Answer a query of Ganeti's first kind: names and fields in, bare values out.

    Raises
    ------
    BadInput
        If a field is not known.
    """
    key = next(iter(resource_named(name).keys))
    parts: list[Filter] = [["==", key, one] for one in names or ()]
    qfilter: Filter | None = ["|", *parts] if parts else None
    fields, data = await _answer(name, wanted, qfilter, sources)
    unknown = [field.name for field in fields if field.kind == "unknown"]
    if unknown:
        raise BadInput(
            f"no {name} has the field {', '.join(unknown)}",
            hint=f"gnt-{name} list-fields",
        )
    return await _apart(
        len(data), lambda: [[value for _, value in row] for row in data]
    )


async def _answer(
    name: str, wanted: Sequence[str], qfilter: Filter | None, sources: Sources
) -> Answer:
    resource = resource_named(name)
    fields = [resource.find(one) for one in wanted]
    snapshot = sources.snapshot()
    if resource.fetches:
        snapshot.exports = await ask_exports(sources)
    if resource is JOB:
        await _recall(snapshot, wanted, qfilter, sources)
    check_known(resource, snapshot, qfilter)
    qfilter = with_full_names(resource, snapshot, qfilter)
    selection = Selection(resource, qfilter)
    many = len(snapshot.config.objects) + len(snapshot.jobs)
    found = await _apart(many, lambda: selection.first(snapshot))
    if selection.needs_live or any(field.live for field in fields):
        nodes = resource.nodes(snapshot.config, found, qfilter is None)
        room = selection.needs_live or any(field.room for field in fields)
        brief = resource.brief
        snapshot.facts = await ask(
            sources, snapshot.config, nodes, room=room, brief=brief
        )
        found = await _apart(many, lambda: selection.second(snapshot, found))
    return fields, await _apart(many, lambda: _told(fields, found, snapshot))


async def _recall(
    snapshot: Snapshot, wanted: Sequence[str], qfilter: Filter | None, sources: Sources
) -> None:
    """Add jobs of the archive, as Ganeti does: by their numbers, or if it is asked."""
    if "archived" in wanted:
        await recall(sources, snapshot)
    elif named := names_in(JOB, qfilter):
        numbers = [int(one) for one in named if is_whole(str(one))]
        await recall(sources, snapshot, numbers)


def _told(
    fields: Sequence[Field], found: Sequence[Any], snapshot: Snapshot
) -> list[list[Cell]]:
    """Return the rows; nobody needs any more what nodes said."""
    told = rows(fields, found, snapshot)
    snapshot.let_go()
    return told


async def _apart(many: int, look: Callable[[], T]) -> T:
    """Look at so many things; where they are very many, in a thread of its own."""
    if many < MANY:
        return look()
    return await asyncio.to_thread(look)
