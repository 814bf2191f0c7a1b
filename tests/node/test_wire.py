# SPDX-License-Identifier: BSD-2-Clause
"""The wire between master and agent: silence, lateness, and peers that mean harm."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web
from msgspec import convert, json
from msgspec.structs import replace

from moorage.errors import Failed, NotFound, Stale, Unreachable, may_be_off
from moorage.model import Disk
from moorage.node import server, wire
from moorage.node.calling import answers
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.doors import listening
from moorage.node.doors.doorkeeper import Limits
from moorage.protocol import (
    Call,
    CreateDisk,
    GetFacts,
    ListGuests,
    RebootGuest,
    UnmakeDisk,
    Verb,
    answer_of,
    declared,
)
from moorage.storage import Outcome
from moorage.units import Mib

pytestmark = pytest.mark.memory

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
END = {"result": "changed"}


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=2, silence=3)
    yield found
    await found.close()


def lines(*values: Any) -> bytes:
    return b"".join(json.encode(one) + b"\n" for one in values)


@asynccontextmanager
async def answering(served: Any, *pieces: bytes) -> AsyncIterator[None]:
    """Answer in the agent's place, with its keys; then say no more."""
    await served.stop()
    over = asyncio.Event()

    async def meet(reader: Any, writer: Any) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            await over.wait()
        writer.close()

    context = tls.serving(served.keys)
    other = await asyncio.start_server(meet, "127.0.0.1", served.port, ssl=context)
    try:
        yield
    finally:
        over.set()
        other.close()
        await other.wait_closed()


async def told(nodes: HttpNodes, served: Any, verb: str = "disk.create") -> Any:
    notes: list[Any] = []
    args = {"disk": disk()} if verb.startswith("disk.") else {"uuid": "u"}
    call: Verb[object] = convert({"verb": verb, **args}, Call)
    result = await nodes.call(served.node, call, 1, lambda *one: notes.append(one))
    return result, notes


async def unreachable(nodes: HttpNodes, served: Any, verb: str) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        await told(nodes, served, verb)
    assert "node1" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.facts["sent"] is True
    return caught.value


def disk() -> Disk:
    return Disk(
        uuid="d",
        name="d",
        dev_type="ext",
        logical_id=("san", "vol-d"),
        params={"provider": "san"},
        size=Mib(64),
    )


# -- silence -------------------------------------------------------------------------


async def test_a_node_that_falls_silent_in_a_verb_is_given_up(
    served: Any, nodes: HttpNodes
) -> None:
    """A machine without power sends no end of the connection either."""
    alive = lines({"alive": True}, {"progress": [1, 2, "MiB", "x"]}, {"alive": True})
    async with answering(served, HEAD + b"\r\n" + alive):
        error = await unreachable(nodes, served, "disk.create")
    assert error.facts["cause"] == "it has fallen silent"
    assert may_be_off(error)


@asynccontextmanager
async def working(served: Any) -> AsyncIterator[tuple[asyncio.Event, asyncio.Event]]:
    """Work in the agent's place, and say so; yield when it begins, and may end."""
    await served.stop()
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        name = "node1"

        def speaker(self, *_: Any) -> frozenset[str]:
            return frozenset()

        def hear(self, *_: Any) -> None:
            """Take every master for the one that leads."""

        async def handle(self, *_: Any, **__: Any) -> str:
            begun.set()
            await go_on.wait()
            return "changed"

        async def close(self) -> None:
            """End nothing: no line to a guest is open."""

    app = server.application(Slow(), beat=0.05)  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    context = tls.serving(served.keys)
    await listening.listen(runner, "127.0.0.1", served.port, context, Limits())
    try:
        yield begun, go_on
    finally:
        go_on.set()
        await runner.cleanup()


async def test_a_verb_may_last_as_long_as_its_agent_lives(
    served: Any, authority: Authority
) -> None:
    nodes = HttpNodes(authority, silence=1)
    async with working(served) as (begun, go_on):
        call = asyncio.create_task(told(nodes, served))
        await asyncio.wait_for(begun.wait(), 60)
        done, _ = await asyncio.wait({call}, timeout=2.5)
        assert not done
        go_on.set()
        assert await call == (Outcome.CHANGED, [])
        await nodes.close()


