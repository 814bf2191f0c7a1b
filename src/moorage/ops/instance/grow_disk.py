# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance grow-disk``: :mod:`moorage.ops.disk.grow` by slot."""

from collections.abc import Iterator
from typing import Annotated

from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.jobs.unread import Moot
from moorage.model import Disk
from moorage.ops.disk.grow import (
    check_growth,
    grow_locks,
    grow_questions,
    grow_tasks,
    new_size,
)
from moorage.ops.instance.common import find_disk


class InstanceGrowDisk(Operation, frozen=True, kw_only=True):
    """Grow a disk of an instance.

    Attributes
    ----------
    disk
        Slot, name or uuid.
    amount
        MiB: what to add, or (`absolute`) the new size.
    """

    op_id = "OP_INSTANCE_GROW_DISK"

    instance_name: str
    disk: int | str
    amount: int
    absolute: bool = False
    wait_for_sync: Annotated[bool, Moot("no template mirrors a disk by itself")] = True
    ignore_ipolicy: Annotated[bool, Moot("no size is refused for a policy")] = False

    def _disk(self, view: View) -> Disk:
        instance = view.config.instance(self.instance_name)
        return find_disk(view.config, instance, self.disk)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance."""
        yield from grow_locks(view, self._disk(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs."""
        yield from grow_questions(view, self._disk(view))

    def check(self, view: View) -> None:
        """Refuse to shrink, and templates that cannot grow."""
        check_growth(view, self._disk(view), self.amount, absolute=self.absolute)

    def tasks(self, view: View) -> Iterator[Task]:
        """Grow the volume, record it, tell the guest."""
        disk = self._disk(view)
        to = new_size(disk, self.amount, absolute=self.absolute)
        yield from grow_tasks(view, disk, to)
