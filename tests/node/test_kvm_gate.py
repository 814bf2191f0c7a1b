# SPDX-License-Identifier: BSD-2-Clause
"""The port of a migration: whoever does not know the key does not get to QEMU."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing, suppress

import pytest
import pytest_asyncio

from moorage.errors import BadInput, Failed
from moorage.node.hypervisors.kvm import gate as gates
from moorage.node.hypervisors.kvm.gate import Gate, knock, listen
from moorage.node.hypervisors.kvm.migration import family

KEY, OTHER, HERE = "ab" * 32, "cd" * 32, "127.0.0.1"


class Qemu:
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.taken = asyncio.Event()

    async def take(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.heard.append(await loop.sock_recv(connection, 100))
        self.taken.set()


@pytest_asyncio.fixture
async def qemu() -> Qemu:
    return Qemu()


@pytest_asyncio.fixture
async def gate(qemu: Qemu) -> AsyncIterator[Gate]:
    found = Gate(listen(socket.AF_INET, HERE, range(1)), KEY, qemu.take)
    yield found
    found.close()


async def come(gate: Gate, key: str) -> None:
    with await knock(socket.AF_INET, HERE, gate.port, key) as connection:
        await asyncio.get_running_loop().sock_sendall(connection, b"the guest")
        await asyncio.sleep(0.1)


async def test_a_gate_that_closes_lets_in_nobody_who_knocks_just_then(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, qemu: Qemu
) -> None:
    """Who closes it lets go at once of what connections would be handed to."""
    said = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(gates, "_exactly", lambda *_: said)
    monkeypatch.setattr(gates.wire, "steady", lambda one: one)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        theirs.setblocking(False)
        ours.sendall(b"the guest")
        hears = asyncio.create_task(gate._hear(theirs))
        await asyncio.sleep(0)
        said.set_result(gates._knock(KEY, gates._WORD))
        gate.close()
        await asyncio.wait_for(hears, 60)
    assert qemu.heard == []


async def test_the_holder_of_the_key_is_let_in_once(gate: Gate, qemu: Qemu) -> None:
    for key in (OTHER, KEY):
        await come(gate, key)
    await asyncio.wait_for(qemu.taken.wait(), 60)
    assert qemu.heard == [b"the guest"]
    assert not gate.is_open()
    with pytest.raises(Failed, match="no connection"):
        await come(gate, KEY)


async def test_strangers_do_not_stand_in_the_way(
    gate: Gate, qemu: Qemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "_MOST", 5)
    found = [await asyncio.open_connection(HERE, gate.port) for _ in range(30)]
    for n, (_, writer) in enumerate(found):
        if n % 2:
            writer.write(b"QEVM" * 100)
    await asyncio.sleep(0.2)
    assert len(gate._strangers) <= 5
    await come(gate, KEY)
    await asyncio.wait_for(qemu.taken.wait(), 60)
    assert qemu.heard == [b"the guest"]
    for _, writer in found:
        writer.close()


async def test_who_says_nothing_is_not_waited_for(
    gate: Gate, qemu: Qemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "_PATIENCE", 0.2)
    reader, writer = await asyncio.open_connection(HERE, gate.port)
    writer.write(b"half")
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()
    assert gate.is_open()
    assert not qemu.heard


async def test_a_gate_that_is_closed_hangs_up(gate: Gate) -> None:
    reader, writer = await asyncio.open_connection(HERE, gate.port)
    await asyncio.sleep(0.1)
    gate.close()
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()


def test_the_first_free_port_is_taken() -> None:
    with closing(listen(socket.AF_INET, HERE, range(1))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failed, match="no port is free"):
            listen(socket.AF_INET, HERE, range(port, port + 1), last=range(0))


@pytest.mark.parametrize(
    "address",
    ["exec:id", "localhost", "/tmp/x", "fe80::1%x,y", "127.0.0.1:80", "", "fd:3"],
)
def test_a_guest_goes_to_literal_addresses_only(address: str) -> None:
    with pytest.raises(BadInput, match="a guest"):
        family(address)
    assert family("192.0.2.1") == socket.AF_INET
    assert family("2001:db8::1") == socket.AF_INET6


async def test_a_gate_outlives_a_lack_of_descriptors(
    gate: Gate, qemu: Qemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, lacking = type(loop).sock_accept, []

    async def poor(self: asyncio.AbstractEventLoop, listener: socket.socket) -> object:
        found = await accept(self, listener)
        if not lacking:
            lacking.append(found[0])
            raise OSError(errno.EMFILE, "Too many open files")
        return found

    await come(gate, OTHER)  # it waits in the real one
    monkeypatch.setattr(type(loop), "sock_accept", poor)
    for key in (OTHER, OTHER, KEY):
        await come(gate, key)
    await asyncio.wait_for(qemu.taken.wait(), 60)
    lacking[0].close()


@pytest.mark.skipif(os.geteuid() != 0, reason="the ports behind are root's")
def test_a_user_who_holds_all_ports_holds_nobody_up() -> None:
    """Anybody on a machine may listen at a port from 1024 on, and stay there."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(3)]
        first = _in_a_row(held)
        found = listen(socket.AF_INET, HERE, range(first, first + len(held)))
        stack.enter_context(found)
        assert found.getsockname()[1] in gates.LAST


def _in_a_row(sockets: list[socket.socket]) -> int:
    """Listen at ports in a row, and return the first."""
    for first in range(20000, 30000, len(sockets)):
        with suppress(OSError):
            for port, one in enumerate(sockets, first):
                one.bind((HERE, port))
                one.listen()
            return first
    raise AssertionError


def test_the_last_ports_are_roots() -> None:
    """As the kernel has it, unless somebody told it otherwise."""
    assert gates.LAST[-1] < 1024


# -- who asks whether it is in ---------------------------------------------------------


async def test_who_asks_is_told_when_its_connection_is_taken() -> None:
    """What it does then came later: the other side's clock had begun before."""
    order, go_on = list[str](), asyncio.Event()

    async def take(_connection: socket.socket) -> None:
        order.append("taken")
        await go_on.wait()

    gate = Gate(listen(socket.AF_INET, HERE, range(1)), KEY, take)
    asking = asyncio.create_task(knock(socket.AF_INET, HERE, gate.port, KEY, asks=True))
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert order == ["taken"]
    assert not asking.done()
    go_on.set()
    with await asyncio.wait_for(asking, 60) as connection:
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(connection, 1) == b""  # what follows is for QEMU


async def test_who_does_not_ask_is_told_nothing(gate: Gate, qemu: Qemu) -> None:
    """It is of an earlier version: its QEMU gets the connection at once."""
    with await knock(socket.AF_INET, HERE, gate.port, KEY) as connection:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, b"the guest")
        await asyncio.wait_for(qemu.taken.wait(), 60)
        assert await loop.sock_recv(connection, 1) == b""


async def test_who_is_not_taken_after_all_learns_it() -> None:
    async def take(_connection: socket.socket) -> None:
        raise Failed("its QEMU has ended")

    gate = Gate(listen(socket.AF_INET, HERE, range(1)), KEY, take)
    with pytest.raises(Failed, match="it hung up"):
        await knock(socket.AF_INET, HERE, gate.port, KEY, asks=True)
