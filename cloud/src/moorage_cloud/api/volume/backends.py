# SPDX-License-Identifier: BSD-2-Clause
"""Clusters as administrators of Cinder know what is behind it: pools and hosts.

How much room a storage has, its own tools tell: clusters are not asked for it here.
"""

from collections.abc import Iterable
from typing import Annotated, TypeVar

from django.db.models import QuerySet, Sum
from msgspec import UNSET, Struct, UnsetType, field

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Lists, Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.conf import CONF
from moorage_cloud.errors import NotFound
from moorage_cloud.models import Backend, Snapshot, Volume

routes = Routes()
UNKNOWN = "unknown"
Thing = TypeVar("Thing", Volume, Snapshot)


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a pool can do; GiB."""

    volume_backend_name: str
    storage_protocol: str = UNKNOWN
    driver_version: str = "1.0"
    vendor_name: str = "Moorage"
    total_capacity_gb: str = UNKNOWN
    free_capacity_gb: str = UNKNOWN
    allocated_capacity_gb: int
    reserved_percentage: int = 0
    location_info: str = ""
    qos: bool = field(name="QoS_support", default=False)
    multiattach: bool = False
    backend_state: Annotated[str, since("3.49")]
    timestamp: str


class PoolShown(Struct, frozen=True, kw_only=True):
    """A pool: a cluster has one."""

    name: str
    capabilities: Capabilities | UnsetType = UNSET


class Pools(Struct, frozen=True):
    """The pools."""

    pools: list[PoolShown]


class PoolsQuery(Struct, frozen=True, kw_only=True):
    """Which pools are wanted; of a type, those that see where its data is."""

    detail: bool = False
    name: Annotated[str | None, since("3.28")] = None
    volume_type: Annotated[str | None, since("3.35")] = field(
        name="volume-type", default=None
    )


class CapabilitiesShown(Struct, frozen=True, kw_only=True):
    """What types can ask of a cluster's storage: its provider alone knows."""

    namespace: str
    vendor_name: str = "Moorage"
    volume_backend_name: str
    pool_name: str | None = None
    driver_version: str = "1.0"
    storage_protocol: str = UNKNOWN
    display_name: str
    description: str = ""
    visibility: str = "public"
    replication_targets: list[str] = []
    properties: dict[str, str] = {}


class HostShown(Struct, frozen=True, kw_only=True, rename="kebab"):
    """A cluster, as a host that volumes are on."""

    host_name: str = field(name="host_name")
    service: str = "cinder-volume"
    zone: str
    service_state: str
    service_status: str
    last_update: str


class Hosts(Struct, frozen=True):
    """The clusters, as hosts."""

    hosts: list[HostShown]


class Resource(Struct, frozen=True, kw_only=True):
    """What is on a host of a project; ``(total)`` for all of them. GiB."""

    host: str
    project: str
    volume_count: str
    total_volume_gb: str
    snapshot_count: str
    total_snapshot_gb: str


class OfHost(Struct, frozen=True):
    """What is on a host of a project."""

    resource: Resource


class OneHost(Struct, frozen=True):
    """What is on a host."""

    host: list[OfHost]


@routes(
    "GET",
    "/scheduler-stats/get_pools",
    rule="scheduler_extension:scheduler_stats:get_pools",
)
def list_pools(call: Call, query: PoolsQuery) -> Pools:
    """List the clusters, as pools that volumes can be in."""
    found = Backend.objects.all()
    if query.name is not None:
        found = found.filter(clustername=query.name)
    if query.volume_type is not None:
        domain = call.volume_type(query.volume_type).domain
        found = found.filter(domains=domain) if domain else found
    return Pools([_pool(one, detail=query.detail) for one in found])


@routes("GET", "/capabilities/{host}", rule="volume_extension:capabilities")
def show_capabilities(call: Call, host: str) -> CapabilitiesShown:
    """Show what types can ask of a cluster's storage."""
    one = _named(host)
    return CapabilitiesShown(
        namespace=f"OS::Storage::Capabilities::{one.clustername}",
        volume_backend_name=one.clustername,
        display_name=one.clustername,
    )


@routes("GET", "/os-hosts", rule="volume_extension:hosts")
def list_hosts(call: Call) -> Hosts:
    """List the clusters, as hosts."""
    return Hosts(
        [
            HostShown(
                host_name=one.clustername,
                zone=CONF.zone,
                service_state="disabled" if one.drained else "enabled",
                service_status="unavailable" if one.offline else "available",
                last_update=moment(one.updated),
            )
            for one in Backend.objects.all()
        ]
    )


@routes("GET", "/os-hosts/{host}", rule="volume_extension:hosts")
def show_host(call: Call, host: str) -> OneHost:
    """Show how much of which project a cluster had last."""
    one = _named(host)
    volumes = Volume.objects.filter(deleted=False, backend=one)
    copies = Snapshot.objects.filter(deleted=False, volume__backend=one)
    projects = sorted({*_projects(volumes), *_projects(copies)})
    every = [_resource(one, "(total)", volumes, copies)]
    for project in projects:
        theirs = {"project": project}
        every.append(
            _resource(one, project, volumes.filter(**theirs), copies.filter(**theirs))
        )
    return OneHost([OfHost(found) for found in every])


@routes("POST", "/workers/cleanup", low="3.24", rule="workers:cleanup", status=202)
def clean_up(call: Call) -> Lists:
    """Clean up nothing: what a worker left is taken up by the next one by itself."""
    return {"cleaning": [], "unavailable": []}


def _named(host: str) -> Backend:
    one = Backend.objects.filter(clustername=host).first()
    if one is None:
        raise NotFound(f"Service cinder-volume could not be found on host {host}.")
    return one


def _projects(found: QuerySet[Thing]) -> Iterable[str]:
    return found.order_by().values_list("project", flat=True).distinct()


def _resource(
    one: Backend, project: str, volumes: QuerySet[Volume], copies: QuerySet[Snapshot]
) -> Resource:
    return Resource(
        host=one.clustername,
        project=project,
        volume_count=str(volumes.count()),
        total_volume_gb=str(_size(volumes)),
        snapshot_count=str(copies.count()),
        total_snapshot_gb=str(_size(copies)),
    )


def _size(found: QuerySet[Thing]) -> int:
    """Return how large things are together, GiB."""
    return found.aggregate(Sum("size"))["size__sum"] or 0


def _pool(one: Backend, *, detail: bool) -> PoolShown:
    if not detail:
        return PoolShown(name=one.clustername)
    volumes = Volume.objects.filter(deleted=False, backend=one)
    return PoolShown(
        name=one.clustername,
        capabilities=Capabilities(
            volume_backend_name=one.clustername,
            allocated_capacity_gb=_size(volumes),
            backend_state="down" if one.offline else "up",
            timestamp=moment(one.updated),
        ),
    )
