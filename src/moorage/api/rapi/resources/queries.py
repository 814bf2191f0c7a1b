# SPDX-License-Identifier: BSD-2-Clause
"""Queries: any fields of any objects, with a filter."""

from typing import Any

from moorage.api.rapi.looking import Do, get
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route

_PATH = "/2/query/{resource}"
_FIELDS = Arg("fields", Kind.WORDS, "names of fields")


def _wanted(asked: Asked, given: object) -> list[str]:
    found = asked.args.get("fields") if given is None else given
    if found is None:
        raise HttpError(400, "Missing 'fields' query argument")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise HttpError(400, "The 'fields' parameter should be a list of texts")
    return found


async def _ask(asked: Asked) -> dict[str, Any]:
    body = asked.fields()
    qfilter = body.get("qfilter")
    if qfilter is None:
        qfilter = body.get("filter")
    fields = _wanted(asked, body.get("fields"))
    found: dict[str, Any] = await asked.luxi.call(
        "Query", asked.path["resource"], fields, qfilter
    )
    return found


async def _definitions(asked: Asked) -> dict[str, Any]:
    what, fields = asked.path["resource"], asked.args.get("fields")
    found: dict[str, Any] = await asked.luxi.call("QueryFields", what, fields)
    return found


_BODY = {
    "fields": "names of fields",
    "qfilter": "which objects, in the language of filters",
    "filter": "the same, by its old name",
}
ROUTES: tuple[Route, ...] = (
    get(
        _PATH,
        "Tell fields of all objects of a kind",
        _ask,
        _FIELDS,
        answer=dict[str, Any],
        role=Role.READ,
    ),
    Route(
        "PUT",
        _PATH,
        "Tell fields of the objects that a filter fits",
        Do(_ask, dict[str, Any], _BODY),
        Role.READ,
        (_FIELDS,),
    ),
    get(
        f"{_PATH}/fields",
        "Tell which fields a kind of objects has",
        _definitions,
        _FIELDS,
        answer=dict[str, Any],
    ),
)
