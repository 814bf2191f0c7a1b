# SPDX-License-Identifier: BSD-2-Clause
"""Pages of clusters, servers, and what is under way there."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from moorage_cloud import verbs
from moorage_cloud.models import Backend, Operation, Outbox, Server, StorageDomain
from moorage_cloud.verbs import Caller

from .site import Pages, site


@admin.register(Backend, site=site)
class Backends(Pages[Backend]):
    """The clusters; passwords of their doors are shown to nobody."""

    list_display = (
        *("id", "clustername", "host", "port", "username", "drained", "offline"),
        *("event_number", "updated"),
    )
    list_filter = ("drained", "offline", "domains")
    search_fields = ("=id", "clustername", "address")
    fields = (
        *("id", "clustername", "address", "port", "username", "ca", "drained"),
        *("offline", "features", "uuid", "stranger", "event_number"),
        *("created", "updated"),
    )
    changes = ("drained", "offline")

    def alter(self, thing: Backend, given: Mapping[str, Any]) -> None:
        """Say that it is off, or to be left."""
        Backend.objects.filter(pk=thing.pk).update(**given)

    def get_form(self, request: HttpRequest, *args: Any, **more: Any) -> Any:  # noqa: ANN401
        """Say at the field what it means to call a cluster off."""
        help_texts = {
            "offline": "You have switched it off: its volumes can be taken from it. "
            "If it is not off, two guests write to one disk.",
            "drained": "Nothing new is to go there.",
        }
        return super().get_form(request, *args, help_texts=help_texts, **more)


@admin.register(StorageDomain, site=site)
class Domains(Pages[StorageDomain]):
    """Which clusters see the same storage."""

    list_display = ("id", "name", "members")
    search_fields = ("name",)
    fields = ("id", "name", "members")

    @admin.display(description="clusters")
    def members(self, domain: StorageDomain) -> str:
        """Return their names."""
        return ", ".join(map(str, domain.backends.all()))


@admin.register(Server, site=site)
class Servers(Pages[Server]):
    """The servers; they are stopped and started, and removed by command or API."""

    list_display = (
        *("id", "name", "project", "backend", "instance", "operstate", "action"),
        *("helper", "fault"),
    )
    list_filter = ("operstate", "helper", "deleted", "backend")
    search_fields = ("=id", "uuid", "name", "instance", "project", "userid")
    list_select_related = ("backend",)
    fields = (
        *("id", "uuid", "name", "userid", "project", "backend", "instance"),
        *("helper", "operstate", "action", "removal", "fault", "volumes"),
        *("deleted", "created", "updated"),
    )
    actions = ("start", "stop")

    @admin.display(description="volumes")
    def volumes(self, server: Server) -> str:
        """Return what is attached to it."""
        return ", ".join(
            f"{one.volume_id} as disk {one.index}" for one in server.attachments.all()
        )

    @admin.action(description="Start")
    def start(self, request: HttpRequest, chosen: "QuerySet[Server]") -> None:
        """Start what was chosen."""
        self._power(request, chosen, Server.Action.START)

    @admin.action(description="Stop")
    def stop(self, request: HttpRequest, chosen: "QuerySet[Server]") -> None:
        """Stop what was chosen."""
        self._power(request, chosen, Server.Action.STOP)

    def _power(
        self, request: HttpRequest, chosen: "QuerySet[Server]", action: str
    ) -> None:
        def ask(who: Caller, server: Server) -> None:
            verbs.set_power(who, server, action)

        self.each(request, chosen, ask, f"To {action.lower()}")


class UnderWay(admin.SimpleListFilter):
    """Whether it has ended."""

    title = "under way"
    parameter_name = "under_way"

    def lookups(self, *_: object) -> list[tuple[str, str]]:
        """Return what can be chosen."""
        return [("yes", "Yes"), ("no", "No")]

    def queryset(
        self, _request: HttpRequest, known: "QuerySet[Operation]"
    ) -> "QuerySet[Operation]":
        """Return what was chosen."""
        if self.value() is None:
            return known
        return known.filter(ended__isnull=self.value() == "yes")


@admin.register(Operation, site=site)
class Operations(Pages[Operation]):
    """What was done and is being done, with jobs and faults; it is only shown."""

    list_display = (
        *("id", "verb", "volume", "snapshot", "server", "backend", "job", "result"),
        *("why", "created", "ended"),
    )
    list_filter = (UnderWay, "result", "verb", "backend")
    search_fields = (
        *("=id", "=job", "uuid", "request_id", "userid"),
        *("volume__name", "volume__uuid", "server__name", "why"),
    )
    list_select_related = ("volume", "snapshot", "server", "backend")
    ordering = ("-id",)
    fields = (
        *("id", "uuid", "verb", "volume", "snapshot", "server", "backend", "acts"),
        *("step", "back", "before", "size", "generation", "job", "look_at", "looks"),
        *("userid", "request_id", "result", "why", "created", "ended"),
    )


@admin.register(Outbox, site=site)
class Messages(Pages[Outbox]):
    """What some cluster has not answered yet."""

    list_display = ("id", "operation", "backend", "tries", "not_before", "taken_until")
    list_filter = ("backend",)
    search_fields = ("key",)
    list_select_related = ("operation", "backend")
    fields = ("operation", "backend", "key", "tries", "not_before", "taken_until")
