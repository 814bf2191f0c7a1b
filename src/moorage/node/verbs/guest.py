# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one guest: what a hypervisor does, with the disks that are held here."""

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from moorage.errors import BadInput, Failed, MoorageError, Refused, WrongState
from moorage.model import Disk, Nic, hvparams
from moorage.model.uidpool import STANDARD, UidPool
from moorage.node import oses
from moorage.node.hypervisors.base import Card, Door, Drive, GuestSpec, Moved, Report
from moorage.units import Mib

from .station import Station

_LOOK = 0.05
"""Seconds between two looks at a guest."""


class GuestArgs(Struct, frozen=True, kw_only=True):
    """Arguments of a verb on one guest.

    Attributes
    ----------
    disks
        Attached disks in the order of their slots; they must be attached here.
    ports
        For ``migration.prepare``: where the disks sit in the guest.
    disk, slot
        For plugging one disk.
    timeout
        Seconds that a guest gets to power down, or to arrive.
    address, door
        Where a migration goes: the node's address, and its answer to
        ``migration.prepare``.
    os, osparams, beparams, secondaries, ctime, mtime
        For OS scripts: the definition, with variant, its parameters, and what else
        they are told of the instance; ``secondaries`` are names of nodes.
    uid_pool
        The user-ids that guests run as.
    """

    uuid: str
    name: str = ""
    hypervisor: str = "kvm"
    memory: Mib = Mib(0)
    vcpus: int = 1
    hvparams: dict[str, Any] = {}
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    ports: dict[str, int] = {}
    disk: Disk | None = None
    slot: int = 0
    timeout: float = 0.0
    address: str = ""
    door: Door | None = None
    os: str = ""
    osparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    secondaries: tuple[str, ...] = ()
    ctime: float = 0.0
    mtime: float = 0.0
    uid_pool: UidPool = STANDARD


async def start(at: Station, args: GuestArgs, _report: Report) -> None:
    """Start the guest, its disks attached here."""
    spec = _spec(at, args)
    _use(at, args, args.disks)
    await at.hypervisor(args.hypervisor).start(spec)


async def stop(at: Station, args: GuestArgs, _report: Report) -> None:
    """Power the guest down."""
    await at.hypervisor(args.hypervisor).stop(args.uuid, args.timeout)


async def reboot(at: Station, args: GuestArgs, _report: Report) -> None:
    """Reset the guest."""
    await at.hypervisor(args.hypervisor).reboot(args.uuid)


async def plug(at: Station, args: GuestArgs, _report: Report) -> None:
    """Hot-plug a disk that is attached here."""
    disk = _one_disk(args)
    drive = _drive(at, disk, args.slot)
    _use(at, args, (disk,))
    await at.hypervisor(args.hypervisor).plug(args.uuid, drive)


async def unplug(at: Station, args: GuestArgs, _report: Report) -> None:
    """Hot-unplug a disk."""
    await at.hypervisor(args.hypervisor).unplug(args.uuid, _one_disk(args).uuid)


async def resize(at: Station, args: GuestArgs, _report: Report) -> None:
    """Tell the guest that a disk has grown."""
    drive = _drive(at, _one_disk(args), args.slot)
    await at.hypervisor(args.hypervisor).resize(args.uuid, drive)


async def prepare(at: Station, args: GuestArgs, _report: Report) -> Door:
    """Prepare a guest that waits for a migration; return where to send it."""
    spec = _spec(at, args)
    _use(at, args, args.disks)
    return await at.hypervisor(args.hypervisor).incoming(spec)


async def arrived(at: Station, args: GuestArgs, _report: Report) -> None:
    """Wait until a guest whose transfer is complete runs here, `timeout` at most."""
    hypervisor = at.hypervisor(args.hypervisor)
    for _ in range(1 + round(args.timeout / _LOOK)):
        guest = await hypervisor.find(args.uuid)
        if guest is None:
            raise Failed(f"guest {args.name} did not arrive on node {at.name}")
        if guest.state == "running":
            return
        await asyncio.sleep(_LOOK)
    raise Failed(f"guest {args.name} does not run on node {at.name} yet")


