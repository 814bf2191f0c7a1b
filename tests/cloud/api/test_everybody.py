# SPDX-License-Identifier: BSD-2-Clause
"""Every route, asked by everybody: nobody sees or touches what is another project's.

The routes are those that the services declare, so a new one is tried without a word
here. Each is asked for things of the project ``red``.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import pytest
from cloud_things import Things
from django.db import transaction
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields
from site_of_people import Answer, Person, Site, ask

from moorage_cloud.api.urls import SERVICES
from moorage_cloud.api.wire.routes import Endpoint
from moorage_cloud.api.wire.service import Service

OWNED = {
    f"{{{name}_id}}"
    for name in ("volume", "snapshot", "attachment", "server", "project", "user")
}
"""What in a path is somebody's."""


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
        "host": "a",
    }
    if name in known:
        return known[name]
    inner = get_args(hint)
    if inner and hint not in {str, int, bool}:
        return sample(inner[0], name, ids)
    return {int: 7, bool: True}.get(hint, "word")


def send(
    service: Service, one: Endpoint, things: Things, person: Person | None
) -> Answer:
    path = f"/{service.root}{one.path.format(**things.ids)}"
    body = sample(one.body, "", things.ids) if one.body else None
    if one.action:
        body = {one.action: body or {}}
    headers = {"X-Auth-Token": person.token} if person else {}
    if person:
        headers["X-Subject-Token"] = things.site.anna.token
    if service.name:
        headers["OpenStack-API-Version"] = f"{service.name} latest"
    return ask(one.method, path, body, **headers)


def told(service: Service, one: Endpoint) -> str:
    return f"{one.method} /{service.root}{one.path} {one.action}".strip()


@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.root)
def test_nobody_touches_what_is_anothers(site: Site, service: Service):
    things = Things(site)
    before = things.state()
    for one in service.routes.endpoints:
        nobody = send(service, one, things, None)
        assert nobody.status == 401 or one.open, told(service, one)
        reader = send(service, one, things, site.rita)
        if one.method not in {"GET", "HEAD"} and not one.open:
            assert reader.status in {401, 403, 404}, told(service, one)
        stranger = send(service, one, things, site.bob)
        named = str(sample(one.body, "", things.ids)) + one.path.format(**things.ids)
        seen = json.dumps(stranger.body)
        leaked = [its for its in things.secrets() if its in seen and its not in named]
        assert not leaked, told(service, one)
        if not OWNED.isdisjoint(one.path.split("/")):
            assert stranger.status in {403, 404}, told(service, one)
        assert things.state() == before, told(service, one)


@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.root)
def test_every_route_is_there_for_who_may(site: Site, service: Service):
    things = Things(site)
    for one in service.routes.endpoints:
        own = "{user_id}" in one.path or service.name == "compute"
        with transaction.atomic():
            answer = send(service, one, things, site.anna if own else site.root)
            transaction.set_rollback(True)
        # A sample of a body may be refused as such, or by the state of what is there.
        assert answer.status not in {401, 403, 404, 405}, told(service, one)
        assert answer.status < 500, told(service, one)
