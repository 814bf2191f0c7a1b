# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk convert``: other storage for a disk, attached or not, running or not."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from moorage.errors import WrongState
from moorage.jobs import Sought, Task, View, once, rights
from moorage.model import Disk
from moorage.ops.filling import conversion, conversion_tasks
from moorage.ops.filling.conversion import Conversion, ToStorage
from moorage.ops.guests.liveness import check_unused, seek
from moorage.ops.planning import disk_checks
from moorage.ops.volumes import disk_words, pairs


class DiskConvert(ToStorage, frozen=True, kw_only=True):
    """Bring a disk's data to other storage; the disk stays the one that it is.

    Attributes
    ----------
    adopt
        A device or volume that is there, instead of a new volume; what it holds is
        overwritten.
    ignore_ipolicy
        Whether the policy of the instance's node group does not count.
    """

    op_id = "OP_DISK_CONVERT"

    adopt: Annotated[str | None, rights.ADOPTS] = None
    ignore_ipolicy: bool = False

    @once
    def conversion(self, view: View) -> Conversion:
        """Return what is wanted."""
        disk = view.config.disk(self.disk)
        elsewhere = self.disk_template or self.provider or self.adopt
        wanted = disk_words.DiskWords(
            {
                "pool": self.pool or (None if elsewhere else disk.pool),
                "size": disk.size,
                "adopt": self.adopt,
            },
            template=self.disk_template or (None if self.pool else disk.dev_type),
            params=self.named_params,
        ).read(view.config)
        return self.converted(disk, replace(wanted, force=self.force_params))

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest: the old volume is removed."""
        owner = view.config.owner(view.config.disk(self.disk))
        if owner:
            yield from seek(view.config, owner)

    def check(self, view: View) -> None:
        """Refuse storage that the disk is in, or that cannot take it."""
        wanted = self.conversion(view)
        disk_checks.check_rate(self.rate)
        wanted.check(view)
        if wanted.is_there(view):
            raise WrongState(
                f"disk {wanted.disk.label} is in such storage already: template "
                f"'{wanted.disk.dev_type}' with the same parameters",
                hint=_nearby(wanted.disk),
                disk=wanted.disk.uuid,
            )
        owner = view.config.owner(wanted.disk)
        if owner:
            check_unused(view, owner)
        if owner and not self.ignore_ipolicy:
            conversion.check_policy(view, owner, [wanted])
        if not self.ignore_capacity:
            conversion.check_room(view, [wanted])

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes will not reach it, and that what was adopted stays."""
        yield from ToStorage.warnings(self, view)
        yield from conversion_tasks.warnings([self.conversion(view)])

    def tasks(self, view: View) -> Iterator[Task]:
        """Fill a new volume, record it, remove the old one."""
        yield from conversion_tasks.convert(view, [self.conversion(view)], self.rate)


def _nearby(disk: Disk) -> str:
    """Return what may have been meant where a disk stays in its storage: a hint."""
    if pairs.is_mirrored(disk.dev_type):
        return "for its second copy: gnt-instance replace-disks -n NODE INSTANCE"
    return "name other storage, or other parameters: -D"
