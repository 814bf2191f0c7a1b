# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk forget``: let go of a disk that is lost."""

from collections.abc import Iterator

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.model import Disk, Entity, successor
from moorage.ops.asking import node_tasks
from moorage.ops.disk.detach import ask_holders, holders
from moorage.ops.guests.liveness import check_known, holds, runs
from moorage.ops.volumes import copies
from moorage.ops.volumes.disk_work import hold_owned


class DiskForget(Operation, frozen=True, kw_only=True):
    """Drop the record of a disk; its storage is not asked for anything.

    For a disk whose volume or node is gone; a node that holds it forgets it, too. What
    is left of its data stays where it is, and nobody will find it through the cluster.

    Attributes
    ----------
    disk
        Name or uuid of one that no instance has.
    why
        The reason; it stays in the job.
    """

    op_id = "OP_DISK_FORGET"

    disk: str
    why: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance."""
        yield from hold_owned(view.config, view.config.disk(self.disk))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether its instance runs, and who holds it."""
        owner = view.config.owner(view.config.disk(self.disk))
        if owner:
            yield node_tasks.guest_on(owner.primary_node, owner)
        yield from ask_holders(view.config)

    def check(self, view: View) -> None:
        """Refuse without a reason, and while a guest may have the disk."""
        if not self.why.strip():
            raise BadInput("a disk is forgotten for a reason", hint="--reason WHY")
        disk = view.config.disk(self.disk)
        owner = view.config.owner(disk)
        if owner is None:
            return
        check_known(view, owner)
        if runs(view, owner):
            raise WrongState(
                f"disk {disk.label} is attached to instance {owner.name}, which runs",
                hint=f"gnt-disk detach {view.config.word_for(disk)}",
                disk=disk.uuid,
                instance=owner.name,
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Take it from its instance, and drop it."""
        config = view.config
        disk = config.disk(self.disk)
        owner = config.owner(disk)
        left: tuple[Entity, ...] = ()
        if owner:
            node = config.home(owner)
            if holds(view, owner) and not node.offline:
                yield from copies.detach(config, disk, node, tolerant=True)
            disks = tuple(uuid for uuid in owner.disks if uuid != disk.uuid)
            left = (successor(owner, view.now, disks=disks),)
        what = f"forget disk {disk.label}: {self.why.strip()}"
        yield view.record(what, *left, drop=(disk,))
        for node in holders(view, disk):
            yield node_tasks.forget(config, disk, node)

    def warnings(self, view: View) -> Iterator[str]:
        """Name what may stay behind."""
        disk: Disk = view.config.disk(self.disk)
        yield f"what is left of volume {disk.volume} stays where it is"
        for node in holders(view, disk):
            yield f"node {node.name} had it attached: what is mapped there may stay so"
