# SPDX-License-Identifier: BSD-2-Clause
"""The master's way to the agents: who is down, who died in the middle, and why."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage.errors import BadInput, Unreachable
from moorage.model import Disk
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.protocol import EnrolNode, FindConsole, GetFacts, UnmakeDisk, silent
from moorage.storage import Outcome
from moorage.units import Mib

pytestmark = pytest.mark.memory

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=0.3)
    yield found
    await found.close()


@asynccontextmanager
async def peer(served: Any, behave: Peer) -> AsyncIterator[list[int]]:
    """Put somebody in the agent's place who has its keys and behaves otherwise.

    Yields a list that grows with every connection.
    """
    await served.stop()
    met: list[int] = []

    async def meet(reader: Any, writer: Any) -> None:
        met.append(len(met))
        try:
            await behave(reader, writer)
        finally:
            writer.close()

    context = tls.serving(served.keys)
    other = await asyncio.start_server(meet, "127.0.0.1", served.port, ssl=context)
    try:
        yield met
    finally:
        other.close()
        await other.wait_closed()


def chunk(*lines: Any) -> bytes:
    data = b"".join(json.encode(line) + b"\n" for line in lines)
    return f"{len(data):x}".encode() + b"\r\n" + data + b"\r\n"


async def request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
    await reader.readexactly(int(length))


async def unreachable(nodes: HttpNodes, node: Any) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        await nodes.call(node, GetFacts(), 1, lambda *_: None)
    assert "\n" not in caught.value.message
    return caught.value


async def test_an_agent_that_is_down_got_nothing(served: Any, nodes: HttpNodes) -> None:
    await served.stop()
    notes: list[Any] = []
    call = GetFacts()
    with pytest.raises(Unreachable) as caught:
        await nodes.call(served.node, call, 1, lambda *told: notes.append(told))
    where = f"node node1 (127.0.0.1:{served.port}) does not answer"
    assert caught.value.message == f"{where}: Connection refused"
    assert caught.value.facts == {
        "node": "node1",
        "cause": "Connection refused",
        "sent": False,
        "silent": True,
    }
    again = f"{where}: Connection refused; trying again, 2 times at most"
    assert notes == [(0, 0, "log", again)]


async def test_an_agent_that_is_back_in_a_second_is_waited_for(
    served: Any, nodes: HttpNodes
) -> None:
    await nodes.call(served.node, GetFacts(), 1, lambda *_: None)
    await served.stop()
    tried = asyncio.Event()
    asking = nodes.call(served.node, GetFacts(), 1, lambda *_: tried.set())
    call = asyncio.create_task(asking)
    await tried.wait()
    await served.start()
    assert (await call).hypervisors == ("kvm",)


async def test_a_machine_that_is_gone_got_nothing(
    served: Any, nodes: HttpNodes
) -> None:
    """A machine without power refuses nothing: nobody is there to do so."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(deaf.getsockname())
        node = replace(served.node, port=deaf.getsockname()[1])
        error = await unreachable(nodes, node)
        for one in waiting:
            one.close()
    assert error.facts["sent"] is False


class Restarting(threading.Thread):
    """An agent that dies after each answer, beside this loop, and is there again."""

    def __init__(self, keys: Path, listening: socket.socket) -> None:
        super().__init__(daemon=True)
        self.died = threading.Event()
        self._context, self._listening = tls.serving(keys), listening

    def run(self) -> None:
        for _ in range(2):
            bare, _ = self._listening.accept()
            with self._context.wrap_socket(bare, server_side=True) as met:
                met.recv(65536)
                met.sendall(HEAD + chunk({"result": "changed"}) + b"0\r\n\r\n")
            self.died.set()


async def test_a_step_is_not_sent_to_an_agent_that_died_while_the_master_was_busy(
    served: Any, nodes: HttpNodes
) -> None:
    """It would be told as one that may have been done, and its job would fail."""
    await served.stop()
    with socket.create_server(("127.0.0.1", served.port)) as listening:
        agent = Restarting(served.keys, listening)
        agent.start()
        step = UnmakeDisk(
            disk=Disk(uuid="d", dev_type="ext", logical_id=("san", "d"), size=Mib(1))
        )
        for _ in range(2):
            assert await nodes.call(served.node, step, 1, silent) is Outcome.CHANGED
            agent.died.wait(5)  # the loop waits, too
        agent.join(5)


async def test_an_agent_that_dies_before_its_answer_may_have_acted(
    served: Any, nodes: HttpNodes
) -> None:
    async def die(reader: Any, _writer: Any) -> None:
        await request(reader)

    async with peer(served, die) as met:
        error = await unreachable(nodes, served.node)
        assert len(met) == 1  # it is not asked again: that is for the job to decide
    assert error.facts["sent"] is True


async def test_an_agent_that_dies_in_its_answer_may_have_acted(
    served: Any, nodes: HttpNodes
) -> None:
    async def die(reader: Any, writer: Any) -> None:
        await request(reader)
        writer.write(HEAD + chunk({"progress": [1, 2, "MiB", "copying"]}))
        await writer.drain()

    async with peer(served, die):
        error = await unreachable(nodes, served.node)
    assert error.facts["sent"] is True


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[]\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"result": null',
        b"HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\noops\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
)
async def test_an_answer_that_is_none_leaves_it_open(
    served: Any, nodes: HttpNodes, answer: bytes
) -> None:
    async def babble(reader: Any, writer: Any) -> None:
        await request(reader)
        writer.write(answer)
        await writer.drain()

    async with peer(served, babble):
        error = await unreachable(nodes, served.node)
    assert error.facts["sent"] is True


async def test_lines_may_be_long_and_come_in_pieces(
    served: Any, nodes: HttpNodes
) -> None:
    long = "x" * 1_000_000

    async def slowly(reader: Any, writer: Any) -> None:
        await request(reader)
        writer.write(HEAD)
        for line in ({"progress": [1, 2, "MiB", long]}, {"result": long}):
            data = json.encode(line) + b"\n"
            for start in range(0, len(data), 200_001):
                piece = data[start : start + 200_001]
                writer.write(f"{len(piece):x}".encode() + b"\r\n" + piece + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    notes: list[Any] = []
    async with peer(served, slowly):
        told = await nodes.call(
            served.node, FindConsole(uuid="u"), 1, lambda *words: notes.append(words)
        )
    assert told == long
    assert notes == [(1, 2, "MiB", long[:2000])]


async def test_many_calls_at_once(served: Any, authority: Authority) -> None:
    nodes = HttpNodes(authority, connect=120.0)  # handshakes queue on a busy machine
    calls = [
        nodes.call(served.node, GetFacts(), 1, lambda *_: None) for _ in range(120)
    ]
    assert len(await asyncio.gather(*calls)) == 120
    await nodes.close()


async def test_a_garbled_token_asks_nobody(served: Any, nodes: HttpNodes) -> None:
    call = EnrolNode(token="no token")  # noqa: S106
    with pytest.raises(BadInput, match="that is no token of a node"):
        await nodes.call(served.node, call, 1, lambda *_: None)
