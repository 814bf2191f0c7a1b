# SPDX-License-Identifier: BSD-2-Clause
"""A request that comes twice makes one job, for a day, whoever is the master."""

import asyncio
import gc
from collections.abc import Sequence

import pytest

from moorage.api import deeds
from moorage.api.query import Sources
from moorage.errors import BadInput, Conflict, WrongState
from moorage.jobs import Job, repeats
from moorage.model.caller import Caller
from moorage.testing.cluster import SimCluster

WHAT = {"disk_template": "ext", "provider": "san", "size": 8}
ANNA, BERT = Caller("anna", "rapi"), Caller("bert", "rapi")


def add(name: str = "new") -> list[dict[str, object]]:
    return [{"OP_ID": "OP_DISK_ADD", "name": name, **WHAT}]


def at(cluster: SimCluster) -> Sources:
    return Sources(
        cluster.config_store, cluster.nodes, cluster.engine, clock=cluster.clock
    )


async def test_a_repeated_request_is_answered_with_its_job(cluster: SimCluster) -> None:
    first = await deeds.submit_once(at(cluster), add(), ANNA, "k1")
    await cluster.finished(first)
    assert await deeds.submit_once(at(cluster), add(), ANNA, "k1") == first
    assert list(cluster.engine.jobs) == [first]


async def test_two_that_come_together_make_one_job(cluster: SimCluster) -> None:
    asked = [deeds.submit_once(at(cluster), add(), ANNA, "k1") for _ in range(5)]
    assert len(set(await asyncio.gather(*asked))) == 1
    assert len(cluster.engine.jobs) == 1


async def test_the_second_hears_of_the_job_when_it_is_stored(
    cluster: SimCluster,
) -> None:
    """A crash before that would take back a number that somebody has."""
    there = asyncio.Event()

    async def settled(_version: int) -> Sequence[str]:
        await there.wait()
        return ()

    cluster.config_store.settled = settled
    both = [
        asyncio.create_task(deeds.submit_once(at(cluster), add(), ANNA, "k1"))
        for _ in range(2)
    ]
    done, _ = await asyncio.wait(both, timeout=0.1)
    assert not done
    third = asyncio.create_task(deeds.submit_once(at(cluster), add(), ANNA, "k1"))
    done, _ = await asyncio.wait([third], timeout=0.1)
    assert not done
    there.set()
    assert len(set(await asyncio.gather(*both, third))) == 1


async def test_who_asks_again_and_again_leaves_nothing(cluster: SimCluster) -> None:
    for number in range(5):
        with pytest.raises(BadInput):
            await deeds.submit_once(at(cluster), [{}], ANNA, f"k{number}")
    first = await deeds.submit_once(at(cluster), add(), ANNA, "k1")
    assert await deeds.submit_once(at(cluster), add(), ANNA, "k1") == first
    assert not cluster.engine.queue.repeats._turns


async def test_the_next_master_knows_it(cluster: SimCluster) -> None:
    first = await deeds.submit_once(at(cluster), add(), ANNA, "k1")
    await cluster.crash()
    await cluster.boot()
    assert await deeds.submit_once(at(cluster), add(), ANNA, "k1") == first
    await cluster.finished(first)


async def test_a_key_is_its_users(cluster: SimCluster) -> None:
    first = await deeds.submit_once(at(cluster), add("a1"), ANNA, "k1")
    second = await deeds.submit_once(at(cluster), add("b1"), BERT, "k1")
    assert first != second


async def test_a_key_for_another_request_is_refused(cluster: SimCluster) -> None:
    first = await deeds.submit_once(at(cluster), add("a1"), ANNA, "k1")
    with pytest.raises(Conflict, match=f"another request, which made job {first}"):
        await deeds.submit_once(at(cluster), add("b1"), ANNA, "k1")
    assert len(cluster.engine.jobs) == 1


async def test_a_refused_request_uses_no_key_up(cluster: SimCluster) -> None:
    with pytest.raises(BadInput):
        await deeds.submit_once(at(cluster), [{"OP_ID": "OP_NOPE"}], ANNA, "k1")
    assert await deeds.submit_once(at(cluster), add(), ANNA, "k1")


async def test_what_was_refused_leaves_nothing(cluster: SimCluster) -> None:
    known = cluster.engine.queue.repeats
    locks = known._turns
    for number in range(50):
        asked: list[dict[str, object]] = [{"OP_ID": "OP_NOPE"}]
        with pytest.raises(BadInput):
            await deeds.submit_once(at(cluster), asked, ANNA, f"k{number}")
    await deeds.submit_once(at(cluster), add(), ANNA, "k")
    await deeds.submit_once(at(cluster), add(), ANNA, "k")
    gc.collect()
    assert not len(locks)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "\N{SNOWMAN}"])
async def test_what_is_no_key_is_refused(cluster: SimCluster, key: str) -> None:
    with pytest.raises(BadInput, match="a key is"):
        await deeds.submit_once(at(cluster), add(), ANNA, key)


def test_keys_are_forgotten_after_a_day() -> None:
    now = 0.0
    known = repeats.Repeats(lambda: now)
    known.add("old", add(), Job(id=1, ops=[]))
    now = repeats.LASTS + 1
    assert known.job("old", add()) is None
    writes = known.add("new", add(), Job(id=2, ops=[]))
    assert (("repeat", "old"), None) in writes


def test_who_uses_very_many_has_the_oldest_forgotten_after_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeats, "MOST", 2)
    now = 0.0
    known = repeats.Repeats(lambda: now)
    caller = Job(id=1, ops=[]).caller
    for number in range(2):
        known.add(f"k{number}", add(), Job(id=number, ops=[]))
        now += 60
    with pytest.raises(WrongState, match="within an hour"):
        known.check(str(caller))
    now = repeats.LEAST + 30
    known.check(str(caller))
    writes = known.add("k2", add(), Job(id=2, ops=[]))
    assert [name for (_, name), value in writes if value is None] == ["k0"]
    assert (known.job("k0", add()), known.job("k1", add())) == (None, 1)
    with pytest.raises(WrongState):
        known.check(str(caller))


async def test_a_user_has_so_many_keys_an_hour_and_others_have_theirs(
    cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "MOST", 2)
    for number in range(2):
        await deeds.submit_once(at(cluster), add(f"n{number}"), ANNA, f"k{number}")
    with pytest.raises(WrongState, match="anna by rapi has used 2 keys"):
        await deeds.submit_once(at(cluster), add("n2"), ANNA, "k2")
    assert await deeds.submit_once(at(cluster), add("n0"), ANNA, "k0") == 1
    assert await deeds.submit_once(at(cluster), add("n3"), BERT, "k2") == 3
    await cluster.crash()
    await cluster.boot()
    with pytest.raises(WrongState):
        await deeds.submit_once(at(cluster), add("n2"), ANNA, "k2")
    monkeypatch.setattr(repeats, "LEAST", -1.0)
    assert await deeds.submit_once(at(cluster), add("n2"), ANNA, "k2") == 4
