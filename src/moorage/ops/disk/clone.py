# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk clone``: a new disk with what another one holds, in any storage."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.jobs import Question, Task, View, once
from moorage.model import Claim, Disk, Node
from moorage.ops.disk.snapshot import DiskSnapshot
from moorage.ops.filling import conversion
from moorage.ops.filling.conversion import Conversion, ToStorage
from moorage.ops.filling.conversion_tasks import Step, copy
from moorage.ops.guests.liveness import runs
from moorage.ops.planning import disk_checks
from moorage.ops.volumes import copies, disk_spec, disk_words
from moorage.ops.volumes.disk_access import able, can, providers
from moorage.ops.volumes.disk_names import check_disk_name, check_unused
from moorage.storage import Can
from moorage.storage.provider import provider_called


class DiskClone(ToStorage, frozen=True, kw_only=True):
    """Make a disk that belongs to nobody, with the data of this moment.

    Where no other storage is named, the storage makes it by a snapshot if it can. Else
    the data are copied; those of a running guest are those of the moment when all was
    copied.

    Attributes
    ----------
    new_name
        Name of the new disk.
    """

    op_id = "OP_DISK_CLONE"

    new_name: str

    def _snapshot(self) -> DiskSnapshot:
        return DiskSnapshot(
            disk=self.disk,
            new_name=self.new_name,
            ignore_capacity=self.ignore_capacity,
        )

    def _by_snapshot(self, view: View) -> bool:
        """Whether the storage makes the clone: a volume of its own, of one moment."""
        disk = view.config.disk(self.disk)
        if self._elsewhere or self.node is not None:
            return False
        owner = view.config.owner(disk)
        at_rest = owner is None or not runs(view, owner)
        worker = self.conversion(view).worker(view)
        return makes_clones(view, disk, worker, at_rest=at_rest)

    @once
    def conversion(self, view: View) -> Conversion:
        """Return what is to be copied, and where to."""
        disk = view.config.disk(self.disk)
        wanted = disk_words.DiskWords(
            {
                "pool": self.pool if self._elsewhere else disk.pool,
                "size": disk.size,
                "name": check_disk_name(self.new_name),
            },
            template=self.disk_template or (None if self.pool else disk.dev_type),
            params=self.named_params
            if self._elsewhere
            else disk_words.anew(disk.params),
        ).read(view.config)
        force = self.force_params or not self._elsewhere
        return self.converted(disk, replace(wanted, force=force))

    @property
    def _elsewhere(self) -> bool:
        """Whether other storage is named."""
        named = (self.disk_template, self.pool, self.provider, self.access, self.params)
        return any(named)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        yield from ToStorage.questions(self, view)
        yield from self._snapshot().questions(view)

    def check(self, view: View) -> None:
        """Refuse storage that cannot take a copy."""
        disk_checks.check_rate(self.rate)
        check_unused(view.config, check_disk_name(self.new_name))
        if self._by_snapshot(view):
            self._snapshot().check(view)
            return
        wanted = self.conversion(view)
        wanted.check_copy(view)
        if not self.ignore_capacity:
            conversion.check_room(view, [wanted])

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the new disk."""
        if self._by_snapshot(view):
            yield from self._snapshot().claims(view)
        else:
            yield from ToStorage.claims(self, view)

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the copy, then let the cluster know it."""
        if self._by_snapshot(view):
            yield from self._snapshot().tasks(view)
            return
        wanted = self.conversion(view)
        new = disk_spec.new_disk(
            view, wanted.wanted, wanted.worker(view), pair=wanted.pair(view)
        )
        step = Step(
            view=view,
            disk=wanted.disk,
            target=new,
            node=wanted.worker(view),
            rate=self.rate,
        )
        yield from step.make()
        yield from _copied(step)
        yield from copies.detach(view.config, new, step.node)
        yield view.record(f"record disk {new.label}", new)

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid of the new disk."""
        return str(results[-1][0])


def makes_clones(view: View, disk: Disk, node: Node, *, at_rest: bool) -> bool:
    """Whether the storage makes a disk of its own of what another one holds.

    Parameters
    ----------
    node
        Where it would be made.
    at_rest
        Whether no guest writes to the disk.
    """
    if not can(disk, Can.SNAPSHOT):
        return False
    if not (can(disk, Can.CLONE) or (able(disk).images and at_rest)):
        return False
    if not able(disk).provider:
        return True
    found = provider_called(str(disk.logical_id[0]), providers(view, node))
    return found is not None and "snapshot" in found.optional


def _copied(step: Step) -> Iterator[Task]:
    """Yield what fills the new volume; the disk itself stays as it is."""
    config, disk, node = step.view.config, step.disk, step.node
    if step.live:
        yield from step.mirror()
        yield step.split()
        return
    if not step.held:
        yield from copies.attach(config, disk, node)
    yield copy(step.view, disk, step.target, node, step.rate)
    if not step.held:
        yield from copies.detach(config, disk, node)
