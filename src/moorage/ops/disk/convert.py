# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk convert``: other storage for a disk, attached or not, running or not."""

from collections.abc import Iterator
from typing import Any

from msgspec import field
from msgspec.structs import replace

from moorage.errors import WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.model import Claim, Disk
from moorage.ops import conversion, conversion_tasks, disk_checks, disk_spec, pairs
from moorage.ops.conversion import Conversion


class DiskConvert(Operation, frozen=True, kw_only=True):
    """Bring a disk's data to other storage; the disk stays the one that it is.

    Attributes
    ----------
    disk_template
        The new one; the disk's own, where another provider or other parameters are
        meant.
    pool
        The storage pool that it is to be in.
    params
        Parameters of the template or the provider.
    adopt
        A device that is there, instead of a new volume; what it holds is overwritten.
    node
        Where the work is done, and where the data of a template stay that is local to
        a node. A disk that an instance has is where the instance is. Behind a colon,
        the second node of a mirrored disk: ``node1:node2``, or ``:node2``.
    rate
        MiB a second at most; 0 for no limit.
    force_params
        Accept parameters that the provider does not list.
    ignore_ipolicy
        Whether the policy of the instance's node group does not count.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    """

    op_id = "OP_DISK_CONVERT"
    plans = True

    disk: str
    disk_template: str | None = None
    pool: str | None = None
    provider: str | None = None
    access: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    adopt: str | None = None
    node: str | None = None
    rate: int = 0
    force_params: bool = False
    ignore_ipolicy: bool = False
    ignore_capacity: bool = False

    def conversion(self, view: View) -> Conversion:
        """Return what is wanted."""
        disk = view.config.disk(self.disk)
        wanted = disk_spec.specified(
            view.config,
            {
                "pool": self.pool or self._same_pool(disk),
                "size": None if self.adopt else disk.size,
                "adopt": self.adopt,
            },
            template=self.disk_template or (None if self.pool else disk.dev_type),
            params=self.params | {"provider": self.provider, "access": self.access},
        )
        node, _, second = (self.node or "").partition(":")
        wanted = replace(wanted, force=self.force_params)
        return Conversion(disk, wanted, node, second)

    def _same_pool(self, disk: Disk) -> str | None:
        """Return the disk's storage pool, if only its parameters are to change."""
        elsewhere = self.disk_template or self.provider or self.adopt
        return None if elsewhere else disk.pool

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk and its instance; share the nodes that may do the work."""
        yield from self.conversion(view).locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs it, who can work on it, and what the new storage offers."""
        yield from self.conversion(view).questions(view)

    def check(self, view: View) -> None:
        """Refuse storage that the disk is in, or that cannot take it."""
        wanted = self.conversion(view)
        conversion.check_rate(self.rate)
        wanted.check(view)
        if wanted.is_there(view):
            raise WrongState(
                f"disk {wanted.disk.label} is in such storage already: template "
                f"'{wanted.disk.dev_type}' with the same parameters",
                hint=_nearby(wanted.disk),
                disk=wanted.disk.uuid,
            )
        owner = view.config.owner(wanted.disk)
        if owner and not self.ignore_ipolicy:
            conversion.check_policy(view, owner, [wanted])
        if not self.ignore_capacity:
            conversion.check_room(view, [wanted])

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of the new volume."""
        yield from conversion.claims(view, [self.conversion(view)])

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes of the group will not reach it."""
        wanted = self.conversion(view)
        yield from disk_checks.warnings(view, wanted.wanted, wanted.worker(view))

    def tasks(self, view: View) -> Iterator[Task]:
        """Fill a new volume, record it, remove the old one."""
        yield from conversion_tasks.convert(view, [self.conversion(view)], self.rate)


def _nearby(disk: Disk) -> str:
    """Return what may have been meant where a disk stays in its storage: a hint."""
    if pairs.is_mirrored(disk.dev_type):
        return "for its second copy: gnt-instance replace-disks -n NODE INSTANCE"
    return "name other storage, or other parameters: -D"
