# SPDX-License-Identifier: BSD-2-Clause
"""Resources that only look: lists, single objects, and what a function returns."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.errors import Ambiguous

from .refusals import HttpError, refusal
from .roles import Role
from .route import Arg, Asked, Handler, Kind, Route

COMMON = ("ctime", "mtime", "uuid", "serial_no", "tags")
"""Fields of every object."""
BULK = Arg("bulk", Kind.FLAG, "whole objects, where else there is a name and a URI")
LOCK = Arg("lock", Kind.FLAG, "no effect: nothing that looks has to wait for locks")
_MANY = 500
"""Rows that are put together in a thread."""


async def rows(
    asked: Asked, what: str, fields: Sequence[str], qfilter: list[Any] | None = None
) -> list[list[Any]]:
    """Return bare values of objects; null where there is none."""
    answer = await asked.luxi.call("Query", what, list(fields), qfilter)
    data: list[list[Any]] = answer["data"]
    if len(data) < _MANY:
        return _bare(data)
    return await asyncio.to_thread(_bare, data)


def _bare(data: list[list[Any]]) -> list[list[Any]]:
    return [[None if status else value for status, value in row] for row in data]


async def one(asked: Asked, what: str, fields: Sequence[str], name: str) -> list[Any]:
    """Return bare values of the object of a name or uuid.

    Raises
    ------
    NotFound
        If there is none.
    Ambiguous
        If there are several: disks of instances may be of one name.
    """
    key = "id" if what == "job" else "name"
    wanted = ["==", key, name]
    found = await rows(asked, what, fields, wanted)
    if not found:
        raise HttpError(404, f"there is no {what} called '{name}'")
    if len(found) > 1:
        whose = await rows(asked, what, ("instance", "uuid"), wanted)
        words = sorted(f"{of}/{name}" if of else uuid for of, uuid in whose)
        several = f"{len(found)} {what}s are named '{name}'"
        raise refusal(Ambiguous(several, hint=f"say which: {' or '.join(words)}"))
    return found[0]


@dataclass(frozen=True, slots=True)
class Listed(Handler):
    """All objects of a kind.

    Attributes
    ----------
    what
        The resource of queries.
    fields
        Those of whole objects.
    key
        The field that URIs end with.
    called
        Its name where there is a URI beside it.
    path
        The resource's own.
    """

    what: str
    fields: tuple[str, ...]
    path: str
    key: str = "name"
    called: str = "id"

    answer = list[dict[str, Any]]

    async def __call__(self, asked: Asked) -> list[dict[str, Any]]:
        """Return them."""
        if asked.flag("bulk"):
            found = await rows(asked, self.what, self.fields)
            return await asyncio.to_thread(self._objects, found)
        keys = await rows(asked, self.what, [self.key])
        return [{self.called: key, "uri": f"{self.path}/{key}"} for (key,) in keys]

    def _objects(self, found: list[list[Any]]) -> list[dict[str, Any]]:
        return [dict(zip(self.fields, row, strict=True)) for row in found]


@dataclass(frozen=True, slots=True)
class Single(Handler):
    """One object, by its name or uuid, which is the last part of the path."""

    what: str
    fields: tuple[str, ...]
    also: dict[str, str] = field(default_factory=dict)
    """Fields that are told by a second name, too."""

    answer = dict[str, Any]

    async def __call__(self, asked: Asked) -> dict[str, Any]:
        """Return it."""
        (name,) = asked.path.values()
        found = await one(asked, self.what, self.fields, name)
        told = dict(zip(self.fields, found, strict=True))
        return told | {other: told[name] for other, name in self.also.items()}


@dataclass(frozen=True, slots=True)
class Do(Handler):
    """What a function returns."""

    function: Callable[[Asked], Awaitable[Any]]
    answer: object = Any
    body: dict[str, str] = field(default_factory=dict)
    """Fields that the body may have, each with what it means."""

    async def __call__(self, asked: Asked) -> Any:  # noqa: ANN401
        """Return it."""
        return await self.function(asked)


def listed(
    path: str, what: str, fields: tuple[str, ...], called: str = "id"
) -> tuple[Route, Route]:
    """Return the routes that list objects, and tell about one."""
    article = "an" if what[0] in "aeiou" else "a"
    key = "id" if what == "job" else "name"
    many = Listed(what, fields, path, key, called)
    single = Single(what, fields)
    return (
        Route("GET", path, f"List the {what}s", many, Role.KNOWN, (BULK, LOCK)),
        Route(
            "GET",
            f"{path}/{{{_variable(what)}}}",
            f"Tell about {article} {what}",
            single,
            Role.KNOWN,
            (LOCK,),
        ),
    )


def _variable(what: str) -> str:
    return {"job": "job", "disk": "disk", "pool": "pool_name"}.get(what, f"{what}_name")


def get(
    path: str,
    does: str,
    function: Callable[[Asked], Awaitable[Any]],
    *args: Arg,
    answer: object = Any,
    role: Role = Role.KNOWN,
) -> Route:
    """Return a route that looks by a function."""
    return Route("GET", path, does, Do(function, answer), role, args)
