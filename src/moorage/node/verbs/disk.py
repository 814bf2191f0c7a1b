# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one disk: a template's steps, driven on this node."""

from msgspec.structs import replace

from moorage.disk_templates import limits
from moorage.errors import Exists, Failed, MoorageError, NotSupported, WrongState
from moorage.model import Device, Disk, GuestState
from moorage.model.standstill import NO_ANSWER
from moorage.node.hypervisors.base import Hypervisor
from moorage.node.records.creations import DENIED, MADE, REMOVING, Creation
from moorage.protocol import (
    AttachDisk,
    CloseDisk,
    CreateDisk,
    DetachDisk,
    ForgetDisk,
    GrowDisk,
    NoteDisk,
    OnDisk,
    OpenDisk,
    RemoveDisk,
    Report,
    SizeDisk,
    SnapshotDisk,
    TuneDisk,
    UnmakeDisk,
    VerifyDisk,
)
from moorage.protocol.disk import ALONE, EXCLUSIVE, FOUND, SEIZED
from moorage.storage import Mirrored, Outcome, Steps, Template, Where
from moorage.storage.ownership import could_be_taken, ways_out
from moorage.units import Mib

from .context import NodeContext
from .sizes import URI, measured

REPAIR = "gnt-cluster repair-disk-sizes"
MEASURE = f"gnt-instance activate-disks --ignore-size INSTANCE, then: {REPAIR} INSTANCE"

_LOOKS = 3
"""How often a guest is looked at that does not say what it has; each takes seconds."""


async def create(at: NodeContext, args: CreateDisk, report: Report) -> Outcome:
    """Make the volume; one that is there is none of this node's making."""
    steps = at.template_of(args).create(args.disk)
    if args.disk.was_there:
        return await at.do(steps, report)
    await _check_free(at, args)
    return await _make(at, args, args.disk, steps, report)


async def unmake(at: NodeContext, args: UnmakeDisk, report: Report) -> Outcome:
    """Take back a `create` or `snapshot`, whatever came of it here.

    Only what this node made is destroyed. Where the storage refused, the volume, if
    there is one, is somebody else's; and one that was adopted is, whoever asks.

    Raises
    ------
    Failed
        If nobody can tell whose volume it is.
    """
    making = at.creations.of(args.disk)
    if making is None or args.disk.was_there:
        return Outcome.UNCHANGED  # it never began
    if making.came == DENIED and making.before is None:
        report(0, 0, "log", _left_alone(at, args.disk))
    if making.came == DENIED or making.before:
        at.creations.drop(args.disk)
        return Outcome.UNCHANGED
    if making.before is None and making.came != MADE:
        _check_own(at, args.disk, making)
    disk = replace(args.disk, name=None) if making.copy else args.disk
    try:
        await _check_unused(at, disk)
        outcome = await _remove(at, args, disk, report)
    except MoorageError as error:
        error.facts["made"] = True  # so it is ours, whoever removes it later
        raise
    at.creations.drop(disk)
    return outcome


async def remove(at: NodeContext, args: RemoveDisk, report: Report) -> Outcome:
    """Destroy the volume, unless a guest here has it."""
    await _check_unused(at, args.disk)
    if args.sought:
        await _see_once(at, args)
    outcome = await _remove(at, args, args.disk, report)
    if not args.sought:  # else a retry asks again what was seen
        at.creations.drop(args.disk)
    return outcome


async def _remove(
    at: NodeContext, args: OnDisk[Outcome], disk: Disk, report: Report
) -> Outcome:
    outcome = await at.do(at.template_of(args).remove(disk), report)
    at.attachments.drop(disk.uuid)
    return outcome


async def forget(at: NodeContext, args: ForgetDisk, _report: Report) -> Outcome:
    """Drop what the node knows of the disk; its storage is asked for nothing."""
    await _check_unused(at, args.disk)
    at.attachments.drop(args.disk.uuid)
    at.creations.drop(args.disk)
    return Outcome.CHANGED


