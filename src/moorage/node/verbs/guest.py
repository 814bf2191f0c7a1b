# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one guest: what a hypervisor does, with the disks that are held here."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from moorage.errors import BadInput, Failed, MoorageError, Refused, WrongState
from moorage.model import Disk, Nic, hvparams
from moorage.model.nicparams import BRIDGED, NAMES
from moorage.node.extensions import oses
from moorage.node.hypervisors.base import Card, GuestSpec, Hypervisor
from moorage.protocol import (
    AbortGuest,
    AdoptGuest,
    Arrived,
    AwaitGuest,
    DiscardGuest,
    Door,
    EndForeignGuest,
    FillGuest,
    FindConsole,
    InstallSystem,
    Moved,
    NetworkOf,
    OnGuest,
    PlugCard,
    PlugDisk,
    PrepareMigration,
    RebootGuest,
    RenameSystem,
    Report,
    ResizeDisk,
    ResumeGuest,
    RunMigration,
    StartGuest,
    StopGuest,
    UnplugCard,
    UnplugDisk,
    VerifySystem,
    Whole,
    WithSystem,
)
from moorage.storage import Where

from .context import NodeContext

_LOOK = 0.05
"""Seconds between two looks at a guest."""


async def start(at: NodeContext, args: StartGuest, _report: Report) -> None:
    """Start the guest, its disks attached here."""
    spec = replace(_spec(at, args), paused=args.paused)
    _use(at, args, args.disks)
    await at.hypervisor(args.hypervisor).start(spec)


async def adopt(at: NodeContext, args: AdoptGuest, _report: Report) -> None:
    """Take over a guest that Ganeti started, its disks attached here."""
    _use(at, args, args.disks)
    await at.hypervisor(args.hypervisor).adopt(_spec(at, args))


async def end_foreign(at: NodeContext, args: EndForeignGuest, _report: Report) -> None:
    """Let a guest power itself off that Ganeti started."""
    hypervisor = at.hypervisor(args.hypervisor)
    await hypervisor.end_foreign(args.uuid, args.name, args.timeout)


async def stop(at: NodeContext, args: StopGuest, _report: Report) -> None:
    """Power the guest down."""
    await at.hypervisor(args.hypervisor).stop(args.uuid, args.timeout)


async def reboot(at: NodeContext, args: RebootGuest, _report: Report) -> None:
    """Reset the guest."""
    await at.hypervisor(args.hypervisor).reboot(args.uuid)


async def fill(at: NodeContext, args: FillGuest, _report: Report) -> None:
    """Let a guest have more or less of its memory."""
    hypervisor = at.hypervisor(args.hypervisor)
    await hypervisor.fill(args.uuid, args.memory, args.timeout)


async def plug(at: NodeContext, args: PlugDisk, _report: Report) -> None:
    """Hot-plug a disk that is attached here."""
    hypervisor = at.hypervisor(args.hypervisor)
    if args.back and await hypervisor.find(args.uuid) is None:
        return
    drive = at.drive(args.disk, args.slot)
    _use(at, args, (args.disk,))
    await hypervisor.plug(args.uuid, drive)


async def unplug(at: NodeContext, args: UnplugDisk, _report: Report) -> None:
    """Hot-unplug a disk."""
    await at.hypervisor(args.hypervisor).unplug(args.uuid, args.disk.uuid)


async def plug_card(at: NodeContext, args: PlugCard, _report: Report) -> None:
    """Hot-plug a network card."""
    card = _card(args.nic, args.index, args.networks)
    await at.hypervisor(args.hypervisor).plug_card(args.uuid, card)


async def unplug_card(at: NodeContext, args: UnplugCard, _report: Report) -> None:
    """Hot-unplug a network card."""
    await at.hypervisor(args.hypervisor).unplug_card(args.uuid, args.nic)


async def resize(at: NodeContext, args: ResizeDisk, _report: Report) -> None:
    """Tell the guest that a disk has grown."""
    drive = at.drive(args.disk, args.slot)
    await at.hypervisor(args.hypervisor).resize(args.uuid, drive)


async def prepare(at: NodeContext, args: PrepareMigration, _report: Report) -> Door:
    """Prepare a guest that waits for a migration; return where to send it."""
    spec = _spec(at, args)
    _use(at, args, args.disks)
    return await at.hypervisor(args.hypervisor).incoming(spec, args.address)


async def arrived(at: NodeContext, args: AwaitGuest, _report: Report) -> Arrived | None:
    """Wait until a guest whose transfer is complete runs here, `timeout` at most."""
    hypervisor = at.hypervisor(args.hypervisor)
    for _ in range(1 + round(args.timeout / _LOOK)):
        guest = await hypervisor.find(args.uuid)
        if guest and guest.cause == "paused":  # it was sent so, by an earlier version
            await hypervisor.go_on(args.uuid)
            guest = await hypervisor.find(args.uuid)
        if guest is None:
            raise Failed(f"guest {args.name} did not arrive on node {at.name}")
        if guest.state == "running":
            lasted = await hypervisor.arrived(args.uuid)
            if lasted is None or not args.tells:
                return None
            return Arrived(lasted_ms=lasted)
        await asyncio.sleep(_LOOK)
    raise Failed(f"guest {args.name} does not run on node {at.name} yet")


async def migrate(at: NodeContext, args: RunMigration, report: Report) -> Moved:
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
        way = args.uuid, args.address, args.door, report
        return await hypervisor.migrate(*way, live=args.live)
    except Refused:
        raise
    except MoorageError as error:
        if not await _stays(hypervisor, args.uuid):
            raise
        raise WrongState(
            f"guest {args.name} stays on node {at.name}: {error.message}"
        ) from error