@pytest.mark.parametrize("many", [False, True])
async def test_a_node_that_works_for_too_long_has_power(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch, *, many: bool
) -> None:
    """It may run any guest: nobody is advised to take it for one that is off."""
    calls = [ListGuests()] * 2 if many else [ListGuests()]
    assert await nodes.ask(served.node, calls, 1) == [[]] * len(calls)
    monkeypatch.setattr(ListGuests, "limit", 2.0)
    async with working(served):
        for found in await nodes.ask(served.node, calls, 1):
            assert isinstance(found, Unreachable)
            assert found.facts["cause"] == "its agent works on it still"
            assert found.facts["sent"] is True
            assert not may_be_off(found)


async def test_an_agent_that_ends_in_an_answer_is_told_in_words(
    served: Any, nodes: HttpNodes
) -> None:
    """What the library for HTTP calls it is no operator's word."""
    await served.stop()

    async def end(reader: Any, writer: Any) -> None:
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            alive = lines({"alive": True})
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(head + f"{len(alive):x}\r\n".encode() + alive + b"\r\n")
            await writer.drain()
        writer.close()

    context = tls.serving(served.keys)
    other = await asyncio.start_server(end, "127.0.0.1", served.port, ssl=context)
    async with other:
        error = await unreachable(nodes, served, "disk.create")
    assert error.facts["cause"] == "its agent ended in the middle of an answer"


def test_a_sign_of_life_may_be_lost() -> None:
    assert 3 * wire.BEAT <= wire.SILENCE <= 60


async def test_both_ends_notice_a_dead_connection() -> None:
    """Accepted connections inherit what the listening socket was told."""
    bound = listening._bound("127.0.0.1", 0)
    with bound, wire.steady(socket.socket()) as asking:
        asking.connect(bound.getsockname())
        bound.setblocking(True)
        accepted, _ = bound.accept()
        with accepted:
            for one in (asking, accepted):
                tcp = socket.IPPROTO_TCP
                assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert one.getsockopt(tcp, socket.TCP_KEEPIDLE) == 10
                assert one.getsockopt(tcp, socket.TCP_USER_TIMEOUT) == 30000


async def test_the_client_asks_with_such_connections(
    served: Any, nodes: HttpNodes
) -> None:
    await told(nodes, served, "facts")
    connector = nodes.exchange._open().connector
    (found,) = (one for many in connector._conns.values() for one, _ in many)
    sock = found.transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


# -- lateness ------------------------------------------------------------------------


@asynccontextmanager
async def holding(served: Any) -> AsyncIterator[Any]:
    """Stand between master and agent, and hold back what the master says.

    Yields the port; events that ask for it, tell of it and end it.
    """
    hold, held, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    pumps: list[asyncio.Task[None]] = []
    writers: list[Any] = []

    async def pump(reader: Any, writer: Any, *, waits: bool) -> None:
        while data := await reader.read(65536):
            if waits and hold.is_set():
                held.set()
                await go_on.wait()
            writer.write(data)
            await writer.drain()

    async def meet(reader: Any, writer: Any) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", served.port)
        writers.extend((writer, back))
        pumps.append(asyncio.create_task(pump(reader, back, waits=True)))
        pumps.append(asyncio.create_task(pump(there, writer, waits=False)))

    proxy = await asyncio.start_server(meet, "127.0.0.1", 0)
    try:
        yield proxy.sockets[0].getsockname()[1], hold, held, go_on
    finally:
        proxy.close()
        for one in pumps:
            one.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for one in writers:
            one.close()
            with suppress(ConnectionError):
                await one.wait_closed()


async def test_a_create_that_arrives_behind_its_undo_makes_nothing(
    served: Any, nodes: HttpNodes
) -> None:
    create, undo = CreateDisk(disk=disk()), UnmakeDisk(disk=disk())
    async with holding(served) as (port, hold, held, go_on):
        behind = replace(served.node, port=port)
        await nodes.call(behind, GetFacts(), 1, lambda *_: None)  # it is connected
        hold.set()
        late = asyncio.create_task(nodes.call(behind, create, 1, lambda *_: None))
        await held.wait()
        await nodes.call(served.node, undo, 1, lambda *_: None)
        go_on.set()
        with pytest.raises(Stale, match="is too late: request"):
            await late
    assert served.machine.ran == []


