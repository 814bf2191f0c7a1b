# SPDX-License-Identifier: BSD-2-Clause
"""Another volume for a drive of a running guest: QEMU writes to both, then changes.

QEMU itself says how far it is. Its job is named after the stack that it copies, and
stays listed when it has ended; which stack the drive is on, the device says. So whoever
asks again, after a crash or a lost answer, finds what to do.
"""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from moorage.errors import Failed
from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.base import Drive
from moorage.node.text import clean
from moorage.protocol import Report
from moorage.units import MIB

from . import blockdev, hotplug, migration, shapes
from .blockdev import Stack
from .migration import Talk
from .monitor import Monitor, Refusal
from .openings import Images

_PREFIX, _BACK = "mirror-", "back-"
_LOOK = 0.2
"""Seconds between two looks at a mirror that is under way."""
_POLL = 0.01
"""Seconds between two looks while the guest stands still."""
_STANDSTILL = 20.0
"""Seconds that the change may take before the guest goes on with what it had."""
_SAID = 2000
_ERRORS = {
    "nospace": "there is no room for the new one",
    "failed": "it cannot be read, or the new one cannot be written",
}


class Mirror(NamedTuple):
    """A mirror that QEMU knows: from one stack to the other, and its job."""

    old: Stack
    new: Stack
    job: shapes.Job

    @property
    def ended(self) -> bool:
        """Whether nothing is copied any more."""
        return self.job.status == "concluded"


async def _found(monitor: Monitor, disk: str) -> Mirror | None:
    """Return the mirror of a disk, if there is one."""
    jobs = {one.id: one for one in await _jobs(monitor)}
    first, second = blockdev.stacks(disk)
    for old, new in ((first, second), (second, first)):
        job = jobs.get(_PREFIX + old.upper)
        if job:
            return Mirror(old, new, job)
    return None


async def _jobs(monitor: Monitor) -> list[shapes.Job]:
    return await monitor.read(shapes.Jobs, "query-jobs")


async def start(
    talk: Talk,
    disk: str,
    new: Drive,
    rate: int,
    images: Images | None,
    given: Parameters,
) -> None:
    """Begin to mirror a drive, unless it is mirrored already."""
    async with talk() as monitor:
        if await _found(monitor, disk):
            return
        now = await hotplug.root(monitor, disk)
        first, second = blockdev.stacks(disk)
        old, other = (first, second) if now == first.upper else (second, first)
        await hotplug.close_stack(monitor, other)  # of an attempt that was interrupted
        try:
            await hotplug.open_stack(monitor, new, other, images, given)
            await _check_size(monitor, old, other)
            await _mirror(monitor, disk, old, other, rate)
        except Failed as error:
            await hotplug.close_stack(monitor, other)
            raise _stays(monitor, disk, error.message) from None


async def _check_size(monitor: Monitor, old: Stack, new: Stack) -> None:
    sizes = await hotplug.sizes(monitor)
    if sizes[new.upper] < sizes[old.upper]:
        raise Failed(
            f"its volume has {sizes[old.upper] // MIB} MiB, and the new one "
            f"{sizes[new.upper] // MIB} MiB",
            hint="gnt-cluster repair-disk-sizes",
        )


async def _mirror(
    monitor: Monitor, disk: str, old: Stack, new: Stack, rate: int
) -> None:
    """Copy what there is; what the guest writes goes to both at once.

    So once all is copied the two stay equal, however much the guest writes. At an error
    the job stands still and waits to be given up: see :func:`_cancel`.
    """
    await monitor.ask(
        "blockdev-mirror",
        job_id=_PREFIX + old.upper,
        device=old.upper,
        target=new.upper,
        filter_node_name=blockdev.filter_name(disk),
        sync="full",
        copy_mode="write-blocking",
        on_source_error="stop",
        on_target_error="stop",
        auto_dismiss=False,
        speed=rate * MIB,
    )


async def follow(talk: Talk, disk: str, report: Report) -> None:
    """Wait until the two volumes are equal, and tell how far they are.

    Raises
    ------
    Failed
        If that will never be.
    """
    while True:
        async with talk() as monitor:
            found = await _found(monitor, disk)
            if found is None:
                raise _stays(monitor, disk, "there is no mirror of it")
            _tell(found.job, report)
            await _check(monitor, found.job, disk)
            if found.job.status == "ready":
                return
        await asyncio.sleep(_LOOK)


async def _check(monitor: Monitor, job: shapes.Job, disk: str) -> None:
    """Fail if a job has failed, or has met an error and stands still."""
    if job.error:
        raise _stays(monitor, disk, clean(job.error[:_SAID]))
    for one in await monitor.read(shapes.BlockJobs, "query-block-jobs"):
        if one.device == job.id and one.io_status in _ERRORS:
            raise _stays(monitor, disk, _ERRORS[one.io_status])


def _tell(job: shapes.Job, report: Report) -> None:
    done, total = job.current_progress // MIB, job.total_progress // MIB
    report(done, max(total, 1), "MiB", "mirrored")


async def switch(talk: Talk, disk: str) -> None:
    """Stop the guest, and put its drive on the new volume, which is equal then.

    QEMU flushes both when it stops a guest, and the new one once more at the end.
    """
    async with talk() as monitor:
        found = await _found(monitor, disk)
        if found is None:
            raise _stays(monitor, disk, "there is no mirror of it")
        if await hotplug.root(monitor, disk) == found.new.upper:
            return
        await _stop(monitor)
        try:
            await _finish(monitor, found.job.id, disk)
            if await hotplug.root(monitor, disk) != found.new.upper:
                raise _stays(monitor, disk, "QEMU did not switch it")
        except Failed:
            # A job that is asked to end would change the drive of a guest that runs.
            await _cancel(monitor, found.job.id)
            await _go_on(monitor)
            raise


