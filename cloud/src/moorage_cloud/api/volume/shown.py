# SPDX-License-Identifier: BSD-2-Clause
"""From a volume on record to what clients are shown of it."""

from msgspec import UNSET

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.times import moment
from moorage_cloud.conf import CONF
from moorage_cloud.models import Volume

from .shapes import AttachmentOfVolume, VolumeBrief, VolumeShown

ADMIN = "volume_extension:volume_host_attribute"
TENANT = "volume_extension:volume_tenant_attribute"
DETAIL = ("volume_type", "backend", "snapshot_source", "volume_source")
"""What showing many volumes reads with them."""


def links(call: Call, what: str, key: str) -> list[Link]:
    """Return where a thing is."""
    project = call.identity.project_id
    return [
        Link("self", f"{call.base}/{project}/{what}/{key}"),
        Link("bookmark", f"{call.site}/volume/{project}/{what}/{key}"),
    ]


class View:
    """What one request may see; asked once, used for each volume."""

    def __init__(
        self, call: Call, *, extended: bool = False, tenant: bool = True
    ) -> None:
        self.call = call
        self.admin = call.may(ADMIN)
        self.tenant = tenant and call.may(TENANT)
        self.extended = extended

    def brief(self, one: Volume) -> VolumeBrief:
        """Show its name."""
        key = str(one.uuid)
        return VolumeBrief(
            id=key, name=one.name, links=links(self.call, "volumes", key)
        )

    def detail(self, one: Volume) -> VolumeShown:
        """Show it."""
        key = str(one.uuid)
        kind, source, snapshot = one.volume_type, one.volume_source, one.snapshot_source
        host = one.backend.clustername if one.backend else None
        server = one.place.server if one.place and one.place.attached_at else None
        return VolumeShown(
            id=key,
            status=one.status,
            size=one.size,
            availability_zone=CONF.zone,
            created_at=moment(one.created),
            updated_at=moment(one.updated),
            name=one.name,
            description=one.description,
            volume_type=kind.name,
            snapshot_id=str(snapshot.uuid) if snapshot else None,
            source_volid=str(source.uuid) if source else None,
            metadata=one.metadata,
            links=links(self.call, "volumes", key),
            user_id=one.userid,
            bootable="true" if one.bootable else "false",
            attachments=self._attachments(one, host),
            provider_id=None if self.admin else UNSET,
            cluster_name=None if self.admin else UNSET,
            volume_type_id=str(kind.uuid),
            host=host if self.admin else UNSET,
            tenant=one.project if self.tenant else UNSET,
            migstat=None if self.admin else UNSET,
            name_id=None if self.admin else UNSET,
            volume_image_metadata=one.image_metadata or UNSET,
            server_id=(
                UNSET if not self.extended else str(server.uuid) if server else None
            ),
            delete_on_termination=one.delete_on_termination if self.extended else UNSET,
            detachable=kind.detachable if self.extended else UNSET,
            fault=one.fault if self.extended else UNSET,
        )

    def _attachments(self, one: Volume, host: str | None) -> list[AttachmentOfVolume]:
        """Show where it is, once the guest has it."""
        place = one.place
        if place is None or place.attached_at is None:
            return []
        return [
            AttachmentOfVolume(
                id=str(one.uuid),
                attachment_id=str(place.uuid),
                volume_id=str(one.uuid),
                server_id=str(place.server.uuid),
                host_name=host if self.admin else None,
                device=place.device,
                attached_at=moment(place.attached_at),
            )
        ]
