# SPDX-License-Identifier: BSD-2-Clause
"""Drives of a running guest: plugged, unplugged, grown, over its monitor.

QEMU itself is asked what is plugged; nothing about drives is remembered elsewhere.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import count

from moorage.errors import Failed
from moorage.model.hvparams import Parameters
from moorage.model.objects import MOST_DISKS
from moorage.node.hypervisors.base import Drive
from moorage.node.machine import proc

from . import blockdev, devices, shapes, slots, throttling
from .blockdev import Data, Stack
from .monitor import Monitor, Refusal
from .openings import Images, opened
from .shapes import FdSet

_PORT = re.compile(r"/port(\d{1,3})(?:/|$)", re.ASCII)
_POLL = 0.02
_RELEASE = 5.0


async def layout(monitor: Monitor) -> dict[str, int]:
    """Return the port of each disk that is plugged."""
    ports = {
        disk: await devices.number_at(monitor, blockdev.device_name(disk), _PORT)
        for disk in await plugged(monitor)
    }
    return {disk: port for disk, port in ports.items() if port is not None}


async def plugged(monitor: Monitor) -> list[str]:
    """Return the disks that are plugged."""
    names = await devices.plugged(monitor)
    return [disk for name in names if (disk := blockdev.disk_of(name))]


def free_port(
    slot: int, taken: Collection[int], ports: range = range(MOST_DISKS)
) -> int | None:
    """Return the port of the slot, or the first free one; None if all are taken."""
    tried = (*ports[slot : slot + 1], *ports)
    return next((port for port in tried if port not in taken), None)


def assigned(
    drives: Iterable[Drive],
    wanted: Mapping[str, int],
    given: Parameters,
    cards: Collection[int] = (),
) -> dict[str, int]:
    """Return a port for each of the drives of a guest that is to be started.

    Parameters
    ----------
    wanted
        Ports that disks must have.
    cards
        Where its network cards sit.

    Raises
    ------
    Failed
        If the guest has more drives than ports.
    """
    ports = dict(wanted)
    for drive in drives:
        if drive.disk not in ports:
            taken = {*ports.values(), *slots.beside(given, cards)}
            ports[drive.disk] = _port_for(drive, taken, "the guest", given)
    return ports


def _port_for(
    drive: Drive, taken: Collection[int], guest: str, given: Parameters
) -> int:
    port = free_port(drive.slot, taken, slots.of_disks(given))
    if port is None and given.is_pc:
        raise slots.full_of_disks(guest, given)
    if port is None:
        raise Failed(
            f"{guest} has no free port for disk {drive.disk}: all {MOST_DISKS} are "
            "taken",
            hint="detach a disk first",
        )
    return port


async def plug(
    monitor: Monitor, drive: Drive, images: Images | None, given: Parameters
) -> None:
    """Plug a drive; one that is plugged is left alone."""
    ports = await layout(monitor)
    if drive.disk in ports:
        return
    if given.on_ide:
        raise Failed(f"guest {monitor.guest} has its disks on IDE: none can be plugged")
    own = given.is_pc and given.disk_places is None
    taken = await devices.taken(monitor) if own else {*ports.values()}
    port = _port_for(drive, taken, f"guest {monitor.guest}", given)
    await let_go(monitor, drive.disk)  # of what an interrupted attempt left
    stack = blockdev.stacks(drive.disk)[0]
    try:
        await open_stack(monitor, drive, stack, images, given)
        await monitor.ask("device_add", **blockdev.device(drive, port, given))
        await throttling.begin(monitor, [drive])
    except Failed as error:
        await let_go(monitor, drive.disk)
        said = error.said if isinstance(error, Refusal) else error.message
        raise Failed(
            f"guest {monitor.guest} cannot get disk {drive.disk}: {said}",
            hint=error.hint,
            guest=monitor.guest,
            disk=drive.disk,
        ) from None


async def open_stack(
    monitor: Monitor,
    drive: Drive,
    stack: Stack,
    images: Images | None,
    given: Parameters,
) -> None:
    """Open a drive's data for QEMU, as a stack that no device has yet."""
    lower = stack.lowers[0]
    async with _handed_over(monitor, drive, stack.mark, images) as data:
        await _add(monitor, blockdev.lower_node(drive, data, lower, given))
    await _add(monitor, blockdev.upper_node(drive, data, stack.upper, lower, given))


