# SPDX-License-Identifier: BSD-2-Clause
"""Who is wished to lead next gets the lead, and nobody else does."""

import asyncio

import pytest
from msgspec.structs import replace

from moorage.errors import Refused
from moorage.store import Damaged
from moorage.store.etcd import EtcdSettings, EtcdStore, wish, wished

pytestmark = pytest.mark.real


async def test_only_who_is_wished_takes_the_lead(etcd: EtcdSettings) -> None:
    first, heir, third = (EtcdStore(replace(etcd, node=one)) for one in "abc")
    await first.lead()
    looking = asyncio.create_task(wished(first.settings))
    own = asyncio.create_task(wished(heir.settings))
    async with wish(heir.settings, 30):
        async with asyncio.timeout(10):
            await looking
        await first.close()
        for other in (first, third):
            with pytest.raises(Refused, match="another node is about to lead") as said:
                await other.lead()
            assert said.value.facts["led"]
        await heir.lead()
        assert not own.done()  # it is the one
    own.cancel()
    await heir.close()
    await third.lead()  # the wish is over
    for store in (first, third):
        await store.close()


async def test_a_wish_that_is_followed_by_another_ends_alone(
    etcd: EtcdSettings,
) -> None:
    store, heir = (EtcdStore(replace(etcd, node=one)) for one in "ab")
    await store.lead()
    await store.close()
    async with wish(heir.settings, 30):
        async with wish(store.settings, 30):
            pass
        await heir.lead()
    await heir.close()
    async with wish(heir.settings, 30), wish(store.settings, 30):
        with pytest.raises(Refused, match="another node is about to lead"):
            await heir.lead()
    for one in (store, heir):
        await one.close()


async def test_nobody_wishes_where_another_clusters_state_is(
    etcd: EtcdSettings,
) -> None:
    store = EtcdStore(etcd)
    await store.lead()
    with pytest.raises(Damaged, match="the state of another cluster"):
        async with wish(replace(etcd, cluster="another"), 30):
            pass
    await store.close()
