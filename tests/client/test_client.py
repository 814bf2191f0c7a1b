# SPDX-License-Identifier: BSD-2-Clause
"""The client against a simulated cluster: the same over each way, blocking or not."""

import asyncio
import contextlib
import inspect
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.client import Client, Socket, door, rest
from moorage.client.aio import AsyncClient
from moorage.client.asks import is_lost
from moorage.errors import (
    BadInput,
    Conflict,
    Exists,
    Forbidden,
    NoMaster,
    NotFound,
    Unreachable,
)
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

ADD = {"OP_ID": "OP_DISK_ADD", "disk_template": "ext", "provider": "san", "size": 8}
DELAY = {"OP_ID": "OP_TEST_DELAY", "on_master": True, "duration": 0.0}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder().disk("data1").instance("web1", tags=("gold",))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


class Threaded:
    """The client that blocks, called from a loop: in a thread each time."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name == "events":
            return lambda *args, **more: _turns(method(*args, **more))
        return lambda *args, **more: asyncio.to_thread(method, *args, **more)


async def _turns(blocking):
    while (one := await asyncio.to_thread(next, blocking, None)) is not None:
        yield one


def place(at: RapiDoor, way: str, user: str = "root:secret"):
    if way == "luxi":
        return Socket(f"{at.directory}/luxi.sock")
    trust = str(at.directory / "rapi.pem")
    return door(f"https://{user}@localhost:{at.port}", ca=trust)


@pytest.fixture(params=["https", "luxi", "https, async", "luxi, async"])
async def client(request, at: RapiDoor) -> AsyncIterator[Any]:
    """Return a client whose methods are awaited, whichever it is."""
    way, _, kind = request.param.partition(", ")
    if kind:
        async with AsyncClient(place(at, way), patience=5.0) as found:
            yield found
    else:
        with Client(place(at, way), patience=5.0) as found:
            yield Threaded(found)


def test_both_clients_have_the_same_methods() -> None:
    def public(kind):
        every = inspect.getmembers(kind, inspect.isfunction)
        return {
            name: [*inspect.signature(one).parameters.values()]
            for name, one in every
            if not name.startswith("_")
        }

    assert public(Client) == public(AsyncClient)


async def test_it_looks(client) -> None:
    table = await client.query("disk", ["name", "size"], ["==", "name", "data1"])
    assert [one.name for one in table.fields] == ["name", "size"]
    assert [one["name"] for one in table.objects()] == ["data1"]
    assert (await client.info())["name"] == "test"
    assert {"moorage-keys", "moorage-opcodes"} <= await client.features()
    assert "size" in {one.name for one in await client.query_fields("disk")}
    (one,) = await client.query_fields("disk", ["size"])
    assert (one.name, one.kind) == ("size", "unit")
    assert await client.tags("instance", "web1") == ["gold"]
    assert await client.tags("cluster") == []
    assert (await client.story("data1"))["name"] == "data1"


async def test_who_had_what_changed(client) -> None:
    assert await client.audit() == []
    await client.run(ADD | {"name": "new"}, timeout=20.0)
    entries = [json.loads(line) for line in await client.audit()]
    assert entries[0]["job"] == 1
    assert await client.audit(entries[-1]["number"]) == []


async def test_a_job_is_made_and_waited_for(client) -> None:
    number = await client.submit(ADD | {"name": "new"})
    job = await client.wait(number, 20.0)
    assert (job.number, job.status) == (number, "success")
    assert job.summaries == ["DISK_ADD(new)"]
    assert await client.jobs([number, 77], ["status"]) == [["success"], None]
    assert await client.jobs([], ["status"]) == []
    with pytest.raises(NotFound, match="job 77"):
        await client.wait(77)
    slow = await client.submit(DELAY | {"duration": 1.5})
    with pytest.raises(TimeoutError, match=f"job {slow} is running after"):
        await client.wait(slow, 0.3)
    done, sentence = await client.cancel(slow)
    assert done, sentence
    assert (await client.wait(slow, 20.0)).status == "canceled"


async def test_an_error_arrives_as_the_master_raised_it(client) -> None:
    with pytest.raises(NotFound, match="nothing") as found:
        await client.run({"OP_ID": "OP_DISK_REMOVE", "disk": "nothing"}, timeout=20.0)
    assert found.value.facts["job"]
    with pytest.raises(NotFound, match="web7"):
        await client.query("instance", ["name"], ["==", "name", "web7"])
    with pytest.raises(BadInput, match="OP_NOTHING") as found:
        await client.submit({"OP_ID": "OP_NOTHING"})
    assert found.value.code == "bad-input"
    await client.run(ADD | {"name": "new"}, timeout=20.0)
    with pytest.raises(NotFound) as found:
        await client.query("disk", ["name"], ["==", "name", "newe"])
    assert found.value.hint == "did you mean new?"


async def test_a_key_makes_one_job(client) -> None:
    first = await client.submit(ADD | {"name": "new"}, key="mine")
    assert await client.submit(ADD | {"name": "new"}, key="mine") == first
    with pytest.raises(Conflict, match="used for another request"):
        await client.submit(ADD | {"name": "other"}, key="mine")


async def test_many_jobs_depend_on_each_other(client) -> None:
    last = DELAY | {"depends": [[-1, ["success"]]]}
    off = {"OP_ID": "OP_NOTHING"}
    first, second, no, orphan, alone = await client.submit_many(
        [[DELAY], [last], [off], [last], [DELAY, DELAY]]
    )
    assert isinstance(no, BadInput)
    assert "job -1" in orphan.message
    assert [type(one) for one in (first, second, alone)] == [int] * 3
    (row,) = await client.jobs([second], ["ops"])
    assert row[0][0]["depends"] == [[first, ["success"]]]
    assert len((await client.wait(alone, 20.0)).outcome()) == 2


async def test_what_happens_is_told(client) -> None:
    stream = client.events(kinds=["disk"], timeout=20.0)
    start = await anext(stream)
    assert start.reset
    assert start.number == await client.newest()
    await client.run(ADD | {"name": "new"}, timeout=20.0)
    entry = await anext(one async for one in stream if one.events)
    assert entry.number > start.number
    assert [(one.kind, one.event, one.name) for one in entry.events] == [
        ("disk", "added", "new")
    ]
    assert entry.job == 1
    again = client.events(start.number, kinds=["disk"], timeout=20.0)
    assert await anext(one async for one in again if one.events) == entry
    assert (await anext(client.events(7, timeout=5.0))).reset
    newest = await client.newest()
    left = [one async for one in client.events(newest, timeout=0.2)]
    assert left == []


async def test_a_job_is_followed(client) -> None:
    number = await client.submit(DELAY | {"duration": 0.3})
    change = await client.change(number, ["status"])
    status = change.values[0]
    while status != "success":
        change = await client.change(number, ["status"], [status], None, 5.0)
        status = change.values[0] if change else status
    slow = await client.submit(DELAY | {"duration": 1.5})
    seen = ["queued"]
    while change := await client.change(slow, ["status"], seen, None, 0.3):
        seen = change.values
    assert seen == ["running"]
    await client.cancel(slow)
    with pytest.raises(NotFound, match="job 77"):
        await client.change(77, ["status"])


async def test_chores(client) -> None:
    assert not await client.drained()
    await client.drain(drained=True)
    assert await client.drained()
    await client.drain(drained=False)
    assert await client.watcher_pause() is None
    assert await client.pause_watcher(4e9) == 4e9
    assert await client.watcher_pause() == 4e9
    assert await client.pause_watcher(None) is None
    slow = await client.submit(DELAY | {"duration": 1.5})
    held = await client.submit(DELAY | {"depends": [[slow, ["success"]]]})
    assert (await client.set_priority(held, -5))[0]
    assert await client.jobs([held], ["priority"]) == [[-5]]
    assert not await client.archive(held)
    await client.cancel(slow)
    await client.wait(held, 20.0)
    assert await client.archive(held)
    assert (await client.archive_ended(-1))[0]
    assert await client.jobs([held, 999], ["status"]) == [["canceled"], None]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_nobody_does_what_is_not_theirs(at: RapiDoor, kind) -> None:
    made = kind(place(at, "https", "op:secret"))
    client = Threaded(made) if kind is Client else made
    with pytest.raises(Forbidden, match="takes write"):
        await client.submit(ADD | {"name": "new"})
    stop = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web1"}
    await client.run(stop, timeout=20.0)
    await client.close()
    made = kind(place(at, "https", "op:wrong"))
    client = Threaded(made) if kind is Client else made
    with pytest.raises(Forbidden):
        await client.info()
    await client.close()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_certificate_of_a_stranger_is_not_believed(at: RapiDoor, kind) -> None:
    made = kind(door(f"https://root:secret@localhost:{at.port}"))
    client = Threaded(made) if kind is Client else made
    with pytest.raises(Unreachable, match=r"is not believed: self.signed") as found:
        await client.info()
    assert "MOORAGE_CA" in found.value.hint
    await client.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://root:secret@host", "is no address of a cluster"),
        ("https://root:secret@host/2/info", "is no address of a cluster"),
        ("https://root:secret@host:port", "cannot be read"),
        ("https://root:secr/et@host", "address of the cluster cannot be read"),
        ("https://root:secret@local host", "is no address of a cluster"),
        ("https://root:secret@a..b", "cannot be read"),
        ("https://host", "a token, or user and password, is needed"),
        ("https://root@host", "a token, or user and password, is needed"),
    ],
)
def test_an_address_that_is_off_is_refused(url: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as found:
        door(url)
    assert "secret" not in found.value.message


def test_what_opens_a_door_is_not_printed() -> None:
    found = door("https://root:secret@host", token="sesame")  # noqa: S106
    assert repr(found) == "Door(https://host:5080)"


def test_it_loads_neither_master_nor_agent_nor_server() -> None:
    code = "import sys, json, moorage.client; print(json.dumps(sorted(sys.modules)))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    found = set(json.loads(told.stdout))
    parts = {one.split(".")[1] for one in found if one.startswith("moorage.")}
    assert parts <= {"api", "client", "directories", "errors"}
    assert not found & {"aiohttp", "asyncio", "msgspec", "ssl", "http.client"}


async def test_threads_and_forks_share_a_client(at: RapiDoor) -> None:
    """Each hears the answer to its own question."""
    code = """
