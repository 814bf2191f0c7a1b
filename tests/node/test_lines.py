# SPDX-License-Identifier: BSD-2-Clause
"""Lines to guests: who gets one, what ends one, and what is believed."""

import asyncio
import contextlib
import socket
import ssl
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec import json
from msgspec.structs import replace

from moorage.errors import BadInput, Failed, Stale, Unreachable, WrongState
from moorage.node import lines
from moorage.node.calling import answers
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.protocol import GetFacts
from moorage.protocol.line import GuestLine
from moorage.testing.guests import SimHypervisor

WEB = GuestLine(uuid="web1", name="web1")


@pytest.fixture
async def nodes(served: Any) -> Any:
    """Return a master's way to a node on which the guest web1 runs."""
    running = {"uuid": "web1", "name": "web1", "state": "running", "memory": 64}
    running |= {"vcpus": 1, "disks": [], "ports": {}}
    served.san.guests[f"{served.name} web1"] = {"state": running}
    found = HttpNodes(served.authority, connect=2.0)
    yield found
    await found.close()


async def heard(line: lines.Line, wanted: bytes) -> bytes:
    came = b""
    async with asyncio.timeout(120):
        while wanted not in came:
            data = await line.read()
            assert data, came
            came += data
    return came


async def test_bytes_go_both_ways_and_whole(served: Any, nodes: HttpNodes) -> None:
    line = await nodes.line(served.node, WEB, 1)
    said = bytes(range(256)) * 2000
    await line.write(said)
    assert (await heard(line, said)).startswith(b"web1 serial: ")
    await line.close()


async def test_the_node_says_who_was_at_a_guest(
    served: Any, nodes: HttpNodes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    line = await nodes.line(served.node, replace(WEB, by="uid 0, pid 7\x1b[2J"), 1)
    await heard(line, b"serial: ")
    assert said(caplog) == [
        r"the console of web1 is opened by uid 0, pid 7\x1b[2J, at the master"
    ]
    await line.close()
    async with asyncio.timeout(120):
        while len(said(caplog)) < 2:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
    assert said(caplog)[1].startswith("the console of web1 is closed after 0 s: it was")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if hasattr(one, "always")]


async def test_a_master_of_the_past_gets_no_line(served: Any, nodes: HttpNodes) -> None:
    await nodes.call(served.node, GetFacts(), 7, lambda *_: None)
    with pytest.raises(Stale) as caught:
        await nodes.line(served.node, WEB, 6)
    assert "refuses this master" in caught.value.message