async def test_a_master_whose_term_is_over_says_so(
    served: Any, nodes: HttpNodes
) -> None:
    await nodes.call(served.node, GetFacts(), 5, lambda *_: None)
    with pytest.raises(Stale) as caught:
        await nodes.call(served.node, GetFacts(), 4, lambda *_: None)
    assert caught.value.message == (
        "node node1 refuses this master: a master of term 5 has spoken: term 4 is over"
    )
    assert caught.value.hint == "gnt-cluster verify"  # one node stops no master


# -- harm ----------------------------------------------------------------------------


async def test_nothing_is_followed(served: Any, nodes: HttpNodes) -> None:
    asked = asyncio.Event()
    elsewhere = await asyncio.start_server(lambda *_: asked.set(), "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    head = f"HTTP/1.1 307 Look there\r\nLocation: http://127.0.0.1:{port}/\r\n"
    async with answering(served, head.encode() + b"Content-Length: 0\r\n\r\n"):
        error = await unreachable(nodes, served, "disk.create")
    elsewhere.close()
    assert "HTTP 307" in error.message
    assert not asked.is_set()
    assert not may_be_off(error)


async def test_nothing_is_unpacked(served: Any, nodes: HttpNodes) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n"
    async with answering(served, HEAD + head.encode() + bomb):
        await unreachable(nodes, served, "facts")
    await served.start()
    small = gzip.compress(lines(END))
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(small)}\r\n\r\n"
    async with answering(served, HEAD + head.encode() + small):
        await unreachable(nodes, served, "disk.create")  # whatever is in it


async def test_a_line_has_an_end(served: Any, nodes: HttpNodes) -> None:
    """Of each verb where its answers can have one."""
    for verb, size in (
        ("disk.create", 1),
        ("facts", 4),
        ("guests", 4),
        ("providers", 16),
    ):
        pieces = [b"x" * 100_000] * (11 * size)
        async with answering(served, HEAD + b"\r\n", *pieces):
            error = await unreachable(nodes, served, verb)
        assert f"a line is longer than {size} MiB" in error.message
        await served.start()


