# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk clone``: a new disk with what another one holds, in any storage."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import field
from msgspec.structs import replace

from moorage.jobs import Lock, Operation, Question, Run, Task, View
from moorage.model import Claim, Disk
from moorage.ops import conversion, copies, disk_checks, disk_spec, node_tasks
from moorage.ops.conversion import Conversion
from moorage.ops.conversion_tasks import Step, copy
from moorage.ops.disk.snapshot import DiskSnapshot
from moorage.ops.disk_access import able, can, providers
from moorage.ops.disk_names import check_disk_name
from moorage.ops.liveness import runs
from moorage.protocol import SplitMirror
from moorage.storage import Can
from moorage.storage.provider import usable


class DiskClone(Operation, frozen=True, kw_only=True):
    """Make a disk that belongs to nobody, with the data of this moment.

    Where no other storage is named, the storage makes it by a snapshot if it can. Else
    the data are copied; those of a running guest are those of the moment when all was
    copied.

    Attributes
    ----------
    new_name
        Name of the new disk.
    disk_template
        The new disk's; that of the disk if it is not given.
    pool
        The storage pool that the new disk is to be in.
    params
        Parameters of the template or the provider.
    node
        Where the work is done, and where the data of a template stay that is local to
        a node. A disk that an instance has is where the instance is.
    rate
        MiB a second at most; 0 for no limit.
    force_params
        Accept parameters that the provider does not list.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    """

    op_id = "OP_DISK_CLONE"
    plans = True

    disk: str
    new_name: str
    disk_template: str | None = None
    pool: str | None = None
    provider: str | None = None
    access: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    node: str | None = None
    rate: int = 0
    force_params: bool = False
    ignore_capacity: bool = False

    @property
    def _elsewhere(self) -> bool:
        """Whether storage is named."""
        named = (self.disk_template, self.pool, self.provider, self.access, self.params)
        return any(named) or self.node is not None

    def _snapshot(self) -> DiskSnapshot:
        return DiskSnapshot(
            disk=self.disk,
            new_name=self.new_name,
            ignore_capacity=self.ignore_capacity,
        )

    def _by_snapshot(self, view: View) -> bool:
        """Whether the storage makes the clone: a volume of its own, of one moment."""
        disk = view.config.disk(self.disk)
        if self._elsewhere or not can(disk, Can.SNAPSHOT):
            return False
        owner = view.config.owner(disk)
        at_rest = owner is None or not runs(view, owner)
        if not (can(disk, Can.CLONE) or (able(disk).images and at_rest)):
            return False
        if not able(disk).provider:
            return True
        known = usable(providers(view, self._copying(view).worker(view)))
        found = known.get(str(disk.logical_id[0]))
        return found is not None and "snapshot" in found.optional

    def _copying(self, view: View) -> Conversion:
        """Return what is to be copied, and where to."""
        disk = view.config.disk(self.disk)
        given = {"provider": self.provider, "access": self.access}
        same = not self._elsewhere or (self.node and not self._named_storage)
        wanted = disk_spec.specified(
            view.config,
            {
                "pool": disk.pool if same else self.pool,
                "size": disk.size,
                "name": check_disk_name(self.new_name),
            },
            template=self.disk_template or (None if self.pool else disk.dev_type),
            params=disk.params if same else self.params | given,
        )
        wanted = replace(wanted, force=self.force_params or bool(same))
        node, _, second = (self.node or "").partition(":")
        return Conversion(disk, wanted, node, second)

    @property
    def _named_storage(self) -> bool:
        named = (self.disk_template, self.pool, self.provider, self.access, self.params)
        return any(named)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, its instance and the new name."""
        yield from self._copying(view).locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        yield from self._copying(view).questions(view)
        yield from self._snapshot().questions(view)

    def check(self, view: View) -> None:
        """Refuse storage that cannot take a copy."""
        conversion.check_rate(self.rate)
        if self._by_snapshot(view):
            self._snapshot().check(view)
            return
        wanted = self._copying(view)
        wanted.check_copy(view)
        if not self.ignore_capacity:
            conversion.check_room(view, [wanted])

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the new disk."""
        if self._by_snapshot(view):
            yield from self._snapshot().claims(view)
        else:
            yield from conversion.claims(view, [self._copying(view)])

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes will not reach the new disk."""
        wanted = self._copying(view)
        yield from disk_checks.warnings(view, wanted.wanted, wanted.worker(view))

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the copy, then let the cluster know it."""
        if self._by_snapshot(view):
            yield from self._snapshot().tasks(view)
            return
        wanted = self._copying(view)
        new = disk_spec.bear(
            view, wanted.wanted, wanted.worker(view), pair=wanted.pair(view)
        )
        step = Step(
            view=view,
            disk=wanted.disk,
            target=new,
            node=wanted.worker(view),
            adopted=False,
            rate=self.rate,
        )
        yield from step.make()
        yield from _copied(step)
        yield from copies.detach(view.config, new, step.node)
        yield view.commit(f"record disk {new.label}", new)

    def result(self, view: View, results: Sequence[Any]) -> str:
        """Return the uuid of the new disk."""
        del view
        return str(results[-1][0])


def _copied(step: Step) -> Iterator[Task]:
    """Yield what fills the new volume; the disk itself stays as it is."""
    config, disk, node = step.view.config, step.disk, step.node
    if step.live:
        yield from step.mirror()
        yield _split(step, disk)
        return
    if not step.held:
        yield from copies.attach(config, disk, node)
    yield copy(step.view, disk, step.target, node, step.rate)
    if not step.held:
        yield from copies.detach(config, disk, node)


def _split(step: Step, disk: Disk) -> Run:
    guest = step.guest()
    return Run(
        what=f"end the mirror of disk {disk.label} of {guest.name}",
        node=step.node.uuid,
        do=SplitMirror(
            **node_tasks.of_guest(guest),
            disk=disk,
            slot=guest.disks.index(disk.uuid),
            to=step.target,
        ),
    )
