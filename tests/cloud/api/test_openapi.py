# SPDX-License-Identifier: BSD-2-Clause
"""The document is made from what the routes declare, and says when something came."""

import pytest
from site_of_people import ask

pytestmark = pytest.mark.usefixtures("site")


def test_the_document_has_every_route_and_says_since_when():
    told = ask("GET", "/volume/v3/openapi.json").body
    assert told["servers"] == [{"url": "http://testserver/volume/v3"}]
    assert {"post", "get"} <= told["paths"]["/volumes"].keys()
    assert told["paths"]["/attachments"]["get"]["x-openstack"] == {"min-ver": "3.27"}
    new = told["components"]["schemas"]["NewVolume"]
    assert "backup_id" in new["properties"]
    assert "3.47" in str(new["properties"]["backup_id"])
    assert new["additionalProperties"] is False
    actions = told["paths"]["/volumes/{volume_id}/action"]["post"]["requestBody"]
    keys = {
        one["required"][0]
        for one in actions["content"]["application/json"]["schema"]["oneOf"]
    }
    assert {"os-extend", "os-force_detach", "os-reset_status"} <= keys
    limit = next(
        one
        for one in told["paths"]["/volumes"]["get"]["parameters"]
        if one["name"] == "limit"
    )
    assert limit["in"] == "query"


@pytest.mark.parametrize(
    "root", ["identity/v3", "volume/v3", "compute/v2.1", "image/v2"]
)
def test_every_operation_has_a_name_of_its_own(root: str):
    told = ask("GET", f"/{root}/openapi.json").body
    names = [
        one["operationId"] for path in told["paths"].values() for one in path.values()
    ]
    assert len(set(names)) == len(names), sorted(names)
