# SPDX-License-Identifier: BSD-2-Clause
"""Events as a stream: each once, in order, for many, also for who was away."""

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.api.luxi import NoMaster
from moorage.api.rapi import events
from moorage.api.rapi.limits import Limits
from moorage.api.rapi.refusals import HttpError
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

ADD = {"disk_template": "ext", "provider": "san", "size": 8}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder().instance("web", tags=("front",))
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    limits = Limits(under_way=2000, connections=2000)
    async with rapi_door(cluster, tmp_path, limits) as found:
        yield found
    await cluster.stop()


Block = tuple[int | None, str, Any]


class Listening:
    """Reads blocks of a stream: id, event and data."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.status = answer.status
        self.kind = answer.content_type
        self._answer = answer

    async def block(self) -> Block:
        """Return the next one that has data."""
        while True:
            text = (await self._answer.content.readuntil(b"\n\n")).decode()
            assert text, "the door hung up"
            fields = dict(
                line.split(": ", 1) for line in text.splitlines() if ": " in line[1:]
            )
            if "data" in fields:
                number = int(fields["id"])
                return number, fields["event"], json.loads(fields["data"])

    async def rest(self) -> bytes:
        """Return what comes until the door hangs up."""
        async with asyncio.timeout(10):
            return await self._answer.content.read()

    async def until(self, name: str) -> list[Block]:
        """Return blocks up to the one in which an object of a name is added."""
        found = []
        while True:
            found.append(await self.block())
            told = found[-1][2].get("events", ())
            if any((one["event"], one.get("name")) == ("added", name) for one in told):
                return found


@asynccontextmanager
async def listening(
    door: RapiDoor, query: str = "", user: str = "root:secret", **headers: str
) -> AsyncIterator[Listening]:
    basic = f"Basic {b64encode(user.encode()).decode()}"
    url = f"https://127.0.0.1:{door.port}/2/events{query}"
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=trust, limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        session.get(url, headers={"Authorization": basic, **headers}) as answer,
    ):
        yield Listening(answer)


async def add(door: RapiDoor, name: str) -> None:
    await door.does("POST", "/2/disks", {"name": name, **ADD})


async def test_a_disk_that_is_made_is_told(door: RapiDoor) -> None:
    async with listening(door) as found:
        assert (found.status, found.kind) == (200, "text/event-stream")
        start, event, _ = await found.block()
        assert event == "start"
        await add(door, "new")
        blocks = await found.until("new")
    numbers = [number for number, _, _ in blocks]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > start
    assert blocks[-1][2]["by"] == "root by rapi"
    assert blocks[-1][2]["job"] == 1


async def test_who_comes_back_goes_on_behind_what_it_heard(door: RapiDoor) -> None:
    async with listening(door) as found:
        await found.block()
        await add(door, "one")
        heard = await found.until("one")
    await add(door, "two")
    last = str(heard[-1][0])
    async with listening(door, **{"Last-Event-ID": last}) as found:
        header = await found.until("two")
    async with listening(door, f"?after={last}") as found:
        argument = await found.until("two")
    assert header == argument
    assert all(number > int(last) for number, _, _ in header)


async def test_who_was_away_longer_than_the_door_hears_it_from_the_master(
    door: RapiDoor,
) -> None:
    start = door.cluster.config_store.feed.last
    for number in range(5):
        await add(door, f"d{number}")
    async with listening(door, f"?after={start}") as found:
        blocks = await found.until("d4")
    made = [
        one["name"] for _, _, data in blocks for one in data["events"] if "name" in one
    ]
    assert made == [f"d{number}" for number in range(5)]


async def test_what_is_not_kept_is_told(door: RapiDoor) -> None:
    async with listening(door, "?after=7") as found:
        number, event, data = await found.block()
        assert (event, data) == ("start", {"number": number})
        await add(door, "new")
        assert await found.until("new")


async def test_filters(door: RapiDoor) -> None:
    start = door.cluster.config_store.feed.last
    await add(door, "new")
    await door.does("PUT", "/2/disks/new/tags?tag=gold")
    async with listening(door, f"?after={start}&kind=disk") as found:
        blocks = await found.until("new")
        assert {one["kind"] for _, _, data in blocks for one in data["events"]} == {
            "disk"
        }
    async with listening(door, f"?after={start}&tag=gold") as found:
        _, _, data = await found.block()
        assert [one["tags"] for one in data["events"]] == [["gold"]]
    async with listening(door, f"?after={start}&job=2") as found:
        _, _, data = await found.block()
        assert data["events"][0]["job"] == 2


@pytest.mark.parametrize(
    "query", ["?after=x", "?after=-1", "?job=x", "?after=" + "9" * 99]
)
async def test_what_is_no_number_is_refused(door: RapiDoor, query: str) -> None:
    assert (await door.ask("GET", f"/2/events{query}")).status == 400


async def test_who_may_not_read_may_not_listen(door: RapiDoor) -> None:
    door.users.write_text("guest secret known\n")
    async with listening(door, user="guest:secret") as found:
        assert found.status == 403
    async with listening(door, user="guest:wrong") as found:
        assert found.status == 401


@pytest.mark.parametrize("left", ["", "guest secret known\n"])
async def test_who_is_taken_out_hears_nothing_more(door: RapiDoor, left: str) -> None:
    kept = door.users.read_text()
    door.users.write_text(kept + "guest secret read\n")
    async with listening(door, user="guest:secret") as found:
        await found.block()
        door.users.write_text(kept + left)
        await add(door, "new")
        assert b"new" not in await found.rest()


async def test_a_master_that_went_away_is_waited_for(door: RapiDoor) -> None:
    async with listening(door) as found:
        await found.block()
        await door.cluster.crash()
        await door.cluster.boot()
        assert door.cluster.config_store.feed.last


async def test_many_listeners_cost_the_master_one_question(door: RapiDoor) -> None:
    """The door asks once, and tells it on."""
    asked = []
    feed = door.cluster.config_store.feed
    after = feed.after

    def counted(number: int, most: int = 0) -> Any:
        asked.append(number)
        return after(number, most)

    feed.after = counted  # type: ignore[method-assign]

    async def one() -> list[Block]:
        async with listening(door) as found:
            await found.block()
            ready.release()
            return await found.until("new")

    ready = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(one()) for _ in range(40)]
    for _ in tasks:
        await ready.acquire()
    asked.clear()
    await add(door, "new")
    heard = await asyncio.gather(*tasks)
    assert all(blocks == heard[0] for blocks in heard)
    assert len(asked) <= 3 * len(heard[0])


class Master:
    """Has so many entries, and counts how often it is asked for old ones."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.asked = 0

    async def call(self, _method: str, after: int | None, patience: float) -> Any:
        if after is None:
            return {"number": self.last, "reset": False, "entries": []}
        if patience:
            await asyncio.sleep(patience)
        else:
            self.asked += 1
        end = min(after + 500, self.last)
        entries = [{"number": one} for one in range(after + 1, end + 1)]
        return {"number": end, "reset": False, "entries": entries}


