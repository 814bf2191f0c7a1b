# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster has, what is used, and what can still be given away."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.htools.metrics import score, total
from moorage.htools.node import Node
from moorage.htools.words import fixed, ratio

Usage = tuple[int, float, int, int, int]
"""Virtual processors, the same in physical ones, memory, disk, spindles."""


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
    disk: float = 0.0
    cpus: float = 0.0
    spindles: int = 0
    cpu_limit: int = 0
    mem_free: int = 0
    mem_available: int = 0
    mem_used: int = 0
    mem_overhead: int = 0
    disk_free: int = 0
    disk_available: int = 0
    disk_used: int = 0
    spindles_free: int = 0
    spindles_used: int = 0
    cpu_used: int = 0
    cpu_used_physical: float = 0.0
    best_mem: int = 0
    best_disk: int = 0
    score: float = field(default=0.0)

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> "Totals":
        """Return the totals of some nodes."""
        return cls(
            nodes=list(nodes),
            instances=sum(len(n.primaries) for n in nodes),
            mem=total(n.mem_total for n in nodes),
            disk=total(n.disk_total for n in nodes),
            cpus=total(n.cpus for n in nodes),
            spindles=sum(n.spindles for n in nodes),
            cpu_limit=sum(n.cpu_limit for n in nodes),
            mem_free=sum(n.unallocated for n in nodes),
            mem_available=sum(n.available for n in nodes),
            mem_used=sum(n.mem_inst for n in nodes),
            mem_overhead=sum(n.mem_missing + n.mem_own for n in nodes),
            disk_free=sum(n.disk_free for n in nodes),
            disk_available=sum(n.disk_available for n in nodes),
            disk_used=sum(int(n.disk_total) - n.disk_free for n in nodes),
            spindles_free=sum(n.spindles_free for n in nodes),
            spindles_used=sum(n.spindles - n.spindles_free for n in nodes),
            cpu_used=sum(n.cpu_used for n in nodes),
            cpu_used_physical=total(
                ratio(n.cpu_used, n.policy.vcpu_ratio) for n in nodes
            ),
            best_mem=max((n.available for n in nodes), default=0),
            best_disk=max((n.disk_available for n in nodes), default=0),
            score=score(nodes),
        )

    @property
    def mem_share(self) -> float:
        """Share of memory that instances use."""
        return ratio(self.mem_used, self.mem)

    @property
    def disk_share(self) -> float:
        """Share of disk in use."""
        return ratio(self.disk_used, self.disk)

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
            ("DSK", fixed(self.disk, 0)),
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
            ("DSK_FREE", self.disk_free),
            ("DSK_AVAIL", self.disk_available),
            ("DSK_RESVD", self.disk_free - self.disk_available),
            ("DSK_INST", self.disk_used),
            ("DSK_EFF", fixed(self.disk_share, 8)),
            ("SPN_FREE", self.spindles_free),
            ("SPN_INST", self.spindles_used),
            ("SPN_EFF", fixed(self.spindle_share, 8)),
            ("CPU_INST", self.cpu_used),
            ("CPU_EFF", fixed(self.cpu_share, 8)),
            ("MNODE_MEM_AVAIL", self.best_mem),
            ("MNODE_DSK_AVAIL", self.best_disk),
        ]

    def usage(self, after: "Totals") -> dict[str, Usage]:
        """Return what was used before, what was added, and what stayed free."""
        return {
            "USED": (
                self.cpu_used,
                self.cpu_used_physical,
                self.mem_used,
                self.disk_used,
                self.spindles_used,
            ),
            "POOL": (
                after.cpu_used - self.cpu_used,
                after.cpu_used_physical - self.cpu_used_physical,
                after.mem_used - self.mem_used,
                after.disk_used - self.disk_used,
                after.spindles_used - self.spindles_used,
            ),
            "UNAV": (
                after.cpu_limit - after.cpu_used,
                after.cpus - after.cpu_used_physical,
                int(after.mem) - after.mem_used,
                int(after.disk) - after.disk_used,
                after.spindles - after.spindles_used,
            ),
        }
