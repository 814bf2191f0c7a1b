# SPDX-License-Identifier: BSD-2-Clause
"""The socket of a door: it says who asks, and no door gets more than it may give."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api import deeds, luxi_messages
from moorage.api.luxi import Splitter
from moorage.api.luxi_async import AsyncLuxi
from moorage.api.luxi_caller import Believed
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.errors import Forbidden, MoorageError
from moorage.model.caller import Role
from moorage.testing.cluster import ClusterBuilder, SimCluster

WHAT = {"name": "new", "disk_template": "ext", "provider": "san", "size": 8}
ADD = {"OP_ID": "OP_DISK_ADD", **WHAT}


class Side:
    """A master with its own socket, and that of a door."""

    def __init__(self, cluster: SimCluster, directory: Path) -> None:
        self.cluster = cluster
        self.own, self.door = directory / "luxi.sock", directory / "door.sock"
        self.sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
        self.believed = Believed(os.geteuid(), most=Role.WRITE)
        self.server: LuxiServer | None = None

    async def start(self) -> None:
        doors = {self.door: self.believed}
        self.server = LuxiServer(self.sources, self.own, doors=doors)
        await self.server.start()

    async def ask(self, path: Path, caller: Any, method: str, *args: Any) -> Any:
        """Ask, as a door that may say what it likes."""
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(luxi_messages.encode_request(method, args, caller))
        try:
            (message,) = Splitter().feed(await reader.readuntil(luxi_messages.END))
            return luxi_messages.decode_answer(message)
        finally:
            writer.close()


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Side]:
    builder = ClusterBuilder().instance("web")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    found = Side(cluster, tmp_path)
    yield found
    if found.server:
        await found.server.stop()
    await cluster.stop()


def anna(role: Role = Role.WRITE) -> dict[str, Any]:
    return {"name": "anna", "role": int(role), "detail": "from 192.0.2.7"}


async def test_a_job_is_of_whom_the_door_names(side: Side) -> None:
    await side.start()
    number = await side.ask(side.door, anna(), "SubmitJob", [ADD])
    job = await side.cluster.finished(number)
    assert job.status == "success"
    assert (job.caller.name, job.caller.door) == ("anna", "rapi")
    assert job.caller.detail == "from 192.0.2.7"


@pytest.mark.parametrize(
    "caller",
    [
        None,
        {},
        "anna",
        {"name": "", "role": 1},
        {"name": "anna"},
        {"name": "anna", "role": 99},
        {"name": "anna", "role": 1, "door": "luxi"},
        {"name": "anna\nroot", "role": 1},
        {"name": "\x1b[31manna", "role": 1},
        {"name": "a" * 256, "role": 1},
        {"name": "anna", "role": 1, "detail": "from\x00there"},
        {"name": "anna", "role": 1, "detail": "x" * 100_000},
    ],
)
async def test_a_door_that_lies_or_says_nothing_gets_nothing(
    side: Side, caller: Any
) -> None:
    await side.start()
    for method, args in (("SubmitJob", [[ADD]]), ("QueryJobs", [None, ["id"]])):
        with pytest.raises(Forbidden):
            await side.ask(side.door, caller, method, *args)
    assert side.cluster.engine.jobs == {}


async def test_a_role_is_asked_by_the_master_again(side: Side) -> None:
    await side.start()
    looks = anna(Role.READ)
    assert await side.ask(side.door, looks, "QueryJobs", None, ["id"]) == []
    for method, args in (
        ("SubmitJob", [[ADD]]),
        ("SetDrainFlag", [True]),
        ("CancelJob", [1]),
        ("DrawTicket", ["web"]),
        ("ConnectInstance", ["web"]),
    ):
        with pytest.raises(Forbidden, match="anna by rapi has the role read"):
            await side.ask(side.door, looks, method, *args)
    assert not side.cluster.engine.queue.draining


async def test_no_door_gives_more_than_it_may(side: Side) -> None:
    await side.start()
    ask = {"OP_ID": "OP_CLUSTER_RENEW_CRYPTO"}
    with pytest.raises(Forbidden, match="anna by rapi has the role write"):
        await side.ask(side.door, anna(Role.ROOT), "SubmitJob", [ask])


async def test_who_may_start_a_guest_has_it_boot_no_file_of_roots(side: Side) -> None:
    """The node's root opens it, and a console shows it."""
    await side.start()
    start = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web"}
    asked = [start | {"hvparams": {"kernel_path": "/etc/shadow"}}]
    with pytest.raises(Forbidden, match=r"may not set .*kernel_path"):
        await side.ask(side.door, anna(Role.OPERATE), "SubmitJob", asked)
    assert await side.ask(side.door, anna(Role.OPERATE), "SubmitJob", [start])


async def test_jobs_that_are_refused_to_some_are_not_queued_for_the_others(
    side: Side,
) -> None:
    await side.start()
    (answer,) = await side.ask(side.door, anna(Role.OPERATE), "SubmitManyJobs", [[ADD]])
    assert answer[0] is False
    assert "takes write" in str(answer[1])


async def test_on_the_masters_own_socket_nobody_asks_for_somebody_else(
    side: Side,
) -> None:
    await side.start()
    with pytest.raises(Forbidden, match="not for somebody else"):
        await side.ask(side.own, anna(Role.KNOWN), "SubmitJob", [ADD])
    number = await side.ask(side.own, None, "SubmitJob", [ADD])
    assert (await side.cluster.finished(number)).caller.door == "luxi"


async def test_the_socket_of_a_door_is_of_its_user_alone(side: Side) -> None:
    side.believed = Believed(os.geteuid() + 1)
    await side.start()
    with pytest.raises(MoorageError, match="is not the user of this socket"):
        await side.ask(side.door, anna(), "QueryJobs", None, ["id"])


async def test_sockets_can_be_reached_by_their_user_alone(side: Side) -> None:
    await side.start()
    for path in (side.own, side.door):
        assert path.stat().st_mode & 0o777 == 0o600
    assert side.server
    await side.server.stop()
    assert not side.own.exists()
    assert not side.door.exists()


async def test_a_user_of_a_door_has_so_many_jobs_at_a_time(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deeds, "MOST_JOBS", 3)
    await side.start()
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 1.5}
    jobs = [[delay]] * 5
    found = await side.ask(side.door, anna(), "SubmitManyJobs", jobs)
    assert [taken for taken, _ in found] == [True] * 3 + [False] * 2
    assert "anna by rapi has 3 jobs that have not ended" in str(found[-1])
    bert = {**anna(), "name": "bert"}
    last = await side.ask(side.door, bert, "SubmitJob", [delay])
    await side.cluster.finished(last)
    assert await side.ask(side.door, anna(), "SubmitJob", [ADD])


async def test_a_client_that_is_closed_hangs_up_after_the_last_answer(
    tmp_path: Path,
) -> None:
    hung_up = asyncio.Event()

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(luxi_messages.END)
        luxi.close()
        writer.write(luxi_messages.encode_result(7))
        if not await reader.read():
            hung_up.set()
        writer.close()

    luxi = AsyncLuxi(tmp_path / "luxi")
    async with await asyncio.start_unix_server(answer, luxi.path):
        assert await luxi.call("anything") == 7
        async with asyncio.timeout(10):
            await hung_up.wait()
