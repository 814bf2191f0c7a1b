# SPDX-License-Identifier: BSD-2-Clause
"""An instance while planning: what it needs, and where it is."""

from dataclasses import dataclass
from typing import Final, Self

from moorage.disk_templates import FACTS, IN_UNITS
from moorage.htools.constants import IDLE, Mirror
from moorage.htools.fleet import Disk, InstanceRow, UnitName

NOWHERE: Final = -1
"""Index of the node that an instance without a secondary has as secondary."""

Load = tuple[float, float, float, float]
"""Dynamic load: processor, memory, disk, network."""

EVEN_LOAD: Final[Load] = (1.0, 1.0, 1.0, 1.0)
NO_LOAD: Final[Load] = (0.0, 0.0, 0.0, 0.0)


@dataclass
class Inst:
    """An instance; never changed in place, `moved` returns a copy.

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
    load: Load = EVEN_LOAD
    excl_tags: tuple[str, ...] = ()
    desired: frozenset[str] = frozenset()
    location: int = 0
    wants: tuple[tuple[UnitName | None, int], ...] = ()
    reach: frozenset[int] | None = None
    total_spindles: int | None = None
    sizes: tuple[int, ...] = ()

    def moved(self, p: int, s: int, location: int | None = None) -> Self:
        """Return the instance on other nodes."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, p=p, s=s)
        if location is not None:
            copy.location = location
        return copy

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
    return Inst(
        idx=idx,
        name=row.name,
        alias=row.name,
        mem=row.mem,
        dsk=row.disk,
        vcpus=row.vcpus,
        status=row.status,
        auto_balance=row.auto_balance,
        p=row.primary,
        s=row.secondary,
        template=row.template,
        tags=row.tags,
        spindle_use=row.spindle_use,
        disks=row.disks,
        forthcoming=row.forthcoming,
        networks=row.networks,
        movable=facts.movable,
        mirror=facts.mirror,
        local=facts.node_disk,
        uses_mem=not row.forthcoming and (row.promised or row.status not in IDLE),
        uses_sec_mem=row.status != "ADMIN_offline" and row.auto_balance,
        counts_cpu=row.status != "ADMIN_offline",
        reach=row.reach,
        total_spindles=sum(known) if len(known) == len(spindles) else None,
        sizes=tuple(disk.size for disk in row.disks),
    )
