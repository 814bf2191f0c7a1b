# SPDX-License-Identifier: BSD-2-Clause
"""Strangers at an agent's port: silent ones, many, and those at one address."""

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from moorage import durable
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.doors import doorkeeper, listening
from moorage.node.doors.doorkeeper import Limits
from moorage.protocol import GetFacts

HERE, THERE = "127.0.0.1", "127.0.0.2"
FEW = Limits(greeted=4, waiting=8, handshake=60.0, hurry=60.0)
"""Nobody is cut off for being slow while the test lasts."""


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=30)
    yield found
    await found.close()


async def serve(served: Any, limits: Limits) -> None:
    await served.stop()
    await served.start(limits)


async def strangers(
    stack: ExitStack, served: Any, number: int, address: str = HERE
) -> list[socket.socket]:
    """Return connections that say nothing."""
    loop = asyncio.get_running_loop()
    found = []
    for _ in range(number):
        one = stack.enter_context(socket.socket())
        one.setblocking(False)
        one.bind((address, 0))
        await loop.sock_connect(one, (HERE, served.port))
        found.append(one)
    return found


async def ended(connection: socket.socket) -> None:
    async with asyncio.timeout(60):
        try:
            said = await asyncio.get_running_loop().sock_recv(connection, 1)
        except ConnectionResetError:
            said = b""
    assert said == b""


async def ask(served: Any, nodes: HttpNodes) -> None:
    facts = await nodes.call(served.node, GetFacts(), 1, lambda *_: None)
    assert facts.version


async def test_whoever_shows_no_certificate_is_not_waited_for(served: Any) -> None:
    await serve(served, Limits(handshake=0.3))
    with ExitStack() as stack:
        for one in await strangers(stack, served, 50):
            await ended(one)


async def test_one_address_cannot_take_all_places(
    served: Any, nodes: HttpNodes
) -> None:
    await serve(served, FEW)
    with ExitStack() as stack:
        await strangers(stack, served, FEW.waiting, THERE)
        await ask(served, nodes)


async def test_the_oldest_of_the_busiest_address_is_turned_away(served: Any) -> None:
    await serve(served, FEW)
    with ExitStack() as stack:
        (other,) = await strangers(stack, served, 1)
        many = await strangers(stack, served, FEW.waiting + 12, THERE)
        # Two are greeted, so the first of those who wait is the third.
        await ended(many[2])
        with pytest.raises(BlockingIOError):
            other.recv(1)


async def test_who_is_slow_gives_way_to_those_who_wait(
    served: Any, nodes: HttpNodes
) -> None:
    """Both are at one address, as a local user and a master on this machine."""
    await serve(served, Limits(greeted=4, waiting=64, handshake=60.0, hurry=0.3))
    with ExitStack() as stack:
        await strangers(stack, served, 32)
        await ask(served, nodes)


async def test_strangers_get_a_quarter_of_the_descriptors(served: Any) -> None:
    """The others are for verbs, guests and scripts."""
    await serve(served, Limits(greeted=4, waiting=1024, handshake=60.0, hurry=60.0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
    try:
        with ExitStack() as stack:
            many = await strangers(stack, served, 110)
            await ended(many[2])
            with pytest.raises(BlockingIOError):
                many[-90].recv(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_lack_of_descriptors_passes(
    served: Any, nodes: HttpNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, refused = type(loop).sock_accept, []

    async def lacking(self: Any, listener: socket.socket) -> Any:
        found = await accept(self, listener)
        if not refused:
            refused.append(found[0])
            raise OSError(errno.EMFILE, "Too many open files")
        return found

    monkeypatch.setattr(type(loop), "sock_accept", lacking)
    await serve(served, Limits())
    with ExitStack() as stack:
        await strangers(stack, served, 1)
        await ask(served, nodes)
    refused[0].close()


async def _read(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


@pytest.mark.parametrize(
    "said", [b"", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"]
)
async def test_nobody_stays_where_no_certificate_is_asked_for(
    tmp_path: Path, said: bytes
) -> None:
    """As at the door of a node that waits to be let in."""
    key = tls.new_key()
    durable.write(tmp_path / "key.pem", tls.key_pem(key))
    durable.write(tmp_path / "door.pem", tls.pem(tls.self_signed(key, "x")))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "door.pem", tmp_path / "key.pem")
    runner = web.AppRunner(slow := web.Application(), access_log=None)
    slow.add_routes([web.post("/", _read)])
    await runner.setup()
    await listening.listen(runner, HERE, 0, context, Limits(life=0.5))
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    port = runner.addresses[0][1]
    reader, writer = await asyncio.open_connection(HERE, port, ssl=trusting)
    writer.write(said)
    async with asyncio.timeout(60):
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
    writer.close()
    await runner.cleanup()


async def test_a_server_that_ends_hangs_up_on_strangers(served: Any) -> None:
    await serve(served, FEW)
    with ExitStack() as stack:
        found = await strangers(stack, served, 6)
        await asyncio.sleep(0.1)
        await served.stop()
        for one in found:
            await ended(one)


async def test_nothing_is_left_of_who_came_and_went(
    served: Any, nodes: HttpNodes
) -> None:
    await serve(served, FEW)
    keeper = next(iter(served.runner.sites))._server
    with ExitStack() as stack:
        await strangers(stack, served, 3, THERE)
    await ask(served, nodes)
    async with asyncio.timeout(60):
        while keeper._greeted or keeper._waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("address", "alike", "other"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"),
        ("fe80::1%eth0", "fe80::2", "::1"),
    ],
)
def test_what_counts_as_one_address(address: str, alike: str, other: str) -> None:
    peer = doorkeeper._peer
    assert peer(address) == peer(alike) != peer(other)
