# SPDX-License-Identifier: BSD-2-Clause
"""What operations on exports share: what is dumped, and the tasks that do it."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, NotSupported
from moorage.jobs import Ask, Lock, Run, Task, View
from moorage.model import Config, Disk, Instance, Node, pair_of
from moorage.model.export import Dump, Export, Exported, Form, Moment
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams
from moorage.ops.guests.liveness import holds
from moorage.ops.volumes import copies, disk_words
from moorage.protocol import (
    BeginExport,
    DropExport,
    DumpDisk,
    DumpGuest,
    EndDump,
    ListExports,
    PublishExport,
    RunExportScript,
    SealExport,
    Writing,
)

_LONGEST = 150
"""Characters of an export's name that stand in the name of what comes of it."""
Filled = dict[str, dict[str, Any]]
"""Parameters as Ganeti writes them, by section; empty where it is not to read them."""


class Format(StrEnum):
    """What an export looks like."""

    QCOW2 = "qcow2"
    """Images that QEMU reads everywhere, and a manifest."""
    GANETI = "ganeti"
    """What Ganeti's import reads: its ``config.ini``, and what the OS's script says."""


def hold(node: Node, name: str, *, shared: bool = False) -> Lock:
    """Return the lock on an export of a node.

    Names that begin alike for long have one: what is known of an export on its way is
    the beginning of its name (`origin`).
    """
    return Lock("disk", f"export {node.uuid} {name[:_LONGEST]}", shared=shared)


def apart(view: View, name: str) -> str:
    """Return a name for what comes of an export on its way; no export has it.

    Who has it holds the export, and so does who takes something away under the name.
    """
    return f"{name[:_LONGEST]}+{view.once(_unique, view.config)}"


def _unique(_config: Config, view: View) -> str:
    return view.fresh()


def origin(name: str) -> str:
    """Return the export that something comes of, by the name that it has on its way.

    Of a long name, its beginning.

    >>> origin("web1+5f0c")
    'web1'
    """
    return name.rpartition("+")[0]


def exports_on(node: Node) -> Ask[list[Export]]:
    """Ask a node for its exports."""
    return Ask(node.uuid, ListExports())


def check_compressed(form: Format, *, compressed: bool) -> None:
    """Raise `BadInput` if dumps in a format cannot be compressed."""
    if compressed and form is not Format.QCOW2:
        raise BadInput(f"dumps in the format '{form}' are not compressed")


def check_rated(rate: int, system: str, *, travels: bool) -> None:
    """Raise `NotSupported` if a rate would have no effect on dumps of an OS's scripts.

    Parameters
    ----------
    system
        The OS.
    travels
        Whether the dumps go to another node: they do so at the rate.
    """
    if rate and not travels:
        raise NotSupported(
            f"the scripts of OS {system} write and read its dumps as fast as they do, "
            "and nothing goes to another node: no rate has an effect",
            hint="leave --rate out",
        )


def check_readable(view: View, disk: Disk, node: Node) -> None:
    """Raise `NotSupported` if a node cannot read a disk, for another one uses it.

    One copy of a mirrored disk is written to; the other node reads nothing meanwhile.
    """
    owner = view.config.owner(disk)
    if owner is None or pair_of(disk) is None or node.uuid == owner.primary_node:
        return
    if holds(view, owner):
        home = view.config.home(owner).name
        raise NotSupported(
            f"disk {disk.label} is mirrored, and in use by {owner.name} on node "
            f"{home}: node {node.name} cannot read its copy meanwhile",
            hint=f"-n {home}",
            disk=disk.uuid,
        )


def dump_of(disk: Disk, slot: int, form: Form) -> Dump:
    """Return the dump of a disk; how long it is, nobody knows yet."""
    return Dump(
        file=f"disk{slot}.{'dump' if form is Form.OS else form}",
        form=form,
        size=disk.size,
        dev_type=disk.dev_type,
        params=disk_words.anew(disk.params),
        name=disk.name,
        mode=disk.mode,
    )


