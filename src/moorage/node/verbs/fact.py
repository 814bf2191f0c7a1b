# SPDX-License-Identifier: BSD-2-Clause
"""Reading verbs: what this node says of itself."""

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from moorage import __version__
from moorage.model import (
    Accelerator,
    Device,
    ForeignGuest,
    GuestState,
    Held,
    LeadFacts,
    NodeFacts,
    Os,
    Provider,
    Unit,
)
from moorage.model.processors import Processor, ProcessorModels
from moorage.node.machine.links import NFT
from moorage.protocol import (
    GetDevices,
    GetFacts,
    GetGuest,
    ListForeignGuests,
    ListGuests,
    ListProcessors,
    ListProviders,
    ListSystems,
    MeasureDisks,
    ReachNodes,
    Report,
    TryAccelerator,
    TryProcessor,
)
from moorage.storage import Where

from .context import NodeContext
from .sizes import measured


async def facts(at: NodeContext, args: GetFacts, _report: Report) -> NodeFacts:
    """Return all that there is to know of this node."""
    memory = at.machine.memory()
    return NodeFacts(
        version=__version__,
        hypervisors=tuple(sorted(at.hypervisors)),
        memory_total=memory.total,
        memory_free=memory.free,
        cpus=memory.cpus,
        bootid=memory.bootid,
        units=await _units(at, args),
        allowed_directories=at.machine.allowed_directories(),
        extstorage_path=at.machine.extstorage_path(),
        guests=() if args.brief else tuple(await _all_guests(at)),
        held=() if args.brief else tuple([held async for held in _held(at)]),
        accelerator=next(filter(None, _known(at)), None),
        powered_off=() if args.brief else tuple(await _powered_off(at)),
        links=await at.machine.links(),
        filters=at.machine.has_program(NFT),
        lead=None if args.brief else _lead(at),
    )


def _lead(at: NodeContext) -> LeadFacts | None:
    """Return what is known of those who may lead, where they have keys."""
    if at.keys is None:
        return None
    return LeadFacts(
        key=at.copies.own_key(),
        masters=at.keys.masters,
        changes=at.fence.led.all(),
    )


async def _powered_off(at: NodeContext) -> list[str]:
    """Return the guests that powered themselves off, and have not run since."""
    found = [await one.powered_off() for one in at.hypervisors.values()]
    return [uuid for uuids in found for uuid in uuids]


async def guests(
    at: NodeContext, _args: ListGuests, _report: Report
) -> list[GuestState]:
    """Return every guest that has a process here."""
    return await _all_guests(at)


async def foreign(
    at: NodeContext, _args: ListForeignGuests, _report: Report
) -> list[ForeignGuest]:
    """Return the guests here whose processes Ganeti started."""
    found = [await one.foreign() for one in at.hypervisors.values()]
    return [guest for guests in found for guest in guests]


async def guest(at: NodeContext, args: GetGuest, _report: Report) -> GuestState | None:
    """Return one guest, if it has a process here."""
    for hypervisor in at.hypervisors.values():
        found = await hypervisor.find(args.uuid)
        if found:
            return found
    return None


async def providers(
    at: NodeContext, _args: ListProviders, _report: Report
) -> list[Provider]:
    """Return every entry of the ExtStorage search path."""
    return at.machine.providers()


async def oses(at: NodeContext, _args: ListSystems, _report: Report) -> list[Os]:
    """Return every entry of the search path of OS definitions."""
    return at.machine.oses()


async def devices(at: NodeContext, args: GetDevices, _report: Report) -> list[Device]:
    """Return what there is at some paths, in their order."""
    return [await at.machine.device(path) for path in args.paths]


async def sizes(at: NodeContext, args: MeasureDisks, _report: Report) -> list[Device]:
    """Return what some disks are here, each measured where it leads to."""
    held = [at.attachments.get(uuid) for uuid in args.disks]
    return await asyncio.gather(
        *(measured(at, where or Where(), args.hypervisor) for where in held)
    )


async def _held(at: NodeContext) -> AsyncIterator[Held]:
    """Yield the disks that are attached here, with the sizes of their devices."""
    for held in at.attachments.all():
        where = at.attachments.get(held.disk)
        if where and where.path and where.block:
            found = await at.machine.device(where.path)
            yield replace(held, size=found.size if found.kind == "block" else None)
        else:
            yield held


async def _units(at: NodeContext, args: GetFacts) -> tuple[Unit, ...]:
    """Return what this node has at some places, all of which are asked at once."""
    asked = [at.do(at.template_at(one).room()) for one in args.places]
    found: list[Unit] = []
    told: set[tuple[str, str]] = set()
    for units in await asyncio.gather(*asked):
        # Two pools may be in one directory; one place that tells twice is an error.
        found += [unit for unit in units if unit.name not in told]
        told.update(unit.name for unit in units)
    return tuple(found)


async def reach(at: NodeContext, args: ReachNodes, _report: Report) -> dict[str, str]:
    """Try to reach some other nodes, all at once."""
    tried = [at.machine.reach(one.address, one.port, args.source) for one in args.peers]
    told = zip(args.peers, await asyncio.gather(*tried), strict=True)
    return {one.name: why for one, why in told if why}


async def accelerator(
    at: NodeContext, _args: TryAccelerator, _report: Report
) -> Accelerator | None:
    """Find out again what executes guests here; it may boot a kernel, and take long."""
    looks = [
        await one.look_at_accelerator(again=True) for one in at.hypervisors.values()
    ]
    return next(filter(None, looks), None)


async def processor(
    at: NodeContext, args: TryProcessor, _report: Report
) -> Processor | None:
    """Return what the processors of a guest would be here."""
    given = {name: getattr(args, name) for name in args.__struct_fields__}
    looks = [await one.processor(given) for one in at.hypervisors.values()]
    return next(filter(None, looks), None)


async def processors(
    at: NodeContext, _args: ListProcessors, _report: Report
) -> ProcessorModels | None:
    """Return the models of processors that guests can have here."""
    looks = [await one.processor_models() for one in at.hypervisors.values()]
    return next(filter(None, looks), None)


def _known(at: NodeContext) -> list[Accelerator | None]:
    return [one.accelerator() for one in at.hypervisors.values()]


async def _all_guests(at: NodeContext) -> list[GuestState]:
    found = [await one.guests() for one in at.hypervisors.values()]
    return [guest for guests in found for guest in guests]


VERBS = (
    GetFacts.done_by(facts),
    ListGuests.done_by(guests),
    ListForeignGuests.done_by(foreign),
    GetGuest.done_by(guest),
    ListProviders.done_by(providers),
    ListSystems.done_by(oses),
    GetDevices.done_by(devices),
    MeasureDisks.done_by(sizes),
    ReachNodes.done_by(reach),
    TryAccelerator.done_by(accelerator),
    TryProcessor.done_by(processor),
    ListProcessors.done_by(processors),
)
"""Every reading verb."""
