# SPDX-License-Identifier: BSD-2-Clause
"""Who comes to the port of a migration without its key gets nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, Failed
from moorage.node.hypervisors.kvm import migration
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.protocol import Door

pytestmark = pytest.mark.real

BUILT = Path(__file__).parents[2] / ".build" / "guest"
HERE, THERE = "127.0.0.1", "127.0.81.2"
WORD = "a-word-that-is-in-the-memory-of-the-guest-only"
GARBAGE = b"QEVM" + bytes(4096)


def silent(*_):
    pass


@pytest.fixture(scope="module")
def victim(lab):
    spec = lab.spec()
    asyncio.run(lab.one.start(spec))
    return spec


@asynccontextmanager
async def strangers(port: int) -> AsyncIterator[None]:
    """Connect first: some say nothing, some say what is no TLS, some hang up."""
    found = [await asyncio.open_connection(THERE, port) for _ in range(20)]
    for n, (_, writer) in enumerate(found):
        if n % 2:
            writer.write(GARBAGE)
        if n % 3 == 0:
            writer.close()
    await asyncio.sleep(0.5)
    try:
        yield
    finally:
        for _, writer in found:
            writer.close()


@asynccontextmanager
async def relay(port: int, passed: bytearray) -> AsyncIterator[int]:
    """Stand between both, and keep what passes; yield the port."""

    async def pump(reader, writer):
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                passed.extend(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        there = await asyncio.open_connection(THERE, port)
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    async with await asyncio.start_server(serve, HERE, 0) as server:
        yield server.sockets[0].getsockname()[1]


async def state(node, spec):
    found = await node.find(spec.uuid)
    return found.state if found else None


async def sent_in_clear(lab, spec, port):
    """Send a guest as the old product did, and as a stranger's QEMU would."""
    async with conversation(lab.one._home(spec.uuid)) as monitor:
        await monitor.ask("migrate-set-parameters", tls_creds="")
        await monitor.ask("migrate", uri=f"tcp:{THERE}:{port}")
        while True:
            found = await monitor.ask("query-migrate")
            if found["status"] in ("failed", "completed"):
                return found["status"]
            await asyncio.sleep(0.1)


async def test_a_stranger_who_comes_first_does_not_become_the_guest(lab, victim):
    intruder = lab.spec()
    await lab.one.start(intruder)
    door = await lab.two.incoming(victim)
    assert await sent_in_clear(lab, intruder, door.port) == "failed"
    # QEMU says so a moment before it lets it run.
    async with asyncio.timeout(60):
        while await state(lab.one, intruder) != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await state(lab.two, victim) == "incoming"
    await lab.one.stop(intruder.uuid, 0)
    passed = bytearray()
    async with lab.inside(lab.one, victim) as inside:
        await inside.wait_ready()
        await inside.run(f"echo {WORD} > /dev/shm.secret")
        async with strangers(door.port), relay(door.port, passed) as port:
            way = replace(door, port=port)
            await lab.one.migrate(victim.uuid, HERE, way, silent)
        await lab.one.discard(victim.uuid)
        await lab.two.go_on(victim.uuid)
        await inside.at(lab.two.channel(victim.uuid))
        await inside.wait_ready()
        assert WORD in await inside.run("cat /dev/shm.secret")
    assert len(passed) > 1 << 20
    assert WORD.encode() not in passed
    door = await lab.one.incoming(victim)
    await lab.two.migrate(victim.uuid, lab.one.address, door, silent)
    await lab.two.discard(victim.uuid)
    await lab.one.go_on(victim.uuid)
    assert await state(lab.one, victim) == "running"


async def test_a_guest_goes_only_to_who_knows_the_key(lab, victim):
    door = await lab.two.incoming(victim)
    wrong = replace(door, key="0" * 64)
    with pytest.raises(Failed, match="runs here as before"):
        await lab.one.migrate(victim.uuid, THERE, wrong, silent)
    assert await state(lab.one, victim) == "running"
    assert await state(lab.two, victim) == "incoming"
    heard = bytearray()

    async def listen(reader, writer):
        heard.extend(await reader.read(1 << 20))
        writer.close()

    async with await asyncio.start_server(listen, HERE, 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Failed, match="runs here as before"):
            await lab.one.migrate(victim.uuid, HERE, replace(door, port=port), silent)
    assert len(heard) < 4096
    assert b"QEVM" not in heard
    await lab.two.abort(victim.uuid)
    assert await state(lab.one, victim) == "running"


async def test_a_destination_that_says_nothing_is_given_up(lab, victim, monkeypatch):
    """It took the connection; QEMU itself would wait for its TLS for ever."""
    monkeypatch.setattr(migration, "SETUP", 3.0)
    over = asyncio.Event()

    async def hold(_reader, writer):
        await over.wait()
        writer.close()

    async with await asyncio.start_server(hold, HERE, 0) as server:
        port = server.sockets[0].getsockname()[1]
        door = Door(port=port, key="ab" * 32, machine={"balloon": True})
        with pytest.raises(Failed, match="runs here as before"):
            await asyncio.wait_for(
                lab.one.migrate(victim.uuid, HERE, door, silent), 120
            )
        over.set()
    assert await state(lab.one, victim) == "running"


async def test_a_gate_that_went_with_its_agent_is_a_clean_failure(lab, victim):
    """The target's agent was killed behind the preparation; its QEMU still waits."""
    door = await lab.two.incoming(victim)
    lab.two._gates.pop(victim.uuid).close()
    with pytest.raises(Failed, match="runs here as before"):
        await lab.one.migrate(victim.uuid, THERE, door, silent)
    assert await state(lab.one, victim) == "running"
    again = await lab.two.incoming(victim)
    assert again.key != door.key
    await lab.two.abort(victim.uuid)
    assert await state(lab.two, victim) is None


@pytest.mark.parametrize(
    "address",
    ["exec:id", "localhost", "/tmp/socket", "::1%lo", "127.0.0.1:80,x", "", "fd:3"],
)
async def test_nothing_but_an_address_is_gone_to(lab, victim, address):
    door = Door(port=8102, key="0" * 64)
    with pytest.raises(BadInput, match="a guest"):
        await lab.one.migrate(victim.uuid, address, door, silent)
    assert await state(lab.one, victim) == "running"


@pytest.mark.parametrize(
    "door",
    [Door(port=8102), Door(port=8102, key="0" * 64, place="exec:id")],
)
async def test_a_door_is_a_port_and_a_key(lab, victim, door):
    with pytest.raises(BadInput, match="behind a key"):
        await lab.one.migrate(victim.uuid, HERE, door, silent)
    assert await state(lab.one, victim) == "running"