async def attach(at: NodeContext, args: AttachDisk, report: Report) -> Where:
    """Make the volume usable here, and open it if asked to.

    Raises
    ------
    Failed
        If the device is not the one that the disk's record means.
    """
    template = at.template_of(args)
    where = await at.do(_attaching(template, args), report)
    at.attachments.put(args.disk, where)
    if where.path and where.block:
        _check_device(at, args, await at.machine.device(where.path), report)
    if args.opened not in ("", FOUND):
        await at.do(_opening(template, args))
    if not where.path and not args.ignore_size:  # some are there when they are open
        _check_device(at, args, await measured(at, where, args.hypervisor), report)
    return where


def _attaching(template: Template, args: AttachDisk) -> Steps[Where]:
    if args.opened == FOUND and isinstance(template, Mirrored):
        return template.found(args.disk)
    return template.attach(args.disk)


def _opening(template: Template, args: AttachDisk) -> Steps[Outcome]:
    if args.opened == SEIZED and isinstance(template, Mirrored):
        return template.seize(args.disk)
    if args.opened in (ALONE, SEIZED):
        return _alone(template, args.disk)
    return template.open(args.disk, exclusive=args.opened == EXCLUSIVE)


def _alone(template: Template, disk: Disk) -> Steps[Outcome]:
    """Open for this node alone; a second copy, where there is one, may not follow."""
    if isinstance(template, Mirrored):
        return template.open_alone(disk)
    return template.open(disk, exclusive=True)


async def detach(at: NodeContext, args: DetachDisk, report: Report) -> Outcome:
    """Take back the attach, unless a guest here has the disk."""
    await _check_unused(at, args.disk)
    outcome = await at.do(at.template_of(args).detach(args.disk), report)
    at.attachments.drop(args.disk.uuid)
    return outcome


async def open_(at: NodeContext, args: OpenDisk, _report: Report) -> Outcome:
    """Tell the storage that this node may write."""
    template = at.template_of(args)
    if args.alone:
        return await at.do(_alone(template, args.disk))
    return await at.do(template.open(args.disk, exclusive=args.exclusive))


async def close(at: NodeContext, args: CloseDisk, _report: Report) -> Outcome:
    """Tell the storage that this node stops writing."""
    return await at.do(at.template_of(args).close(args.disk))


async def grow(at: NodeContext, args: GrowDisk, report: Report) -> Outcome:
    """Enlarge the volume.

    Raises
    ------
    Failed
        If the storage said that it did, and the device says otherwise.
    """
    outcome = await at.do(at.template_of(args).grow(args.disk, args.to), report)
    if args.measured:
        # A grown volume may answer elsewhere.
        where = await at.do(at.template_of(args).attach(args.disk))
        at.attachments.put(args.disk, where)
        found = await measured(at, where, args.hypervisor)
        if found.kind and found.size < args.to:
            raise Failed(
                f"the storage of disk {args.disk.label} says that it grew to {args.to} "
                f"MiB, and on node {at.name} it has {found.size} MiB",
                hint=f"{REPAIR} --disk {args.disk.label}, if that is not what its "
                "record says",
                disk=args.disk.uuid,
                node=at.name,
            )
    return outcome


async def size(at: NodeContext, args: SizeDisk, _report: Report) -> Device:
    """Return what the disk is here; what was not attached is detached again."""
    held = at.attachments.get(args.disk.uuid)
    if held:
        return await measured(at, held, args.hypervisor)
    template = at.template_of(args)
    try:
        where = await at.do(template.attach(args.disk))
        await at.do(template.open(args.disk, exclusive=True))
        return await measured(at, where, args.hypervisor)
    finally:
        await at.do(template.detach(args.disk))


async def snapshot(at: NodeContext, args: SnapshotDisk, report: Report) -> Outcome:
    """Make a copy-in-time, as large as the volume is.

    Storage may have rounded it up: a smaller copy would cut its end off.
    """
    held = at.attachments.get(args.disk.uuid)
    real = (await measured(at, held, args.hypervisor)).size if held else Mib(0)
    size = max(args.to, real)
    steps = at.template_of(args).snapshot(args.disk, args.name, size)
    return await _make(at, args, args.copy(), steps, report)


