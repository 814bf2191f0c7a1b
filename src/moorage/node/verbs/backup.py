# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on exports, and those that take the data of disks out and in."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import json, structs

from moorage.errors import Failed, MoorageError, NotFound
from moorage.model import Disk
from moorage.model.export import Dump, Export
from moorage.node.extensions import oses
from moorage.node.hypervisors.base import Target
from moorage.protocol import (
    BeginExport,
    DropExport,
    DumpDisk,
    DumpGuest,
    EndDump,
    ListExports,
    LoadDisk,
    PublishExport,
    RemoveExport,
    Report,
    RunExportScript,
    RunImportScript,
    SealExport,
    VerifyExport,
    WithSystem,
    Writing,
)
from moorage.protocol.verb import A_WEEK
from moorage.storage import (
    Command,
    Confined,
    Content,
    Opened,
    Outcome,
    Output,
    Progress,
)
from moorage.storage.exports import Exports, Growing, grown
from moorage.storage.uri import image_name
from moorage.units import Mib, mib_for

from .context import NodeContext, drive
from .guest import places_of, told_of
from .sizes import measured

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """A disk as `qemu-img` gets it: a word, and what it is if it has a path.

    A program that reaches storage by a URI does so with the rights of the agent.
    """

    word: str
    contents: Mapping[str, Content] = field(default_factory=dict)


def _exports(at: NodeContext, *, fetched: bool = False) -> Exports:
    kind = Growing if fetched else Exports
    return kind(at.machine.exports_directory())


async def sweep(at: NodeContext) -> None:
    """Remove the exports that an earlier agent of this node left half made.

    Whole ones have no mark, and another node's have another one. What cannot be looked
    at now is looked at by the next agent.
    """
    for name, mark in at.drafts.left().items():
        try:
            await _end_dumps(at)
            swept = await at.do(_exports(at).sweep(name, mark))
        except MoorageError as error:
            _LOG.warning("half-made export %s is left: %s", name, error.message)
            continue
        if swept is Outcome.CHANGED:
            _LOG.warning("half-made export %s was removed: its agent died", name)
            at.drafts.end(name)


async def _end_dumps(at: NodeContext) -> None:
    """End the copying that guests do: nobody waits for it any more."""
    for hypervisor in at.hypervisors.values():
        for guest in await hypervisor.guests():
            await hypervisor.end_dump(guest.uuid)


async def listed(at: NodeContext, _args: ListExports, _report: Report) -> list[Export]:
    """Return every export of this node."""
    return await at.do(_exports(at).every())


async def begin(at: NodeContext, args: BeginExport, _report: Report) -> None:
    """Make an empty directory for an export that is to grow."""
    await at.do(_exports(at).begin(args.name, at.drafts.begin(args.name)))


async def drop(at: NodeContext, args: DropExport, _report: Report) -> Outcome:
    """Remove what grew of an export that will not be."""
    outcome = await at.do(_exports(at).drop(args.name))
    at.drafts.end(args.name)
    return outcome


async def seal(at: NodeContext, args: SealExport, report: Report) -> Export:
    """Write the manifest, with length and checksum of each dump."""
    stays = not args.travels
    steps = _exports(at).seal(args.name, args.export, args.filled, marked=not stays)
    sealed = await at.do(steps, report)
    if stays:
        at.drafts.end(args.name)
    return sealed


async def publish(at: NodeContext, args: PublishExport, _report: Report) -> Outcome:
    """Give an export its name."""
    return await at.do(_exports(at).publish(args.name))


async def remove(at: NodeContext, args: RemoveExport, _report: Report) -> Outcome:
    """Delete an export."""
    mark = at.drafts.begin(args.name)
    return await at.do(_exports(at).remove(args.name, mark))


async def verify(at: NodeContext, args: VerifyExport, report: Report) -> list[str]:
    """Return a sentence for each dump that is not what the manifest says.

    Raises
    ------
    NotFound
        If the export is not there, or another one has taken its place.
    """
    exports = _exports(at)
    found = await at.do(exports.read(args.name))
    if args.uuid and found.uuid != args.uuid:
        raise NotFound(f"export {args.name} on node {at.name} is another one by now")
    steps = [exports.verified(args.name, dump) for dump in found.dumps]
    told = [await at.do(step, report) for step in steps]
    return [one for one in told if one]


