# SPDX-License-Identifier: BSD-2-Clause
"""Another volume for a drive of a real guest that writes to it all the time."""

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import Failed
from moorage.node.hypervisors.kvm import Kvm
from moorage.node.hypervisors.kvm.monitor import conversation

pytestmark = pytest.mark.real

WRITER = """mke2fs -q {0} >/dev/null && mount -t ext4 {0} /mnt && cd /
    (i=0; while [ ! -e /stop ]; do i=$((i+1)); echo $i >> /mnt/log; sync
    usleep 5000; done) </dev/null >/dev/null 2>&1 &"""
CHECK = """touch /stop; usleep 300000; n=$(wc -l < /mnt/log)
    seq 1 $n | cmp - /mnt/log && umount /mnt && echo $n; rm /stop"""

BUSY = """(while [ ! -e /stop ]; do dd if=/dev/zero of={0} bs=64k count=64 oflag=direct
    done) </dev/null >/dev/null 2>&1 &"""
"""Writes all the time, where QEMU's tables of a mirror begin."""


def silent(*_):
    pass


@pytest.fixture(scope="module")
def alpha(lab):
    spec = lab.spec()
    asyncio.run(lab.one.start(spec))
    return spec


async def nodes(lab, spec):
    """Return the names of QEMU's block nodes, and of its jobs."""
    async with conversation(lab.one._home(spec.uuid)) as monitor:
        named = await monitor.ask("query-named-block-nodes", flat=True)
        jobs = await monitor.ask("query-jobs")
    return {one["node-name"] for one in named}, [one["id"] for one in jobs]


async def state(lab, spec):
    return (await lab.one.find(spec.uuid)).state


@pytest.mark.parametrize("kinds", [("file", "nbd"), ("nbd", "file")])
async def test_a_guest_writes_on_while_its_disk_gets_another_volume(lab, alpha, kinds):
    old, other = map(lab.drive, kinds)
    new = replace(other, disk=old.disk)
    seen = []
    await lab.one.plug(alpha.uuid, old)
    async with lab.inside(lab.one, alpha) as inside:
        device = await inside.disk(old.disk)
        await inside.run(WRITER.format(device))
        for _ in range(2):  # the second one carries on with the first
            await lab.one.mirror(alpha.uuid, old.disk, other, 0)
            await lab.one.follow_mirror(
                alpha.uuid, old.disk, lambda *step: seen.append(step)
            )
        for _ in range(2):
            await lab.one.switch(alpha.uuid, old.disk)
        assert await state(lab, alpha) == "paused"
        for _ in range(2):
            await lab.one.settle(alpha.uuid, old.disk, silent)
        assert await state(lab, alpha) == "running"
        assert seen[-1][2] == "MiB"
        assert seen[-1][0] == seen[-1][1]
        named, jobs = await nodes(lab, alpha)
        assert jobs == []
        assert len(named) == 2
        larger = replace(lab.grow(other, 48), disk=old.disk)
        await lab.one.resize(alpha.uuid, larger)
        async with asyncio.timeout(180):
            while await inside.size(old.disk) != 48 << 20:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert int(await inside.run(CHECK)) > 0
    await lab.one.unplug(alpha.uuid, new.disk)
    assert await nodes(lab, alpha) == (set(), [])


async def begun(lab, alpha, kinds=("file", "file")):
    """Plug a disk that the guest writes to, and mirror it; return both drives."""
    old, other = map(lab.drive, kinds)
    await lab.one.plug(alpha.uuid, old)
    async with lab.inside(lab.one, alpha) as inside:
        await inside.run(WRITER.format(await inside.disk(old.disk)))
    await lab.one.mirror(alpha.uuid, old.disk, other, 0)
    await lab.one.follow_mirror(alpha.uuid, old.disk, silent)
    return old, other


async def ended(lab, alpha, disk):
    """Check what the guest wrote, and take the disk away."""
    async with lab.inside(lab.one, alpha) as inside:
        assert int(await inside.run(CHECK)) > 0
    await lab.one.unplug(alpha.uuid, disk)
    assert await nodes(lab, alpha) == (set(), [])