async def verify(at: NodeContext, args: VerifyDisk, report: Report) -> Outcome:
    """Look at the disk's parameters."""
    return await at.do(at.template_of(args).verify(args.disk), report)


async def tune(at: NodeContext, args: TuneDisk, report: Report) -> Outcome:
    """Let a disk that is in use go by its parameters as they are now."""
    template, disk = at.template_of(args), args.disk
    where = at.attachments.get(disk.uuid)
    if where is None:
        return Outcome.UNCHANGED
    if isinstance(template, Mirrored):
        await at.do(template.tune(disk), report)
    old, new = at.attachments.limits(disk.uuid), limits(disk.params)
    # A guest as Ganeti started it cannot be told; of a rate it need not hear.
    for name, uuid in at.attachments.users(disk.uuid) if old or new else ():
        guest = await at.hypervisor(name).find(uuid)
        if guest and disk.uuid in guest.disks:
            await at.hypervisor(name).throttle(uuid, disk.uuid, new)
    at.attachments.put(disk, where)
    return Outcome.CHANGED


async def setinfo(at: NodeContext, args: NoteDisk, _report: Report) -> Outcome:
    """Keep a note beside the volume."""
    return await at.do(at.template_of(args).setinfo(args.disk, args.text))


def _check_device(
    at: NodeContext, args: AttachDisk, found: Device, report: Report
) -> None:
    """Compare what was attached with the record.

    A volume of a provider may be larger than it was asked for (storage rounds up); an
    adopted device has the size that it had, or it is another one.
    """
    disk = args.disk
    if found.kind not in ("block", URI):
        return
    if disk.identity is not None and disk.identity != found.identity:
        raise Failed(
            f"disk {disk.label} is device {disk.identity or '(unnamed)'}, and on node "
            f"{at.name} its path leads to {found.identity or 'an unnamed one'}",
            disk=disk.uuid,
            node=at.name,
        )
    if args.ignore_size or found.size == disk.size:
        return
    told = (
        f"the device of disk {disk.label} has {found.size} MiB on node {at.name}, and "
        f"its record says {disk.size} MiB"
    )
    if disk.identity is not None:
        raise Failed(told, hint=REPAIR, disk=disk.uuid, node=at.name)
    if found.size < disk.size:
        alone = f"while no instance has it: {REPAIR} --disk {disk.label}"
        raise Failed(
            told, hint=f"{alone}; else: {MEASURE}", disk=disk.uuid, node=at.name
        )
    report(0, 0, "log", f"Warning: {told}; {REPAIR} corrects the record")


async def _make(
    at: NodeContext,
    args: OnDisk[object],
    made: Disk,
    steps: Steps[Outcome],
    report: Report,
) -> Outcome:
    """Run steps that make the volume of `made`, and remember what came of them."""
    before = await _there(at, args, made)
    at.creations.begin(made, of=args.disk, before=before)
    try:
        outcome = await at.do(steps, report)
    except MoorageError as error:
        if not error.facts.get("killed"):  # else nobody knows how far it came
            at.creations.end(made, DENIED)
        raise
    at.creations.end(made, MADE)
    return outcome


async def _check_free(at: NodeContext, args: CreateDisk) -> None:
    """Raise `Exists` if a volume of that name was here before anybody asked for it.

    A name of our kind is nobody else's, but a copy of an adopted volume has its name.
    """
    making = at.creations.of(args.disk)
    if making and making.came != REMOVING:
        return  # the first attempt looked
    parts = [replace(args, disk=one) for one in args.disk.children] or [args]
    for part in parts:
        disk = part.disk
        if could_be_taken(disk) and await _there(at, part, disk):
            raise Exists(
                f"node {at.name} has a volume {'/'.join(disk.logical_id)} already, "
                f"which is not that of disk {args.disk.label}: it is not overwritten",
                hint=f"look at it on {at.name}; choose another node, or rename it",
                disk=args.disk.uuid,
                node=at.name,
            )


