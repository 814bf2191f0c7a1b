# SPDX-License-Identifier: BSD-2-Clause
"""Metrics, as Prometheus reads them through the door."""

import re
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from moorage.api.rapi.metrics import METRICS, Seen, text
from moorage.model import Change, successor
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

LINE = re.compile(r'moorage_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder().disk("a").disk("b").instance("web", disks=("b",))
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def scraped(
    door: RapiDoor, user: str = "eye"
) -> tuple[int, str, dict[str, float]]:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{door.port}/metrics"
    basic = b64encode(f"{user}:secret".encode()).decode()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.get(url, headers={"Authorization": f"Basic {basic}"}) as answer,
    ):
        body = await answer.text()
        kind = answer.headers["Content-Type"]
    lines = [one for one in body.splitlines() if one.startswith("moorage_")]
    values = {one.rpartition(" ")[0]: float(one.rpartition(" ")[2]) for one in lines}
    return answer.status, kind, values


async def test_what_is_counted_is_so(door: RapiDoor) -> None:
    disk = door.cluster.config.disk("a")
    change = Change((successor(disk, 1.0, quarantine="nobody knows"),))
    await door.cluster.config_store.commit(change)
    off = successor(door.cluster.config.node("node3"), 1.0, offline=True)
    await door.cluster.config_store.commit(Change((off,)))
    await door.does(
        "POST",
        "/2/disks",
        {"name": "c", "disk_template": "ext", "provider": "san", "size": 8},
    )
    status, kind, found = await scraped(door, "root")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert found['moorage_nodes{state="offline"}'] == 1
    assert found['moorage_nodes{state="online"}'] == 2
    assert found["moorage_disks_quarantined"] == 1
    assert found['moorage_disks{state="attached"}'] == 1
    assert found['moorage_disks{state="detached"}'] == 2
    assert found['moorage_jobs{status="success"}'] == 1
    assert found["moorage_job_wait_seconds"] == 0
    memory = 'moorage_node_memory_bytes{node="node1"}'
    assert found[memory] >= found[memory.replace("bytes", "free_bytes")] > 2**20


async def test_who_may_only_know_gets_none(door: RapiDoor) -> None:
    status, _, found = await scraped(door, "guest")
    assert (status, found) == (403, {})


def test_each_line_is_one_of_the_format() -> None:
    unit = {"sunit": ["ext", 'a"b\\c', []], "total": 10, "free": None}
    node = {"name": "n1", "offline": False, "drained": True, "master_candidate": True}
    node |= {"copy": "behind", "mtotal": 10, "mfree": None, "certificate_ends": 1.5e9}
    seen = Seen(nodes=[node | {"storage": [unit]}], now=100.0)
    lines = text(seen).splitlines()
    told = [one for one in lines if not one.startswith("#")]
    for line in told:
        plain = line.replace('\\"', "").replace("\\\\", "")
        assert LINE.fullmatch(plain), line
    assert 'moorage_candidate_copy_current{node="n1"} 0' in told
    assert [one for one in lines if one.startswith("# TYPE")] == [
        f"# TYPE moorage_{one.name} gauge" for one in METRICS
    ]


def test_a_job_that_waits_is_told() -> None:
    jobs = [{"status": "queued", "received_ts": [40, 0]}]
    assert "moorage_job_wait_seconds 60" in text(Seen(jobs=jobs, now=100.0))
