# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance grow-disk``: :mod:`moorage.ops.disk.grow` by slot."""

from collections.abc import Iterator

from moorage.jobs import Task, View
from moorage.model import Disk
from moorage.ops.disk.grow import Growing
from moorage.ops.guests.liveness import holds
from moorage.ops.instance.base import find_disk
from moorage.ops.volumes import copies


class InstanceGrowDisk(Growing, frozen=True, kw_only=True):
    """Grow a disk of an instance.

    Attributes
    ----------
    instance_name
        Name or uuid of the instance.
    disk
        Slot, name or uuid.
    wait_for_sync
        Whether the job lasts until both copies of a mirrored disk are the same.
    """

    op_id = "OP_INSTANCE_GROW_DISK"

    instance_name: str
    disk: int | str
    wait_for_sync: bool = True

    def subject(self) -> str:
        """Return the instance's name."""
        return self.instance_name

    def tasks(self, view: View) -> Iterator[Task]:
        """Grow the volume, record it, tell the guest; wait for the other copy."""
        yield from Growing.tasks(self, view)
        instance, disk = view.config.instance(self.instance_name), self.target(view)
        node = view.config.home(instance)
        if self.wait_for_sync and not node.offline and holds(view, instance):
            yield from copies.wait(view.config, disk, node)

    def target(self, view: View) -> Disk:
        """Return the disk."""
        instance = view.config.instance(self.instance_name)
        return find_disk(view.config, instance, self.disk)
