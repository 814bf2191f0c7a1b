# SPDX-License-Identifier: BSD-2-Clause
"""The end of a migration: one guest runs, on one node, and how long it stood is told.

The guests are emulated, so that they stand still while they go; they also go live, as
nobody should let them (`unsafe_live_emulation`), to walk that way without KVM.
"""

import asyncio
import gc
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.kvm import Kvm
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.ops.instance.migrate import _whole
from support.qemu_pair import Lab

pytestmark = pytest.mark.real

BUILT = Path(__file__).parents[2] / ".build" / "guest"
HERE = "127.0.0.1"
PATIENCE = 300
COUNT = """(i=0; while :; do i=$((i+1)); echo $i > /dev/console; echo $i >> /count
    usleep 20000; done) </dev/null >/dev/null 2>&1 &"""
DIRTY = """(while :; do dd if=/dev/urandom of=/dirt bs=64k count=64 conv=notrunc
    done) </dev/null >/dev/null 2>&1 &"""
UNBROKEN = (
    "n=$(wc -l < /count); seq 1 $n > /seq; head -n $n /count | cmp - /seq; echo $n"
)


def silent(*_):
    pass


@pytest.fixture(scope="module")
def unsafe():
    """Return two nodes on which emulated guests run while they are sent."""
    found = Lab(BUILT, unsafe_live_emulation=True)
    yield found
    found.close()


@pytest.fixture(scope="module")
def counts(unsafe):
    """Return an emulated guest that counts on its console."""
    spec = unsafe.spec(accel="tcg", migration_downtime=1000)

    async def start():
        await unsafe.one.start(spec)
        async with unsafe.inside(unsafe.one, spec) as inside:
            await inside.wait_ready()
            await inside.run(COUNT)

    asyncio.run(start())
    return spec


async def status(node, spec):
    """Return QEMU's word for what a guest does; nothing if it has no process."""
    with suppress(Failed):
        async with conversation(node._home(spec.uuid)) as monitor:
            return (await monitor.ask("query-status"))["status"]
    return ""


async def until(node, spec, wanted):
    async with asyncio.timeout(PATIENCE):
        while await status(node, spec) != wanted:  # noqa: ASYNC110 - it is a process
            await asyncio.sleep(0.05)


@asynccontextmanager
async def at_home(lab, spec):
    """Have the guest on the first node, and afterwards there again; yield its door."""
    try:
        yield await lab.two.incoming(spec)
    finally:
        if await status(lab.two, spec) == "running":
            await lab.one.discard(spec.uuid)
            back = await lab.one.incoming(spec)
            await lab.two.migrate(spec.uuid, lab.one.address, back, silent, live=False)
            await until(lab.one, spec, "running")
            await lab.two.discard(spec.uuid)
        await lab.two.abort(spec.uuid)
        for node in (lab.one, lab.two):
            await asyncio.gather(*node._watches.values())


async def counted(lab, node, spec):
    """Return how far the guest has counted; not one number may be missing."""
    async with lab.inside(node, spec) as inside:
        return int(await inside.run(UNBROKEN))


async def goes_on(lab, node, spec):
    """Check that it counts, on its console, too."""
    before = await counted(lab, node, spec)
    async with asyncio.timeout(PATIENCE):
        while await counted(lab, node, spec) <= before:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    said = node._home(spec.uuid).read("consolelog").split()
    assert [word for word in said if word.isdigit()]


# -- who lets it run -------------------------------------------------------------------


@pytest.mark.parametrize("live", [False, True])
async def test_it_runs_though_every_agent_has_died(unsafe, counts, live):
    """Neither master nor agents are there any more when the last byte comes."""
    target = Kvm(unsafe.two.run_dir, unsafe.two.address, unsafe.images)
    async with at_home(unsafe, counts):
        await unsafe.two.abort(counts.uuid)
        door = await target.incoming(counts)
        source = asyncio.create_task(
            unsafe.one.migrate(counts.uuid, target.address, door, silent, live=live)
        )
        await sending(unsafe, counts)
        for one in (source, *target._watches.values()):
            one.cancel()
        await asyncio.gather(source, return_exceptions=True)
        await until(unsafe.two, counts, "running")
        assert await status(unsafe.one, counts) == "postmigrate"
        for verb in (unsafe.one.resume(counts.uuid), unsafe.one.start(counts)):
            with pytest.raises(Failed, match="moved"):
                await verb
        assert await status(unsafe.one, counts) == "postmigrate"
        # the next agent of the target knows how long it took, at most
        assert await Kvm(unsafe.two.run_dir).arrived(counts.uuid) > 0
        await goes_on(unsafe, unsafe.two, counts)
    gc.collect()


