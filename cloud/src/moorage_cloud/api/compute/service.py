# SPDX-License-Identifier: BSD-2-Clause
"""Compute as a service: its versions and its routes."""

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import (
    ApiVersion,
    ApiVersions,
    Link,
    MediaType,
    OneVersion,
)
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.service import Service, named

from . import actions, attachments, servers, zones

ROOT, LOW, HIGH = "compute/v2.1", "2.1", "2.101"
LEGACY = "X-OpenStack-Nova-API-Version"

routes = Routes()
versions = Routes()


def _document(call: Call) -> ApiVersion:
    return ApiVersion(
        id="v2.1",
        status="CURRENT",
        version=HIGH,
        min_version=LOW,
        updated="2013-07-23T11:33:21Z",
        links=[Link("self", address(call.request, f"/{ROOT}/"))],
        media_types=[
            MediaType(
                "application/json", "application/vnd.openstack.compute+json;version=2.1"
            )
        ],
    )


@versions("GET", "/", open_to_all=True)
def list_versions(call: Call) -> ApiVersions:
    """Tell which versions there are."""
    return ApiVersions([_document(call)])


@routes("GET", "/", open_to_all=True)
def show_version(call: Call) -> OneVersion:
    """Tell about this version."""
    return OneVersion(_document(call))


for more in (servers.routes, actions.routes, attachments.routes, zones.routes):
    routes.include(more)

COMPUTE = Service(
    name="compute",
    root=ROOT,
    routes=routes,
    low=LOW,
    high=HIGH,
    legacy=LEGACY,
    words=named,
)
COMPUTE_VERSIONS = Service(
    name="compute",
    root="compute",
    routes=versions,
    low=LOW,
    high=HIGH,
    legacy=LEGACY,
    projects=False,
    words=named,
)
