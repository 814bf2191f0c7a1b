# SPDX-License-Identifier: BSD-2-Clause
"""The client against a simulated cluster: the same over each way."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.client import Client, Socket, door
from moorage.errors import Conflict, Forbidden, NotFound
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

ADD = {"OP_ID": "OP_DISK_ADD", "disk_template": "ext", "provider": "san", "size": 8}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder().disk("data1").instance("web1", tags=("gold",))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.fixture(params=["https", "luxi"])
async def client(request, at: RapiDoor) -> AsyncIterator[Client]:
    if request.param == "https":
        url = f"https://root:secret@localhost:{at.port}"
        place = door(url, ca=str(at.directory / "rapi.pem"))
    else:
        place = Socket(f"{at.directory}/luxi.sock")
    with Client(place, patience=5.0) as found:
        yield found


async def test_it_looks(client: Client) -> None:
    def look():
        table = client.query("disk", ["name", "size", "node"], ["==", "name", "data1"])
        assert [one.name for one in table.fields] == ["name", "size", "node"]
        (disk,) = table.objects()
        assert disk["name"] == "data1"
        assert client.info()["name"] == "test"
        assert {"moorage-keys", "moorage-opcodes"} <= client.features()
        assert "size" in {one.name for one in client.query_fields("disk")}

    await asyncio.to_thread(look)


async def test_a_job_is_made_and_waited_for(client: Client) -> None:
    def make():
        number = client.submit(ADD | {"name": "new"})
        job = client.wait(number, 20.0)
        assert (job.number, job.status) == (number, "success")
        assert job.summaries == ["DISK_ADD(new)"]
        with pytest.raises(NotFound, match="nothing"):
            client.run({"OP_ID": "OP_DISK_REMOVE", "disk": "nothing"}, timeout=20.0)
        with pytest.raises(NotFound, match="job 77"):
            client.wait(77)

    await asyncio.to_thread(make)


async def test_a_key_makes_one_job(client: Client) -> None:
    def make():
        first = client.submit(ADD | {"name": "new"}, key="mine")
        assert client.submit(ADD | {"name": "new"}, key="mine") == first
        with pytest.raises(Conflict, match="used for another request"):
            client.submit(ADD | {"name": "other"}, key="mine")

    await asyncio.to_thread(make)


async def test_what_happens_is_told(client: Client) -> None:
    def hear():
        stream = client.events(kinds=["disk"], timeout=20.0)
        start = next(stream)
        assert start.reset
        client.run(ADD | {"name": "new"}, timeout=20.0)
        entry = next(one for one in stream if one.events)
        assert entry.number > start.number
        assert {one.kind for one in entry.events} == {"disk"}
        assert entry.events[0].name == "new"
        again = client.events(start.number, kinds=["disk"], timeout=20.0)
        assert next(one for one in again if one.events) == entry
        assert next(client.events(7, timeout=5.0)).reset

    await asyncio.to_thread(hear)


async def test_nobody_does_what_is_not_theirs(at: RapiDoor) -> None:
    def attempt():
        trust = str(at.directory / "rapi.pem")
        where = f"https://op:secret@localhost:{at.port}"
        with Client(door(where, ca=trust)) as client:
            with pytest.raises(Forbidden, match="takes write"):
                client.submit(ADD | {"name": "new"})
            stop = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1"}
            client.run(stop, timeout=20.0)

    await asyncio.to_thread(attempt)


def test_it_loads_neither_master_nor_agent_nor_server() -> None:
    code = "import sys, json, moorage.client; print(json.dumps(sorted(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    found = set(json.loads(told.stdout))
    parts = {one.split(".")[1] for one in found if one.startswith("moorage.")}
    assert parts <= {"api", "client", "directories", "errors"}
    assert not found & {"aiohttp", "asyncio", "msgspec", "ssl", "http.client"}
