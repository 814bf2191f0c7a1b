# SPDX-License-Identifier: BSD-2-Clause
"""Pages of volumes, snapshots and types."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join

from moorage_cloud import verbs
from moorage_cloud.life import Status
from moorage_cloud.models import Snapshot, Volume, VolumeType
from moorage_cloud.verbs import Caller

from .site import Pages, site

Act = Callable[[Pages[Any], HttpRequest, "QuerySet[Any]"], None]


MOST = 200
"""Entries of a story on a page: the last ones."""
STORY = (
    *("began", "what", "result", "with", "cluster", "epoch", "jobs", "project"),
    "why",
)


def _sets(status: Status) -> Act:
    """Return an action that sets a status where that is so."""

    @admin.action(description=f"Set the status to {status}")
    def act(
        pages: Pages[Any], request: HttpRequest, chosen: "QuerySet[Volume]"
    ) -> None:
        def reset(who: Caller, volume: Volume) -> None:
            verbs.reset_status(who, volume, status)

        pages.each(request, chosen, reset, f"Set to {status}")

    act.__name__ = f"set_{status.replace('-', '_')}"
    return act


@admin.register(Volume, site=site)
class Volumes(Pages[Volume]):
    """All volumes; their state is what the clusters told."""

    list_display = (
        *("id", "name", "project", "size", "status", "volume_type", "where"),
        *("backend", "fault", "created"),
    )
    list_filter = ("status", "deleted", "volume_type", "backend", "initialized")
    search_fields = (
        *("=id", "uuid", "name", "project", "userid"),
        *("legacy_backend_volume_uuid", "attachment__server__name"),
    )
    list_select_related = ("volume_type", "backend", "attachment__server")
    fields = (
        *("id", "uuid", "name", "description", "userid", "project", "size"),
        *("volume_type", "status", "fault", "where", "delete_on_termination"),
        *("backend", "backend_volume_uuid", "initialized", "generation", "read_only"),
        *("bootable", "metadata", "source", "deleted", "created", "updated"),
        "its_story",
    )
    changes = ("name", "description", "delete_on_termination")
    actions = (
        *("detach", "force_detach", "check_data"),
        *map(_sets, (Status.AVAILABLE, Status.IN_USE)),
        *map(_sets, (Status.ERROR, Status.ERROR_DELETING)),
    )

    @admin.display(description="server")
    def where(self, volume: Volume) -> str:
        """Return the server that has it."""
        place = volume.place
        return (
            f"{place.server} ({place.server_id}), disk {place.index}" if place else "-"
        )

    @admin.display(description="story")
    def its_story(self, volume: Volume) -> str:
        """Return what became of it, over all clusters."""
        rows = (
            (
                f"{one.began:%Y-%m-%d %H:%M:%S}",
                one.what,
                one.result,
                one.server or one.about or "-",
                one.cluster or "-",
                "-" if one.epoch is None else one.epoch,
                ", ".join(f"{act} {number}" for act, number in one.jobs) or "-",
                one.project or "-",
                one.why or "-",
            )
            for one in verbs.story(volume, last=MOST)
        )
        columns = len(STORY)
        return format_html(
            "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>",
            format_html_join("", "<th scope='col'>{}</th>", ((one,) for one in STORY)),
            format_html_join("", "<tr>" + "<td>{}</td>" * columns + "</tr>", rows),
        )

    @admin.action(description="Detach from the server")
    def detach(self, request: HttpRequest, chosen: "QuerySet[Volume]") -> None:
        """Detach what was chosen."""
        self.each(request, chosen, verbs.detach, "Being detached")

    @admin.action(description="Take from the server by force")
    def force_detach(self, request: HttpRequest, chosen: "QuerySet[Volume]") -> None:
        """Take what was chosen away; refused while two could write."""
        self.each(request, chosen, verbs.force_detach, "Taken by force")

    @admin.action(description="Have a cluster look for the data")
    def check_data(self, request: HttpRequest, chosen: "QuerySet[Volume]") -> None:
        """Look for the data of volumes in error."""
        self.each(request, chosen, verbs.check_data, "Being looked for")

    def alter(self, thing: Volume, given: Mapping[str, Any]) -> None:
        """Change words."""
        verbs.update(thing, **given)


def _sets_snapshot(status: Status) -> Act:
    @admin.action(description=f"Set the status to {status}")
    def act(
        pages: Pages[Any], request: HttpRequest, chosen: "QuerySet[Snapshot]"
    ) -> None:
        def reset(who: Caller, snapshot: Snapshot) -> None:
            verbs.reset_snapshot(who, snapshot, status)

        pages.each(request, chosen, reset, f"Set to {status}")

    act.__name__ = f"set_{status}"
    return act


@admin.register(Snapshot, site=site)
class Snapshots(Pages[Snapshot]):
    """All snapshots."""

    list_display = (
        *("id", "name", "volume", "project", "size", "status", "fault", "created"),
    )
    list_filter = ("status", "deleted", "initialized")
    search_fields = ("=id", "uuid", "name", "project", "userid", "volume__name")
    list_select_related = ("volume",)
    fields = (
        *("id", "uuid", "name", "description", "volume", "userid", "project", "size"),
        *("status", "fault", "backend_snapshot_name", "initialized", "generation"),
        *("metadata", "deleted", "created", "updated"),
    )
    changes = ("name", "description")
    actions = tuple(
        map(_sets_snapshot, (Status.AVAILABLE, Status.ERROR, Status.ERROR_DELETING))
    )

    def alter(self, thing: Snapshot, given: Mapping[str, Any]) -> None:
        """Change words."""
        verbs.update_snapshot(thing, **given)


@admin.register(VolumeType, site=site)
class VolumeTypes(Pages[VolumeType]):
    """The types; where their data is stays."""

    list_display = (
        *("id", "name", "disk_template", "pool", "domain", "detachable"),
        *("is_default", "is_public", "deleted"),
    )
    list_filter = ("deleted", "domain", "is_public")
    search_fields = ("=id", "uuid", "name", "disk_template")
    list_select_related = ("domain",)
    fields = (
        *("id", "uuid", "name", "description", "disk_template", "pool", "domain"),
        *("detachable", "is_default", "is_public", "specs", "deleted"),
        *("created", "updated"),
    )
    changes = ("name", "description", "is_public")
    actions = ("make_default",)

    @admin.action(description="Make it the default type")
    def make_default(
        self, request: HttpRequest, chosen: "QuerySet[VolumeType]"
    ) -> None:
        """Let it be the type of whoever names none."""

        def default(_who: Caller, kind: VolumeType) -> None:
            verbs.make_default(kind)

        self.each(request, chosen, default, "The default type")

    def alter(self, thing: VolumeType, given: Mapping[str, Any]) -> None:
        """Change words."""
        verbs.update_type(thing, **given)
