# SPDX-License-Identifier: BSD-2-Clause
"""What servers and their volumes look like on the wire."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import PageQuery
from moorage_cloud.api.wire.versions import since, until

Tag = Annotated[str, Meta(min_length=1, max_length=60, pattern="^[^,/]*$")]


class NewAttachment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A volume that is to be attached; which device it becomes, the guest decides.

    A guest learns of no tags here, so one with a `tag` is refused, as Nova does where
    that is so.
    """

    volume_id: str = field(name="volumeId")
    device: Annotated[str, Meta(pattern="^/dev/[a-zA-Z0-9_]+$")] | None = None
    tag: Annotated[Tag | None, since("2.49")] = None
    delete_on_termination: Annotated[bool | None, since("2.79")] = None


class CreateAttachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to attach a volume."""

    attachment: NewAttachment = field(name="volumeAttachment")


class ChangedAttachment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of an attachment is to be different."""

    volume_id: str = field(name="volumeId")
    delete_on_termination: Annotated[bool | None, since("2.85")] = None
    id: Annotated[str | None, since("2.85")] = None
    server_id: Annotated[str | None, since("2.85")] = field(
        name="serverId", default=None
    )
    device: Annotated[str | None, since("2.85")] = None
    tag: Annotated[str | None, since("2.85")] = None


class UpdateAttachment(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change an attachment."""

    attachment: ChangedAttachment = field(name="volumeAttachment")


class AttachmentShown(Struct, frozen=True, kw_only=True):
    """A volume on a server; before 2.89 its id is the volume's."""

    id: Annotated[str, until("2.88")]
    server_id: str = field(name="serverId")
    volume_id: str = field(name="volumeId")
    device: str
    tag: Annotated[str | None, since("2.70")] = None
    delete_on_termination: Annotated[bool, since("2.79")]
    attachment_id: Annotated[str, since("2.89")]
    bdm_uuid: Annotated[str, since("2.89")]


class OneAttachment(Struct, frozen=True):
    """A volume on a server."""

    attachment: AttachmentShown = field(name="volumeAttachment")


class Attachments(Struct, frozen=True):
    """The volumes of a server."""

    attachments: list[AttachmentShown] = field(name="volumeAttachments")


class ChangedServer(Struct, frozen=True, forbid_unknown_fields=True):
    """What of a server is to be different."""

    name: Annotated[str, Meta(min_length=1, max_length=255)]


class UpdateServer(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to change a server."""

    server: ChangedServer


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """An action that says nothing more."""


class Reboot(Struct, frozen=True, forbid_unknown_fields=True):
    """A server is to start anew: reset, or stopped and started."""

    type: Literal["SOFT", "HARD", "soft", "hard", "Soft", "Hard"]


class AttachmentsQuery(Struct, frozen=True):
    """Which part of a list is wanted."""

    limit: Annotated[int, Meta(ge=0)] | None = None
    offset: Annotated[int, Meta(ge=0)] = 0


class ServersQuery(PageQuery, frozen=True, kw_only=True):
    """Which servers are wanted; a name is a piece of it, from ``^`` to ``$``."""

    name: str | None = None
    status: str | None = None
    uuid: str | None = None
    all_tenants: bool = False
    project_id: str | None = None
    tenant_id: str | None = None
    user_id: str | None = None
    deleted: bool = False


class ServerBrief(Struct, frozen=True):
    """A server in a list without detail."""

    id: str
    name: str
    links: list[Link]


class VolumeOfServer(Struct, frozen=True):
    """A volume that a server has."""

    id: str
    delete_on_termination: Annotated[bool, since("2.3")]


class Flavor(Struct, frozen=True, kw_only=True):
    """What a server was made as: here nobody chooses among kinds of servers."""

    id: Annotated[str, until("2.46")] = ""
    links: Annotated[list[Link], until("2.46")] = []
    original_name: Annotated[str, since("2.47")] = ""


class Limits(Struct, frozen=True):
    """Limits of servers: this service has none."""

    absolute: dict[str, int] = {}
    rate: list[str] = []


class LimitsShown(Struct, frozen=True):
    """Limits of servers."""

    limits: Limits = Limits()


class NoFlavors(Struct, frozen=True):
    """There are none."""

    flavors: list[Flavor] = []


class ServerFault(Struct, frozen=True, kw_only=True):
    """Why a server is in error."""

    message: str
    created: str
    code: int = 500


class ServerShown(Struct, frozen=True, kw_only=True):
    """A server, as far as this service knows it."""

    id: str
    name: str
    status: str
    tenant_id: str
    user_id: str
    created: str
    updated: str
    links: list[Link]
    metadata: dict[str, str] = {}
    addresses: dict[str, list[str]] = {}
    image: str = ""
    flavor: Flavor = Flavor()
    description: Annotated[str | None, since("2.19")] = None
    zone: str = field(name="OS-EXT-AZ:availability_zone")
    power_state: int = field(name="OS-EXT-STS:power_state")
    task_state: str | None = field(name="OS-EXT-STS:task_state")
    vm_state: str = field(name="OS-EXT-STS:vm_state")
    volumes: list[VolumeOfServer] = field(name="os-extended-volumes:volumes_attached")
    fault: ServerFault | UnsetType = UNSET
    host: str | UnsetType = field(name="OS-EXT-SRV-ATTR:host", default=UNSET)
    instance: str | UnsetType = field(
        name="OS-EXT-SRV-ATTR:instance_name", default=UNSET
    )


class OneServer(Struct, frozen=True):
    """A server."""

    server: ServerShown


class BriefServers(Struct, frozen=True, kw_only=True):
    """A page of servers, without detail."""

    servers: list[ServerBrief]
    servers_links: list[Link] | UnsetType = UNSET


class Servers(Struct, frozen=True, kw_only=True):
    """A page of servers."""

    servers: list[ServerShown]
    servers_links: list[Link] | UnsetType = UNSET
