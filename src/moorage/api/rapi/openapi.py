# SPDX-License-Identifier: BSD-2-Clause
"""The OpenAPI document: what the declarations say, for programs."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from msgspec import json

from moorage import __version__
from moorage.jobs.fields import fields
from moorage.ops import OPERATIONS

from .events import Events
from .looking import Do
from .making import Make
from .refusals import EXPLAINED
from .route import REASON, Arg, Kind, Route

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_COMMON: Mapping[str, Schema] = {
    "comment": {"type": "string", "description": "a note on the job"},
    "debug_level": {"type": "integer", "description": "no effect"},
    "depends": {
        "type": "array",
        "description": "jobs to wait for, each with the states that it may end in",
    },
    "dry_run": {"type": "boolean", "description": "say what would be done"},
    "priority": {"type": "integer", "minimum": -20, "maximum": 19},
}
_KINDS: Mapping[Kind, Schema] = {
    Kind.FLAG: {"type": "integer", "enum": [0, 1]},
    Kind.TEXT: _TEXT,
    Kind.TEXTS: {"type": "array", "items": _TEXT},
    Kind.WORDS: {"type": "array", "items": _TEXT},
}
_ERROR: Schema = {
    "type": "object",
    "required": ["code", "message", "explain"],
    "properties": {
        "code": {"type": "integer", "enum": sorted(EXPLAINED)},
        "message": {"type": "string"},
        "explain": {"type": "string", "description": "why, in a sentence"},
        "error": {
            "type": "object",
            "description": "what the master says: code, message, hint, facts",
            "required": ["code", "message", "hint", "facts"],
        },
    },
}
_REF = "#/components/schemas/{name}"
_BROKEN, _NO_METHOD, _OTHERS_KEY = 500, 501, 409
_REFUSALS = sorted(EXPLAINED.keys() - {_BROKEN, _NO_METHOD, _OTHERS_KEY})
"""Statuses that any resource may answer with: a defect is promised by none, and a
method that a resource has not is no operation of the document."""
_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "names the request: a repeated one makes no other job, for a day",
    "schema": _TEXT,
}
_LAST: Schema = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "number of the last entry that was heard, before `after`",
    "schema": _TEXT,
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document that describes some routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Moorage, RAPI 2",
            "version": __version__,
            "description": "Ganeti's interface, and disks beside it. Who makes a "
            "change gets the number of a job.",
        },
        "paths": paths,
        "security": [{"basic": []}, {"token": []}],
        "components": {
            "schemas": _records() | {"Error": _ERROR},
            "responses": {
                str(status): _refused(status) for status in (*_REFUSALS, _OTHERS_KEY)
            },
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _records() -> dict[str, Schema]:
    """Return what fields of opcodes refer to."""
    _, every = json.schema_components(OPERATIONS.values(), ref_template=_REF)
    own = {kind.__name__ for kind in OPERATIONS.values()}
    return {name: schema for name, schema in every.items() if name not in own}


def _operation(route: Route) -> dict[str, Any]:
    words = [route.method.lower(), *re.findall(r"[a-z0-9_]+", route.path)]
    told: dict[str, Any] = {
        "operationId": "_".join(words),
        "summary": route.does,
        "x-role": route.role.word,
        "parameters": [
            *map(_variable, re.findall(r"{(\w+)}", route.path)),
            *(_parameter(one) for one in (*route.args, REASON)),
            *_headers(route),
        ],
        "responses": {
            "200": _content(
                "What was asked for", _schema(route.serve.answer), route.serve.media
            ),
        }
        | {str(one): {"$ref": f"#/components/responses/{one}"} for one in _may(route)},
    }
    body = _body(route)
    if body is not None:
        needed = bool(body.get("required"))
        told["requestBody"] = _content("", body) | {"required": needed}
    return told


def _may(route: Route) -> list[int]:
    """Return the statuses of a route's refusals."""
    others = [_OTHERS_KEY] if isinstance(route.serve, Make) else []
    return sorted([*_REFUSALS, *others])


def _refused(status: int) -> Schema:
    told = _content(EXPLAINED[status], {"$ref": _REF.format(name="Error")})
    if status != 401:
        return told
    login = {"description": "how to log in", "schema": _TEXT}
    return told | {"headers": {"WWW-Authenticate": login}}


def _headers(route: Route) -> list[Schema]:
    """Return what a route reads of a request's headers."""
    if isinstance(route.serve, Make):
        return [_KEY]
    return [_LAST] if isinstance(route.serve, Events) else []


def _content(
    does: str, schema: Schema, media: str = "application/json"
) -> dict[str, Any]:
    told = {"description": does} if does else {}
    return told | {"content": {media: {"schema": schema}}}


def _variable(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _parameter(arg: Arg) -> dict[str, Any]:
    told = {
        "name": arg.name,
        "in": "query",
        "description": arg.does,
        "required": arg.required,
        "schema": _KINDS[arg.kind],
    }
    if arg.kind is Kind.WORDS:
        told |= {"style": "form", "explode": False}
    return told


def _schema(kind: object) -> Schema:
    (schema,), _ = json.schema_components([kind], ref_template=_REF)
    return schema


def _body(route: Route) -> Schema | None:
    """Return what a body may be; None if none is read."""
    serve = route.serve
    if isinstance(serve, Make):
        if serve.body:
            return _opcode(serve, route.path)
        return None if serve.takes is None else _schema(serve.takes)
    if isinstance(serve, Do) and serve.body:
        told = {name: {"description": means} for name, means in serve.body.items()}
        return {"type": "object", "properties": told}
    return None


def _opcode(serve: Make, path: str) -> Schema:
    """Return the fields of an opcode that a body may have."""
    known, needed = properties(serve.op)
    given = {other: known[name] for other, name in serve.renames.items()}
    extra = {name: {"description": means} for name, means in serve.extra.items()}
    every = {**known, **_COMMON, **given, **extra}
    names = serve.fields(path)
    renamed = set(serve.renames.values())
    required = [one for one in names if one in needed and one not in renamed]
    told = {"type": "object", "properties": {one: every[one] for one in names}}
    return told | ({"required": required} if required else {})


@cache
def properties(op: str) -> tuple[dict[str, Schema], frozenset[str]]:
    """Return the fields of an opcode, and the names of those that have no default."""
    kind = OPERATIONS[op]
    _, parts = json.schema_components([kind], ref_template=_REF)
    schemas = parts[kind.__name__]["properties"]
    told = fields(kind)
    found = {one.name: schemas[one.name] | {"description": one.words} for one in told}
    return found, frozenset(one.name for one in told if one.required)
