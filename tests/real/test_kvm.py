# SPDX-License-Identifier: BSD-2-Clause
"""The kvm hypervisor with real QEMU guests: two nodes of one machine."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from moorage.errors import Failed, NotSupported
from moorage.node.hypervisors.kvm import Kvm
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.node.hypervisors.kvm.process import gone
from moorage.node.machine.sockets import short_path
from moorage.testing.guest_image import write_image

pytestmark = pytest.mark.real

BUILT = Path(__file__).parents[2] / ".build" / "guest"
WRITER = """mke2fs -q {0} >/dev/null && mount -t ext4 {0} /mnt && cd /
    (i=0; while [ ! -e /stop ]; do i=$((i+1)); echo $i >> /mnt/log; sync
    cut -d' ' -f1 /proc/uptime >> /mnt/times; usleep 5000; done) \
    </dev/null >/dev/null 2>&1 &"""
ENOUGH = "until [ $(wc -l < /mnt/log) -gt 20 ]; do usleep 100000; done"
CHECK = """touch /stop; usleep 300000; n=$(wc -l < /mnt/log)
    seq 1 $n | cmp - /mnt/log && umount /mnt && echo $n; rm /stop"""
GAP = "awk 'NR>1&&$1-p>m{m=$1-p}{p=$1}END{print m}' /mnt/times"


def silent(*_):
    pass


@pytest.fixture(scope="module")
def alpha(lab):
    """Return a guest on the first node that tests leave there, without drives."""
    spec = lab.spec()
    asyncio.run(lab.one.start(spec))
    return spec


@pytest.fixture(scope="module")
def beta(lab, alpha):
    """Return another one, on the second node; both boot at the same time."""
    del alpha
    spec = lab.spec()
    asyncio.run(lab.two.start(spec))
    return spec


async def state(node, spec):
    found = await node.find(spec.uuid)
    return found.state if found else None


async def write(inside, device):
    await inside.run(
        f"dd if=/dev/urandom of={device} bs=64k count=64 2>/dev/null; sync"
    )
    return await checksum(inside, device)


async def checksum(inside, device):
    return (await inside.run(f"sha256sum < {device}")).split()[0]


async def test_a_guest_answers_on_its_channel_and_its_console(lab, alpha, beta):
    del beta  # only so that both boot at the same time
    async with lab.inside(lab.one, alpha) as inside:
        await inside.wait_ready()
        assert await inside.run("cat /etc/moorage-system") == "kernel\n"
    with short_path(Path(lab.one.console(alpha.uuid))) as path:
        reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"\necho $((40 + 2)) answers\n")
    async with asyncio.timeout(120):
        await reader.readuntil(b"42 answers")
    writer.close()


@pytest.mark.requirement("S0-65")
@pytest.mark.parametrize("kind", ["file", "nbd"])
async def test_a_disk_moves_between_running_guests(lab, alpha, beta, kind):
    drive = lab.drive(kind)
    async with lab.inside(lab.one, alpha) as first, lab.inside(lab.two, beta) as second:
        for _ in range(2):
            await lab.one.plug(alpha.uuid, drive)
        assert (await lab.one.find(alpha.uuid)).disks == (drive.disk,)
        written = await write(first, await first.disk(drive.disk))
        for _ in range(2):
            await lab.one.unplug(alpha.uuid, drive.disk)
        assert (await lab.one.find(alpha.uuid)).disks == ()
        assert await first.run("ls /sys/block") == ""
        await lab.two.plug(beta.uuid, drive)
        assert await checksum(second, await second.disk(drive.disk)) == written
        await lab.two.unplug(beta.uuid, drive.disk)


async def test_a_file_that_a_guest_writes_to_is_not_given_to_another(lab, alpha, beta):
    drive = lab.drive("file")
    await lab.one.plug(alpha.uuid, drive)
    with pytest.raises(Failed, match="lock"):
        await lab.two.plug(beta.uuid, drive)
    assert (await lab.two.find(beta.uuid)).disks == ()
    await lab.one.unplug(alpha.uuid, drive.disk)
    await lab.two.plug(beta.uuid, drive)
    await lab.two.unplug(beta.uuid, drive.disk)


async def test_a_slot_that_is_taken_leads_to_the_next_free_port(lab, alpha):
    drives = [lab.drive("file") for _ in range(3)]
    await asyncio.gather(*(lab.one.plug(alpha.uuid, one) for one in drives))
    assert len((await lab.one.find(alpha.uuid)).disks) == 3
    async with lab.inside(lab.one, alpha) as inside:
        devices = {await inside.disk(one.disk) for one in drives}
    assert len(devices) == 3
    for one in drives:
        await lab.one.unplug(alpha.uuid, one.disk)


@pytest.mark.parametrize("kind", ["file", "nbd"])
async def test_a_grown_disk_is_seen_by_its_guest(lab, alpha, kind):
    drive = lab.drive(kind)
    async with lab.inside(lab.one, alpha) as inside:
        await lab.one.plug(alpha.uuid, drive)
        device = await inside.disk(drive.disk)
        await inside.run(f"echo keep > {device}; sync")
        for mib in (48, 64):
            larger = lab.grow(drive, mib)
            for _ in range(2):
                await lab.one.resize(alpha.uuid, larger)
            async with asyncio.timeout(180):
                while await inside.size(drive.disk) != mib << 20:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        await inside.run(
            f"dd if=/dev/zero of={device} bs=1M seek=60 count=4 conv=fsync"
        )
        await inside.run("echo 3 > /proc/sys/vm/drop_caches")
        assert await inside.run(f"head -n 1 {device}") == "keep\n"
        await lab.one.unplug(alpha.uuid, drive.disk)


async def test_an_unknown_uri_is_refused_and_changes_nothing(lab, alpha):
    drive = lab.elsewhere("vitastor:image=x")
    with pytest.raises(NotSupported, match="vitastor"):
        await lab.one.plug(alpha.uuid, drive)
    missing = lab.elsewhere(f"nbd:unix:{lab.top}/none")
    with pytest.raises(Failed, match="No such file"):
        await lab.one.plug(alpha.uuid, missing)
    assert (await lab.one.find(alpha.uuid)).disks == ()
    async with conversation(lab.one._home(alpha.uuid)) as monitor:
        assert await monitor.ask("query-named-block-nodes") == []


async def test_several_agents_share_a_monitor(lab, alpha):
    agents = [lab.one, Kvm(lab.one.run_dir), Kvm(lab.one.run_dir)]
    # Few enough that the last one's turn comes within a look, on a busy machine too.
    asked = [agent.find(alpha.uuid) for agent in agents * 4]
    found = await asyncio.wait_for(asyncio.gather(*asked), 120)
    assert {one.state for one in found} == {"running"}


@pytest.mark.parametrize("kind", ["file", "nbd"])
async def test_no_byte_is_lost_in_a_live_migration(lab, alpha, kind):
    drive = lab.drive(kind, slot=2)
    spec = replace(alpha, drives=(drive,))
    await lab.one.plug(alpha.uuid, drive)
    async with lab.inside(lab.one, alpha) as inside:
        device = await inside.disk(drive.disk)
        await inside.run(WRITER.format(device))
        for source, destination in ((lab.one, lab.two), (lab.two, lab.one)):
            seen = []
            target = await destination.incoming(spec)
            assert await destination.incoming(spec) == target
            moved = await source.migrate(
                spec.uuid,
                destination.address,
                target,
                lambda *step, seen=seen: seen.append(step),
            )
            assert (
                await source.migrate(spec.uuid, destination.address, target, silent)
                == moved
            )
            assert await state(source, spec) == "moved"
            await refused(source.resume(spec.uuid), "has moved")
            await refused(source.start(spec), "moved")
            await source.discard(spec.uuid)
            assert await state(source, spec) is None
            await destination.go_on(spec.uuid)
            assert seen[-1][2] == "MiB"
            await inside.at(destination.channel(spec.uuid))
            await inside.wait_ready()
            assert await state(destination, spec) == "running"
            assert moved.transferred > 0
            assert moved.downtime_ms <= moved.total_ms
        await inside.run(ENOUGH)
        gap = float(await inside.run(GAP))
        assert gap < 30  # seconds without a write, as the guest's own clock saw them
        lines = int(await inside.run(CHECK))
        assert lines > 20
        written = await checksum(inside, device)
        await lab.one.unplug(spec.uuid, drive.disk)
        await lab.one.plug(spec.uuid, drive)
        assert await checksum(inside, await inside.disk(drive.disk)) == written
        await lab.one.unplug(spec.uuid, drive.disk)


async def refused(verb, words):
    with pytest.raises(Failed, match=words):
        await verb


async def test_a_guest_that_runs_is_neither_aborted_nor_discarded(lab, alpha):
    await refused(lab.one.abort(alpha.uuid), "is running here")
    await refused(lab.one.discard(alpha.uuid), "is running here")
    await refused(lab.one.incoming(alpha), "is running here")
    await lab.one.resume(alpha.uuid)
    await lab.one.start(alpha)
    assert await state(lab.one, alpha) == "running"


async def test_a_destination_that_waits_can_be_given_up(lab, alpha):
    await lab.two.incoming(alpha)
    assert await state(lab.two, alpha) == "incoming"
    await refused(lab.two.discard(alpha.uuid), "is incoming here")
    await refused(lab.two.resume(alpha.uuid), "waits for a migration")
    await refused(lab.two.start(alpha), "incoming")
    for _ in range(2):
        await lab.two.abort(alpha.uuid)
    assert await state(lab.two, alpha) is None


async def test_a_migration_that_cannot_succeed_leaves_the_guest_running(lab, alpha):
    drive = lab.drive("file")
    target = await lab.two.incoming(replace(alpha, drives=(drive,)))
    await refused(
        lab.one.migrate(alpha.uuid, lab.two.address, target, silent), "other drives"
    )
    target = await lab.two.incoming(alpha)
    await lab.two.abort(alpha.uuid)
    await refused(
        lab.one.migrate(alpha.uuid, lab.two.address, target, silent),
        "runs here as before",
    )
    assert await state(lab.one, alpha) == "running"


async def test_a_migration_under_way_is_carried_on_or_given_up(lab, alpha):
    target = await lab.two.incoming(alpha)
    home = lab.one._home(alpha.uuid)
    home.write_spec(
        replace(alpha, hvparams=alpha.hvparams | {"migration_bandwidth": 8})
    )
    first = asyncio.create_task(
        lab.one.migrate(alpha.uuid, lab.two.address, target, silent)
    )
    await asyncio.sleep(0.5)
    first.cancel()  # the agent died, the migration goes on
    again = asyncio.create_task(
        Kvm(lab.one.run_dir).migrate(alpha.uuid, lab.two.address, target, silent)
    )
    await asyncio.sleep(0.5)
    assert not again.done()
    await lab.one.resume(alpha.uuid)
    await refused(again, "runs here as before")
    assert await state(lab.one, alpha) == "running"
    await lab.two.abort(alpha.uuid)
    home.write_spec(alpha)
    async with lab.inside(lab.one, alpha) as inside:
        await inside.run("true")


async def test_a_guest_outlives_the_agent_that_started_it(lab):
    spec = lab.spec()
    agent = """