async def _finish(monitor: Monitor, job: str, disk: str) -> None:
    """Complete a job whose two sides are equal, while the guest stands still."""
    clock = asyncio.get_running_loop().time
    end = clock() + _STANDSTILL
    asked = False
    while clock() < end:
        listed = {one.id: one for one in await _jobs(monitor)}
        now = listed[job]
        await _check(monitor, now, disk)
        if now.status == "concluded":
            return
        if now.status == "ready" and not asked:
            await monitor.ask("job-complete", id=job)
            asked = True
        await asyncio.sleep(_POLL)
    raise _stays(monitor, disk, f"its volumes were not equal in {_STANDSTILL:.0f} s")


async def split(talk: Talk, disk: str) -> None:
    """End a mirror whose volumes are equal: the new one is a copy of this moment.

    QEMU's word for it is to cancel a job that is ready; it flushes the copy first.
    """
    async with talk() as monitor:
        found = await _found(monitor, disk)
        if found is None:
            return  # it was done, and the answer was lost
        if found.job.status == "ready":
            await monitor.ask("block-job-cancel", device=found.job.id, force=False)
        while not await _has_ended(monitor, found.job.id):  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        ended = await _found(monitor, disk)
        if ended and ended.job.error:
            raise _stays(monitor, disk, clean(ended.job.error[:_SAID]))
        await hotplug.close_stack(monitor, found.new)
        await monitor.ask("job-dismiss", id=found.job.id)


async def settle(talk: Talk, disk: str, report: Report) -> None:
    """Let the guest go on, and close the volume that it had."""
    async with talk() as monitor:
        found = await _found(monitor, disk)
        await migration.run_again(monitor)
        if found is None:
            return
        try:
            await hotplug.close_stack(monitor, found.old)
        except Failed as error:
            report(0, 0, "log", f"Warning: the old volume stays open: {error.message}")
        await monitor.ask("job-dismiss", id=found.job.id)


async def drop(talk: Talk, disk: str) -> None:
    """End the mirror of a disk: the guest goes on with the volume that it had."""
    async with talk() as monitor:
        found = await _found(monitor, disk)
        if found is None:
            await _close_other(monitor, disk)
            return
        if not found.ended:
            await _end_while_still(monitor, found.job.id)
        if await hotplug.root(monitor, disk) == found.new.upper:
            await _switch_back(monitor, disk, found)
        await _go_on(monitor)
        await hotplug.close_stack(monitor, found.new)
        await monitor.ask("job-dismiss", id=found.job.id)


async def _go_on(monitor: Monitor) -> None:
    """Let the guest run again, unless a drive of it is on a new volume.

    What it wrote there would be lost when that one is given up, too.
    """
    for disk in await hotplug.plugged(monitor):
        found = await _found(monitor, disk)
        if found and await hotplug.root(monitor, disk) == found.new.upper:
            return
    await migration.run_again(monitor)


async def _close_other(monitor: Monitor, disk: str) -> None:
    """Close what a mirror that did not begin has opened."""
    if disk in await hotplug.plugged(monitor):
        now = await hotplug.root(monitor, disk)
        for stack in blockdev.stacks(disk):
            if stack.upper != now:
                await hotplug.close_stack(monitor, stack)


async def _stop(monitor: Monitor) -> None:
    """Let the guest stand still; if QEMU takes too long for it, not any later either.

    It stops a guest when all is done that is on its way, and tells it after that.
    """
    try:
        await monitor.ask("stop")
    except Failed:
        await _go_on(monitor)
        raise


async def _end_while_still(monitor: Monitor, job: str) -> None:
    await _stop(monitor)
    try:
        await _cancel(monitor, job)
    except Failed:
        await _go_on(monitor)
        raise


async def _cancel(monitor: Monitor, job: str) -> None:
    """End a job of a guest that stands still.

    QEMU frees the job's tables before it waits for what the guest writes to both
    volumes just then, and dies of it, today or later. So nothing may be on its way.
    """
    with suppress(Refusal):  # it ended just now, or is about to
        await monitor.ask("job-cancel", id=job)
    while not await _has_ended(monitor, job):  # noqa: ASYNC110 - no event is let in
        await asyncio.sleep(_POLL)


async def _has_ended(monitor: Monitor, job: str) -> bool:
    jobs = await _jobs(monitor)
    return all(one.status == "concluded" for one in jobs if one.id == job)


async def _switch_back(monitor: Monitor, disk: str, found: Mirror) -> None:
    """Put the drive of a guest that stands still on the old volume: it is equal."""
    job = _BACK + found.new.upper
    if any(one.id == job for one in await _jobs(monitor)):
        await _cancel(monitor, job)
        await monitor.ask("job-dismiss", id=job)
    await monitor.ask(
        "blockdev-mirror",
        job_id=job,
        device=found.new.upper,
        target=found.old.upper,
        filter_node_name=blockdev.filter_name(disk),
        sync="none",
        auto_dismiss=False,
    )
    await _finish(monitor, job, disk)
    await monitor.ask("job-dismiss", id=job)


def _stays(monitor: Monitor, disk: str, cause: str) -> Failed:
    return Failed(
        f"guest {monitor.guest} keeps the volume of disk {disk} that it has: {cause}"
    )
