# SPDX-License-Identifier: BSD-2-Clause
"""Servers, as far as clients need them to name one."""

from django.db.models import Q, QuerySet
from msgspec import UNSET

from moorage_cloud import verbs
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import Link
from moorage_cloud.api.wire.pages import Page, paged
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.conf import CONF
from moorage_cloud.models import Server
from moorage_cloud.verbs import caller

from .shapes import (
    BriefServers,
    LimitsShown,
    NoFlavors,
    OneServer,
    ServerBrief,
    ServerFault,
    Servers,
    ServerShown,
    ServersQuery,
    UpdateServer,
    VolumeOfServer,
)

routes = Routes()
ALL, ONE = "/servers", "/servers/{server_id}"
RULE = "os_compute_api:servers"
SORTABLE = {
    "uuid": "uuid",
    "display_name": "name",
    "created_at": "created",
    "updated_at": "updated",
    "project_id": "project",
    "user_id": "userid",
    "vm_state": "operstate",
}
STATUS = {
    "BUILD": ("BUILD", 0, "building"),
    "STARTED": ("ACTIVE", 1, "active"),
    "STOPPED": ("SHUTOFF", 4, "stopped"),
    "ERROR": ("ERROR", 0, "error"),
    "DESTROYED": ("DELETED", 0, "deleted"),
}
"""By our word: Nova's status, power state and state."""
TASKS = {
    "START": "powering-on",
    "STOP": "powering-off",
    "REBOOT": "rebooting",
    "HARD_REBOOT": "rebooting_hard",
    "DESTROY": "deleting",
}
"""By our word: what Nova calls what is under way."""
REBOOTS = frozenset({"REBOOT", "HARD_REBOOT"})
"""What is under way and shown as a status, in Nova's words and ours."""


@routes("GET", ALL, rule=f"{RULE}:index")
def list_servers(call: Call, query: ServersQuery) -> BriefServers:
    """List servers, by name."""
    page = _page(call, query, f"{RULE}:index:get_all_tenants")
    return BriefServers(
        servers=[
            ServerBrief(str(one.uuid), one.name, _links(call, one))
            for one in page.things
        ],
        servers_links=page.links or UNSET,
    )


@routes("GET", ALL + "/detail", rule=f"{RULE}:detail")
def list_servers_in_detail(call: Call, query: ServersQuery) -> Servers:
    """List servers."""
    page = _page(call, query, f"{RULE}:detail:get_all_tenants")
    return Servers(
        servers=[_shown(call, one) for one in page.things],
        servers_links=page.links or UNSET,
    )


@routes("GET", ONE, rule=f"{RULE}:show")
def show_server(call: Call, server_id: str) -> OneServer:
    """Show a server."""
    return OneServer(_shown(call, call.server(server_id)))


@routes("PUT", ONE, rule=f"{RULE}:update")
def update_server(call: Call, server_id: str, body: UpdateServer) -> OneServer:
    """Call a server otherwise."""
    changed = verbs.rename(call.server(server_id), body.server.name)
    return OneServer(_shown(call, changed))


@routes("DELETE", ONE, rule=f"{RULE}:delete", status=204)
def delete_server(call: Call, server_id: str) -> None:
    """Remove a server; its volumes leave it first, or go with it."""
    verbs.remove(call.who, call.server(server_id))


@routes("GET", "/flavors")
@routes("GET", "/flavors/detail")
def list_flavors(call: Call) -> NoFlavors:
    """List kinds of servers: there are none to choose from."""
    return NoFlavors()


@routes("GET", "/limits")
def show_limits(call: Call) -> LimitsShown:
    """Show limits of servers: there are none."""
    return LimitsShown()


def _page(call: Call, query: ServersQuery, all_rule: str) -> Page:
    who = call.own
    if query.all_tenants:
        call.check(all_rule)
        who = call.who
    return paged(_filtered(caller.servers(who), query), query, call.request, SORTABLE)


def _filtered(found: QuerySet[Server], query: ServersQuery) -> QuerySet[Server]:
    if query.deleted:
        return found.none()
    if query.name is not None:
        found = found.filter(_named(query.name))
    if query.status is not None:
        found = _with_status(found, query.status.upper())
    if query.user_id is not None:
        found = found.filter(userid=query.user_id)
    project = query.project_id or query.tenant_id
    if project is not None and query.all_tenants:
        found = found.filter(project=project)
    return found.prefetch_related("attachments__volume")


def _with_status(found: QuerySet[Server], status: str) -> QuerySet[Server]:
    if status in REBOOTS:
        return found.filter(action=status)
    words = [mine for mine, its in STATUS.items() if its[0] == status]
    return found.filter(operstate__in=words).exclude(action__in=REBOOTS)


def _named(pattern: str) -> Q:
    """Return the condition that a name fits a pattern: some text, with ``^`` and ``$``.

    That is what clients make of a name. Nothing more is understood of what Nova hands
    to its database: there are expressions that take for ever to be compared.
    """
    text = pattern.removeprefix("^").removesuffix("$")
    begins, ends = pattern.startswith("^"), pattern.endswith("$")
    lookup = {
        (True, True): "exact",
        (True, False): "startswith",
        (False, True): "endswith",
        (False, False): "contains",
    }[begins, ends]
    return Q(**{f"name__{lookup}": text})


def _links(call: Call, one: Server) -> list[Link]:
    return [
        Link("self", f"{call.base}/servers/{one.uuid}"),
        Link("bookmark", f"{call.site}/compute/servers/{one.uuid}"),
    ]


def _fault(one: Server) -> ServerFault:
    return ServerFault(message=one.fault, created=moment(one.updated)[:19] + "Z")


def _shown(call: Call, one: Server) -> ServerShown:
    status, power, state = STATUS[one.operstate]
    admin = call.who.admin
    return ServerShown(
        id=str(one.uuid),
        name=one.name,
        status=one.action if one.action in REBOOTS else status,
        tenant_id=one.project,
        user_id=one.userid,
        created=moment(one.created)[:19] + "Z",
        updated=moment(one.updated)[:19] + "Z",
        links=_links(call, one),
        zone=CONF.zone,
        power_state=power,
        task_state=TASKS.get(one.action, one.action.lower()) or None,
        vm_state=state,
        volumes=[
            VolumeOfServer(str(place.volume.uuid), place.volume.delete_on_termination)
            for place in one.attachments.all()
            if place.attached_at is not None
        ],
        fault=_fault(one) if one.operstate == "ERROR" and one.fault else UNSET,
        host=one.backend.clustername if admin else UNSET,
        instance=one.instance if admin else UNSET,
    )