import os, sys, threading
from moorage.client import Client, Socket, door, rest
url, ca = sys.argv[1:]
wrong = []
with Client(door(url, ca=ca) if ca else Socket(url)) as client:
    def ask(field):
        for _ in range(20):
            (row,) = client.query("instance", ["name", field]).objects()
            if set(row) != {"name", field}:
                wrong.append(row)
    ask("tags")
    child = os.fork()
    fields = ["status", "os", "uuid"] if child else ["pnode", "snodes", "ctime"]
    threads = [threading.Thread(target=ask, args=[field]) for field in fields]
    [one.start() for one in threads]
    [one.join() for one in threads]
if not child:
    os._exit(len(wrong))
sys.exit(len(wrong) or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    https = f"https://root:secret@localhost:{at.port}"
    for where in (
        (https, f"{at.directory}/rapi.pem"),
        (f"{at.directory}/luxi.sock", ""),
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, *where
        )
        assert await asyncio.wait_for(process.wait(), 60) == 0


@pytest.mark.parametrize(
    ("status", "text", "kind", "lost"),
    [
        (502, b"<html>Bad Gateway</html>", Unreachable, True),
        (200, b"<html>Login</html>", Unreachable, False),
        (504, b'{"code": 504, "explain": "slow"}', Unreachable, True),
        (401, b'{"code": 401, "explain": "no"}', Forbidden, False),
        (404, b'{"code": 404, "explain": "no"}', NotFound, False),
        (400, b'{"code": 400, "explain": "no"}', BadInput, False),
        (409, b'{"error": {"code": "exists", "message": "is"}}', Exists, False),
        (502, b'{"error": {"code": "no-master", "message": "no"}}', NoMaster, True),
    ],
)
def test_what_is_no_success_is_an_error(status, text, kind, lost) -> None:
    with pytest.raises(kind) as found:
        rest.answer("QueryClusterInfo", status, text)
    assert is_lost(found.value) == lost


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_change_is_sent_once_and_no_redirect_is_followed(
    at: RapiDoor, kind: type
) -> None:
    """The door hangs up on a change, over a connection that was good before."""
    heard: list[str] = []

    async def answers(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                heard.append(head.decode().partition(" HTTP")[0])
                told = {"GET /2/features": "200 OK", "GET /2/info": "302 Found"}
                if heard[-1] not in told:
                    break
                writer.write(
                    f"HTTP/1.1 {told[heard[-1]]}\r\nContent-Length: 2\r\n"
                    f"Location: https://localhost:{port}/2/elsewhere\r\n\r\n[]".encode()
                )
        writer.close()

    pem = at.directory / "rapi.pem"
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(pem)
    async with await asyncio.start_server(answers, "127.0.0.1", 0, ssl=trust) as server:
        port = server.sockets[0].getsockname()[1]
        where = door(f"https://a:b@localhost:{port}", ca=str(pem))
        made = kind(where, patience=0.0)
        client = Threaded(made) if kind is Client else made
        await client.features()
        with pytest.raises(Unreachable):
            await client.cancel(7)
        with pytest.raises(BadInput, match="status 302"):
            await client.info()
        await client.close()
    assert heard == ["GET /2/features", "DELETE /2/jobs/7?kill=0", "GET /2/info"]
