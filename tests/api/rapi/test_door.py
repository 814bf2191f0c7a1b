# SPDX-License-Identifier: BSD-2-Clause
"""RAPI over HTTPS: who comes in, and what is answered."""

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door


@pytest.fixture
async def door(tmp_path):
    builder = ClusterBuilder().disk("data1").instance("web1", tags=("b", "a"))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def test_a_list_has_names_and_uris_or_whole_objects(door: RapiDoor):
    short = await door.ask("GET", "/2/instances")
    assert short.body == [{"id": "web1", "uri": "/2/instances/web1"}]
    whole = await door.ask("GET", "/2/instances?bulk=1")
    assert whole.body == [(await door.ask("GET", "/2/instances/web1")).body]
    assert whole.body[0]["name"] == "web1"
    assert sorted(whole.body[0]["tags"]) == ["a", "b"]


async def test_a_job_is_a_number(door: RapiDoor):
    answer = await door.ask("PUT", "/2/instances/web1/startup", None)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    told = (await door.ask("GET", f"/2/jobs/{answer.body}")).body
    assert told["id"] == answer.body
    assert told["summary"] == ["INSTANCE_STARTUP(web1)"]


@pytest.mark.parametrize("user", ["", "root:wrong", "nobody:secret", "short:", "root"])
async def test_who_is_nobody_gets_nothing(door: RapiDoor, user):
    for path in ("/2/info", "/version", "/no/such/path"):
        answer = await door.ask("GET", path, user=user)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="Ganeti Remote API"'
        assert answer.body.keys() == {"code", "message", "explain"}
