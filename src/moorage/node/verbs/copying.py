# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that bring one disk's data to another: by qemu-img, or by the guest's QEMU."""

from moorage.node.hypervisors.base import Drive
from moorage.node.hypervisors.kvm import blockdev
from moorage.protocol import (
    AwaitMirror,
    CopyDisk,
    DropMirror,
    MirrorDisk,
    Report,
    SettleMirror,
    SplitMirror,
    SwitchMirror,
)
from moorage.protocol.verb import A_MONTH
from moorage.storage import Command, Opened, Outcome, Progress
from moorage.storage.uri import image_name

from .context import NodeContext


async def copy(at: NodeContext, args: CopyDisk, report: Report) -> Outcome:
    """Copy all data of a disk to another one; both are attached here, and at rest.

    The program says no where the source is larger: nothing is cut off.
    """
    await at.run(copying(at.drive(args.disk), at.drive(args.to), args.rate), report)
    return Outcome.CHANGED


def copying(source: Drive, target: Drive, rate: int) -> Command:
    """Return the command that copies one volume to another one, holes as holes.

    What is written is on the storage when it ends (``-t writeback``; qemu-img's own
    choice is not to care).
    """
    names = (_name(source), _name(target))
    limit = ("-r", f"{rate}M") if rate else ()
    known = ("-p", "-n", "-f", "raw", "-O", "raw", "-t", "writeback", *limit)
    return Command(
        ("qemu-img", "convert", *known, *names),
        images={
            name: Opened.FILE
            for name, drive in zip(names, (source, target), strict=True)
            if name == drive.where.path and not drive.where.block
        },
        progress=Progress("copied", source.size, "MiB"),
        limit=A_MONTH,
    )


def _name(drive: Drive) -> str:
    """Return what qemu-img calls a volume."""
    place = blockdev.source(drive)
    return place if place == drive.where.path else image_name(place)


async def mirror(at: NodeContext, args: MirrorDisk, report: Report) -> None:
    """Begin to copy a running guest's disk, and to write to both.

    Where the guest is none, nobody writes: a program copies what is there.
    """
    new = at.drive(args.to, args.slot)
    at.attachments.lend(args.to.uuid, args.hypervisor, args.uuid)
    hypervisor = at.hypervisor(args.hypervisor)
    if hypervisor.pretends:
        await at.run(copying(at.drive(args.disk), new, args.rate), report)
    await hypervisor.mirror(args.uuid, args.disk.uuid, new, args.rate)


async def follow(at: NodeContext, args: AwaitMirror, report: Report) -> None:
    """Wait until the two volumes of a mirror are equal."""
    await at.hypervisor(args.hypervisor).follow_mirror(args.uuid, args.of, report)


async def switch(at: NodeContext, args: SwitchMirror, _report: Report) -> None:
    """Let a guest stand still, and give it the new disk, which is equal then."""
    hypervisor = at.hypervisor(args.hypervisor)
    await hypervisor.switch(args.uuid, args.disk.uuid)


async def split(at: NodeContext, args: SplitMirror, _report: Report) -> None:
    """End a mirror: the other disk is a copy of this moment."""
    await at.hypervisor(args.hypervisor).split(args.uuid, args.disk.uuid)
    at.attachments.take_back(args.to.uuid)


async def settle(at: NodeContext, args: SettleMirror, report: Report) -> None:
    """Let a guest that was switched go on, and close what it had before."""
    where = at.attachments.get(args.to.uuid)
    if where:  # else this was done, and its answer was lost
        at.attachments.put(args.disk, where)
        at.attachments.use(args.disk.uuid, args.hypervisor, args.uuid)
    hypervisor = at.hypervisor(args.hypervisor)
    if await hypervisor.find(args.uuid):
        await hypervisor.settle(args.uuid, args.disk.uuid, report)
    at.attachments.drop(args.to.uuid)


async def drop(at: NodeContext, args: DropMirror, _report: Report) -> None:
    """Give a mirror up: the guest goes on with the disk that it had."""
    hypervisor = at.hypervisor(args.hypervisor)
    if await hypervisor.find(args.guest):
        await hypervisor.drop_mirror(args.guest, args.of)
    at.attachments.take_back(args.disk.uuid)


VERBS = (
    CopyDisk.done_by(copy),
    MirrorDisk.done_by(mirror),
    AwaitMirror.done_by(follow),
    SwitchMirror.done_by(switch),
    SplitMirror.done_by(split),
    SettleMirror.done_by(settle),
    DropMirror.done_by(drop),
)
"""Every verb that brings data from one disk to another."""
