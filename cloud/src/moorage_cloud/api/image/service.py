# SPDX-License-Identifier: BSD-2-Clause
"""Images as a service: its version and its routes."""

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import ApiVersion, ApiVersions, Link
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.service import Service, named

from . import images

ROOT = "image/v2"

versions = Routes()


@versions("GET", "/", open_to_all=True, status=300)
def list_versions(call: Call) -> ApiVersions:
    """Tell which versions there are."""
    where = Link("self", address(call.request, f"/{ROOT}/"))
    return ApiVersions(
        [ApiVersion(id="v2.9", updated="2019-04-10T00:00:00Z", links=[where])]
    )


IMAGE = Service(name="", root=ROOT, routes=images.routes, words=named)
IMAGE_VERSIONS = Service(
    name="", root="image", routes=versions, projects=False, words=named
)