async def dump(at: NodeContext, args: DumpDisk, report: Report) -> None:
    """Copy a disk that is attached here into an export."""
    place = _place(at, args.disk, args.hypervisor, writes=False)
    target = _exports(at).growing(args.name, args.dump)
    size = await _size(at, place)
    one = structs.replace(args.dump, size=max(args.dump.size, size))
    new = grown(one, packed=args.writing.compress)
    # One cluster of the new image at least is left out, or written.
    known = ("-p", "-n", "--target-is-zero", "-S", "64k", "-f", "raw", "-O", "raw")
    await at.run(
        Command(
            (
                *("qemu-img", "convert", *known, "-t", "writeback"),
                *(*_rated(args.writing), place.word, target),
            ),
            images={target: Opened.MADE},
            confined=Confined(
                {**place.contents, target: new},
                args.uid_pool,
                alone=bool(place.contents),
            ),
            progress=_progress(f"copy disk {args.disk.label}", args.dump),
            limit=A_WEEK,
        ),
        report,
    )


async def _size(at: NodeContext, place: _Place) -> Mib:
    """Return how large a volume is that is attached here; storage may have rounded."""
    files = [path for path, one in place.contents.items() if not one.block]
    look = Command(
        ("qemu-img", "info", "-f", "raw", "--output=json", place.word),
        images=dict.fromkeys(files, Opened.FILE),
        reads=True,
    )
    told = json.decode((await at.run(look)).stdout, type=dict[str, Any])
    return mib_for(told["virtual-size"])


async def dump_guest(at: NodeContext, args: DumpGuest, report: Report) -> None:
    """Copy the disks of a running guest, all as they are at one moment."""
    exports = _exports(at)
    targets = list[Target]()
    hypervisor = at.hypervisor(args.hypervisor)
    await hypervisor.end_dump(args.uuid)  # one that was interrupted writes to them
    for disk, one in zip(args.disks, args.dumps, strict=True):
        whole = await _whole_of(at, args, disk, one)
        await at.run(exports.blank(args.export, whole, args.uid_pool))
        path = exports.growing(args.export, one)
        targets.append(Target(disk=disk.uuid, path=path, form=one.form.value))
    await hypervisor.dump(args.uuid, tuple(targets), args.writing, report)


async def _whole_of(at: NodeContext, args: DumpGuest, disk: Disk, one: Dump) -> Dump:
    """Return a dump that is as large as the volume: storage may have rounded it up."""
    held = at.attachments.get(disk.uuid)
    real = (await measured(at, held, args.hypervisor)).size if held else Mib(0)
    return structs.replace(one, size=max(one.size, real))


async def end_dump(at: NodeContext, args: EndDump, _report: Report) -> Outcome:
    """End the copying of a guest's disks, if it goes on."""
    await at.hypervisor(args.hypervisor).end_dump(args.uuid)
    return Outcome.CHANGED


async def dump_by_os(at: NodeContext, args: RunExportScript, report: Report) -> None:
    """Let the export script of the OS dump one disk."""
    target = _exports(at).growing(args.export, args.dump)
    async with _script(at, "export", args, args.index) as script:
        images = {**script.images, target: Opened.MADE}
        await at.run(
            replace(script, stdout=target, images=images, limit=A_WEEK), report
        )


async def load(at: NodeContext, args: LoadDisk, report: Report) -> None:
    """Write a dump to a disk that is attached here, once it is seen to be whole.

    Raises
    ------
    Failed
        If it is not.
    """
    place = _place(at, args.disk, args.hypervisor)
    known = ("-p", "-n", "-f", "raw", "-O", "raw", "-t", "writeback")
    whole = _whole(_exports(at, fetched=args.fetched), at, args.name, args.dump, report)
    async with whole as (source, pins):
        await at.run(
            Command(
                # What is written is on the storage when it ends (writeback).
                (
                    "qemu-img",
                    "convert",
                    *known,
                    *_rated(args.writing),
                    source,
                    place.word,
                ),
                confined=Confined(
                    {source: Content(args.dump.form.value), **place.contents},
                    args.uid_pool,
                    alone=bool(place.contents),
                ),
                pins=pins,
                progress=_progress(f"restore disk {args.disk.label}", args.dump),
                limit=A_WEEK,
            ),
            report,
        )