async def test_what_is_long_past_is_asked_for_as_it_is_taken() -> None:
    """Else each of many streams would keep all of it."""
    master = Master(5000)
    hub = events.Hub(master)  # type: ignore[arg-type]
    stream = hub.after(1)
    first = await anext(stream)
    assert first is not None
    assert first[0] == {"number": 2}
    assert master.asked == 1
    told = [*first]
    while told[-1]["number"] < master.last:
        told.extend(await anext(stream) or ())
    assert [one["number"] for one in told] == list(range(2, 5001))
    await hub.close()


@pytest.mark.parametrize("number", [None, 0, 1])
async def test_streams_end_with_the_door(number: int | None) -> None:
    """Else it would be killed in the end, with all that is under way."""
    hub = events.Hub(Master(1))  # type: ignore[arg-type]

    async def listen() -> None:
        async for _told in hub.after(number):
            begun.set()
        begun.set()

    begun = asyncio.Event()
    listening = asyncio.create_task(listen())
    async with asyncio.timeout(5):
        if number != 1:
            await begun.wait()
        await hub.close()
        await listening


class Mortal(Master):
    """Answers nobody any more, once it is dead."""

    dead = False

    async def call(self, method: str, after: int | None, patience: float) -> Any:
        if self.dead:
            raise NoMaster("no master listens")
        return await super().call(method, after, min(patience, 0.05))


@pytest.mark.parametrize("begun", [True, False])
async def test_who_listens_where_no_master_is_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    """Else nobody would look for the door in front of the next one."""
    monkeypatch.setattr(events, "SILENCE", 0.2)
    monkeypatch.setattr(events, "_AGAIN", 0.05)
    master = Mortal(5)
    master.dead = not begun
    hub = events.Hub(master)  # type: ignore[arg-type]
    stream = hub.after(None)
    if begun:
        assert await anext(stream) == [5]
        master.dead = True
    async with asyncio.timeout(5):
        assert [told async for told in stream if told] == []
    with pytest.raises(HttpError) as refused:
        hub.check()
    assert refused.value.status == 502
    master.dead = False
    for _ in range(100):
        await asyncio.sleep(0.02)
        with suppress(HttpError):
            hub.check()
            break
    async with asyncio.timeout(5):
        assert await anext(hub.after(None)) == [5]
    await hub.close()


async def test_a_door_without_a_master_opens_no_stream(
    door: RapiDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SILENCE", 0.2)
    monkeypatch.setattr(events, "_AGAIN", 0.05)
    (tmp_path / "door.sock").rename(tmp_path / "away.sock")
    assert (await door.ask("GET", "/2/events")).status == 502


async def test_a_master_that_goes_away_meanwhile_ends_a_stream(door: RapiDoor) -> None:
    """One answer is begun: there can be no other one behind it."""
    start = door.cluster.config_store.feed.last
    await add(door, "new")
    async with listening(door):
        pass  # the door hears what happens from here on
    door.hub._luxi = Mortal(start)  # type: ignore[assignment]
    door.hub._luxi.dead = True  # type: ignore[attr-defined]
    async with listening(door, f"?after={start}") as found:
        assert await found.rest() == b""


async def test_what_the_door_does_not_keep_is_asked_of_the_master(
    door: RapiDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEPT", 5)
    start = door.cluster.config_store.feed.last
    async with listening(door) as found:
        await found.block()
        for number in range(4):
            await add(door, f"d{number}")
        await found.until("d3")
    async with listening(door, f"?after={start}") as found:
        blocks = await found.until("d3")
    assert len(blocks) > 10