async def _stays(hypervisor: Hypervisor, uuid: str) -> bool:
    """Whether a guest runs here for good: a transfer under way is given up first.

    One that could not be followed for a moment may be about to succeed.
    """
    try:
        await hypervisor.resume(uuid)
        here = await hypervisor.find(uuid)
    except MoorageError:
        return False
    return here is not None and here.state == "running"


async def resume(at: NodeContext, args: ResumeGuest, _report: Report) -> None:
    """Give up a migration: the guest runs here as before."""
    await at.hypervisor(args.hypervisor).resume(args.uuid)


async def abort(at: NodeContext, args: AbortGuest, _report: Report) -> None:
    """End a guest that waits for a migration."""
    await at.hypervisor(args.hypervisor).abort(args.uuid)


async def discard(at: NodeContext, args: DiscardGuest, _report: Report) -> None:
    """End the process of a guest that moved away."""
    await at.hypervisor(args.hypervisor).discard(args.uuid)


async def console(at: NodeContext, args: FindConsole, _report: Report) -> str:
    """Return the path of the socket of the guest's serial console."""
    return at.hypervisor(args.hypervisor).console(args.uuid)


async def verify_os(at: NodeContext, args: VerifySystem, _report: Report) -> None:
    """Let an OS definition look at its parameters."""
    told = told_of(at, args, [at.where(disk) for disk in args.disks])
    await oses.verify(at.oses(), told, at.run)


async def install(at: NodeContext, args: InstallSystem, report: Report) -> None:
    """Run the create script of an OS definition on the guest's disks."""
    async with places_of(at, args) as places:
        told = told_of(at, args, places)
        await at.run(oses.command("create", at.oses(), told), report)


async def rename(at: NodeContext, args: RenameSystem, report: Report) -> None:
    """Run the rename script of an OS definition on the guest's disks."""
    more = {"OLD_INSTANCE_NAME": args.old_name}
    async with places_of(at, args) as places:
        told = told_of(at, args, places)
        await at.run(oses.command("rename", at.oses(), told, **more), report)


@asynccontextmanager
async def places_of(
    at: NodeContext, args: WithSystem[None]
) -> AsyncIterator[list[Where]]:
    """Yield where scripts find the guest's disks on this node."""
    async with AsyncExitStack() as stack:
        local = [at.local(at.where(disk), args.hypervisor) for disk in args.disks]
        yield [await stack.enter_async_context(one) for one in local]


def told_of(
    at: NodeContext, args: WithSystem[None], places: Sequence[Where]
) -> oses.Install:
    """Return what an OS script is told.

    Parameters
    ----------
    places
        Where the disks are on this node.
    """
    filled = hvparams.filled(args.hypervisor, args.hvparams)
    disks = (
        oses.OsDisk(disk, where, served=where != at.where(disk))
        for disk, where in zip(args.disks, places, strict=True)
    )
    return oses.Install(replace(args, hvparams=filled), at.name, tuple(disks))


def _spec(at: NodeContext, args: Whole[object]) -> GuestSpec:
    waits = args if isinstance(args, PrepareMigration) else None
    return GuestSpec(
        uuid=args.uuid,
        name=args.name,
        memory=args.memory,
        vcpus=args.vcpus,
        hvparams=args.hvparams,
        drives=tuple(at.drive(disk, n) for n, disk in enumerate(args.disks)),
        cards=tuple(_card(nic, n, args.networks) for n, nic in enumerate(args.nics)),
        ports=waits.ports if waits else {},
        places=waits.cards if waits else None,
        waits=waits is not None,
        tags=args.tags,
        uid_pool=args.uid_pool,
        network_port=args.network_port,
    )


def _card(nic: Nic, index: int, networks: Iterable[NetworkOf]) -> Card:
    wires = {name: str(nic.nicparams.get(name) or "") for name in NAMES}
    wires["mode"] = wires["mode"] or BRIDGED
    return Card(
        uuid=nic.uuid,
        mac=nic.mac,
        index=index,
        name=nic.name,
        ip=nic.ip,
        network=next((one for one in networks if one.uuid == nic.network), None),
        **wires,
    )


def _use(at: NodeContext, args: OnGuest[object], disks: Iterable[Disk]) -> None:
    """Note, before it happens, who is going to have the disks."""
    for disk in disks:
        at.attachments.use(disk.uuid, args.hypervisor, args.uuid)


VERBS = (
    StartGuest.done_by(start),
    AdoptGuest.done_by(adopt),
    EndForeignGuest.done_by(end_foreign),
    StopGuest.done_by(stop),
    FillGuest.done_by(fill),
    RebootGuest.done_by(reboot),
    PlugDisk.done_by(plug),
    UnplugDisk.done_by(unplug),
    PlugCard.done_by(plug_card),
    UnplugCard.done_by(unplug_card),
    ResizeDisk.done_by(resize),
    FindConsole.done_by(console),
    PrepareMigration.done_by(prepare),
    RunMigration.done_by(migrate),
    AwaitGuest.done_by(arrived),
    ResumeGuest.done_by(resume),
    AbortGuest.done_by(abort),
    DiscardGuest.done_by(discard),
    InstallSystem.done_by(install),
    RenameSystem.done_by(rename),
    VerifySystem.done_by(verify_os),
)
"""Every verb on one guest."""
