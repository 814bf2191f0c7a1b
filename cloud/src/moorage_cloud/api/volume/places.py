# SPDX-License-Identifier: BSD-2-Clause
"""Where volumes are: zones, and the clusters behind them."""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, field

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.api.wire.versions import since
from moorage_cloud.conf import CONF
from moorage_cloud.errors import NotFound
from moorage_cloud.models import Backend

routes = Routes()


class ZoneState(Struct, frozen=True):
    """Whether volumes can be made there."""

    available: bool


class Zone(Struct, frozen=True, rename="camel"):
    """An availability zone."""

    zone_name: str
    zone_state: ZoneState


class Zones(Struct, frozen=True):
    """The availability zones: one."""

    zones: list[Zone] = field(name="availabilityZoneInfo")


class ServiceShown(Struct, frozen=True, kw_only=True):
    """A cluster, as a service that volumes are on."""

    binary: str = "cinder-volume"
    host: str
    zone: str
    status: str
    state: str
    updated_at: str
    disabled_reason: str | None = None
    frozen: bool = False
    replication_status: str | None = None
    active_backend_id: str | None = None
    cluster: Annotated[str | None, since("3.7")] = None
    backend_state: Annotated[str | UnsetType, since("3.49")] = UNSET


class Services(Struct, frozen=True):
    """The clusters, as services that volumes are on."""

    services: list[ServiceShown]


class ServicesQuery(Struct, frozen=True):
    """Which services are wanted."""

    binary: str | None = None
    host: str | None = None


@routes("GET", "/os-availability-zone", rule="volume_extension:availability_zone_list")
def list_zones(call: Call) -> Zones:
    """List availability zones."""
    return Zones([Zone(CONF.zone, ZoneState(available=True))])


@routes("GET", "/os-services", rule="volume_extension:services:index")
def list_services(call: Call, query: ServicesQuery) -> Services:
    """List clusters: one that is drained is disabled, one that is off is down."""
    if query.binary not in {None, "cinder-volume"}:
        return Services([])
    found = Backend.objects.all()
    if query.host is not None:
        found = found.filter(clustername=query.host)
    return Services([_shown(one) for one in found])


class ServiceNamed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service, as clients name it."""

    host: str
    binary: str = "cinder-volume"
    disabled_reason: str | None = None


class ServiceChanged(Struct, frozen=True, kw_only=True):
    """Whether volumes can be made there from now on."""

    host: str
    service: str
    binary: str
    status: str
    disabled: bool
    disabled_reason: str | None


@routes("PUT", "/os-services/enable", rule="volume_extension:services:update")
def enable(call: Call, body: ServiceNamed) -> ServiceChanged:
    """Let a cluster be used again."""
    return _drained(body, drained=False)


@routes("PUT", "/os-services/disable", rule="volume_extension:services:update")
@routes(
    "PUT", "/os-services/disable-log-reason", rule="volume_extension:services:update"
)
def disable(call: Call, body: ServiceNamed) -> ServiceChanged:
    """Drain a cluster: nothing new goes there."""
    return _drained(body, drained=True)


def _drained(body: ServiceNamed, *, drained: bool) -> ServiceChanged:
    named = Backend.objects.filter(clustername=body.host)
    if body.binary != "cinder-volume" or not named.update(drained=drained):
        raise NotFound(f"Service {body.binary} could not be found on host {body.host}.")
    return ServiceChanged(
        host=body.host,
        service=body.binary,
        binary=body.binary,
        status="disabled" if drained else "enabled",
        disabled=drained,
        disabled_reason="drained" if drained else None,
    )


def _shown(one: Backend) -> ServiceShown:
    state = "down" if one.offline else "up"
    return ServiceShown(
        host=one.clustername,
        zone=CONF.zone,
        status="disabled" if one.drained else "enabled",
        state=state,
        updated_at=moment(one.updated),
        disabled_reason="drained" if one.drained else None,
        backend_state=state,
    )
