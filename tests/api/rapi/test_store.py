# SPDX-License-Identifier: BSD-2-Clause
"""How the store is, at the door: on the page, as a resource, and as metrics."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from browsing import Browser
from moorage.api.store_health import KnownHealth
from moorage.model import Change, successor
from moorage.model.objects import Lead
from moorage.model.store_trouble import StoreHealth, StoreMember, StoreTrouble
from moorage.testing.cluster import SimCluster
from rapi_door import RapiDoor, rapi_door

WELL = StoreHealth(
    engine="etcd",
    members=(
        StoreMember(name="https://node1:2379", up=True, size=8192, quota=1 << 31),
        StoreMember(name="https://node2:2379", up=True),
    ),
)
AWAY = replace(
    WELL,
    members=(WELL.members[0], replace(WELL.members[1], up=False)),
    troubles=(
        StoreTrouble(
            said="etcd's quota is full: it takes no more writes",
            command="etcdctl defrag --cluster; etcdctl alarm disarm",
            urgent=True,
        ),
        StoreTrouble(
            said="etcd's member https://node2:2379 cannot be asked: it hung up",
            command="etcdctl --endpoints=https://node2:2379 endpoint health",
        ),
    ),
)


class Members:
    """Members of etcd, who count how often they are asked."""

    def __init__(self) -> None:
        self.health = WELL
        self.asked = 0
        self.now = 0.0
        self.answering = asyncio.Event()
        self.answering.set()
        self.known = KnownHealth(self.ask, lambda: self.now)

    async def ask(self) -> StoreHealth:
        self.asked += 1
        await self.answering.wait()
        return self.health


class Port(NamedTuple):
    """A cluster with such members, and its door."""

    members: Members
    door: RapiDoor


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    members = Members()
    cluster = await SimCluster.start(tmp_path / "sim")
    lead = Lead(term=7, node="node1", time=86400.0)
    changed = successor(cluster.config.cluster, 1.0, leads=(lead,))
    await cluster.config_store.commit(Change((changed,)))
    async with rapi_door(cluster, tmp_path, store=members.known) as door:
        yield Port(members, door)
    await cluster.stop()


async def test_the_page_says_what_the_store_needs_and_who_leads(port: Port) -> None:
    browser = Browser(port.door)
    await browser.sign_in()
    page = await browser.open("/ui")
    assert "All is well" in page.words
    foot = "Master node1, leads since 1970-01-02 00:00:00 · State in etcd, 2 of 2"
    assert foot in page.words
    port.members.health, port.members.now = AWAY, 1000.0
    page = await browser.open("/ui")
    assert "2 things want a person" in page.words
    assert "Etcd's quota is full: it takes no more writes." in page.words
    assert "cannot be asked: it hung up." in page.words
    assert "endpoint health" in page.words
    assert "State in etcd, 1 of 2 members answer" in page.words


async def test_the_resource_tells_it_to_who_may_read(port: Port) -> None:
    answer = await port.door.ask("GET", "/2/store", user="eye:secret")
    assert answer.status == 200
    told = answer.body
    assert (told["engine"], told["master"]) == ("etcd", "node1")
    assert told["since"] == 86400.0
    assert told["members"][0]["quota"] == 1 << 31
    assert told["troubles"] == []
    answer = await port.door.ask("GET", "/2/store", user="guest:secret")
    assert answer.status == 403


async def test_metrics_tell_each_member(port: Port) -> None:
    port.members.health = AWAY
    answer = await port.door.ask("GET", "/metrics", user="eye:secret")
    told = {one for one in answer.body.splitlines() if one.startswith("moorage_")}
    assert told >= {
        'moorage_store_problems{severity="critical"} 1',
        'moorage_store_problems{severity="warning"} 1',
        'moorage_store_member_up{member="https://node1:2379"} 1',
        'moorage_store_member_up{member="https://node2:2379"} 0',
        'moorage_store_member_database_bytes{member="https://node1:2379"} 8192',
        'moorage_store_member_quota_bytes{member="https://node1:2379"} 2147483648',
        'moorage_master_lead_start_timestamp_seconds{node="node1"} 86400',
    }


async def test_many_who_look_ask_once_and_wait_for_no_member_that_hangs() -> None:
    members = Members()
    found = await asyncio.gather(*(members.known.latest() for _ in range(50)))
    assert members.asked == 1
    assert {*found} == {WELL}
    members.health, members.now = AWAY, 40.0
    members.answering.clear()
    async with asyncio.timeout(1.0):
        found = await asyncio.gather(*(members.known.latest() for _ in range(50)))
    assert members.asked == 2
    assert {*found} == {WELL}  # as it was 40 seconds ago
    members.answering.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await members.known.latest() == AWAY
    assert members.asked == 2


async def test_what_is_old_is_shown_to_nobody(port: Port) -> None:
    assert await port.members.known.latest() == WELL
    port.members.health, port.members.now = AWAY, 400.0
    assert await port.members.known.latest() == AWAY