@asynccontextmanager
async def _handed_over(
    monitor: Monitor, drive: Drive, mark: str, images: Images | None
) -> AsyncIterator[Data]:
    """Open a drive's data, and give them to QEMU, which opens its node meanwhile."""
    sets = await monitor.read(list[FdSet], "query-fdsets")
    taken = (one.fdset_id for one in sets)
    numbers = count(1 + max(taken, default=0))
    found = await asyncio.to_thread(opened, drive, images, numbers, "connection")
    try:
        for number, descriptor in found.sets.items():
            await monitor.give_file(number, descriptor, mark)
        for name, descriptor in found.connections.items():
            await monitor.give(name, descriptor)
        data = found.data
        for descriptor in found.texts:
            there = await monitor.give_file(next(numbers), descriptor, mark)
            data = data.renamed(proc.descriptor(descriptor), proc.descriptor(there))
        yield data
    finally:
        found.close()


async def _add(monitor: Monitor, node: dict[str, object]) -> None:
    await monitor.ask("blockdev-add", **node)


async def sizes(monitor: Monitor) -> dict[str, int]:
    """Return the size in bytes of every block node, by name."""
    nodes = await monitor.read(
        list[shapes.BlockNode], "query-named-block-nodes", flat=True
    )
    return {node.node_name: node.image.virtual_size for node in nodes}


async def let_go(monitor: Monitor, disk: str) -> None:
    """Close the block nodes and files of a disk whose device is gone."""
    for stack in blockdev.stacks(disk):
        await close_stack(monitor, stack)


async def close_stack(monitor: Monitor, stack: Stack) -> None:
    """Close the block nodes and files of a stack that no device has."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _RELEASE
    for name in (stack.upper, *stack.lowers):
        while name in await sizes(monitor):
            try:
                await monitor.ask("blockdev-del", node_name=name)
            except Refusal:  # a request may still be under way
                if loop.time() > end:
                    raise
                await asyncio.sleep(_POLL)
    for one in await monitor.read(list[FdSet], "query-fdsets"):
        if any(file.opaque == stack.mark for file in one.fds):
            await monitor.ask("remove-fd", fdset_id=one.fdset_id)


async def resize(
    monitor: Monitor, drive: Drive, images: Images | None, given: Parameters
) -> None:
    """Make the guest see the drive's new size; a larger drive is left alone."""
    size = drive.size << 20
    name = await root(monitor, drive.disk)
    now = (await sizes(monitor)).get(name)
    if now is None:
        raise _has_not(monitor, drive.disk)
    if now >= size:
        return
    if blockdev.grows_by_reopening(drive):
        stack = next(one for one in blockdev.stacks(drive.disk) if one.upper == name)
        await _reopen(monitor, drive, stack, images, given)
    await monitor.ask("block_resize", node_name=name, size=size)


async def root(monitor: Monitor, disk: str) -> str:
    """Return the name of the block node that a disk's device has.

    Raises
    ------
    Failed
        If the guest does not have the disk.
    """
    path = f"{devices.PLACE}/{blockdev.device_name(disk)}"
    try:
        return await monitor.read(str, "qom-get", path=path, property="drive")
    except Refusal:
        raise _has_not(monitor, disk) from None


def _has_not(monitor: Monitor, disk: str) -> Failed:
    return Failed(f"guest {monitor.guest} does not have disk {disk}")


async def _reopen(
    monitor: Monitor,
    drive: Drive,
    stack: Stack,
    images: Images | None,
    given: Parameters,
) -> None:
    """Put the disk's upper node onto a new connection, which sees the new size."""
    old, new = await _turns(monitor, drive.disk, stack)
    async with _handed_over(monitor, drive, stack.mark, images) as data:
        await _add(monitor, blockdev.lower_node(drive, data, new, given))
    try:
        upper = blockdev.upper_node(drive, data, stack.upper, new, given)
        await monitor.ask("blockdev-reopen", options=[upper])
    except Refusal:
        await monitor.ask("blockdev-del", node_name=new)
        raise
    await monitor.ask("blockdev-del", node_name=old)


async def _turns(monitor: Monitor, disk: str, stack: Stack) -> tuple[str, str]:
    """Return the lower node in use, and the free name for the next one."""
    names = stack.lowers
    for name in set(names) & set(await sizes(monitor)):
        try:
            await monitor.ask("blockdev-del", node_name=name)
        except Refusal:  # this one is in use
            return (name, names[1 - names.index(name)])
    raise Failed(f"disk {disk} of guest {monitor.guest} has no block node in use")
