# SPDX-License-Identifier: BSD-2-Clause
"""Block storage as a service: its versions and its routes."""

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import ApiVersion, ApiVersions, Link, MediaType
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.service import Service, named

from . import (
    absent,
    actions,
    attachments,
    backends,
    messages,
    metadata,
    places,
    quotas,
    resource_filters,
    snapshots,
    stories,
    transfers,
    type_access,
    types,
    volumes,
)

ROOT, LOW, HIGH = "volume/v3", "3.0", "3.71"

routes = Routes()
versions = Routes()


def _document(call: Call) -> ApiVersion:
    return ApiVersion(
        id="v3.0",
        status="CURRENT",
        version=HIGH,
        min_version=LOW,
        updated="2023-08-31T00:00:00Z",
        links=[Link("self", address(call.request, f"/{ROOT}/"))],
        media_types=[
            MediaType(
                "application/json", "application/vnd.openstack.volume+json;version=3"
            )
        ],
    )


@versions("GET", "/", open_to_all=True, status=300)
def list_versions(call: Call) -> ApiVersions:
    """Tell which versions there are."""
    return ApiVersions([_document(call)])


@routes("GET", "/", open_to_all=True)
def show_version(call: Call) -> ApiVersions:
    """Tell about this version."""
    return ApiVersions([_document(call)])


for part in (
    *(volumes, stories, metadata, actions, attachments),
    *(snapshots, types, type_access, transfers, quotas, places, resource_filters),
    *(messages, backends, absent),
):
    routes.include(part.routes)

VOLUME = Service(
    name="volume", root=ROOT, routes=routes, low=LOW, high=HIGH, words=named
)
VOLUME_VERSIONS = Service(
    name="volume",
    root="volume",
    routes=versions,
    low=LOW,
    high=HIGH,
    projects=False,
    words=named,
)
