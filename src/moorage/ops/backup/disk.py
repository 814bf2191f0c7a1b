# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-backup export --disk`` and ``import --disk-only``: a disk alone."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import field

from moorage.errors import BadInput, MoorageError
from moorage.jobs import Lock, Operation, Planner, Question, Task, View, once, rights
from moorage.jobs.unread import Unsupported
from moorage.model import Claim, Config, Disk, Instance, Node
from moorage.model.export import Export, Form, Moment, name_of_disk
from moorage.model.kinds import Mebibytes, Rate
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import check_online
from moorage.ops.disk.add import DiskAdd
from moorage.ops.guests.liveness import check_known, holds, runs
from moorage.ops.instance.base import ask
from moorage.ops.planning import placement
from moorage.ops.planning.disk_checks import check_rate
from moorage.ops.volumes import disk_words, pools
from moorage.ops.volumes.disk_access import (
    ask_candidates,
    ask_reach,
    candidates,
    check_reach,
    check_sound,
    worker,
)
from moorage.ops.volumes.disk_names import hold_name
from moorage.ops.volumes.disk_work import hold_to_work
from moorage.protocol import Writing

from . import as_exported, carrying, dumps
from .carrying import Found
from .dumps import Format
from .restore import load
from .source import Source


class DiskExport(Operation, frozen=True, kw_only=True):
    """Export a disk; one of a running guest is copied while it runs.

    Attributes
    ----------
    disk
        Name or uuid.
    target_node
        Where the export is to lie; where the disk is, if it names none.
    compressed
        Whether the dump is compressed.
    rate
        How much is copied in a second at most; 0 for no limit.
    """

    op_id = "OP_DISK_EXPORT"

    disk: str
    target_node: str | None = None
    compressed: bool = False
    rate: Rate = 0
    format: Annotated[
        str, Unsupported("Ganeti knows no export of a disk alone", ("qcow2",))
    ] = Format.QCOW2

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk with its instance, and the export, also on its way.

        The nodes are shared.
        """
        disk = view.config.disk(self.disk)
        yield from hold_to_work(view, disk)
        for node in (*self._nodes(view), *self._readers(view)):
            yield Lock("node", node.uuid, shared=True)
            yield dumps.hold(node, name_of_disk(disk))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether a guest runs with it, and who can work on it."""
        config, disk = view.config, view.config.disk(self.disk)
        owner = config.owner(disk)
        if owner:
            yield from ask(owner)
        else:
            yield from ask_candidates(config, disk)
        nodes = (*self._nodes(view), *self._readers(view))
        for node in {one.uuid: one for one in nodes}.values():
            yield from ask_reach(config, [disk], node)

    def _readers(self, view: View) -> list[Node]:
        """Return the nodes that read the disk if the target cannot."""
        config, disk = view.config, view.config.disk(self.disk)
        owner = config.owner(disk)
        return [config.home(owner)] if owner else candidates(config, disk)

    @once
    def reader(self, view: View) -> Node:
        """Return the node that copies the disk: the target, if it can read it."""
        disk, node = view.config.disk(self.disk), self.target(view)
        owner = view.config.owner(disk)
        if owner and runs(view, owner):
            return view.config.home(owner)
        try:
            check_reach(view, disk, node)
            dumps.check_readable(view, disk, node)
        except MoorageError:
            return view.config.home(owner) if owner else worker(view, disk)
        return node

    def _nodes(self, view: View) -> list[Node]:
        """Return the nodes where the export may come to lie."""
        config, disk = view.config, view.config.disk(self.disk)
        if self.target_node:
            return [config.node(self.target_node)]
        owner = config.owner(disk)
        return [config.home(owner)] if owner else candidates(config, disk)

    def target(self, view: View) -> Node:
        """Return the node where the export is to lie."""
        disk = view.config.disk(self.disk)
        if self.target_node or view.config.owner(disk):
            return self._nodes(view)[0]
        return worker(view, disk)

    def check(self, view: View) -> None:
        """Refuse what nobody reaches, or writes to elsewhere."""
        disk = view.config.disk(self.disk)
        check_rate(self.rate)
        name_of_disk(disk)
        check_sound(disk)
        owner = view.config.owner(disk)
        if owner:
            check_known(view, owner)
        check_online(self.target(view))
        node = self.reader(view)
        check_reach(view, disk, node)
        dumps.check_readable(view, disk, node)

    def tasks(self, view: View) -> Iterator[Task]:
        """Copy the disk; then the export gets its name."""
        disk = view.config.disk(self.disk)
        dump = dumps.dump_of(disk, 0, Form.QCOW2)
        moment = Moment.RUNNING if self._live(view) else Moment.DOWN
        target = self.target(view)
        making = carrying.Making(
            export=dumps.begun(view, name_of_disk(disk), target, (dump,), moment),
            reader=self.reader(view),
            target=target,
            rate=self.rate,
        )
        yield from making.tasks(view, partial(self._copies_into, view))

    def _live(self, view: View) -> bool:
        owner = view.config.owner(view.config.disk(self.disk))
        return owner is not None and runs(view, owner)

    def _copies_into(self, view: View, export: Export) -> Iterator[Task]:
        """Yield the tasks that copy the disk into an export of the reader."""
        config, disk, node = view.config, view.config.disk(self.disk), self.reader(view)
        writing = Writing(compress=self.compressed, rate=self.rate)
        owner, (dump,) = config.owner(disk), export.dumps
        if owner and self._live(view):
            yield dumps.copy_running(config, export, owner, [disk], node, writing)
            return
        held = self._held(view, owner, node)
        if not held:
            yield from dumps.attached(config, disk, node)
        yield dumps.copy(config, export.name, disk, dump, node, writing)
        if not held:
            yield from dumps.detached(config, disk, node)

    @staticmethod
    def _held(view: View, owner: Instance | None, node: Node) -> bool:
        """Whether the disk is attached on the node already."""
        if owner is None or node.uuid != owner.primary_node:
            return False
        return holds(view, owner)

    def result(self, view: View, _results: Sequence[Any]) -> str:
        """Return the name of the export."""
        return name_of_disk(view.config.disk(self.disk))


