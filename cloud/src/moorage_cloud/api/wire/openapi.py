# SPDX-License-Identifier: BSD-2-Clause
"""The document that describes a service: made from what its routes declare.

What depends on the version says so by ``x-openstack``, with ``min-ver`` and ``max-ver``
as OpenStack's own documents have them. Actions share a path: one of their bodies is
given, told by its only key.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse

from .address import address
from .routes import Endpoint
from .service import Service
from .versions import MARK

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"


def show(request: HttpRequest, service: Service) -> HttpResponse:
    """Answer with the document of a service."""
    found = document(service, address(request, f"/{service.root}"))
    return HttpResponse(msgspec.json.encode(found), content_type=JSON)


def document(service: Service, address: str) -> dict[str, Any]:
    """Return the document of a service that is at an address."""
    endpoints = service.routes.endpoints
    kinds = {
        kind
        for one in endpoints
        for kind in (one.body, one.query, one.answer)
        if kind is not None
    }
    ordered = sorted(kinds, key=str)
    schemas, known = msgspec.json.schema_components(ordered, ref_template=REFERENCE)
    schema = dict(zip(ordered, schemas, strict=True))
    for struct in known.values():
        _ask_for_what_every_version_has(struct)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        told = paths.setdefault(one.path, {})
        if one.method.lower() in told:
            _add_action(told[one.method.lower()], one, schema)
        else:
            told[one.method.lower()] = _operation(one, schema, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Moorage's cloud: {service.root.partition('/')[0]}",
            "version": service.high,
        },
        "servers": [{"url": address}],
        "paths": paths,
        "components": {
            "schemas": known,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
        },
        "security": [{"token": []}],
    }


def _ask_for_what_every_version_has(struct: dict[str, Any]) -> None:
    """Let a struct require no field that some version has not."""
    if "required" in struct:
        fields = struct["properties"]
        struct["required"] = [
            name for name in struct["required"] if MARK not in fields[name]
        ]


def _operation(
    one: Endpoint, schema: dict[Any, Any], known: dict[str, Any]
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": one.summary,
        "operationId": re.sub(r"\W+", "_", f"{one.method} {one.path}").strip("_"),
        "parameters": [*_in_path(one), *_in_query(one, schema, known)],
        "responses": {str(one.status): _answer(one, schema), "default": _FAULT},
    }
    if one.open:
        told["security"] = []
    versions = {"min-ver": one.low, "max-ver": one.high}
    said = {name: str(at) for name, at in versions.items() if at is not None}
    if said:
        told[MARK] = said
    if one.action:
        told["requestBody"] = _content({"oneOf": []})
        _add_action(told, one, schema)
    elif one.body is not None:
        told["requestBody"] = _content(schema[one.body])
    return told


def _add_action(told: dict[str, Any], one: Endpoint, schema: dict[Any, Any]) -> None:
    """Add an action's body, and its status, to what is told of their path."""
    bodies = told["requestBody"]["content"][JSON]["schema"]["oneOf"]
    bodies.append(
        {
            "title": one.summary,
            "type": "object",
            "properties": {one.action: schema[one.body] if one.body else {}},
            "required": [one.action],
            "additionalProperties": False,
        }
    )
    told["summary"] = "Do something, told by the body's only key"
    told["responses"][str(one.status)] = _answer(one, schema)


def _content(schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"required": True, "content": {JSON: {"schema": schema}}}


def _answer(one: Endpoint, schema: dict[Any, Any]) -> dict[str, Any]:
    if one.answer is None:
        return {"description": "It is done, or under way"}
    return {
        "description": "What was asked for",
        "content": {JSON: {"schema": schema[one.answer]}},
    }


_FAULT = {
    "description": "It was refused: the only key names why",
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "integer"},
                        "message": {"type": "string"},
                    },
                    "required": ["code", "message"],
                },
            }
        }
    },
}


def _in_path(one: Endpoint) -> Iterable[dict[str, Any]]:
    for part in one.path.split("/"):
        if part.startswith("{"):
            yield {
                "name": part[1:-1],
                "in": "path",
                "required": True,
                "schema": {"type": "string"},
            }


def _in_query(
    one: Endpoint, schema: dict[Any, Any], known: dict[str, Any]
) -> Iterable[dict[str, Any]]:
    if one.query is None:
        return
    name = schema[one.query]["$ref"].rpartition("/")[2]
    for key, kind in known[name]["properties"].items():
        yield {"name": key, "in": "query", "schema": kind}