async def test_an_answer_has_an_end(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST", 1 << 20)
    alive = lines(*[{"alive": True}] * 1000)
    async with answering(served, HEAD + b"\r\n", *[alive] * 100):
        error = await unreachable(nodes, served, "disk.create")
    assert "it is longer than 1 MiB" in error.message


async def test_an_error_is_short_and_of_a_known_kind(
    served: Any, nodes: HttpNodes
) -> None:
    long, many = "x" * 100_000, {"k": ["x" * 1000] * 100}
    error = {"code": "error", "message": long, "hint": long, "facts": many}
    async with answering(served, HEAD + b"\r\n" + lines({"error": error})):
        with pytest.raises(Failed) as caught:
            await told(nodes, served)
    assert len(caught.value.message) == 20_000
    assert len(caught.value.hint) < 600
    assert caught.value.facts == {}


async def test_the_log_of_a_job_has_an_end(served: Any, nodes: HttpNodes) -> None:
    flood = [{"progress": [0, 0, "log", "x" * 5000]}] * 5000
    async with answering(served, HEAD + b"\r\n" + lines(*flood, END)):
        _, notes = await told(nodes, served)
    assert len(notes) == 1000
    assert {len(note[3]) for note in notes} == {2000}


EVIL = "\x1b]52;c;xx\x07\x1b[2J\r\x9b\u202e"
SPELLED = r"\x1b]52;c;xx\x07\x1b[2J\x0d\x9b\u202e"


async def test_a_terminal_obeys_no_node(served: Any, nodes: HttpNodes) -> None:
    error = {"code": "failed", "message": EVIL + "\n", "hint": EVIL}
    error["facts"] = {EVIL: [EVIL]}  # type: ignore[assignment]
    note = {"progress": [0, 0, "log", EVIL]}
    async with answering(served, HEAD + b"\r\n" + lines(note, {"error": error})):
        notes: list[Any] = []
        call = CreateDisk(disk=disk())
        with pytest.raises(Failed) as caught:
            await nodes.call(served.node, call, 1, lambda *one: notes.append(one))
    assert notes == [(0, 0, "log", SPELLED)]
    assert caught.value.message == SPELLED + "\n"
    assert caught.value.hint == f"node node1 suggests: {SPELLED}"
    assert caught.value.facts == {SPELLED: [SPELLED]}


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("facts", {"result": {"version": 5}}),
        ("facts", {"result": None}),
        ("facts", {"error": {"facts": 5}}),
        ("facts", {"error": {"code": 1, "message": "x"}}),
        ("facts", {"error": "x"}),
        ("facts", {"progress": "x"}),
        ("facts", {"progress": [1, 2, 3, 4]}),
        ("facts", {}),
        ("facts", {"result": {"version": "1", "guests": [{"uuid": 7}]}}),
        ("guests", {"result": {}}),
        ("guest", {"result": []}),
        ("providers", {"result": [None]}),
        ("oses", {"result": "x"}),
        ("disk.attach", {"result": "/dev/x"}),
        ("migration.prepare", {"result": ["exec:rm"]}),
        ("migration.prepare", {"result": "exec:rm"}),
        ("migration.prepare", {"result": {"port": "exec:rm"}}),
        ("migration.prepare", {"result": {"port": 0}}),
        ("migration.prepare", {"result": {"port": 70000}}),
        ("migration.prepare", {"result": {"port": 8102, "key": "exec:rm"}}),
        ("migration.prepare", {"result": {"port": 8102, "key": "a" * 64 + "\n"}}),
    ],
)
async def test_an_answer_that_does_not_fit_names_its_node(
    served: Any, nodes: HttpNodes, verb: str, line: Any
) -> None:
    async with answering(served, HEAD + b"\r\n" + lines(line)):
        error = await unreachable(nodes, served, verb)
    assert "does not answer as an agent does" in error.message
    assert not may_be_off(error)


async def test_a_node_cannot_say_that_nobody_is_there(
    served: Any, nodes: HttpNodes
) -> None:
    error = {"code": "unreachable", "message": "x", "facts": {"sent": False}}
    async with answering(served, HEAD + b"\r\n" + lines({"error": error})):
        with pytest.raises(Failed) as caught:
            await nodes.call(served.node, GetFacts(), 1, lambda *_: None)
    assert not isinstance(caught.value, Unreachable)
    assert not may_be_off(caught.value)


def test_every_verb_says_what_its_answer_looks_like() -> None:
    for verb in declared():
        assert answer_of(verb) is not Any


async def test_a_copied_store_does_not_speak_beside_the_original(
    served: Any, nodes: HttpNodes, authority: Authority
) -> None:
    copy = HttpNodes(authority, connect=2, silence=3)
    silent = lambda *_: None  # noqa: E731
    try:
        for _ in range(2):
            await nodes.call(served.node, GetFacts(), 7, silent)
        with pytest.raises(Stale, match="another master of term 7 has spoken"):
            await copy.call(served.node, GetFacts(), 7, silent)
        await copy.call(served.node, GetFacts(), 8, silent)
        with pytest.raises(Stale, match="term"):
            await nodes.call(served.node, GetFacts(), 8, silent)
        with pytest.raises(Stale, match="term 8 has spoken"):
            await nodes.call(served.node, GetFacts(), 7, silent)
    finally:
        await copy.close()


async def test_nesting_has_an_end(served: Any, nodes: HttpNodes) -> None:
    nested = b'{"result": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"
    async with answering(served, HEAD + b"\r\n" + nested):
        await unreachable(nodes, served, "facts")


async def test_a_request_without_a_number_is_served(
    served: Any, nodes: HttpNodes
) -> None:
    """It is a person's, or an older master's."""
    with pytest.raises(NotFound):
        await nodes.call(
            served.node, RebootGuest(uuid="u", hypervisor="xen"), 1, lambda *_: None
        )
    await told(nodes, served)
