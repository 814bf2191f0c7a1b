# SPDX-License-Identifier: BSD-2-Clause
"""Who had what changed, over HTTPS."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.model.audit import Chain
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    cluster = await SimCluster.start(tmp_path / "nodes", ClusterBuilder().disk("a"))
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def test_what_a_user_did_is_told_with_address_role_and_request(
    door: RapiDoor,
) -> None:
    made = await door.ask("DELETE", "/2/disks/a")
    await door.cluster.finished(made.body)
    told = await door.ask("GET", "/2/audit", user="eye:secret")
    lines = told.body.encode().splitlines()
    assert list(Chain().read(lines)) == []
    submitted, ended = map(json.loads, lines)
    assert (submitted["user"], submitted["door"]) == ("root", "rapi")
    assert (submitted["role"], submitted["origin"]) == ("write", "from 127.0.0.1")
    assert submitted["ops"][0]["OP_ID"] == "OP_DISK_REMOVE"
    assert submitted["request"] == made.headers["X-Request-Id"]
    assert (ended["job"], ended["status"]) == (made.body, "success")
    assert (await door.ask("GET", "/2/audit?after=2")).body == ""
    assert (await door.ask("GET", "/2/audit?after=x")).status == 400


async def test_what_is_refused_is_not_told_and_not_shown_to_everybody(
    door: RapiDoor,
) -> None:
    assert (await door.ask("DELETE", "/2/disks/a", user="eye:secret")).status == 403
    assert (await door.ask("GET", "/2/audit", user="guest:secret")).status == 403
    told = await door.ask("GET", "/2/audit")
    assert '"user":"eye"' not in told.body