async def sending(lab, spec, left=1 << 40):
    """Wait until a guest is on its way, with so many bytes left at most."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with conversation(lab.one._home(spec.uuid)) as monitor:
                now = await monitor.ask("query-migrate")
            ram = now.get("ram")  # of one that goes; one that came here has none
            if ram and now["status"] == "completed":
                return
            if ram and now["status"] == "active" and 0 < ram["remaining"] < left:
                return
            await asyncio.sleep(0.002)


# -- who never runs again --------------------------------------------------------------


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("left", [1 << 40, 16 << 20, 1 << 20])
async def test_one_runs_whenever_it_is_given_up(unsafe, counts, live, left):
    """The later it is, the likelier all has been sent."""
    async with at_home(unsafe, counts) as door:
        source = asyncio.create_task(
            unsafe.one.migrate(counts.uuid, unsafe.two.address, door, silent, live=live)
        )
        await sending(unsafe, counts, left)
        with suppress(Failed):
            await Kvm(unsafe.one.run_dir).resume(counts.uuid)
        (said,) = await asyncio.gather(source, return_exceptions=True)
        if isinstance(said, Failed):
            await until(unsafe.one, counts, "running")
            assert await status(unsafe.two, counts) in ("inmigrate", "")
            await unsafe.two.abort(counts.uuid)
            await goes_on(unsafe, unsafe.one, counts)
        else:
            await until(unsafe.two, counts, "running")
            assert await status(unsafe.one, counts) == "postmigrate"
            await goes_on(unsafe, unsafe.two, counts)


@asynccontextmanager
async def holding(port, hold):
    """Stand between both; let `hold` have all that comes behind the first MiB."""

    async def serve(reader, writer):
        back, there = await asyncio.open_connection("127.0.81.2", port)
        answers = asyncio.create_task(pump(back, writer))
        passed = 0
        while passed < 1 << 20 and (data := await reader.read(1 << 16)):
            passed += len(data)
            there.write(data)
        rest = await reader.read()
        if await hold():
            there.write(rest)
            with suppress(OSError):
                await there.drain()
        there.close()
        await answers

    async def pump(reader, writer):
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async with await asyncio.start_server(serve, HERE, 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_the_whole_standstill_is_told(unsafe, counts):
    """All has been sent, as the source sees it, and is on its way two seconds more."""
    more = 2.0

    async def wait():
        assert await status(unsafe.two, counts) == "inmigrate"
        await asyncio.sleep(more)
        assert await status(unsafe.two, counts) == "inmigrate"
        return True

    async with at_home(unsafe, counts) as door, holding(door.port, wait) as port:
        way = replace(door, port=port)
        sent = await unsafe.one.migrate(counts.uuid, HERE, way, silent, live=False)
        await until(unsafe.two, counts, "running")
        took = await unsafe.two.arrived(counts.uuid)
        told = _whole(sent, took)
        assert told.downtime_ms >= sent.downtime_ms + 1000 * more
        assert told.total_ms == told.downtime_ms == took
        assert await unsafe.two.arrived(counts.uuid) == took


async def test_what_was_lost_on_its_way_does_not_run_here_again(unsafe):
    """The source cannot know: its kernel took all of it. Nobody has two of them."""
    spec = unsafe.spec(accel="tcg")
    await unsafe.one.start(spec)
    async with unsafe.inside(unsafe.one, spec) as inside:
        await inside.wait_ready()  # one that has not booted is less than a MiB
    door = await unsafe.two.incoming(spec)

    async def lose():
        return False

    async with holding(door.port, lose) as port:
        way = replace(door, port=port)
        await unsafe.one.migrate(spec.uuid, HERE, way, silent)
        await until(unsafe.two, spec, "")
    for verb in (unsafe.one.resume(spec.uuid), unsafe.one.start(spec)):
        with pytest.raises(Failed, match="moved"):
            await verb
    assert await status(unsafe.one, spec) == "postmigrate"
    await unsafe.one.discard(spec.uuid)


# -- the live way, without KVM ---------------------------------------------------------


async def test_it_goes_live_in_several_passes(unsafe, counts):
    seen = []
    home = unsafe.one._home(counts.uuid)
    home.write_spec(
        replace(counts, hvparams=counts.hvparams | {"migration_bandwidth": 24})
    )
    async with unsafe.inside(unsafe.one, counts) as inside:
        await inside.run(DIRTY)
    async with at_home(unsafe, counts) as door:
        sent = await unsafe.one.migrate(
            counts.uuid,
            unsafe.two.address,
            door,
            lambda *step: seen.append(step),
        )
        await until(unsafe.two, counts, "running")
        took = await unsafe.two.arrived(counts.uuid)
        await goes_on(unsafe, unsafe.two, counts)
    passes = {note for *_, unit, note in seen if unit == "MiB"}
    assert len(passes) > 1
    assert any(unit == "log" and "may be lost" in note for *_, unit, note in seen)
    ran = sent.total_ms - sent.downtime_ms
    assert ran > 0
    told = _whole(sent, took)
    assert sent.downtime_ms <= told.downtime_ms <= took - ran + 1


async def test_an_emulated_guest_does_not_go_live_unless_somebody_says_so(lab):
    spec = lab.spec(accel="tcg")
    await lab.one.start(spec)
    door = await lab.two.incoming(spec)
    sent = await lab.one.migrate(spec.uuid, lab.two.address, door, silent, live=True)
    assert sent.total_ms == sent.downtime_ms > 0
    await until(lab.two, spec, "running")
    await lab.two.stop(spec.uuid, 0)
    await lab.one.discard(spec.uuid)
