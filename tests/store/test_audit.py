# SPDX-License-Identifier: BSD-2-Clause
"""The audit log in a store: bound line by line, kept within bounds, carried on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from moorage.model.audit import Chain, Deed, checksum, decoded
from moorage.store import ConfigStore, MemoryStore, SqliteStore, audit, create
from moorage.testing.cluster import ClusterBuilder


def done(number: int) -> Deed:
    return Deed(time=float(number), what="submit", user="anna", job=number)


async def opened(store: MemoryStore) -> ConfigStore:
    config_store, _ = await ConfigStore.open(store)
    return config_store


async def test_each_line_has_the_checksum_of_the_one_before() -> None:
    config_store = await opened(MemoryStore())
    await config_store.commit(None, deeds=[done(1), done(2)])
    await config_store.commit(None, deeds=[done(3)])
    lines = await config_store.audited(0)
    entries = [decoded(one) for one in lines]
    assert [(one.number, one.job) for one in entries] == [(1, 1), (2, 2), (3, 3)]
    assert [one.before for one in entries] == ["", *map(checksum, lines[:2])]
    assert config_store.audit.head == checksum(lines[-1])


async def test_the_log_goes_on_over_restarts_and_masters(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    await create(store, ClusterBuilder().change())
    await store.close()
    for number in (1, 2, 3):
        config_store, _ = await ConfigStore.open(SqliteStore(path))
        await config_store.commit(None, deeds=[done(number)])
        lines = await config_store.audited(0)
        await config_store.close()
    chain = Chain()
    assert list(chain.read(lines)) == []
    assert (chain.first, chain.last) == (1, 3)
    assert len({decoded(one).term for one in lines}) == 3


async def test_the_oldest_entries_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "KEPT", 10)
    store = MemoryStore()
    config_store = await opened(store)
    for start in range(1, 25, 3):
        deeds = [done(number) for number in range(start, start + 3)]
        await config_store.commit(None, deeds=deeds)
    chain = Chain()
    assert list(chain.read(await config_store.audited(0))) == []
    assert (chain.first, chain.last) == (15, 24)
    assert len(await store.read(audit.KIND, "")) == 10
    again = await opened(store)
    assert (again.audit.first, again.audit.last) == (15, 24)
    assert [decoded(one).number for one in await again.audited(22)] == [23, 24]


async def test_nothing_is_told_before_the_copies_have_it() -> None:
    config_store = await opened(MemoryStore())
    there = asyncio.Event()

    async def settled(_version: int) -> Sequence[str]:
        await there.wait()
        return ()

    config_store.settled = settled
    commit = asyncio.create_task(config_store.commit(None, deeds=[done(1)]))
    await asyncio.sleep(0.05)
    assert config_store.audit.last == 1
    assert await config_store.audited(0) == []
    there.set()
    await commit
    assert len(await config_store.audited(0)) == 1


async def test_what_was_tampered_with_is_found() -> None:
    config_store = await opened(MemoryStore())
    await config_store.commit(None, deeds=[done(number) for number in range(1, 6)])
    lines = await config_store.audited(0)
    other = lines[1].replace(b"anna", b"bert")
    for tampered, said in (
        ([lines[0], other, *lines[2:]], "entry 2 is not what was written"),
        ([lines[0], *lines[2:]], "entry 3 stands behind entry 1"),
        ([lines[0], lines[2], lines[1]], "entry 3 stands behind entry 1"),
        ([*lines[:2], b"{}", *lines[3:]], "line 3 is no entry"),
        ([b'{"number":1,"term":1,"before":"x","time":1,"what":"end"}'], "not there"),
    ):
        found = list(Chain().read(tampered))
        assert found
        assert said in found[0]