async def migrate(at: Station, args: GuestArgs, report: Report) -> Moved:
    """Send the guest away, or carry on sending it.

    Raises
    ------
    Refused
        If it failed, and the guest is proven to run here as before.
    """
    hypervisor = at.hypervisor(args.hypervisor)
    if args.door is None:
        raise BadInput("the verb needs a door")
    try:
        return await hypervisor.migrate(args.uuid, args.address, args.door, report)
    except Refused:
        raise
    except MoorageError as error:
        here = await hypervisor.find(args.uuid)
        if here is None or here.state != "running":
            raise
        raise WrongState(
            f"guest {args.name} stays on node {at.name}: {error.message}"
        ) from error


async def resume(at: Station, args: GuestArgs, _report: Report) -> None:
    """Give up a migration: the guest runs here as before."""
    await at.hypervisor(args.hypervisor).resume(args.uuid)


async def abort(at: Station, args: GuestArgs, _report: Report) -> None:
    """End a guest that waits for a migration."""
    await at.hypervisor(args.hypervisor).abort(args.uuid)


async def discard(at: Station, args: GuestArgs, _report: Report) -> None:
    """End the process of a guest that moved away."""
    await at.hypervisor(args.hypervisor).discard(args.uuid)


async def console(at: Station, args: GuestArgs, _report: Report) -> str:
    """Return the path of the socket of the guest's serial console."""
    return at.hypervisor(args.hypervisor).console(args.uuid)


async def verify_os(at: Station, args: GuestArgs, _report: Report) -> None:
    """Let an OS definition look at its parameters."""
    await oses.verify(oses.usable(at.machine.oses()), _told(at, args), at.run)


async def install(at: Station, args: GuestArgs, _report: Report) -> None:
    """Run the create script of an OS definition on the guest's disks."""
    await oses.create(oses.usable(at.machine.oses()), _told(at, args), at.run)


def _told(at: Station, args: GuestArgs) -> oses.Install:
    """Return what an OS script is told; the disks must be attached here."""
    disks = tuple(
        oses.OsDisk(
            uuid=disk.uuid,
            size=disk.size,
            where=at.where(disk),
            mode=disk.mode,
            name=disk.name,
        )
        for disk in args.disks
    )
    return oses.Install(
        instance=args.name,
        os=args.os,
        uuid=args.uuid,
        primary_node=at.name,
        secondary_nodes=args.secondaries,
        ctime=args.ctime,
        mtime=args.mtime,
        beparams=args.beparams,
        hypervisor=args.hypervisor,
        disks=disks,
        nics=args.nics,
        hvparams=hvparams.filled(args.hypervisor, args.hvparams),
        osparams=args.osparams,
    )


def _spec(at: Station, args: GuestArgs) -> GuestSpec:
    return GuestSpec(
        uuid=args.uuid,
        name=args.name,
        memory=args.memory,
        vcpus=args.vcpus,
        hvparams=args.hvparams,
        drives=tuple(_drive(at, disk, n) for n, disk in enumerate(args.disks)),
        cards=tuple(_card(nic) for nic in args.nics),
        ports=args.ports,
        uid_pool=args.uid_pool,
    )


def _drive(at: Station, disk: Disk, slot: int) -> Drive:
    return Drive(
        disk=disk.uuid,
        slot=slot,
        size=disk.size,
        where=at.where(disk),
        userspace=disk.params.get("access") == "userspace",
        mode=disk.mode,
    )


def _card(nic: Nic) -> Card:
    return Card(mac=nic.mac, link=str(nic.nicparams.get("link") or ""))


def _one_disk(args: GuestArgs) -> Disk:
    if args.disk is None:
        raise BadInput("the verb needs a disk")
    return args.disk


def _use(at: Station, args: GuestArgs, disks: Iterable[Disk]) -> None:
    """Note, before it happens, who is going to have the disks."""
    for disk in disks:
        at.held.use(disk.uuid, args.hypervisor, args.uuid)


VERBS: dict[str, Any] = {
    "instance.start": start,
    "instance.stop": stop,
    "instance.reboot": reboot,
    "instance.plug": plug,
    "instance.unplug": unplug,
    "instance.resize": resize,
    "instance.console": console,
    "migration.prepare": prepare,
    "migration.run": migrate,
    "migration.arrived": arrived,
    "migration.resume": resume,
    "migration.abort": abort,
    "migration.discard": discard,
    "os.create": install,
    "os.verify": verify_os,
}
"""Every verb on one guest."""