def described(instance: Instance) -> Exported:
    """Return what a manifest says of an instance."""
    fields = Exported.__struct_fields__
    return Exported(**{name: getattr(instance, name) for name in fields})


def begun(
    view: View, name: str, node: Node, dumps: tuple[Dump, ...], moment: Moment
) -> Export:
    """Return a new export."""
    return Export(
        name=name,
        uuid=view.fresh(),
        made=view.now,
        cluster=view.config.cluster.cluster_name,
        node=node.name,
        moment=moment,
        dumps=dumps,
    )


def begin(name: str, node: Node) -> Run:
    """Return the task that begins an export; undone with all that grew of it."""
    return Run(
        what=f"begin export {name} on {node.name}",
        node=node.uuid,
        do=BeginExport(name=name),
        undo=DropExport(name=name),
        lasting=True,
    )


def seal(export: Export, node: Node, filled: Filled, *, travels: bool = False) -> Run:
    """Return the task that writes what an export is, with lengths and checksums."""
    name = export.name
    return Run(
        what=f"write checksums and manifest of export {name} on {node.name}",
        node=node.uuid,
        do=SealExport(name=name, export=export, filled=filled, travels=travels),
    )


def finish(export: Export, node: Node, filled: Filled) -> Iterator[Task]:
    """Yield the tasks that make an export whole, and remove the one it replaces."""
    name = export.name
    yield seal(export, node, filled)
    yield Run(
        what=f"publish export {name} on {node.name}",
        node=node.uuid,
        do=PublishExport(name=name),
        final=True,
    )
    yield tidy(name, node)


def tidy(name: str, node: Node) -> Run:
    """Return the task that gives back the room of what is no export any more."""
    return Run(
        what=f"remove what is left beside export {name} on {node.name}",
        node=node.uuid,
        do=DropExport(name=name),
        tolerant=True,
    )


def copy(
    config: Config, name: str, disk: Disk, dump: Dump, node: Node, writing: Writing
) -> Run:
    """Return the task that copies an attached disk into an export."""
    return Run(
        what=f"dump disk {disk.label} to export {name} on {node.name}",
        node=node.uuid,
        do=DumpDisk(
            **node_tasks.of_disk(config, disk),
            name=name,
            dump=dump,
            writing=writing,
            uid_pool=config.cluster.uid_pool,
        ),
    )


def copy_by_os(
    view: View, export: Export, instance: Instance, disks: list[Disk], node: Node
) -> Iterator[Run]:
    """Yield the tasks in which the OS's export script dumps attached disks."""
    for index, dump in enumerate(export.dumps):
        yield Run(
            what=f"let OS {instance.os} dump disk {index} to export {export.name}",
            node=node.uuid,
            do=RunExportScript(
                **osparams.told(view, instance, disks, node),
                export=export.name,
                index=index,
                dump=dump,
            ),
        )


def copy_running(
    config: Config,
    export: Export,
    instance: Instance,
    disks: list[Disk],
    node: Node,
    writing: Writing,
) -> Run:
    """Return the task that copies the disks of a guest that runs."""
    guest = node_tasks.of_guest(instance)
    return Run(
        what=f"dump the disks of running {instance.name} to export {export.name}",
        node=node.uuid,
        do=DumpGuest(
            **guest,
            disks=tuple(disks),
            export=export.name,
            dumps=export.dumps,
            writing=writing,
            uid_pool=config.cluster.uid_pool,
        ),
        undo=EndDump(**guest),
    )


def attached(config: Config, disk: Disk, node: Node) -> Iterator[Run]:
    """Yield the tasks that attach a disk to be read.

    It is not opened, but for one that the cluster mirrors: else nobody can read it.
    """
    if copies.keeps(disk, node):
        yield from copies.attach(config, disk, node)
    else:
        yield node_tasks.attach(config, disk, node, opened="")


def detached(config: Config, disk: Disk, node: Node) -> Iterator[Run]:
    """Yield the tasks that let go of a disk that was read."""
    for task in copies.detach(config, disk, node):
        yield replace(task, undo=None)
