# SPDX-License-Identifier: BSD-2-Clause
"""Copies of a running guest's drives, all of one moment.

QEMU copies: from the moment on at which its jobs begin, all in one transaction, it
saves what the guest is about to overwrite before it lets it. So a dump has what was
there at that moment, whatever the storage is, and the guest goes on.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from moorage.errors import Failed
from moorage.node.hypervisors.base import Target
from moorage.protocol import Report, Writing
from moorage.units import MIB

from . import blockdev, shapes
from .hotplug import root
from .migration import Talk
from .monitor import Monitor, Refusal
from .openings import Images, opened_file
from .shapes import FdSet, Job, Jobs

_JOB = "dump-"
_NODE = "t-"
_LOOK = 0.5
"""Seconds between two looks at how far the jobs are."""
_RELEASE, _POLL = 30.0, 0.05
"""Seconds that cancelled jobs may take to end, and between two looks."""


async def dump(
    talk: Talk,
    targets: Sequence[Target],
    writing: Writing,
    images: Images | None,
    report: Report,
) -> None:
    """Copy drives into files that are there, and large enough.

    Raises
    ------
    Failed
        If QEMU cannot; or if the copying was ended by :func:`end`.
    """
    async with talk() as monitor:
        await end(monitor)  # of what an interrupted attempt left
        try:
            await _begin(monitor, targets, writing, images)
        except Failed:
            await end(monitor)
            raise
    try:
        await _watched(talk, len(targets), report)
    finally:
        async with talk() as monitor:
            await end(monitor)


async def _begin(
    monitor: Monitor,
    targets: Sequence[Target],
    writing: Writing,
    images: Images | None,
) -> None:
    """Start the jobs, all of them or none."""
    sets = await monitor.read(list[FdSet], "query-fdsets")
    numbers = count(1 + max((one.fdset_id for one in sets), default=0))
    for target in targets:
        number = next(numbers)
        with opened_file(images, target.path) as found:
            await monitor.give_file(number, found, f"{_JOB}{target.disk}")
        await monitor.ask("blockdev-add", **_node(target, number))
    actions = [
        {
            "type": "blockdev-backup",
            "data": _copying(target, await root(monitor, target.disk), writing),
        }
        for target in targets
    ]
    together = {"completion-mode": "grouped"}
    await monitor.ask("transaction", actions=actions, properties=together)


def _node(target: Target, number: int) -> dict[str, object]:
    file = {"driver": "file", "filename": f"/dev/fdset/{number}", "discard": "unmap"}
    return {
        "driver": target.form,
        "node-name": blockdev.dump_name(target.disk),
        "discard": "unmap",
        "detect-zeroes": "unmap",
        "file": file,
    }


def _copying(target: Target, source: str, writing: Writing) -> dict[str, object]:
    return {
        "job-id": f"{_JOB}{target.disk}",
        "device": source,
        "target": blockdev.dump_name(target.disk),
        "sync": "full",
        "speed": writing.rate * MIB,
        "compress": writing.compress,
        "auto-dismiss": False,
    }


async def _watched(talk: Talk, wanted: int, report: Report) -> None:
    """Wait for the end of all jobs, and tell how far they are."""
    while True:
        async with talk() as monitor:
            jobs = await _jobs(monitor)
        if len(jobs) < wanted:
            raise Failed("the copying of the guest's disks was ended")
        over = [job for job in jobs if job.status == "concluded"]
        broken = next((job.error for job in over if job.error), "")
        if broken:
            raise Failed(f"QEMU cannot copy the guest's disks: {broken}")
        done = sum(job.current_progress for job in jobs) // MIB
        total = sum(job.total_progress for job in jobs) // MIB
        report(min(done, total), total, "MiB", "copy the running guest's disks")
        if len(over) == wanted:
            return
        await asyncio.sleep(_LOOK)


async def end(monitor: Monitor) -> bool:
    """End the jobs, and let go of the files they wrote to; return if there were any."""
    found = False
    loop = asyncio.get_running_loop()
    limit = loop.time() + _RELEASE
    while jobs := await _jobs(monitor):
        found = True
        for job in jobs:
            over = job.status == "concluded"
            with suppress(Refusal):  # it ended this very moment, or is about to
                await monitor.ask("job-dismiss" if over else "job-cancel", id=job.id)
        if loop.time() > limit:
            raise Failed(f"QEMU of guest {monitor.guest} does not end its copying")
        await asyncio.sleep(_POLL)
    nodes = await monitor.read(
        list[shapes.BlockNode], "query-named-block-nodes", flat=True
    )
    for node in nodes:
        if node.node_name.startswith(_NODE):
            await monitor.ask("blockdev-del", node_name=node.node_name)
    for one in await monitor.read(list[FdSet], "query-fdsets"):
        if any(file.opaque.startswith(_JOB) for file in one.fds):
            await monitor.ask("remove-fd", fdset_id=one.fdset_id)
    return found


async def _jobs(monitor: Monitor) -> list[Job]:
    """Return the jobs that copy drives."""
    found = await monitor.read(Jobs, "query-jobs")
    return [job for job in found if job.id.startswith(_JOB)]
