# SPDX-License-Identifier: BSD-2-Clause
"""The master's side of LUXI, over a real socket, with the client that commands use."""

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage import __version__
from moorage.api import luxi_socket
from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.api.luxi_messages import END, VERSION, encode_request
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.errors import BadInput, Failed, NotFound, WrongState
from moorage.model import audit
from moorage.node.lines import StreamLine
from moorage.testing.cluster import ClusterBuilder, SimCluster


class Side:
    """A master with a socket, and blocking clients in threads."""

    def __init__(self, sim: SimCluster, path: Path) -> None:
        self.sim = sim
        self.path = path
        self.sources = Sources(sim.config_store, sim.nodes, sim.engine)
        self.server = LuxiServer(self.sources, path, longest=100_000)

    async def call(self, method: str, *args):
        def ask():
            with LuxiClient(str(self.path)) as client:
                return client.call(method, *args)

        return await asyncio.to_thread(ask)

    async def raw(self, data: bytes) -> list[dict]:
        """Send bytes, end the sending side, and return all answers."""
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        writer.write(data)
        writer.write_eof()
        answers = await reader.read()
        writer.close()
        await writer.wait_closed()
        return [json.loads(one) for one in answers.split(END) if one]


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Side]:
    builder = ClusterBuilder().disk("data1").instance("web1", tags=("b", "a"))
    sim = await SimCluster.start(tmp_path / "sim", builder)
    side = Side(sim, tmp_path / "luxi")
    await side.server.start()
    yield side
    await side.server.stop()
    await sim.stop()


ATTACH = {"OP_ID": "OP_DISK_ATTACH", "disk": "data1", "instance_name": "web1"}


async def ended(side: Side, job: int) -> list:
    """Follow a job as a client does; return everything that was seen."""
    seen, serial, steps = None, None, []
    while not steps or steps[-1][0][0] not in ("success", "error", "canceled"):
        change = await side.call("WaitForJobChange", job, ["status"], seen, serial, 5)
        seen, entries = change
        serial = entries[-1][0] if entries else serial
        steps.append(change)
    return steps


# -- jobs --------------------------------------------------------------------------


async def test_a_job_is_submitted_followed_and_shown(side):
    job = await side.call("SubmitJob", [ATTACH])
    steps = await ended(side, job)
    assert steps[-1][0] == ["success"]
    fields = ["id", "status", "opstatus", "tasks"]
    ((number, status, states, tasks),) = await side.call("QueryJobs", [job], fields)
    assert (number, status, states) == (job, "success", ["success"])
    assert [task["state"] for task in tasks[0]] == ["done"]


async def test_a_refused_job_carries_its_error(side):
    op = {"OP_ID": "OP_DISK_DETACH", "disk": "data1"}
    job = await side.call("SubmitJob", [op])
    assert (await ended(side, job))[-1][0] == ["error"]
    (((name, args, details),),) = (await side.call("QueryJobs", [job], ["opresult"]))[0]
    assert name == "OpPrereqError"
    assert args == [details["message"], "wrong_state"]


@pytest.mark.parametrize(
    "ops",
    [
        [],
        [{"OP_ID": "OP_NO_SUCH"}],
        [{"OP_ID": "OP_DISK_ADD", "size": "large"}],
        [ATTACH | {"priority": 99}],
        [ATTACH | {"depends": [[17, ["success"]]]}],
        [ATTACH | {"depends": 5}],
        ["text"],
        "text",
        None,
    ],
)
async def test_what_is_no_job_is_refused_and_nothing_is_queued(side, ops):
    with pytest.raises(BadInput):
        await side.call("SubmitJob", ops)
    assert side.sim.engine.jobs == {}


async def test_many_jobs_may_depend_on_each_other(side):
    detach = {"OP_ID": "OP_DISK_DETACH", "disk": "data1", "depends": [[-1, []]]}
    answers = await side.call("SubmitManyJobs", [[ATTACH], [detach], [{"OP_ID": "x"}]])
    assert [taken for taken, _ in answers] == [True, True, False]
    assert answers[2][1][0] == "OpPrereqError"
    assert (await ended(side, answers[1][1]))[-1][0] == ["success"]
    assert side.sim.config.owner(side.sim.config.disk("data1")) is None


