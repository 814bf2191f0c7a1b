# SPDX-License-Identifier: BSD-2-Clause
"""One object, by its name or uuid."""

from collections.abc import Sequence
from contextlib import suppress

from moorage.client import Table
from moorage.errors import NotFound

from .kinds import Kind
from .visit import Visit


async def word_for(visit: Visit, kind: Kind, name: object, key: object) -> str:
    """Return what a command calls an object: its key, where no name is its alone."""
    if name and kind.key != "name":
        found = await visit.client.query(kind.name, ("name",), ["==", "name", name])
        name = name if len(found.rows) == 1 else None
    return str(name or key)


async def named(visit: Visit, kind: Kind, fields: Sequence[str], name: str) -> Table:
    """Return fields of the object of a name or uuid, as a table of one row.

    Raises
    ------
    NotFound
        If it is not there.
    """
    for key in dict.fromkeys(("name", kind.key)):
        with suppress(NotFound):
            table = await visit.client.query(kind.name, fields, ["==", key, name])
            if table.rows:
                return table
    raise NotFound(f"there is no {kind.name} called '{name}'")
