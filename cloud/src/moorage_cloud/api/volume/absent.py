# SPDX-License-Identifier: BSD-2-Clause
"""What other clouds have and this one has not: lists of none, and why none is made.

Clients that list such things go on, and who wants one is told so in a sentence.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Lists, Routes
from moorage_cloud.errors import BadRequest, NotFound, Refusal, Unavailable

from .actions import ACTION

routes = Routes()


class Absent(Struct, frozen=True, kw_only=True):
    """A kind of thing of which there is none.

    Attributes
    ----------
    key
        What a list is called by in its body.
    what
        A single one, in what is told of it.
    low
        Since which version clients know it.
    looks, makes
        The rules of who looks, and who makes one.
    refusal
        What whoever makes one is told; None if nobody could.
    """

    key: str
    what: str
    low: str = ""
    looks: str
    makes: str
    refusal: Refusal | None


_NO_BACKUPS = Unavailable("Service cinder-backup could not be found.")
_NO_GROUPS = BadRequest("volumes are not grouped here")
_NO_QOS = BadRequest(
    "nothing limits what a volume does in a time: extra specs go to its provider"
)
_NO_IMPORT = BadRequest("what a storage has already does not become a volume here")
_QOS = "volume_extension:qos_specs_manager"
_VOLUMES = Absent(
    key="manageable-volumes",
    what="Volume",
    looks="volume_extension:list_manageable",
    makes="volume_extension:volume_manage",
    refusal=_NO_IMPORT,
)
_SNAPSHOTS = Absent(
    key="manageable-snapshots",
    what="Snapshot",
    looks="snapshot_extension:list_manageable",
    makes="snapshot_extension:snapshot_manage",
    refusal=_NO_IMPORT,
)
ABSENT: Mapping[str, Absent] = {
    "/backups": Absent(
        key="backups",
        what="Backup",
        looks="backup:get_all",
        makes="backup:create",
        refusal=_NO_BACKUPS,
    ),
    "/groups": Absent(
        key="groups",
        what="Group",
        low="3.13",
        looks="group:get_all",
        makes="group:create",
        refusal=_NO_GROUPS,
    ),
    "/group_types": Absent(
        key="group_types",
        what="Group type",
        low="3.11",
        looks="group:get_all",
        makes="group:group_types:create",
        refusal=_NO_GROUPS,
    ),
    "/group_snapshots": Absent(
        key="group_snapshots",
        what="Group snapshot",
        low="3.14",
        looks="group:get_all_group_snapshots",
        makes="group:create_group_snapshot",
        refusal=_NO_GROUPS,
    ),
    "/consistencygroups": Absent(
        key="consistencygroups",
        what="Group",
        looks="group:get_all",
        makes="group:create",
        refusal=_NO_GROUPS,
    ),
    "/cgsnapshots": Absent(
        key="cgsnapshots",
        what="Group snapshot",
        looks="group:get_all_group_snapshots",
        makes="group:create_group_snapshot",
        refusal=_NO_GROUPS,
    ),
    "/qos-specs": Absent(
        key="qos_specs",
        what="QoS specs",
        looks=f"{_QOS}:get_all",
        makes=f"{_QOS}:create",
        refusal=_NO_QOS,
    ),
    "/clusters": Absent(
        key="clusters",
        what="Cluster",
        low="3.7",
        looks="clusters:get_all",
        makes="",
        refusal=None,
    ),
    "/manageable_volumes": replace(_VOLUMES, low="3.8"),
    "/os-volume-manage": _VOLUMES,
    "/manageable_snapshots": replace(_SNAPSHOTS, low="3.8"),
    "/os-snapshot-manage": _SNAPSHOTS,
}
LOGS = "volume_extension:services:index"
NO_CHANGES: Mapping[str, tuple[str, str, str]] = {
    "/os-services/freeze": (
        "",
        "volume:freeze_host",
        "a cluster is not frozen here: 'disable' drains it",
    ),
    "/os-services/thaw": ("", "volume:thaw_host", "no cluster is frozen here"),
    "/os-services/failover_host": (
        "",
        "volume:failover_host",
        "no storage is replicated by this service",
    ),
    "/os-services/failover": (
        "3.26",
        "volume:failover_host",
        "no storage is replicated by this service",
    ),
    "/os-services/set-log": (
        "3.32",
        "volume_extension:services:update",
        "how much is logged is said where the service is started",
    ),
}
"""By path: since when clients know it, its rule, and why it is refused."""
_ADMIN = "volume_extension:volume_admin_actions"
NO_ACTIONS: Mapping[str, tuple[str, str, str]] = {
    "os-volume_upload_image": (
        "",
        "volume_extension:volume_actions:upload_image",
        "there are no images here that a volume could become",
    ),
    "os-migrate_volume": (
        "",
        f"{_ADMIN}:migrate_volume",
        "the data of a volume does not move: each cluster of its domain sees it",
    ),
    "os-migrate_volume_completion": (
        "",
        f"{_ADMIN}:migrate_volume_completion",
        "no volume is being migrated here",
    ),
    "os-unmanage": (
        "",
        "volume_extension:volume_unmanage",
        "a volume is not forgotten while its data is there: it can be deleted",
    ),
    "os-reimage": (
        "3.68",
        "volume:reimage",
        "there are no images here that a volume could get its data from",
    ),
    "os-extend_volume_completion": (
        "3.71",
        f"{_ADMIN}:extend_volume_completion",
        "its cluster tells when a volume is larger, and nobody else does",
    ),
}
"""By action: since when clients know it, its rule, and why it is refused."""


def _declare(path: str, one: Absent) -> None:
    @routes("GET", path, low=one.low, rule=one.looks)
    @routes("GET", path + "/detail", low=one.low, rule=one.looks)
    def list_none(call: Call) -> Lists:
        """List none: there are none here."""
        return {one.key: []}

    @routes("GET", path + "/{absent_id}", low=one.low, rule=one.looks)
    def show_none(call: Call, absent_id: str) -> None:
        """Find none: there are none here."""
        raise NotFound(f"{one.what} {absent_id} could not be found.")

    refusal = one.refusal
    if refusal is None:
        return

    @routes("PUT", path + "/{absent_id}", low=one.low, rule=one.makes)
    @routes("DELETE", path + "/{absent_id}", low=one.low, rule=one.makes)
    def change_none(call: Call, absent_id: str) -> None:
        """Find none to change: there are none here."""
        raise NotFound(f"{one.what} {absent_id} could not be found.")

    @routes("POST", path, low=one.low, rule=one.makes)
    def refuse(call: Call) -> None:
        """Refuse to make one, and say why."""
        raise type(refusal)(refusal.sentence)


def _declare_change(path: str, low: str, rule: str, why: str) -> None:
    @routes("PUT", path, low=low, rule=rule)
    def refuse(call: Call) -> None:
        """Refuse, and say why."""
        raise BadRequest(why)


def _declare_action(action: str, low: str, rule: str, why: str) -> None:
    @routes("POST", ACTION, action=action, low=low, rule=rule)
    def refuse(call: Call, volume_id: str) -> None:
        """Refuse, and say why."""
        raise BadRequest(f"Invalid volume: {why} ({call.volume(volume_id).uuid})")


@routes("PUT", "/os-services/get-log", low="3.32", rule=LOGS)
def list_log_levels(call: Call) -> Lists:
    """List how much services log: none can be set by requests."""
    return {"log_levels": []}


@routes("GET", "/extensions")
def list_extensions(call: Call) -> Lists:
    """List extensions: whatever is here, is here at any time."""
    return {"extensions": []}


for _path, _absent in ABSENT.items():
    _declare(_path, _absent)
for _path, _said in NO_CHANGES.items():
    _declare_change(_path, *_said)
for _action, _said in NO_ACTIONS.items():
    _declare_action(_action, *_said)
