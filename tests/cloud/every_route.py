# SPDX-License-Identifier: BSD-2-Clause
"""Requests for any route that is declared, made from its declaration."""

from collections.abc import Mapping
from typing import Any, get_args, get_origin

from cloud_things import Things
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields
from site_of_people import Answer, ask

from moorage_cloud.api.wire.routes import Endpoint
from moorage_cloud.api.wire.service import Service


def sample(hint: Any, name: str, ids: Mapping[str, str]) -> Any:
    """Return something that a declared body can be."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return {
            one.encode_name: sample(one.type, one.encode_name, ids)
            for one in fields(hint)
            if one.default is NODEFAULT and one.default_factory is NODEFAULT
        }
    if get_origin(hint) is dict or hint is dict:
        return {"k": "v"}
    if get_origin(hint) is list:
        return ["k"]
    known = {
        "volumeId": ids["volume_id"],
        "volume_uuid": ids["volume_id"],
        "volume_id": ids["volume_id"],
        "volume_type": ids["type_id"],
        "project": ids["project_id"],
        "host": "a",
        "type": "SOFT",
    }
    if name in known:
        return known[name]
    inner = get_args(hint)
    if inner and hint not in {str, int, bool}:
        return sample(inner[0], name, ids)
    return {int: 7, bool: True}.get(hint, "word")


def send(
    service: Service,
    one: Endpoint,
    things: Things,
    shows: Mapping[str, str],
    *,
    at: str = "latest",
    body: object = None,
    query: str = "",
) -> Answer:
    """Ask a route for things of red; without a body, with one that it can take.

    Parameters
    ----------
    shows
        Headers by which is known who asks.
    at
        The version that is asked for.
    """
    path = f"/{service.root}{one.path.format(**things.ids)}{query}"
    if one.body and body is None:
        body = sample(one.body, "", things.ids)
    if one.action:
        body = {one.action: body or {}}
    headers = {**shows, "X-Subject-Token": things.site.anna.token}
    if service.name:
        headers["OpenStack-API-Version"] = f"{service.name} {at}"
    return ask(one.method, path, body, **headers)


def told(service: Service, one: Endpoint) -> str:
    """Return the name of a route."""
    return f"{one.method} /{service.root}{one.path} {one.action}".strip()