async def test_waiting_ends_with_nochange(side):
    side.sim.nodes.hold = asyncio.Event()
    job = await side.call("SubmitJob", [ATTACH])
    seen, entries = await side.call("WaitForJobChange", job, ["status"], None, None, 5)
    assert entries == []
    again = await side.call("WaitForJobChange", job, ["status"], ["queued"], None, 1)
    seen = again[0] if again != NOCHANGE else seen
    wait = ("WaitForJobChange", job, ["status"], seen, None)
    assert await side.call(*wait, 0.05) == NOCHANGE
    waiting = asyncio.create_task(side.call(*wait, 30))
    await asyncio.sleep(0.05)
    side.sim.nodes.hold.set()
    assert (await waiting)[0] != seen
    await ended(side, job)


async def test_a_finished_job_is_not_waited_for(side):
    job = await side.call("SubmitJob", [ATTACH])
    seen = (await ended(side, job))[-1][0]
    wait = ("WaitForJobChange", job, ["status"], seen, None, 80)
    assert (await side.call(*wait))[0] == ["success"]


async def test_unknown_jobs(side):
    assert await side.call("WaitForJobChange", 9, ["status"], None, None, 80) is None
    assert await side.call("QueryJobs", [9], ["id"]) == [None]
    with pytest.raises(NotFound, match="job 9"):
        await side.call("CancelJob", 9)
    with pytest.raises(BadInput, match="nosuch"):
        await side.call("QueryJobs", None, ["nosuch"])


async def test_a_waiting_job_is_cancelled(side):
    side.sim.nodes.hold = asyncio.Event()
    first = await side.call("SubmitJob", [ATTACH])
    second = await side.call("SubmitJob", [ATTACH])
    done, message = await side.call("CancelJob", second)
    assert done
    assert str(second) in message
    assert await side.call("ChangeJobPriority", second, 5) == [
        False,
        f"Job {second} has ended",
    ]
    assert (await side.call("ChangeJobPriority", first, -10))[0]
    with pytest.raises(BadInput, match="from -20 to 19"):
        await side.call("ChangeJobPriority", first, 40)
    side.sim.nodes.hold.set()
    await ended(side, first)


async def test_finished_jobs_are_archived(side):
    job = await side.call("SubmitJob", [ATTACH])
    await ended(side, job)
    await side.sim.engine.finished(job)
    assert await side.call("AutoArchiveJobs", 10**12, 5) == [0, 0]
    assert await side.call("ArchiveJob", job)
    assert await side.call("AutoArchiveJobs", -1, 5) == [0, 0]
    assert await side.call("QueryJobs", None, ["id"]) == []


async def test_a_drained_queue_takes_no_jobs(side):
    assert await side.call("SetDrainFlag", True)
    with pytest.raises(WrongState, match="drained"):
        await side.call("SubmitJob", [ATTACH])
    assert await side.call("QueryConfigValues", ["drain_flag"]) == [True]
    assert await side.call("SubmitJobToDrainedQueue", [ATTACH])
    assert await side.call("QueryConfigValues", ["drain_flag"]) == [True]


# -- queries -----------------------------------------------------------------------


async def test_queries(side):
    answer = await side.call("Query", "instance", ["name", "status"], None)
    assert answer["data"] == [[[0, "web1"], [0, "ADMIN_down"]]]
    assert await side.call("QueryInstances", ["web1"], ["pnode"], False) == [["node1"]]
    assert await side.call("QueryGroups", [], ["name"]) == [["default"]]
    assert len(await side.call("QueryNodes", [], ["name"])) == 3
    assert (await side.call("QueryFields", "disk", ["size"]))["fields"][0][
        "kind"
    ] == "unit"
    assert await side.call("QueryTags", "instance", "web1") == ["a", "b"]
    assert await side.call("QueryTags", "cluster") == []
    with pytest.raises(BadInput, match="no tags"):
        await side.call("QueryTags", "cheese", "x")