async def _there(at: NodeContext, args: OnDisk[object], disk: Disk) -> bool | None:
    """Return whether a volume is there; None where the template cannot tell."""
    try:
        await at.do(at.template_of(args).measure(disk))
    except NotSupported:
        return None
    except Failed:
        return False
    return True


def _check_own(at: NodeContext, disk: Disk, making: Creation) -> None:
    """Raise `Failed` if a volume that may have been made may be somebody else's.

    A provider may know a volume by the disk's name, which another cluster may use, too;
    a volume that was asked for without a name can be nobody else's.
    """
    if disk.name and not making.copy:
        raise Failed(
            f"node {at.name} was interrupted while it made volume {disk.volume} of "
            f"disk {disk.label}: nobody can tell whether the volume there is this one",
            hint=ways_out(disk),
            disk=disk.uuid,
        )


def _left_alone(at: NodeContext, disk: Disk) -> str:
    return (
        f"Warning: the storage would not make volume {disk.volume}; node {at.name} "
        "removes nothing, so what was half made, if anything, is still there"
    )


async def _see_once(at: NodeContext, args: RemoveDisk) -> None:
    """Check that the volume is here, or was when an earlier attempt began."""
    known = at.creations.of(args.disk)
    if known is None or known.came != REMOVING:
        await _check_found(at, args)
        at.creations.remove(args.disk)


async def _check_found(at: NodeContext, args: OnDisk[object]) -> None:
    """Raise `WrongState` if this node does not see the volume."""
    try:
        await at.do(at.template_of(args).attach(args.disk))
    except Failed as error:
        raise WrongState(
            f"node {at.name} does not see the volume of disk {args.disk.label}: "
            f"{error.message}",
            disk=args.disk.uuid,
        ) from error
    await at.do(at.template_of(args).detach(args.disk))


async def _check_unused(at: NodeContext, disk: Disk) -> None:
    """Raise `WrongState` while a guest on this node has the disk, or its mirror.

    One whose QEMU does not say what it has, has what it was given.
    """
    borrower = at.attachments.borrower(disk.uuid)
    if borrower and await at.hypervisor(borrower[0]).find(borrower[1]):
        raise WrongState(
            f"a guest on node {at.name} is being given disk {disk.label}",
            disk=disk.uuid,
            instance=borrower[1],
        )
    for hypervisor, uuid in at.attachments.users(disk.uuid):
        guest = await _seen(at.hypervisor(hypervisor), uuid)
        if guest is None or guest.state == "moved":
            continue
        if disk.uuid in guest.disks or guest.cause == NO_ANSWER:
            raise WrongState(
                f"guest {guest.name} on node {at.name} still uses disk {disk.label}",
                hint=f"gnt-disk detach {disk.label}",
                disk=disk.uuid,
                instance=guest.uuid,
            )


async def _seen(hypervisor: Hypervisor, uuid: str) -> GuestState | None:
    """Return a guest; one that says nothing may be busy for a moment."""
    for _ in range(_LOOKS):
        guest = await hypervisor.find(uuid)
        if guest is None or guest.cause != NO_ANSWER:
            break
    return guest


VERBS = (
    CreateDisk.done_by(create),
    UnmakeDisk.done_by(unmake),
    RemoveDisk.done_by(remove),
    ForgetDisk.done_by(forget),
    AttachDisk.done_by(attach),
    DetachDisk.done_by(detach),
    OpenDisk.done_by(open_),
    CloseDisk.done_by(close),
    GrowDisk.done_by(grow),
    SizeDisk.done_by(size),
    SnapshotDisk.done_by(snapshot),
    VerifyDisk.done_by(verify),
    TuneDisk.done_by(tune),
    NoteDisk.done_by(setinfo),
)
"""Every verb on one disk."""
