# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance grow-disk``: :mod:`moorage.ops.disk.grow` by slot."""

from typing import Annotated

from moorage.jobs import View
from moorage.jobs.unread import Moot
from moorage.model import Disk
from moorage.ops.disk.grow import Growing
from moorage.ops.instance.base import find_disk


class InstanceGrowDisk(Growing, frozen=True, kw_only=True):
    """Grow a disk of an instance.

    Attributes
    ----------
    disk
        Slot, name or uuid.
    """

    op_id = "OP_INSTANCE_GROW_DISK"

    instance_name: str
    disk: int | str
    wait_for_sync: Annotated[bool, Moot("no template mirrors a disk by itself")] = True

    def subject(self) -> str:
        """Return the instance's name."""
        return self.instance_name

    def target(self, view: View) -> Disk:
        """Return the disk."""
        instance = view.config.instance(self.instance_name)
        return find_disk(view.config, instance, self.disk)
