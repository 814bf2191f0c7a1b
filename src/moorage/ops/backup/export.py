# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-backup export``: the data of an instance's disks, all of one moment."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import partial
from typing import Annotated, Any

from msgspec.structs import replace

from moorage.errors import BadInput, MoorageError, NotSupported, WrongState
from moorage.jobs import Lock, Question, Sought, Task, View, once
from moorage.jobs.unread import Unsupported
from moorage.model import Disk, Instance, Node, hvparams
from moorage.model.export import Export, Form, Moment
from moorage.model.kinds import Rate, Seconds
from moorage.ops.asking import node_tasks
from moorage.ops.disk.snapshot import check_takes_snapshots, copy_of, take
from moorage.ops.guests import guest_tasks, osparams
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import holds, runs
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT, OnInstance
from moorage.ops.instance.remove import InstanceRemove
from moorage.ops.planning import processors
from moorage.ops.planning.disk_checks import check_rate
from moorage.ops.volumes.dependents import ask_dependents
from moorage.ops.volumes.disk_access import ask_reach, check_reach
from moorage.protocol import Writing

from . import carrying, dumps
from .dumps import Format


class Way(Enum):
    """How the data come to be of one moment."""

    AS_IS = auto()
    """The guest is down already."""
    SNAPSHOT = auto()
    """The guest is shut down for as long as snapshots take."""
    ASLEEP = auto()
    """The guest is down while its disks are copied."""
    LIVE = auto()
    """The guest runs, and its QEMU keeps what was there when the copying began."""


