# SPDX-License-Identifier: BSD-2-Clause
"""Filters of jobs, which there are not: lists are empty, and changes say why."""

from typing import Any

from moorage.api.rapi.looking import BULK, Do, get
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Asked, Route

_FIELDS = ("priority", "predicates", "action", "reason")
_FILTER = "/2/filters/{filter}"


async def _none(asked: Asked) -> list[Any]:
    found: list[Any] = await asked.luxi.call("QueryFilters", None, ["uuid"])
    return found


async def _one(asked: Asked) -> None:
    raise HttpError(404, f"there is no filter {asked.path['filter']}")


async def _replace(asked: Asked) -> None:
    given = asked.fields()
    unknown = sorted(given.keys() - set(_FIELDS))
    if unknown:
        raise HttpError(400, f"Invalid body parameters: {', '.join(unknown)}")
    values = given.get("priority", 0), given.get("predicates", [])
    more = given.get("action", "CONTINUE"), given.get("reason", [])
    name = asked.path.get("filter")
    await asked.luxi.call("ReplaceFilter", name, *values, *more)


async def _delete(asked: Asked) -> None:
    await asked.luxi.call("DeleteFilter", asked.path["filter"])


_BODY = {
    "priority": "which comes first",
    "predicates": "which jobs",
    "action": "what happens to them",
    "reason": "why",
}
ROUTES: tuple[Route, ...] = (
    get(
        "/2/filters",
        "List the filters of jobs: there are none",
        _none,
        BULK,
        answer=list[dict[str, Any]],
    ),
    Route(
        "POST",
        "/2/filters",
        "Refused: jobs are not filtered",
        Do(_replace, None, _BODY),
        Role.WRITE,
    ),
    get(_FILTER, "Tell about a filter: there are none", _one),
    Route(
        "PUT",
        _FILTER,
        "Refused: jobs are not filtered",
        Do(_replace, None, _BODY),
        Role.WRITE,
    ),
    Route(
        "DELETE",
        _FILTER,
        "Refused: jobs are not filtered",
        Do(_delete, None),
        Role.WRITE,
    ),
)
