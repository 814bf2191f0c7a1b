# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster has, what is used, and what can still be given away."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Final, NamedTuple, Self

from moorage.htools.constants import fixed, ratio
from moorage.htools.fleet import UnitName
from moorage.htools.metrics import score, total
from moorage.htools.node import Node

Usage = tuple[int, float, int, int | str, int]
"""Virtual processors, the same in physical ones, memory, disk, spindles."""

UNKNOWN: Final = "unknown"
"""What is told of room that nobody knows: it is not 0."""


@dataclass(frozen=True, slots=True)
class Room:
    """Room for disks, MiB; storage that several nodes share counts once.

    Attributes
    ----------
    total : float
    free, available, used : int
        `available` leaves out what should stay free.
    best : int
        The most that is available to one node.
    known : bool
        Whether anything tells how much there is; what does not tell is left out.
    """

    total: float = 0.0
    free: int = 0
    available: int = 0
    used: int = 0
    best: int = 0
    known: bool = True

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Self:
        """Return the room on some nodes: of their units where they list any."""
        parts = [part for node in nodes for part in _parts(node)]
        alone = [part for part in parts if part.pool is None]
        # A pool that is shared is the same one on each node.
        pools = {part.pool: part for part in reversed(parts) if part.pool is not None}
        counted = [*alone, *pools.values()]
        per_node = [sum(part.available for part in _parts(node)) for node in nodes]
        return cls(
            total=total(part.total for part in counted),
            free=sum(part.free for part in counted),
            available=sum(part.available for part in counted),
            used=sum(int(part.total) - part.free for part in counted),
            best=max(per_node, default=0),
            known=bool(counted) or not nodes,
        )

    def told(self, size: int) -> int | str:
        """Return a size as it is told."""
        return size if self.known else UNKNOWN

    def report(self, share: str) -> list[tuple[str, object]]:
        """Return every number by key, in the order of reports."""
        sizes = {
            "DSK_FREE": self.free,
            "DSK_AVAIL": self.available,
            "DSK_RESVD": self.free - self.available,
            "DSK_INST": self.used,
        }
        told = [(key, self.told(size)) for key, size in sizes.items()]
        return [*told, ("DSK_EFF", share if self.known else UNKNOWN)]


class _Part(NamedTuple):
    """Some room, MiB, and the pool that it is if nodes share it."""

    total: float
    free: int
    available: int
    pool: UnitName | None = None


def _parts(node: Node) -> list[_Part]:
    units = node.units
    if units is None:
        return [_Part(node.disk_total, node.disk_free, node.disk_available)]
    found = []
    for at in units.apart():
        whole, free = units.total[at], units.free[at]
        if whole is not None and free is not None:
            pool = units.names[at] if units.shared[at] else None
            found.append(_Part(whole, free, max(0, free - units.floor[at]), pool))
    return found


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over nodes; memory and disk are MiB.

    Attributes
    ----------
    nodes : list of Node
        The nodes summed over.
    """

    nodes: list[Node]
    instances: int = 0
    mem: float = 0.0
    room: Room = field(default_factory=Room)
    cpus: float = 0.0
    spindles: int = 0
    cpu_limit: int = 0
    mem_free: int = 0
    mem_available: int = 0
    mem_used: int = 0
    mem_overhead: int = 0
    spindles_free: int = 0
    spindles_used: int = 0
    cpu_used: int = 0
    cpu_used_physical: float = 0.0
    best_mem: int = 0
    score: float = field(default=0.0)

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> "Totals":
        """Return the totals of some nodes."""
        return cls(
            nodes=list(nodes),
            instances=sum(len(n.primaries) for n in nodes),
            mem=total(n.mem_total for n in nodes),
            room=Room.of(nodes),
            cpus=total(n.cpus for n in nodes),
            spindles=sum(n.spindles for n in nodes),
            cpu_limit=sum(n.cpu_limit for n in nodes),
            mem_free=sum(n.unallocated for n in nodes),
            mem_available=sum(n.available for n in nodes),
            mem_used=sum(n.mem_inst for n in nodes),
            mem_overhead=sum(n.mem_missing + n.mem_own for n in nodes),
            spindles_free=sum(n.spindles_free for n in nodes),
            spindles_used=sum(n.spindles - n.spindles_free for n in nodes),
            cpu_used=sum(n.cpu_used for n in nodes),
            cpu_used_physical=total(
                ratio(n.cpu_used, n.policy.vcpu_ratio) for n in nodes
            ),
            best_mem=max((n.available for n in nodes), default=0),
            score=score(nodes),
        )

    @property
    def mem_share(self) -> float:
        """Share of memory that instances use."""
        return ratio(self.mem_used, self.mem)

    @property
    def disk_share(self) -> float:
        """Share of disk in use; NaN where the room is unknown."""
        return ratio(self.room.used, self.room.total) if self.room.known else nan

    @property
    def cpu_share(self) -> float:
        """Share of the virtual processors in use."""
        return ratio(self.cpu_used, self.cpu_limit)

    @property
    def spindle_share(self) -> float:
        """Share of spindles in use."""
        return ratio(self.spindles_used, self.spindles)

    def sizes(self, *, spn: bool) -> list[tuple[str, str]]:
        """Return the size of the cluster, by key."""
        pairs = [
            ("MEM", fixed(self.mem, 0)),
            ("DSK", fixed(self.room.total, 0) if self.room.known else UNKNOWN),
            ("CPU", fixed(self.cpus, 0)),
            ("VCPU", str(self.cpu_limit)),
        ]
        return [*pairs, ("SPN", str(self.spindles))] if spn else pairs

    def report(self) -> list[tuple[str, object]]:
        """Return every number by key, in the order of reports."""
        return [
            ("SCORE", fixed(self.score, 8)),
            ("INST_CNT", self.instances),
            ("MEM_FREE", self.mem_free),
            ("MEM_AVAIL", self.mem_available),
            ("MEM_RESVD", self.mem_free - self.mem_available),
            ("MEM_INST", self.mem_used),
            ("MEM_OVERHEAD", self.mem_overhead),
            ("MEM_EFF", fixed(self.mem_share, 8)),
            *self.room.report(fixed(self.disk_share, 8)),
            ("SPN_FREE", self.spindles_free),
            ("SPN_INST", self.spindles_used),
            ("SPN_EFF", fixed(self.spindle_share, 8)),
            ("CPU_INST", self.cpu_used),
            ("CPU_EFF", fixed(self.cpu_share, 8)),
            ("MNODE_MEM_AVAIL", self.best_mem),
            ("MNODE_DSK_AVAIL", self.room.told(self.room.best)),
        ]

    def usage(self, after: "Totals") -> dict[str, Usage]:
        """Return what was used before, what was added, and what stayed free."""
        return {
            "USED": (
                self.cpu_used,
                self.cpu_used_physical,
                self.mem_used,
                self.room.told(self.room.used),
                self.spindles_used,
            ),
            "POOL": (
                after.cpu_used - self.cpu_used,
                after.cpu_used_physical - self.cpu_used_physical,
                after.mem_used - self.mem_used,
                after.room.told(after.room.used - self.room.used),
                after.spindles_used - self.spindles_used,
            ),
            "UNAV": (
                after.cpu_limit - after.cpu_used,
                after.cpus - after.cpu_used_physical,
                int(after.mem) - after.mem_used,
                after.room.told(int(after.room.total) - after.room.used),
                after.spindles - after.spindles_used,
            ),
        }