class BackupExport(OnInstance, frozen=True, kw_only=True):
    """Export an instance.

    Attributes
    ----------
    shutdown_timeout
        How long the guest gets to shut down.
    target_node
        Where the export is to lie; the instance's own node if it names none.
    shutdown
        Whether a guest that runs is shut down, for as long as the snapshots take.
    long_sleep
        Whether the guest stays down until its disks are copied; then nothing takes
        snapshots.
    remove_instance
        Whether the instance is removed when the export is whole.
    ignore_remove_failures
        Whether the instance is removed although its storage fails.
    format
        ``qcow2``, or ``ganeti`` for what Ganeti's import reads.
    compressed
        Whether the dumps are compressed.
    rate
        How much is copied in a second at most; 0 for no limit.
    """

    op_id = "OP_BACKUP_EXPORT"

    target_node: str | None = None
    shutdown: bool = True
    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT
    long_sleep: bool = False
    remove_instance: bool = False
    ignore_remove_failures: bool = False
    format: Format = Format.QCOW2
    compressed: bool = False
    rate: Rate = 0
    mode: Annotated[
        str, Unsupported("an export goes to a node of this cluster", ("local",))
    ] = "local"
    compress: Annotated[
        str, Unsupported("nothing is compressed on its way", ("none",))
    ] = "none"
    zero_free_space: Annotated[
        bool, Unsupported("the guest's free space is not its host's business")
    ] = False

    def target(self, view: View) -> Node:
        """Return the node where the export is to lie."""
        home = self.instance(view).primary_node
        return view.config.node(self.target_node or home)

    @once
    def reader(self, view: View) -> Node:
        """Return the node that copies the disks: the target, if it can read them."""
        home, node = view.config.home(self.instance(view)), self.target(view)
        if self.way(view) is Way.LIVE:
            return home
        try:
            for disk in self.disks(view):
                check_reach(view, disk, node)
                dumps.check_readable(view, disk, node)
        except MoorageError:
            return home
        return node

    def disks(self, view: View) -> list[Disk]:
        """Return the instance's disks."""
        return view.config.disks_of(self.instance(view))

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks, and the export, also on its way.

        The nodes are shared.
        """
        yield from OnInstance.locks(self, view)
        node = self.target(view)
        for one in (node, view.config.home(self.instance(view))):
            yield Lock("node", one.uuid, shared=True)
            yield dumps.hold(one, self.instance(view).name)
        if self.remove_instance:
            yield from self._removal().locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what its node and the target can do."""
        yield from OnInstance.questions(self, view)
        instance, node = self.instance(view), self.target(view)
        for uuid in dict.fromkeys((instance.primary_node, node.uuid)):
            yield from ask_reach(view.config, self.disks(view), view.config.node(uuid))
            if self._by_os(view):
                yield node_tasks.oses_on(uuid)
        yield from ask_dependents(view.config, self.disks(view))
        if self.remove_instance:
            yield from self._removal().questions(view)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask what its removal asks."""
        if self.remove_instance:
            yield from self._removal().seeks(view)

    def _removal(self) -> InstanceRemove:
        return InstanceRemove(
            instance_name=self.instance_name,
            ignore_failures=self.ignore_remove_failures,
            shutdown_timeout=self.shutdown_timeout,
        )

    def _by_os(self, view: View) -> bool:
        return self.format == Format.GANETI and bool(self.instance(view).os)

    def _form(self, view: View) -> Form:
        if self.format == Format.QCOW2:
            return Form.QCOW2
        return Form.OS if self._by_os(view) else Form.RAW

    def way(self, view: View) -> Way:
        """Return how the data come to be of one moment."""
        if not runs(view, self.instance(view)):
            return Way.AS_IS
        if not self.shutdown:
            return Way.LIVE
        asleep = self.long_sleep or self.remove_instance
        return Way.ASLEEP if asleep else Way.SNAPSHOT

    def check(self, view: View) -> None:
        """Refuse what cannot be copied, or would not be of one moment."""
        self._check_words()
        OnInstance.check(self, view)
        instance, node = self.instance(view), self.target(view)
        if not instance.disks:
            raise BadInput(f"instance {instance.name} has no disk to export")
        if not node.is_host:
            raise WrongState(f"node {node.name} takes no exports", node=node.name)
        reader = self.reader(view)
        self._check_way(view, instance, reader)
        stops = self.way(view) in {Way.SNAPSHOT, Way.ASLEEP}
        if stops and not self.remove_instance:
            processors.check_starts(view.config, instance)
        if self._by_os(view):
            travels = reader.uuid != node.uuid
            dumps.check_rated(self.rate, instance.os, travels=travels)
            osparams.check(view, reader, instance.os, instance.osparams)
        if self.remove_instance:
            self._removal().check(view)

    def _check_words(self) -> None:
        dumps.check_compressed(self.format, compressed=self.compressed)
        check_rate(self.rate)
        if self.remove_instance and not self.shutdown:
            raise BadInput(
                "a guest that runs on while it is exported is not removed",
                hint="leave --noshutdown out",
            )
        if self.long_sleep and not self.shutdown:
            raise BadInput("--long-sleep and --noshutdown exclude each other")

    def _check_way(self, view: View, instance: Instance, node: Node) -> None:
        way = self.way(view)
        home = view.config.home(instance)
        if way is Way.LIVE:
            check_ours(view, instance, "a copy of its disks")
            self._check_live(view, instance)
            return
        for disk in self.disks(view):
            if way is Way.SNAPSHOT:
                self._check_snapshots(view, disk, home)
            check_reach(view, disk, node)
            dumps.check_readable(view, disk, node)

    def _check_live(self, view: View, instance: Instance) -> None:
        if self._by_os(view):
            raise NotSupported(
                f"the export script of OS {instance.os} reads disks that nobody "
                "writes to, and the guest runs",
                hint="leave --noshutdown out, or take --format qcow2",
            )

    @staticmethod
    def _check_snapshots(view: View, disk: Disk, home: Node) -> None:
        try:
            check_takes_snapshots(view, disk, home)
        except NotSupported as refusal:
            raise refusal.with_hint(
                "--noshutdown copies while the guest runs; --long-sleep keeps it down "
                "until its disks are copied"
            ) from None

    def tasks(self, view: View) -> Iterator[Task]:
        """Copy the disks; then the export gets its name, and there is no way back."""
        making = carrying.Making(
            export=self._export(view),
            reader=self.reader(view),
            target=self.target(view),
            rate=self.rate,
            filled=self._filled(view),
        )
        yield from making.tasks(view, partial(self._copies_into, view))
        yield from self._afterwards(view)

    def _copies_into(self, view: View, export: Export) -> Iterator[Task]:
        """Yield the tasks that copy the disks into an export of the reader."""
        node, way = self.reader(view), self.way(view)
        if way is Way.LIVE:
            yield dumps.copy_running(
                view.config,
                export,
                self.instance(view),
                self.disks(view),
                node,
                self._writing(),
            )
        elif way is Way.SNAPSHOT:
            yield from self._over_snapshots(view, export, node)
        else:
            yield from self._at_rest(view, export, node, stops=way is Way.ASLEEP)

    def _writing(self) -> Writing:
        return Writing(compress=self.compressed, rate=self.rate)

    @once
    def _export(self, view: View) -> Export:
        """Return what the manifest will say; each view has one."""
        instance, form = self.instance(view), self._form(view)
        live = self.way(view) is Way.LIVE
        made = dumps.begun(
            view,
            instance.name,
            self.target(view),
            tuple(
                dumps.dump_of(disk, slot, form)
                for slot, disk in enumerate(self.disks(view))
            ),
            Moment.RUNNING if live else Moment.DOWN,
        )
        return replace(made, instance=dumps.described(instance))

    def _over_snapshots(self, view: View, export: Export, node: Node) -> Iterator[Task]:
        """Yield the tasks that copy snapshots, while the guest runs again."""
        config, instance = view.config, self.instance(view)
        home = config.home(instance)
        yield self._stop(view, home)
        for disk, copy in zip(self.disks(view), self._copies(view), strict=True):
            yield take(config, disk, copy, home)
        yield self._start(view, home)
        copies = self._copies(view)
        for copy in copies:
            yield from dumps.attached(config, copy, node)
        yield from self._copied(view, export, copies, node)
        for copy in copies:
            yield from dumps.detached(config, copy, node)

    def _at_rest(
        self, view: View, export: Export, node: Node, *, stops: bool
    ) -> Iterator[Task]:
        """Yield the tasks that copy the disks themselves, while nobody has them."""
        config, instance = view.config, self.instance(view)
        home, disks = config.home(instance), self.disks(view)
        there = holds(view, instance) and node == home
        if stops:
            yield self._stop(view, home)
        for disk in disks:
            if not there:
                yield from dumps.attached(config, disk, node)
        yield from self._copied(view, export, disks, node)
        for disk in disks:
            if not there:
                yield from dumps.detached(config, disk, node)
        if stops and not self.remove_instance:
            yield self._start(view, home)

    def _copied(
        self, view: View, export: Export, disks: list[Disk], node: Node
    ) -> Iterator[Task]:
        name, instance = export.name, self.instance(view)
        if self._by_os(view):
            yield from dumps.copy_by_os(view, export, instance, disks, node)
            return
        for disk, one in zip(disks, export.dumps, strict=True):
            yield dumps.copy(view.config, name, disk, one, node, self._writing())

    def _stop(self, view: View, home: Node) -> Task:
        instance, disks = self.instance(view), self.disks(view)
        patience = self.shutdown_timeout
        return guest_tasks.stop(view.config, instance, disks, home, patience)

    def _start(self, view: View, home: Node) -> Task:
        """Return the start of the guest; what fails later does not stop it again."""
        instance, disks = self.instance(view), self.disks(view)
        return replace(guest_tasks.start(view.config, instance, disks, home), undo=None)

    @once
    def _copies(self, view: View) -> list[Disk]:
        """Return the disks that the snapshots are to be driven as."""
        home = view.config.node(self.instance(view).primary_node)
        return [copy_of(view, disk, home) for disk in self.disks(view)]

    def _afterwards(self, view: View) -> Iterator[Task]:
        """Yield what is left to do once the export is whole."""
        instance = self.instance(view)
        home = view.config.home(instance)
        if self.way(view) is Way.SNAPSHOT:
            for copy in self._copies(view):
                hint = f"gnt-disk remove {copy.uuid}"
                yield node_tasks.remove(view.config, copy, home, hint=hint)
                yield view.record(f"forget snapshot {copy.label}")
        if self.remove_instance:
            yield from self._removal().tasks(view)

    def _filled(self, view: View) -> dict[str, dict[str, Any]]:
        """Return the parameters as Ganeti writes them, where it is to read them."""
        if self.format != Format.GANETI:
            return {}
        config, instance = view.config, self.instance(view)
        own = node_tasks.hvparams(config, instance)
        return {
            "hypervisor": hvparams.filled(instance.hypervisor, own),
            "backend": node_tasks.beparams(config, instance),
            "os": osparams.filled(config, instance.os, instance.osparams),
        }

    def warnings(self, view: View) -> Iterator[str]:
        """Say what a running guest's data are like, and what a removal leaves."""
        if self.way(view) is Way.LIVE:
            yield (
                "the guest runs on: its file systems are copied as after a loss of "
                "power, all disks at one moment"
            )
        if self.remove_instance:
            yield from self._removal().warnings(view)

    def result(self, view: View, _results: Sequence[Any]) -> tuple[bool, list[bool]]:
        """Return whether the export is whole, and each of its disks, as Ganeti does."""
        return True, [True] * len(self.instance(view).disks)
