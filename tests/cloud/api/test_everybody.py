# SPDX-License-Identifier: BSD-2-Clause
"""Every route, asked by everybody: nobody sees or touches what is another project's.

The routes are those that the services declare, so a new one is tried without a word
here. Each is asked for things of the project ``red``.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import pytest
from django.db import transaction
from django.db.models import Model
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields
from site_of_people import Answer, Person, Site, ask

from moorage_cloud.api.urls import SERVICES
from moorage_cloud.api.wire.routes import Endpoint
from moorage_cloud.api.wire.service import Service
from moorage_cloud.identity.models import ApplicationCredential, Assignment, User
from moorage_cloud.models import (
    Attachment,
    Limit,
    Operation,
    Server,
    Snapshot,
    Transfer,
    Volume,
    VolumeType,
)

KEPT: tuple[type[Model], ...] = (
    *(Volume, Attachment, Snapshot, Transfer, VolumeType, Limit, Server, Operation),
    *(User, Assignment, ApplicationCredential),
)
OWNED = {
    f"{{{name}_id}}"
    for name in ("volume", "snapshot", "attachment", "server", "project", "user")
}
"""What in a path is somebody's."""


class Things:
    """What there is in red: their ids, by the names that routes have for them."""

    def __init__(self, site: Site) -> None:
        anna = site.anna
        self.site = site
        self.volume = anna.new_volume(name="of red", metadata={"k": "v"})
        self.idle = anna.new_volume(name="idle", metadata={"k": "v"})
        path = f"/{site.server('a1')}/os-volume_attachments"
        body = {"volumeAttachment": {"volumeId": self.volume["id"]}}
        anna.servers("POST", path, body)
        site.docks.settle()
        new = {"snapshot": {"volume_id": self.volume["id"], "metadata": {"k": "v"}}}
        taken = anna.volumes("POST", "/snapshots", new)
        site.docks.settle()
        (place,) = anna.look(self.volume)["attachments"]
        VolumeType.objects.update(specs={"k": "v"})
        credential = ApplicationCredential.objects.create(
            name="ci",
            user=anna.user,
            project=site.red,
            roles=["member"],
            secret="x",  # noqa: S106 - the hash of none
        )
        self.ids: dict[str, str] = {
            "volume_id": self.volume["id"],
            "snapshot_id": taken.body["snapshot"]["id"],
            "attachment_id": place["attachment_id"],
            "type_id": str(site.docks.type.uuid),
            "server_id": site.server("a1"),
            "project_id": site.red.pk,
            "user_id": anna.user.pk,
            "credential_id": credential.pk,
            "role_id": "member",
            "domain_id": "default",
            "class_name": "default",
            "transfer_id": self._offered(),
            "key": "k",
        }

    def _offered(self) -> str:
        new = {"transfer": {"volume_id": self.site.anna.new_volume()["id"]}}
        answer = self.site.anna.volumes("POST", "/volume-transfers", new)
        return str(answer.body["transfer"]["id"])

    def secrets(self) -> set[str]:
        """Return what nobody else may be told."""
        named = (
            "volume_id",
            "snapshot_id",
            "attachment_id",
            "server_id",
            "transfer_id",
        )
        return {self.ids[name] for name in named} | {self.idle["id"]}

    def state(self) -> str:
        """Return all that is kept, but for what is somebody else's own."""
        other = self.site.blue.pk
        rows = [
            (kind.__name__, sorted(map(str, kind.objects.values())))  # type: ignore[attr-defined]
            for kind in KEPT
        ]
        return json.dumps(
            [(name, [row for row in found if other not in row]) for name, found in rows]
        )


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
