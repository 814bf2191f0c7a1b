# SPDX-License-Identifier: BSD-2-Clause
"""Metrics, as Prometheus reads them through the door."""

import asyncio
import re
import ssl
import time
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from moorage.api.census import Census
from moorage.api.rapi.exposition import Seen
from moorage.api.rapi.metrics import METRICS, text
from moorage.model import Change, successor
from moorage.model.objects import Entity
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
    assert found['moorage_disk_attachments{state="inactive"}'] == 1
    assert found['moorage_jobs{status="success"}'] == 1
    assert found['moorage_verb_duration_seconds_count{verb="disk.create"}'] == 1
    inf = 'moorage_verb_duration_seconds_bucket{verb="disk.create",le="+Inf"}'
    assert found[inf] == 1
    assert found['moorage_verb_failures_total{verb="disk.create"}'] == 0
    assert found["moorage_lock_wait_seconds_count"] == 1
    assert found["moorage_audit_entries_total"] == 2
    assert found['moorage_rapi_requests_total{code="200"}'] == 1
    assert found["moorage_rapi_certificate_end_timestamp_seconds"] > time.time()
    assert found['moorage_node_up{node="node1"}'] == 1
    assert found["moorage_job_wait_seconds"] == 0
    memory = 'moorage_node_memory_bytes{node="node1"}'
    assert found[memory] >= found[memory.replace("bytes", "free_bytes")] > 2**20


async def test_who_may_only_know_gets_none(door: RapiDoor) -> None:
    status, _, found = await scraped(door, "guest")
    assert (status, found) == (403, {})


async def test_counts_follow_what_changes(door: RapiDoor) -> None:
    async def disks(state: str) -> float:
        return (await scraped(door))[2][f'moorage_disks{{state="{state}"}}']

    assert (await disks("attached"), await disks("detached")) == (1, 1)
    await door.does("PUT", "/2/disks/a/attach", {"instance_name": "web"})
    assert (await disks("attached"), await disks("detached")) == (2, 0)
    await door.does("PUT", "/2/disks/a/detach", {})
    await door.does("DELETE", "/2/disks/a")
    assert (await disks("attached"), await disks("detached")) == (1, 0)
    web = door.cluster.config.instance("web")
    up = successor(web, 1.0, admin_state="up", disks_active=True)
    await door.cluster.config_store.commit(Change((up,)))
    found = (await scraped(door))[2]
    assert found['moorage_instances{state="up"}'] == 1
    assert found['moorage_disk_attachments{state="active"}'] == 1
    census = Counter(Census().of(door.cluster.config_store))
    assert +census == +Counter({"instances up": 1, "disks": 1, "active": 1})


async def test_which_nodes_cannot_be_lost_is_told_a_moment_later(
    door: RapiDoor,
) -> None:
    for _ in range(100):
        found = (await scraped(door))[2]
        if "moorage_nodes_not_survivable" in found:
            break
        await asyncio.sleep(0.05)
    assert found["moorage_nodes_not_survivable"] == 0
    name = "moorage_nodes_not_survivable_computed_timestamp_seconds"
    assert abs(found[name] - time.time()) < 60


@pytest.mark.slow
async def test_a_scrape_walks_through_no_objects(door: RapiDoor) -> None:
    """Of 10,000 instances with two disks, it costs what it costs of one."""
    config = door.cluster.config
    web, disk = config.instance("web"), config.disk("b")
    many: list[Entity] = []
    for number in range(10_000):
        mine = [f"disk-{number}-{at}" for at in range(2)]
        many += [replace(disk, uuid=one, name=one) for one in mine]
        name = f"web{number}"
        many.append(replace(web, uuid=name, name=name, disks=tuple(mine)))
    await scraped(door)
    await door.cluster.config_store.commit(Change(tuple(many)))
    began = time.process_time()
    for _ in range(3):
        found = (await scraped(door))[2]
    assert (time.process_time() - began) / 3 < 0.25
    assert found['moorage_disks{state="attached"}'] == 20_001


async def test_a_job_that_waits_for_locks_is_told(door: RapiDoor) -> None:
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 30.0, "on_nodes": ["node1"]}
    engine = door.cluster.engine
    first = await engine.submit([delay])
    second = await engine.submit([delay])
    for _ in range(500):
        if engine.job(second).status == "waiting":
            break
        await asyncio.sleep(0.01)
    found = (await scraped(door))[2]
    assert found["moorage_jobs_waiting_for_locks"] == 1
    assert found["moorage_lock_longest_wait_seconds"] > 0
    assert found['moorage_jobs{status="waiting"}'] == 1
    assert found['moorage_job_oldest_seconds{status="running"}'] >= 0
    for number in (second, first):
        await engine.cancel(number)


def test_each_line_is_one_of_the_format() -> None:
    unit = {"sunit": ["ext", 'a"b\\c', []], "total": 10, "free": None}
    node = {"name": "n1", "offline": False, "drained": True, "master_candidate": True}
    node |= {"mtotal": 10, "mfree": None, "certificate_ends": 1.5e9}
    spread = {"within": [1], "number": 2, "seconds": 0.5, "failed": 1}
    told = {"bounds": [0.1], "verbs": {"disk.create": spread}}
    told["copies"] = [{"node": "n1", "current": False, "behind": None}]
    seen = Seen(nodes=[node | {"storage": [unit]}], told=told)
    lines = text(seen).splitlines()
    told = [one for one in lines if not one.startswith("#")]
    for line in told:
        plain = line.replace('\\"', "").replace("\\\\", "")
        assert LINE.fullmatch(plain), line
    assert 'moorage_candidate_copy_current{node="n1"} 0' in told
    assert [one for one in lines if one.startswith("# TYPE")] == [
        f"# TYPE moorage_{one.name} {one.kind}" for one in METRICS
    ]


def test_a_job_that_waits_is_told() -> None:
    told = {"ages": {"queued": 60.0, "running": 90.0}}
    assert "moorage_job_wait_seconds 60" in text(Seen(told=told))