async def load_by_os(at: NodeContext, args: RunImportScript, report: Report) -> None:
    """Let the import script of the OS write one disk.

    Raises
    ------
    Failed
        If the dump is not whole.
    """
    exports = _exports(at, fetched=args.fetched)
    async with (
        _whole(exports, at, args.export, args.dump, report) as (source, pins),
        _script(at, "import", args, args.index) as script,
    ):
        images = {**script.images, source: Opened.FILE}
        whole = replace(script, stdin=source, images=images, pins=pins, limit=A_WEEK)
        await at.run(whole, report)


@asynccontextmanager
async def _whole(
    exports: Exports, at: NodeContext, name: str, one: Dump, report: Report
) -> AsyncIterator[tuple[str, Mapping[str, int]]]:
    """Yield the path of a dump that is as it was exported, and its open descriptor.

    It is one file from the first look to the last one, and has to be the same after it
    was read: whoever may write to it may do so meanwhile.

    Raises
    ------
    Failed
        If it is not whole, or changed while the block ran.
    """
    path = exports.dump(name, one)
    async with at.machine.pinned(path) as pins:

        async def run(command: Command) -> Output:
            return await at.run(replace(command, pins=pins), report)

        stamp = await drive(exports.stamp(name, one), run)
        problem = await drive(exports.verified(name, one), run)
        problem = problem or await drive(exports.look(name, one), run)
        _refuse(exports, name, problem)
        yield path, pins
        problem = await drive(exports.verified(name, one), run)
        if await drive(exports.stamp(name, one), run) != stamp:
            problem = problem or f"dump {one.file} was written to while it was read"
        _refuse(exports, name, problem)


def _refuse(exports: Exports, name: str, problem: str) -> None:
    if problem:  # what was fetched is gone by the time that somebody could look at it
        fetched = isinstance(exports, Growing)
        hint = "" if fetched else f"gnt-backup verify {name}"
        raise Failed(problem, hint=hint, export=name)


def _place(
    at: NodeContext, disk: Disk, hypervisor: str, *, writes: bool = True
) -> _Place:
    where = at.where(disk)
    # The program is QEMU's own, whatever runs the guest.
    offered = hypervisor if where.path or hypervisor.lower() in where.uris else "kvm"
    found = where.for_hypervisor(offered, userspace=False)
    if found != where.path:
        return _Place(image_name(found))
    return _Place(found, {found: Content("raw", writes=writes, block=where.block)})


def _rated(writing: Writing) -> tuple[str, ...]:
    return ("-r", f"{writing.rate}M") if writing.rate else ()


def _progress(note: str, one: Dump) -> Progress:
    return Progress(note, total=one.size, unit="MiB")


@asynccontextmanager
async def _script(
    at: NodeContext, action: str, args: WithSystem[None], index: int
) -> AsyncIterator[Command]:
    """Yield the command of an OS script that moves the data of one disk."""
    async with places_of(at, args) as places:
        yield oses.transfer(action, at.oses(), told_of(at, args, places), index)


VERBS = (
    ListExports.done_by(listed),
    BeginExport.done_by(begin),
    DropExport.done_by(drop),
    SealExport.done_by(seal),
    PublishExport.done_by(publish),
    RemoveExport.done_by(remove),
    VerifyExport.done_by(verify),
    DumpDisk.done_by(dump),
    DumpGuest.done_by(dump_guest),
    EndDump.done_by(end_dump),
    RunExportScript.done_by(dump_by_os),
    LoadDisk.done_by(load),
    RunImportScript.done_by(load_by_os),
)
"""Every verb on exports."""
