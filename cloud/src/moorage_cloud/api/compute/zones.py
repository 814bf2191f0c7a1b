# SPDX-License-Identifier: BSD-2-Clause
"""Where servers are: there is one availability zone, and clusters are its hosts."""

from msgspec import Struct, field

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend

routes = Routes()
ALL = "/os-availability-zone"
RULE = "os_compute_api:os-availability-zone"


class ZoneState(Struct, frozen=True):
    """Whether there are servers of it at all."""

    available: bool = True


class HostState(Struct, frozen=True):
    """How a cluster does.

    Attributes
    ----------
    available
        Whether it is on, as far as an administrator has said.
    active
        Whether it takes something new.
    """

    available: bool
    active: bool
    updated_at: str


class Zone(Struct, frozen=True, rename="camel"):
    """An availability zone; its hosts are told to administrators alone."""

    zone_name: str
    zone_state: ZoneState = ZoneState()
    hosts: dict[str, dict[str, HostState]] | None = None


class Zones(Struct, frozen=True):
    """The availability zones: one."""

    zones: list[Zone] = field(name="availabilityZoneInfo")


@routes("GET", ALL, rule=f"{RULE}:list")
def list_zones(call: Call) -> Zones:
    """List availability zones."""
    del call
    return Zones([Zone(CONF.zone)])


@routes("GET", ALL + "/detail", rule=f"{RULE}:detail")
def list_zones_in_detail(call: Call) -> Zones:
    """List availability zones, with their clusters."""
    del call
    hosts = {one.clustername: _state(one) for one in Backend.objects.all()}
    return Zones([Zone(CONF.zone, hosts=hosts)])


def _state(one: Backend) -> dict[str, HostState]:
    state = HostState(not one.offline, not one.drained, moment(one.updated))
    return {"nova-compute": state}