async def test_cluster_info(side):
    info = await side.call("QueryClusterInfo")
    assert (info["name"], info["master"]) == ("test", "node1")
    assert info["config_version"] == VERSION
    names = ["cluster_name", "master_node"]
    assert await side.call("QueryConfigValues", names) == ["test", "node1"]
    with pytest.raises(BadInput, match="cheese"):
        await side.call("QueryConfigValues", ["cheese"])


# -- the socket --------------------------------------------------------------------


async def test_only_the_owner_may_use_the_socket(side):
    mode = side.path.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"args": []}', "method"),
        (b'{"method": "Cheese", "args": []}', "no method 'Cheese'"),
        (b'{"method": "Query", "args": []}', "Query"),
        (b'{"method": "Query", "args": [1, 2, 3, 4, 5]}', "at most 3 arguments"),
        (b'{"method": "ArchiveJob", "args": ["x"]}', "ArchiveJob"),
        (b'{"method": "QueryTags", "args": [], "version": 2}', "LUXI 2"),
        (b"[" * 50_000, "nested too deep"),
        (b"\xff\xfe", "not JSON"),
        (b'{"method": "ArchiveJob", "args": ["\\ud800"]}', "is no text"),
        (b'{"method": "\\udfff", "args": []}', "is no text"),
        (b'{"method": "Query", "args": [{"\\ud800": 1}]}', "is no text"),
        (b'{"method": "ArchiveJob", "args": ["\xed\xa0\x80"]}', "not JSON"),
    ],
)
async def test_malformed_frames_get_one_clear_error_each(side, frame, words):
    good = b'{"method": "QueryTags", "args": ["cluster"]}'
    first, second = await side.raw(frame + END + good + END)
    assert not first["success"]
    name, (message, code), *_ = first["result"]
    assert (name, code) == ("OpPrereqError", "wrong_input")
    assert words in message
    assert (second["success"], second["result"]) == (True, [])
    assert (second["version"], second["software"]) == (VERSION, __version__)


async def test_a_message_without_an_end_is_refused(side):
    (answer,) = await side.raw(b"x" * 200_000)
    assert "more than 100000 bytes" in answer["result"][1][0]
    (answer,) = await side.raw(b"half")
    assert "middle of a request" in answer["result"][1][0]


async def test_several_clients_at_once(side):
    side.sim.nodes.hold = asyncio.Event()
    job = await side.call("SubmitJob", [ATTACH])
    waiting = [
        asyncio.create_task(
            side.call("WaitForJobChange", job, ["status"], ["waiting"], None, 30)
        )
        for _ in range(5)
    ]
    assert (await side.call("QueryTags", "cluster")) == []
    side.sim.nodes.hold.set()
    answers = await asyncio.gather(*waiting)
    assert all(answer[0] != ["waiting"] for answer in answers)
    await ended(side, job)


async def test_a_client_that_goes_away_costs_nothing(side):
    side.sim.nodes.hold = asyncio.Event()
    job = await side.call("SubmitJob", [ATTACH])
    await side.call("WaitForJobChange", job, ["status"], ["queued"], None, 5)
    request = {
        "method": "WaitForJobChange",
        "args": [job, ["status"], ["waiting"], None, 80],
    }
    gone = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    gone.connect(str(side.path))
    gone.sendall(json.dumps(request).encode() + END)
    await until(lambda: side.server._under_way)
    gone.close()
    await until(lambda: not side.server._under_way and not side.server._clients)
    side.sim.nodes.hold.set()
    await ended(side, job)


async def until(claim) -> None:
    """Give the loop turns until a claim holds."""
    async with asyncio.timeout(120):
        while not claim():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_one_socket_has_one_master(side, tmp_path):
    other = LuxiServer(side.sources, side.path)
    with pytest.raises(WrongState, match="another master"):
        await other.start()
    far = LuxiServer(side.sources, tmp_path / ("x" * 120))
    with pytest.raises(Failed, match="cannot be made"):
        await far.start()