import asyncio, os, signal, sys
from pathlib import Path
from msgspec.json import decode
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm import Kvm
asyncio.run(Kvm(Path(sys.argv[1])).start(decode(sys.argv[2], type=GuestSpec)))
os.kill(os.getpid(), signal.SIGKILL)
"""
    argv = [sys.executable, "-c", agent, str(lab.two.run_dir), encode(spec).decode()]
    died = await asyncio.create_subprocess_exec(*argv)
    assert await died.wait() == -signal.SIGKILL
    assert await state(lab.two, spec) == "running"
    pid = lab.two._home(spec.uuid).pid()
    await lab.two.start(spec)
    assert lab.two._home(spec.uuid).pid() == pid
    os.kill(pid, signal.SIGKILL)
    assert await gone(lab.two._home(spec.uuid), 10)
    assert await state(lab.two, spec) is None
    assert not lab.two._home(spec.uuid).path.exists()


def processes(uuid):
    """Return the command lines that name a guest."""
    lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline")]
    return [line for line in lines if uuid.encode() in line]


async def test_a_guest_that_is_being_started_is_started_once(lab):
    spec = lab.spec()
    nodes = [Kvm(lab.two.run_dir) for _ in range(4)]
    await asyncio.gather(*(node.start(spec) for node in nodes))
    assert len(processes(spec.uuid)) == 1
    await lab.two.stop(spec.uuid, 0)


async def test_a_drive_is_unplugged_from_a_guest_that_is_still_starting(lab):
    spec, drive = lab.spec(), lab.drive("file")
    await lab.two.start(spec)
    await lab.two.plug(spec.uuid, drive)
    await lab.two.unplug(spec.uuid, drive.disk)
    async with lab.inside(lab.two, spec) as inside:
        assert await inside.run("ls /sys/block") == ""
        await lab.two.plug(spec.uuid, drive)
        await inside.disk(drive.disk)
    await lab.two.stop(spec.uuid, 0)


async def test_what_keeps_a_guest_from_starting_is_said(lab):
    spec = lab.spec(kernel_path="/nonexistent")
    await refused(lab.two.start(spec), "did not start: .*nonexistent")
    assert not lab.two._home(spec.uuid).path.exists()
    await refused(lab.two.plug(spec.uuid, lab.drive("file")), "does not run")
    await lab.two.unplug(spec.uuid, "any")
    await lab.two.stop(spec.uuid, 5)


async def test_a_guest_without_a_system_says_why_it_keeps_its_disk(lab):
    drive = lab.drive("file")
    spec = replace(lab.spec(drive), hvparams={})
    node = Kvm(lab.two.run_dir, images=lab.images, unplug_timeout=1.5)
    await node.start(spec)
    await refused(node.unplug(spec.uuid, drive.disk), r"\(running\) did not let go")
    await node.stop(spec.uuid, 0)


async def test_an_installed_system_boots_from_its_disk_below_any_path(lab):
    deep = Kvm(lab.top / ("d" * 60) / ("e" * 60), images=lab.images)
    drive = lab.drive("file")
    write_image(Path(drive.where.path), BUILT, note="installed by a test")
    spec = replace(lab.spec(drive), hvparams={})
    await deep.start(spec)
    try:
        async with lab.inside(deep, spec) as inside:
            await inside.wait_ready()
            system = await inside.run("cat /etc/moorage-system")
            assert system == f"disk {drive.disk[:20]} installed by a test\n"
            await deep.reboot(spec.uuid)
            await inside.run("cat /proc/uptime")
    finally:
        await deep.stop(spec.uuid, 0)


async def test_a_guest_powers_down_when_asked_or_by_itself(lab, alpha, beta):
    begin = time.monotonic()
    await lab.two.stop(beta.uuid, 240)
    assert time.monotonic() - begin < 200  # after 240 s it would have been killed
    assert await state(lab.two, beta) is None
    await lab.two.stop(beta.uuid, 30)
    async with lab.inside(lab.one, alpha) as inside:
        with pytest.raises(Failed):
            await inside.run("poweroff -f")
    assert await state(lab.one, alpha) is None
    assert await lab.one.guests() == []