async def test_a_guest_that_is_not_here_has_no_line(
    served: Any, nodes: HttpNodes
) -> None:
    with pytest.raises(WrongState, match="does not run on node"):
        await nodes.line(served.node, GuestLine(uuid="x", name="x"), 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_node_that_sends_elsewhere_is_not_followed(
    served: Any, nodes: HttpNodes, status: int
) -> None:
    """The master reaches what a node does not: services of its own machine."""
    await served.stop()
    asked: list[str] = []

    async def inside(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        return web.Response()

    async def sends(_request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": wanted})

    intern, rogue = (web.Application() for _ in range(2))
    intern.router.add_route("*", "/internal", inside)
    rogue.router.add_route("*", "/{any:.*}", sends)
    async with AsyncExitStack() as stack:
        context = tls.serving(served.keys)
        await stack.enter_async_context(_site(rogue, served.port, context))
        port = await stack.enter_async_context(_site(intern, 0, None))
        wanted = f"http://127.0.0.1:{port}/internal?delete=all"
        with pytest.raises(Unreachable, match=f"HTTP {status}"):
            await nodes.line(served.node, WEB, 1)
        with pytest.raises(Unreachable, match=f"HTTP {status}"):
            await nodes.call(served.node, GetFacts(), 1, lambda *_: None)
    assert asked == []


@contextlib.asynccontextmanager
async def _site(app: web.Application, port: int, context: Any) -> Any:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"\\xff", b'{"line": 7}'])
async def test_what_is_no_request_for_a_line_is_told(
    served: Any, nodes: HttpNodes, body: bytes
) -> None:
    del nodes
    async with _link(served, served.authority.asking()) as link:
        await link.send_bytes(body)
        found = json.decode(await link.receive_bytes(timeout=120))
        assert found["error"]["code"] == "bad-input"


async def test_a_stranger_gets_no_line(served: Any, nodes: HttpNodes) -> None:
    """Who shows no certificate of a master's is hung up on before a word is said."""
    del nodes
    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((aiohttp.ClientError, OSError)):
        async with _link(served, nobody) as link:
            await link.receive_bytes(timeout=120)


@contextlib.asynccontextmanager
async def _link(served: Any, context: ssl.SSLContext) -> Any:
    url = f"https://127.0.0.1:{served.port}/line"
    async with (
        aiohttp.ClientSession() as master,
        master.ws_connect(url, ssl=context, server_hostname=served.name) as link,
    ):
        yield link


async def test_an_agent_that_ends_hangs_up(served: Any, nodes: HttpNodes) -> None:
    """Nobody who looks at a console holds up an agent that is to be restarted."""
    line = await nodes.line(served.node, WEB, 1)
    await heard(line, b"serial: ")
    async with asyncio.timeout(120):
        await served.stop()
        assert await line.read() == b""
    with pytest.raises(Unreachable):
        await nodes.line(served.node, WEB, 1)


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"progress": 1}', b'{"error": {"code": 1}}', b"\xff"]
)
def test_a_node_that_answers_nonsense_is_not_believed(text: bytes) -> None:
    with pytest.raises(answers.Unfit):
        answers.check_opened(text)


def test_what_a_node_says_is_cleaned() -> None:
    told = {"code": "failed", "message": "a\x1b[2Jb"}
    with pytest.raises(Failed) as caught:
        answers.check_opened(json.encode({"error": told}))
    assert "\x1b" not in caught.value.message
    with pytest.raises(BadInput):
        answers.check_opened(b'{"error": {"code": "bad-input", "message": "x"}}')


async def test_both_ends_hang_up_when_one_does() -> None:
    one, other = _Pipe([b"a", b"b"]), _Pipe([], ends=False)
    async with asyncio.timeout(120):
        await lines.carry(one, other)
    assert other.said == [b"a", b"b"]
    assert one.closed
    assert other.closed


class _Pipe:
    """A line that says something, and then ends or says nothing more."""

    def __init__(self, says: list[bytes], *, ends: bool = True) -> None:
        self._says, self._ends = says, ends
        self.said: list[bytes] = []
        self.closed = False

    async def read(self) -> bytes:
        if self._says:
            return self._says.pop(0)
        if not self._ends:
            await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes) -> None:
        self.said.append(data)

    async def close(self) -> None:
        self.closed = True


async def test_a_guest_is_let_go_though_who_asked_left_meanwhile(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a moment until the guest's line is open, and by then nobody is there."""
    near, guest = socket.socketpair()
    opening, gone = asyncio.Event(), asyncio.Event()

    async def opened(*_: Any) -> socket.socket:
        opening.set()
        await gone.wait()
        return near

    monkeypatch.setattr(SimHypervisor, "connect", opened)
    asked = asyncio.create_task(nodes.line(served.node, WEB, 1))
    await opening.wait()
    asked.cancel()
    await asyncio.wait([asked])
    gone.set()
    with guest:
        guest.settimeout(60)
        assert await asyncio.to_thread(guest.recv, 1) == b""


async def test_a_guest_is_let_go_though_who_was_there_reads_nothing() -> None:
    """Its input has ended, and its output goes to a pager that waits."""
    (near, client), (far, guest) = socket.socketpair(), socket.socketpair()
    with client, guest:
        ends = [await lines.StreamLine.over(one) for one in (near, far)]
        carried = asyncio.create_task(lines.carry(*ends))
        reader, writer = await asyncio.open_connection(sock=guest)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                while True:
                    writer.write(bytes(lines.PIECE))
                    await writer.drain()
        client.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.transport.abort()
        client.close()
        await carried
