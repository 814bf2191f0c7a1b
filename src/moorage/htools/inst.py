# SPDX-License-Identifier: BSD-2-Clause
"""An instance while planning: what it needs, and where it is."""

from typing import Any, Final, Self

from moorage.disk_templates import FACTS, IN_UNITS
from moorage.htools.constants import IDLE, Mirror
from moorage.htools.fleet import Disk, InstanceRow, UnitName

NOWHERE: Final = -1
"""Index of the node that an instance without a secondary has as secondary."""

Load = tuple[float, float, float, float]
"""Dynamic load: processor, memory, disk, network."""

EVEN_LOAD: Final[Load] = (1.0, 1.0, 1.0, 1.0)
NO_LOAD: Final[Load] = (0.0, 0.0, 0.0, 0.0)


class Inst:
    """An instance; never changed in place, only copied.

    Attributes
    ----------
    idx : int
        Its place in the fleet.
    p, s : int
        Indices of primary and secondary node; -1 for no secondary.
    uses_mem, uses_sec_mem, counts_cpu : bool
        Whether it occupies memory where it runs, reserves memory where its
        secondary is, and counts against the processors.
    excl_tags : tuple of str
        Tags of which a node should hold one instance only.
    desired : frozenset of str
        Location tags it wants its node to have.
    location : int
        Number of failure domains that its two nodes have in common.
    wants : tuple of (UnitName or None, int)
        Storage unit and size of each disk, MiB; None when units are not used.
    reach : frozenset of int or None
        Nodes from which all its disks can be used; None for its whole group.
    """

    idx: int
    name: str
    alias: str
    mem: int
    dsk: int
    vcpus: int
    status: str
    auto_balance: bool
    p: int
    s: int
    template: str
    tags: tuple[str, ...]
    spindle_use: int
    disks: tuple[Disk, ...]
    forthcoming: bool
    networks: tuple[str, ...]
    movable: bool
    mirror: Mirror
    local: bool
    uses_mem: bool
    uses_sec_mem: bool
    counts_cpu: bool
    load: Load
    excl_tags: tuple[str, ...]
    desired: frozenset[str]
    location: int
    wants: tuple[tuple[UnitName | None, int], ...]
    reach: frozenset[int] | None
    total_spindles: int | None
    sizes: tuple[int, ...]

    def copy(self, **changes: Any) -> Self:  # noqa: ANN401 - any field
        """Return the instance with some fields changed."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def moved(self, p: int, s: int, location: int | None = None) -> Self:
        """Return the instance on other nodes."""
        return self.copy(
            p=p, s=s, location=self.location if location is None else location
        )

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that hold it."""
        return (self.p, self.s) if self.mirror is Mirror.INTERNAL else (self.p,)

    @property
    def is_running(self) -> bool:
        """Whether a live migration is possible."""
        return self.status in ("running", "ERROR_up")


def _is_local(disk: Disk) -> bool:
    """Whether a disk is on a node's own volumes, as far as it says where it is."""
    found = IN_UNITS.get(disk.unit[0]) if disk.unit else None
    return found is None or found.node_disk


def from_row(idx: int, row: InstanceRow) -> Inst:
    """Return the instance that a fleet's row describes."""
    facts = FACTS[row.template]
    spindles = [disk.spindles for disk in row.disks if _is_local(disk)]
    known = [count for count in spindles if count is not None]
    inst = Inst()
    inst.idx, inst.name, inst.alias = idx, row.name, row.name
    inst.mem, inst.dsk, inst.vcpus = row.mem, row.disk, row.vcpus
    inst.status, inst.auto_balance = row.status, row.auto_balance
    inst.p, inst.s = row.primary, row.secondary
    inst.template, inst.tags, inst.spindle_use = row.template, row.tags, row.spindle_use
    inst.disks, inst.forthcoming, inst.networks = (
        row.disks,
        row.forthcoming,
        row.networks,
    )
    inst.movable, inst.mirror, inst.local = (
        facts.movable,
        facts.mirror,
        facts.node_disk,
    )
    idle = row.status in IDLE and not row.promised
    inst.uses_mem = not (row.forthcoming or idle)
    inst.uses_sec_mem = row.status != "ADMIN_offline" and row.auto_balance
    inst.counts_cpu = row.status != "ADMIN_offline"
    inst.load, inst.excl_tags, inst.desired = EVEN_LOAD, (), frozenset()
    inst.location, inst.wants, inst.reach = 0, (), row.reach
    inst.total_spindles = sum(known) if len(known) == len(spindles) else None
    inst.sizes = tuple(disk.size for disk in row.disks)
    return inst