async def test_a_socket_that_a_dead_master_left_is_replaced(side, tmp_path):
    left = tmp_path / "left"
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(left))
    dead.close()
    server = LuxiServer(side.sources, left)
    await server.start()
    await server.stop()
    assert not left.exists()


async def test_defects_of_ours_are_told_in_a_sentence(side, caplog):
    side.sim.engine.jobs[1] = None
    with pytest.raises(Failed, match="internal error"):
        await side.call("QueryJobs", None, ["id", "status"])
    del side.sim.engine.jobs[1]
    assert "broke" in caplog.text


# -- many at once ------------------------------------------------------------------


def memory() -> int:
    """Return the MiB of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) // 256


async def test_all_requests_together_have_an_end(side, tmp_path):
    """Long requests of many give way, and who asks for little is served meanwhile."""
    server = LuxiServer(side.sources, tmp_path / "small", longest=8 << 20, most=8 << 20)
    await server.start()
    begun, links = memory(), []
    for _ in range(30):
        link = await asyncio.open_unix_connection(str(server.path))
        links.append(link)
        link[1].write(b"x" * (6 << 20))
        with contextlib.suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(link[1].drain(), 1)
    assert memory() - begun < 60
    with LuxiClient(str(server.path)) as client:
        assert await asyncio.to_thread(client.call, "QueryTags", "instance", "web1")
    told = json.loads((await links[0][0].readuntil(END))[:-1])
    assert "send it again, or in parts" in f"{told['result']}"
    for _, writer in links:
        writer.close()
    await asyncio.gather(*(w.wait_closed() for _, w in links), return_exceptions=True)
    await server.stop()


async def test_who_sends_too_much_is_told_so_by_the_command(side, tmp_path):
    server = LuxiServer(side.sources, tmp_path / "small", longest=8 << 20, most=1 << 20)
    await server.start()
    with LuxiClient(str(server.path)) as client:
        much = [{"OP_ID": "x" * (4 << 20)}]
        with pytest.raises(WrongState, match="together, more than it takes at a time"):
            await asyncio.to_thread(client.call, "SubmitJob", much)
    with LuxiClient(str(server.path)) as client:
        assert await asyncio.to_thread(client.call, "QueryTags", "instance", "web1")
    await server.stop()


async def test_the_log_says_who_was_at_a_guest(side, caplog):
    caplog.set_level("INFO")
    near, far = socket.socketpair()

    async def lines(*_):
        return await StreamLine.over(near)

    await side.sim.run("OP_INSTANCE_STARTUP", instance_name="web1")
    sim = side.sim
    side.server.sources = Sources(sim.config_store, sim.nodes, sim.engine, lines=lines)

    def told():
        always = (one for one in caplog.records if hasattr(one, "always"))
        return [one.getMessage() for one in always if one.name != "moorage.audit"]

    with LuxiClient(str(side.path)) as client, far:
        _, link, _ = await asyncio.to_thread(client.line, "web1")
        link.close()
        await asyncio.to_thread(far.recv, 1)
        await until(lambda: len(told()) == 2)
    opened = audit.decoded((await sim.config_store.audited(0))[-1])
    assert (opened.what, opened.about) == ("console", "web1 on node1")
    me = f"uid {os.getuid()}, pid {os.getpid()}"
    assert told() == [
        f"the console of web1 on node1 is opened by {me}",
        f"the console of web1 on node1 is closed after 0 s: it was opened by {me}",
    ]


async def test_who_hangs_up_while_a_console_opens_does_not_keep_it(side):
    near, far = socket.socketpair()
    opening, gone = asyncio.Event(), asyncio.Event()

    async def lines(*_):
        opening.set()
        await gone.wait()
        return await StreamLine.over(near)

    await side.sim.run("OP_INSTANCE_STARTUP", instance_name="web1")
    sim = side.sim
    side.server.sources = Sources(sim.config_store, sim.nodes, sim.engine, lines=lines)
    _, writer = await asyncio.open_unix_connection(side.path)
    writer.write(encode_request("ConnectInstance", ("web1", "serial", "")))
    await opening.wait()
    writer.close()
    gone.set()
    with far:
        far.settimeout(60)
        assert await asyncio.to_thread(far.recv, 1) == b""


async def test_requests_that_wait_for_an_answer_count_with_the_others(side, tmp_path):
    """Their clients wait for a job that goes on for long, and each sent much."""
    side.sim.nodes.hold = asyncio.Event()
    job = await side.call("SubmitJob", [ATTACH])
    server = LuxiServer(side.sources, tmp_path / "w", longest=1 << 20, most=3 << 20)
    await server.start()
    wait = {"method": "WaitForJobChange", "args": [job, ["status"], ["waiting"]]}
    request = json.dumps(wait | {"more": "x" * 1_000_000}).encode() + END
    links = []
    try:
        for _ in range(5):
            links.append(await asyncio.open_unix_connection(str(tmp_path / "w")))
            links[-1][1].write(request)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(5):
            refused = await links[-1][0].readuntil(END)
        assert b"more than it takes at a time" in refused
    finally:
        side.sim.nodes.hold.set()
        for _, writer in links:
            writer.close()
        await server.stop()


# -- Ganeti's clients --------------------------------------------------------------


def asks(method, *args, **more):
    return json.dumps({"method": method, "args": args, **more}).encode() + END


@pytest.mark.parametrize("sent", [{"version": 3_000_000}, {"version": 3_010_000}, {}])
async def test_ganetis_clients_see_the_version_that_they_sent(side, sent):
    (answer,) = await side.raw(asks("QueryTags", "cluster", "", **sent))
    assert answer["success"]
    assert answer["version"] == sent.get("version", VERSION)


@pytest.mark.parametrize("version", [2_160_000, 3_020_000, "3", None, [3]])
async def test_others_are_refused(side, version):
    (answer,) = await side.raw(asks("QueryTags", "cluster", "", version=version))
    assert not answer["success"]
    assert "upgrade" in answer["result"][1][0]


async def test_ganetis_clients_get_refusals_of_two_elements(side):
    ask = asks("QueryInstances", ["absent"], ["name"], False, version=3_000_000)
    (answer,) = await side.raw(ask)
    name, (message, code) = answer["result"]
    assert (name, code) == ("OpPrereqError", "unknown_entity")
    assert "absent" in message
    op = {"OP_ID": "OP_DISK_ATTACH", "disk": "absent", "instance_name": "web1"}
    number = await side.call("SubmitJob", [op])
    await side.sim.finished(number)
    (rows,) = await side.raw(asks("QueryJobs", [number], ["opresult"]))
    assert [len(one) for one in rows["result"][0][0]] == [2]
    (ours,) = await side.call("QueryJobs", [number], ["opresult"])
    assert len(ours[0][0]) == 3


async def test_ganetis_clients_are_told_in_a_sentence_why_a_job_is_not_taken(side):
    (answer,) = await side.raw(asks("SubmitManyJobs", [[{"OP_ID": "OP_CHEESE"}]]))
    ((taken, why),) = answer["result"]
    assert not taken
    assert "OP_CHEESE" in why


async def test_a_client_of_ours_after_one_of_ganetis_is_told_all(side):
    await side.raw(asks("QueryTags", "node", "absent"))
    with pytest.raises(NotFound, match="absent"):
        await side.call("QueryTags", "node", "absent")


async def test_a_client_that_reads_nothing_does_not_keep_a_master_from_its_end(
    tmp_path, monkeypatch
):
    """A command that was stopped by Ctrl-Z, or whose pager waits."""
    monkeypatch.setattr(luxi_socket, "_FAREWELL", 0.1)
    server = LuxiServer(None, tmp_path / "luxi")
    await server.start()
    _, writer = await asyncio.open_unix_connection(str(server.path))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            while True:
                writer.write(encode_request("QueryTags", ["cluster", "x" * 1000]) * 100)
                await writer.drain()
    async with asyncio.timeout(10):
        await server.stop()
    writer.transport.abort()
