# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one disk: a template's steps, driven on this node."""

from collections.abc import Generator
from typing import Any, TypeVar

from msgspec import Struct

from moorage.errors import Failed, WrongState
from moorage.model import Device, Disk
from moorage.node.commands import drive
from moorage.node.hypervisors.base import Report
from moorage.storage import Command, Outcome, Output, Site, Template, Where
from moorage.storage.provider import usable
from moorage.storage.templates import template_named
from moorage.units import Mib

from .station import Station

R = TypeVar("R")
REPAIR = "gnt-cluster repair-disk-sizes"
MEASURE = f"gnt-instance activate-disks --ignore-size INSTANCE, then: {REPAIR} INSTANCE"


class DiskArgs(Struct, frozen=True, kw_only=True):
    """Arguments of a verb on one disk.

    Attributes
    ----------
    disk
        As the configuration has it; its epoch fences the step.
    shared_file_dir, file_dir
        Where the cluster keeps image files.
    opened
        For ``disk.attach``: ``exclusive``, ``shared``, or empty for not at all.
    ignore_size
        For ``disk.attach``: take the device, whatever its size is.
    exclusive
        For ``disk.open``.
    sought
        For ``disk.remove``: whether the volume must be found here first. A provider's
        ``remove`` is content where there is none, and it may be on another node.
    to, name, text
        New size in MiB, a snapshot's name, a note.
    """

    disk: Disk
    hypervisor: str = "kvm"
    shared_file_dir: str = ""
    file_dir: str = ""
    opened: str = ""
    ignore_size: bool = False
    exclusive: bool = True
    sought: bool = False
    to: Mib = Mib(0)
    name: str = ""
    text: str = ""


async def create(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Make the volume."""
    return await _drive(at, _template(at, args).create(args.disk))


async def remove(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Destroy the volume, unless a guest here has it."""
    await _check_unused(at, args.disk)
    if args.sought:
        await _check_found(at, args)
    outcome = await _drive(at, _template(at, args).remove(args.disk))
    at.held.drop(args.disk.uuid)
    return outcome


async def attach(at: Station, args: DiskArgs, report: Report) -> Where:
    """Make the volume usable here, and open it if asked to.

    Raises
    ------
    Failed
        If the device is not the one that the disk's record means.
    """
    template = _template(at, args)
    where = await _drive(at, template.attach(args.disk))
    at.held.put(args.disk, where)
    if where.path and where.block:
        _check_device(at, args, await at.machine.device(where.path), report)
    if args.opened:
        exclusive = args.opened == "exclusive"
        await _drive(at, template.open(args.disk, exclusive=exclusive))
    return where


async def detach(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Take back the attach, unless a guest here has the disk."""
    await _check_unused(at, args.disk)
    outcome = await _drive(at, _template(at, args).detach(args.disk))
    at.held.drop(args.disk.uuid)
    return outcome


async def open_(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Tell the storage that this node may write."""
    steps = _template(at, args).open(args.disk, exclusive=args.exclusive)
    return await _drive(at, steps)


async def close(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Tell the storage that this node stops writing."""
    return await _drive(at, _template(at, args).close(args.disk))


async def grow(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Enlarge the volume."""
    return await _drive(at, _template(at, args).grow(args.disk, args.to))


async def snapshot(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Make a copy-in-time."""
    steps = _template(at, args).snapshot(args.disk, args.name, args.to)
    return await _drive(at, steps)


async def setinfo(at: Station, args: DiskArgs, _report: Report) -> Outcome:
    """Keep a note beside the volume."""
    return await _drive(at, _template(at, args).setinfo(args.disk, args.text))


def _check_device(at: Station, args: DiskArgs, found: Device, report: Report) -> None:
    """Compare what was attached with the record.

    A volume of a provider may be larger than it was asked for (storage rounds up); an
    adopted device has the size that it had, or it is another one.
    """
    disk = args.disk
    if found.kind != "block":
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
        raise Failed(told, hint=MEASURE, disk=disk.uuid, node=at.name)
    report(0, 0, "log", f"Warning: {told}; {REPAIR} corrects the record")


async def _drive(at: Station, steps: Generator[Command, Output, R]) -> R:
    return await drive(steps, at.run)


def _template(at: Station, args: DiskArgs) -> Template:
    kind = template_named(args.disk.dev_type)
    needed = kind.capabilities.provider
    return kind(
        Site(
            node=at.name,
            hypervisor=args.hypervisor,
            shared_file_dir=args.shared_file_dir,
            file_dir=args.file_dir,
            providers=usable(at.machine.providers()) if needed else {},
        )
    )


async def _check_found(at: Station, args: DiskArgs) -> None:
    """Raise `WrongState` if this node does not see the volume."""
    try:
        await _drive(at, _template(at, args).attach(args.disk))
    except Failed as error:
        raise WrongState(
            f"node {at.name} does not see the volume of disk {args.disk.label}: "
            f"{error.message}",
            disk=args.disk.uuid,
        ) from error
    await _drive(at, _template(at, args).detach(args.disk))


async def _check_unused(at: Station, disk: Disk) -> None:
    """Raise `WrongState` while a guest on this node has the disk."""
    for hypervisor, uuid in at.held.users(disk.uuid):
        guest = await at.hypervisor(hypervisor).find(uuid)
        if guest and disk.uuid in guest.disks and guest.state != "moved":
            raise WrongState(
                f"guest {guest.name} on node {at.name} still uses disk {disk.label}",
                hint=f"gnt-disk detach {disk.label}",
                disk=disk.uuid,
                instance=guest.uuid,
            )


VERBS: dict[str, Any] = {
    "disk.create": create,
    "disk.remove": remove,
    "disk.attach": attach,
    "disk.detach": detach,
    "disk.open": open_,
    "disk.close": close,
    "disk.grow": grow,
    "disk.snapshot": snapshot,
    "disk.setinfo": setinfo,
}
"""Every verb on one disk."""
