# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk remove``: the end of a disk that belongs to nobody."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.ops.volumes import copies
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_access import ask_candidates, check_own, elsewhere, worker
from moorage.ops.volumes.disk_work import hold_to_work


class DiskRemove(Operation, frozen=True, kw_only=True):
    """Destroy a detached disk and its data.

    Attributes
    ----------
    disk
        Name or uuid of one that no instance has.
    volume_is_ours
        Somebody looked: a volume of which nobody knows whose it is, is the disk's own.
    """

    op_id = "OP_DISK_REMOVE"

    disk: str
    volume_is_ours: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk; share the nodes that may do the work."""
        yield from hold_to_work(view, view.config.disk(self.disk))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who can do it."""
        disk = view.config.disk(self.disk)
        yield from ask_candidates(view.config, disk)
        yield from ask_dependents(view.config, [disk])

    def check(self, view: View) -> None:
        """Refuse while an instance has the disk."""
        disk = view.config.disk(self.disk)
        owner = view.config.owner(disk)
        if owner:
            raise WrongState(
                f"Cannot remove disk {disk.label}. "
                f"Disk is attached to instance {owner.name}",
                hint=f"gnt-disk detach {view.config.word_for(disk)}",
                disk=disk.uuid,
                instance=owner.name,
            )
        if not self.volume_is_ours:
            check_own(disk)
        worker(view, disk, old=True)
        check_no_dependents(view, [disk])

    def warnings(self, view: View) -> Iterator[str]:
        """Say which copies stay behind."""
        return copies.left_behind(view.config, view.config.disk(self.disk))

    def tasks(self, view: View) -> Iterator[Task]:
        """Detach what may be left, destroy the volume, forget the disk."""
        disk = view.config.disk(self.disk)
        node = worker(view, disk, old=True)
        if not elsewhere(disk, node):
            yield from copies.detach(view.config, disk, node, tolerant=True)
        yield from copies.destroy(view, disk, node)
