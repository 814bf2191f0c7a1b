# SPDX-License-Identifier: BSD-2-Clause
"""What volumes look like on the wire."""

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import PageQuery
from moorage_cloud.api.wire.versions import since

Text = Annotated[str, Meta(max_length=255)]
Metadata = dict[Annotated[str, Meta(min_length=1, max_length=255)], Text]


class NewVolume(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume that somebody wants.

    `server_id` is an extension: the server that it is attached to at once.
    """

    open_below: ClassVar[str] = "3.53"

    size: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    name: Text | None = None
    description: Text | None = None
    display_name: Text | None = None
    display_description: Text | None = None
    metadata: Metadata | None = None
    volume_type: Text | None = None
    availability_zone: Text | None = None
    snapshot_id: str | None = None
    source_volid: str | None = None
    imageRef: Text | None = None  # noqa: N815 - the wire's name
    image_id: Text | None = None
    multiattach: bool | None = None
    consistencygroup_id: str | None = None
    group_id: Annotated[str | None, since("3.13")] = None
    backup_id: Annotated[str | None, since("3.47")] = None
    server_id: str | None = None


class CreateVolume(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a volume; hints are for schedulers, and there is none."""

    volume: NewVolume
    hints: dict[str, Any] | None = field(
        name="OS-SCH-HNT:scheduler_hints", default=None
    )


class ChangedVolume(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of a volume is to be different."""

    name: Text | None = None
    description: Text | None = None
    display_name: Text | None = None
    display_description: Text | None = None
    metadata: Metadata | None = None


class UpdateVolume(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change a volume."""

    volume: ChangedVolume


class AttachmentOfVolume(Struct, frozen=True, kw_only=True):
    """Where a volume is; `id` is the volume's, as in Nova."""

    id: str
    attachment_id: str
    volume_id: str
    server_id: str
    host_name: str | None
    device: str
    attached_at: str | None


class VolumeBrief(Struct, frozen=True, kw_only=True):
    """A volume in a list without detail."""

    id: str
    name: str
    links: list[Link]


class VolumeShown(Struct, frozen=True, kw_only=True):
    """A volume."""

    id: str
    status: str
    size: int
    availability_zone: str
    created_at: str
    updated_at: str
    name: str
    description: str
    volume_type: str
    snapshot_id: str | None
    source_volid: str | None
    metadata: dict[str, str]
    links: list[Link]
    user_id: str
    bootable: str
    encrypted: bool = False
    replication_status: str | None = None
    consistencygroup_id: str | None = None
    multiattach: bool = False
    attachments: list[AttachmentOfVolume]
    migration_status: str | None = None
    group_id: Annotated[str | None, since("3.13")] = None
    provider_id: Annotated[str | UnsetType | None, since("3.21")] = UNSET
    shared_targets: Annotated[bool, since("3.48")] = False
    service_uuid: Annotated[str | None, since("3.48")] = None
    cluster_name: Annotated[str | UnsetType | None, since("3.61")] = UNSET
    volume_type_id: Annotated[str, since("3.63")]
    consumes_quota: Annotated[bool, since("3.65")] = True
    host: str | UnsetType | None = field(name="os-vol-host-attr:host", default=UNSET)
    tenant: str | UnsetType = field(name="os-vol-tenant-attr:tenant_id", default=UNSET)
    migstat: str | UnsetType | None = field(
        name="os-vol-mig-status-attr:migstat", default=UNSET
    )
    name_id: str | UnsetType | None = field(
        name="os-vol-mig-status-attr:name_id", default=UNSET
    )
    volume_image_metadata: dict[str, str] | UnsetType = UNSET
    server_id: str | UnsetType | None = UNSET
    delete_on_termination: bool | UnsetType = field(
        name="SNF:delete_on_termination", default=UNSET
    )
    detachable: bool | UnsetType = field(name="SNF:detachable", default=UNSET)
    fault: str | UnsetType = field(name="SNF:fault", default=UNSET)


class OneVolume(Struct, frozen=True):
    """A volume."""

    volume: VolumeShown


class BriefVolumes(Struct, frozen=True, kw_only=True):
    """A page of volumes, without detail."""

    volumes: list[VolumeBrief]
    volumes_links: list[Link] | UnsetType = UNSET
    count: Annotated[int | UnsetType, since("3.45")] = UNSET


class Volumes(Struct, frozen=True, kw_only=True):
    """A page of volumes."""

    volumes: list[VolumeShown]
    volumes_links: list[Link] | UnsetType = UNSET
    count: Annotated[int | UnsetType, since("3.45")] = UNSET


class Shown(Struct, frozen=True):
    """How much of a volume is to be told: with `SNF`, what only this service has."""

    extended: bool = field(name="SNF", default=False)


class CountedQuery(PageQuery, frozen=True, kw_only=True):
    """What part of a list is wanted, and whether to tell how long all of it is."""

    with_count: Annotated[str | None, since("3.45")] = None

    @property
    def counted(self) -> bool:
        """Whether to tell how many there are on all pages."""
        return self.with_count is not None and self.with_count.lower() in {"true", "1"}


class VolumesQuery(CountedQuery, frozen=True, kw_only=True):
    """Which volumes are wanted."""

    strict_from: ClassVar[str] = "3.31"

    extended: bool = field(name="SNF", default=False)
    all_tenants: bool = False
    project_id: str | None = None
    user_id: str | None = None
    name: str | None = None
    name_like: Annotated[str | None, since("3.34")] = field(name="name~", default=None)
    status: str | None = None
    status_like: Annotated[str | None, since("3.34")] = field(
        name="status~", default=None
    )
    metadata: str | None = None
    bootable: bool | None = None
    migration_status: str | None = None
    availability_zone: str | None = None
    size: int | None = None
    volume_type_id: str | None = None
    group_id: Annotated[str | None, since("3.10")] = None
    glance_metadata: Annotated[str | None, since("3.4")] = None
    created_at: Annotated[str | None, since("3.60")] = None
    updated_at: Annotated[str | None, since("3.60")] = None
    consumes_quota: Annotated[bool | None, since("3.65")] = None


class DeleteQuery(Struct, frozen=True):
    """How a volume is to go."""

    cascade: bool = False
    force: Annotated[bool, since("3.23")] = False


class Total(Struct, frozen=True):
    """How many, how large, and with which metadata."""

    total_count: int
    total_size: int
    metadata: Annotated[dict[str, list[str]], since("3.36")]


class Summary(Struct, frozen=True):
    """What there is in all."""

    summary: Total = field(name="volume-summary")


class MetadataBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Metadata."""

    metadata: Metadata


class MetaBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One item of metadata."""

    meta: Metadata


# --- actions --------------------------------------------------------------------------


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """An action that says nothing more."""


class Extend(Struct, frozen=True, forbid_unknown_fields=True):
    """A volume is to be so large, GiB."""

    new_size: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ResetStatus(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status is to be set right."""

    status: str | None = None
    attach_status: str | None = None
    migration_status: str | None = None


class ForceDetach(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume is to leave its server, whatever its state says."""

    attachment_id: str | None = None
    connector: dict[str, Any] | None = None


class Retype(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume is to have another type."""

    new_type: str
    migration_policy: str | None = None


class Revert(Struct, frozen=True, forbid_unknown_fields=True):
    """A volume is to have the data of a snapshot of it again."""

    snapshot_id: str


class Bootable(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a guest can start from it."""

    bootable: bool


class ReadOnly(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether guests may only read."""

    readonly: bool