class RestoredDisk(DiskAdd, frozen=True, kw_only=True):
    """The making of a disk, with what an export has of it.

    Attributes
    ----------
    found
        The export, and where it lies.
    rate
        How much is copied in a second at most; 0 for no limit.
    """

    found: Found
    rate: Rate = 0

    def tasks(self, view: View) -> Iterator[Task]:
        """Fetch the export if the disk's node does not see it; then make the disk."""
        yield from self.found.fetched(view, self.case(view).node, self.rate)
        yield from DiskAdd.tasks(self, view)

    def put_on(self, view: View, disk: Disk, node: Node) -> Iterator[Task]:
        """Yield the task that writes the dump, once it is seen to be whole."""
        (dump,) = self.found.export.dumps
        yield load(view, self.found, dump, disk, node, self.rate)
        yield from self.found.let_go(view, node)


class DiskImport(Planner, frozen=True, kw_only=True):
    """Make a disk from the export of one; what is not said, the export says.

    Attributes
    ----------
    name
        Of the new disk.
    disk_template
        Its template; that of the disk that was exported, if it names none.
    size
        Its size; that of the disk that was exported without it.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    params
        What else describes the disk: mode, pool, parameters of its template.
    node
        Where it is made; where the export lies, if it names none.
    src_node
        Where the export lies; the only node that has it, if it names none.
    src_path
        Its name, or its directory.
    rate
        How much is copied in a second at most; 0 for no limit.
    trust_export
        Whether all that the export says is taken, as if it had been typed.
    """

    op_id = "OP_DISK_IMPORT"

    name: str
    src_path: Annotated[str, rights.PLACE]
    src_node: str | None = None
    node: str | None = None
    disk_template: str | None = None
    size: Mebibytes | None = None
    params: Annotated[dict[str, Any], rights.DISK] = field(default_factory=dict)
    ignore_capacity: bool = False
    rate: Rate = 0
    trust_export: Annotated[bool, rights.ADOPTS] = False

    @property
    def source(self) -> Source:
        """The export."""
        return Source(path=self.src_path, node=self.src_node)

    def _named(self, config: Config) -> list[Node]:
        """Return the nodes that it is to be made on, where the request says so."""
        names = (self.node or "").split(":")
        return [config.node(name) for name in names if name]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name; share the export, its nodes, and the storage pool."""
        yield from self.source.hold(view.config, self._named(view.config))
        yield from hold_name(disk_words.checked_name(self.name), sole=True)
        yield from pools.hold_named(view.config, self.params.get("pool"))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for the export, and for all that making a disk may ask for."""
        config = view.config
        yield from self.source.ask(config, self._named(config))
        yield from placement.ask_room(config, config.hosts())
        for node in config.hosts():
            yield node_tasks.providers_on(node.uuid)

    @once
    def whole(self, view: View) -> RestoredDisk:
        """Return the request with all that the export says."""
        found = self.source.find(view)
        export = found.export
        if len(export.dumps) != 1 or export.instance:
            raise BadInput(
                f"export {export.name} is of an instance",
                hint=f"gnt-backup import --src-dir {export.name} NAME",
            )
        asked = self.params | ({"size": self.size} if self.size else {})
        (dump,) = export.dumps
        template, trusted = self.disk_template, self.trust_export
        told = as_exported.disk(dump, asked, template, "the disk", trusted=trusted)
        fields = {key: told.pop(key) for key in ("size", "mode", "pool") if key in told}
        template = told.pop("dev_type", None)
        return RestoredDisk(
            name=self.name,
            disk_template=template,
            node=self.node or view.config.node(found.node).name,
            params=told,
            ignore_capacity=self.ignore_capacity,
            found=found,
            rate=self.rate,
            **fields,
        )

    def check(self, view: View) -> None:
        """Refuse what the export cannot give, and what no disk could be."""
        check_rate(self.rate)
        self.whole(view).check(view)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim its room."""
        return self.whole(view).claims(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes of the group will not reach it, and what is not taken."""
        whole = self.whole(view)
        yield from whole.warnings(view)
        if not self.trust_export:
            (dump,) = whole.found.export.dumps
            yield from as_exported.left_of_disk(
                dump, self.params, self.disk_template, 0
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the volume, put the dump on it, record the disk."""
        return self.whole(view).tasks(view)

    def result(self, view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return self.whole(view).result(view, results)
