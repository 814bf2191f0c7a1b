# SPDX-License-Identifier: BSD-2-Clause
"""One of everything, in the project ``red``."""

import json

from django.db.models import Model
from site_of_people import Site

from moorage_cloud import verbs
from moorage_cloud.identity.models import ApplicationCredential, Assignment, User
from moorage_cloud.models import (
    Attachment,
    Image,
    Limit,
    Message,
    Operation,
    ProjectType,
    Server,
    Snapshot,
    Transfer,
    TypeAccess,
    Volume,
    VolumeType,
)

KEPT: tuple[type[Model], ...] = (
    *(Volume, Attachment, Snapshot, Transfer, VolumeType, Limit, Server, Operation),
    *(Message, TypeAccess, ProjectType),
    *(Image, User, Assignment, ApplicationCredential),
)


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
            "type_id": self._type(),
            "server_id": site.server("a1"),
            "project_id": site.red.pk,
            "user_id": anna.user.pk,
            "credential_id": credential.pk,
            "role_id": "member",
            "domain_id": "default",
            "class_name": "default",
            "transfer_id": self._offered(),
            "image_id": str(self._image().uuid),
            "message_id": self._told(),
            "absent_id": "7",
            "host": "a",
            "key": "k",
        }

    def _image(self) -> Image:
        kind = self.site.docks.type
        new = verbs.NewImage(name="of all", volume_type=kind, data="golden", size=1)
        return verbs.add_image(new)

    def _type(self) -> str:
        """Make a type that red alone sees, and has by default; return its id."""
        kind = VolumeType.objects.create(
            name="reds",
            disk_template="ext_named",
            domain=self.site.docks.domain,
            is_public=False,
            specs={"k": "v"},
        )
        TypeAccess.objects.create(volume_type=kind, project=self.site.red.pk)
        ProjectType.objects.create(volume_type=kind, project=self.site.red.pk)
        return str(kind.uuid)

    def _offered(self) -> str:
        new = {"transfer": {"volume_id": self.site.anna.new_volume()["id"]}}
        answer = self.site.anna.volumes("POST", "/volume-transfers", new)
        return str(answer.body["transfer"]["id"])

    def _told(self) -> str:
        """Let an attachment fail; return the id of what is told of it."""
        anna, docks = self.site.anna, self.site.docks
        volume = anna.new_volume()
        docks.piers["a"].fails = lambda _request: True
        body = {"volumeAttachment": {"volumeId": volume["id"]}}
        anna.servers("POST", f"/{self.site.server('a2')}/os-volume_attachments", body)
        docks.settle()
        docks.piers["a"].fails = lambda _request: False
        (message,) = anna.volumes("GET", "/messages").body["messages"]
        return str(message["id"])

    def secrets(self) -> set[str]:
        """Return what nobody else may be told."""
        named = (
            "volume_id",
            "snapshot_id",
            "attachment_id",
            "server_id",
            "transfer_id",
            "message_id",
            "type_id",
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