@pytest.mark.parametrize("switched", [False, True])
async def test_a_mirror_is_given_up_at_any_time(lab, alpha, switched):
    old, _ = await begun(lab, alpha)
    if switched:
        await lab.one.switch(alpha.uuid, old.disk)
    again = Kvm(lab.one.run_dir, images=lab.images)  # an agent that was started again
    for _ in range(2):
        await again.drop_mirror(alpha.uuid, old.disk)
    assert await state(lab, alpha) == "running"
    assert len((await nodes(lab, alpha))[0]) == 2
    assert Path(old.where.path).read_bytes() != bytes(32 << 20)
    await ended(lab, alpha, old.disk)


async def test_of_two_disks_that_are_given_up_neither_loses_what_was_written(
    lab, alpha
):
    """The guest stands still until the last one is back on the volume on record."""
    other, to = lab.drive("file"), lab.drive("file")
    await lab.one.plug(alpha.uuid, other)
    await lab.one.mirror(alpha.uuid, other.disk, to, 0)
    await lab.one.follow_mirror(alpha.uuid, other.disk, silent)
    old, _ = await begun(lab, alpha)
    for disk in (old.disk, other.disk):
        await lab.one.switch(alpha.uuid, disk)
    await lab.one.drop_mirror(alpha.uuid, other.disk)
    assert await state(lab, alpha) == "paused"
    await lab.one.drop_mirror(alpha.uuid, old.disk)
    assert await state(lab, alpha) == "running"
    await lab.one.unplug(alpha.uuid, other.disk)
    await ended(lab, alpha, old.disk)


async def test_storage_that_dies_leaves_the_guest_its_old_volume(lab, alpha):
    old, _ = await begun(lab, alpha, ("file", "nbd"))
    lab._daemons[-1].kill()
    with pytest.raises(Failed, match="keeps the volume"):
        await lab.one.switch(alpha.uuid, old.disk)
    assert await state(lab, alpha) == "running"
    with pytest.raises(Failed):
        await lab.one.follow_mirror(alpha.uuid, old.disk, silent)
    await lab.one.drop_mirror(alpha.uuid, old.disk)
    await ended(lab, alpha, old.disk)


@pytest.mark.parametrize("kind", ["file", "nbd"])
async def test_a_guest_outlives_mirrors_that_end_while_it_writes(lab, alpha, kind):
    """QEMU died of it: it frees a mirror's tables before it waits for such writes."""
    old, other = lab.drive("file"), lab.drive(kind)
    await lab.one.plug(alpha.uuid, old)
    async with lab.inside(lab.one, alpha) as inside:
        device = await inside.disk(old.disk)
        for _ in range(3):
            await inside.run(BUSY.format(device))
        for _ in range(8):
            await lab.one.mirror(alpha.uuid, old.disk, other, 1)
            await asyncio.sleep(0.05)
            await lab.one.drop_mirror(alpha.uuid, old.disk)
        if kind == "nbd":
            await lab.one.mirror(alpha.uuid, old.disk, other, 1)
            lab._daemons[-1].kill()
            with pytest.raises(Failed, match="the new one cannot be written"):
                await lab.one.follow_mirror(alpha.uuid, old.disk, silent)
            await lab.one.drop_mirror(alpha.uuid, old.disk)
        assert await state(lab, alpha) == "running"
        await inside.run("touch /stop; usleep 500000; rm /stop")
    await lab.one.unplug(alpha.uuid, old.disk)
    assert await nodes(lab, alpha) == (set(), [])


async def test_a_volume_that_is_too_small_is_refused(lab, alpha):
    old, other = lab.drive("file"), lab.drive("file")
    await lab.one.plug(alpha.uuid, old)
    os.truncate(other.where.path, 16 << 20)
    with pytest.raises(Failed, match="has 32 MiB, and the new one 16 MiB"):
        await lab.one.mirror(alpha.uuid, old.disk, other, 0)
    assert len((await nodes(lab, alpha))[0]) == 2
    await lab.one.unplug(alpha.uuid, old.disk)
