# SPDX-License-Identifier: BSD-2-Clause
"""Identity as a service: its routes and its document."""

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.discovery import (
    ApiVersion,
    KeystoneVersions,
    Link,
    MediaType,
    OneVersion,
    Values,
)
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.service import Service, titled

from . import credentials, directory, tokens

ROOT = "identity/v3"

routes = Routes()
versions = Routes()


def _document(call: Call) -> ApiVersion:
    return ApiVersion(
        id="v3.14",
        status="stable",
        updated="2020-04-07T00:00:00Z",
        links=[Link("self", address(call.request, f"/{ROOT}/"))],
        media_types=[
            MediaType("application/json", "application/vnd.openstack.identity-v3+json")
        ],
    )


@versions("GET", "/", open_to_all=True, status=300)
def list_versions(call: Call) -> KeystoneVersions:
    """Tell which versions there are."""
    return KeystoneVersions(Values([_document(call)]))


@routes("GET", "/", open_to_all=True)
def show_version(call: Call) -> OneVersion:
    """Tell about this version."""
    return OneVersion(_document(call))


for more in (tokens.routes, directory.routes, credentials.routes):
    routes.include(more)

IDENTITY = Service(name="", root=ROOT, routes=routes, projects=False, words=titled)
IDENTITY_VERSIONS = Service(
    name="", root="identity", routes=versions, projects=False, words=titled
)
