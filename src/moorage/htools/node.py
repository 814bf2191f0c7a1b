# SPDX-License-Identifier: BSD-2-Clause
"""A node while planning: what is left on it, and who may come.

What comes and goes is in `moorage.htools.assignment`.

*Recorded* memory is what the configuration adds up to, *reported* memory what
the node said. The difference is fixed when the cluster is loaded
(``mem_missing``); while planning only the recorded side moves. Fields with
``_all`` count instances that are only planned (forthcoming) too.
"""

from collections.abc import Iterable
from math import floor
from typing import Any, Self

from moorage.htools.constants import Fail, ratio
from moorage.htools.fleet import NodeRow
from moorage.htools.inst import NO_LOAD
from moorage.htools.policy import DEFAULT, Policy
from moorage.htools.units import Units


class Node:
    """A node at one moment of a plan; never changed, only copied.

    Attributes
    ----------
    idx, group : int
        Its place in the fleet, and its group's.
    mem_inst : int
        Recorded memory of the instances that run here, MiB.
    mem_free_all : int
        Reported free memory less all that was planned, MiB.
    disk_free, disk_free_all : int
        MiB.
    cpu_used, cpu_used_all : int
        Virtual processors, the node's own included.
    spindles_free, spindles_free_all : int
        Under exclusive storage only.
    spindles_used, spindles_used_all : float
        Spindle use of instances with local disks.
    reserved : int
        Memory kept for the failover of the worst single other node, MiB.
    fails_n1 : bool
        Whether the free memory does not cover `reserved`.
    peers : dict
        Primary node index -> memory of its instances that have their
        secondary here, MiB.
    primaries, secondaries : tuple of int
        Instances, the newest first.
    load : tuple of float
        Sum of dynamic load: processor, memory, disk, network.
    excl : dict
        Exclusion tag -> number of primaries that carry it.
    location : int
        Failure domains that primaries share with their secondaries, plus
        desired locations that they miss.
    domains : dict
        (location tag, exclusion tag) -> number of primaries.
    units : Units or None
        Storage units; None to count the node's disk as a whole.
    """

    idx: int
    name: str
    alias: str
    group: int
    offline: bool
    master: bool
    tags: tuple[str, ...]
    mem_total: float
    mem_own: int
    mem_free: int
    mem_missing: int
    mem_base: int
    mem_inst: int
    mem_free_all: int
    disk_total: float
    disk_free: int
    disk_free_all: int
    disk_floor: int
    cpus: float
    cpus_own: int
    cpu_speed: float
    cpu_limit: int
    cpu_used: int
    cpu_used_all: int
    spindles: int
    spindle_limit: float
    spindles_free: int
    spindles_free_all: int
    spindles_used: float
    spindles_used_all: float
    exclusive: bool
    policy: Policy
    hypervisor: str
    location_tags: frozenset[str]
    mig_from: frozenset[str]
    mig_into: frozenset[str]
    peers: dict[int, int]
    reserved: int
    fails_n1: bool
    primaries: tuple[int, ...]
    secondaries: tuple[int, ...]
    load: tuple[float, float, float, float]
    excl: dict[str, int]
    location: int
    domains: dict[tuple[str, str], int]
    units: Units | None
    row: tuple[float, ...] | None

    def copy(self, **changes: Any) -> Self:  # noqa: ANN401 - any field
        """Return the node with some fields changed."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes, row=None)
        return new

    @property
    def unallocated(self) -> int:
        """Memory that is free on record and in the world, MiB."""
        return self.mem_base - self.mem_inst

    @property
    def available(self) -> int:
        """Unallocated memory that no failover needs, MiB, at least 0."""
        return max(0, self.unallocated - self.reserved)

    @property
    def disk_available(self) -> int:
        """Free disk above the floor, MiB, at least 0."""
        return max(0, self.disk_free - self.disk_floor)

    @property
    def conflicts(self) -> int:
        """Number of primaries too many, over all exclusion tags."""
        return sum(self.excl.values()) - len(self.excl)

    @property
    def disk_share(self) -> float:
        """Free share of disk (of spindles under exclusive storage), 1 without."""
        return self._share(self.spindles_free, self.disk_free)

    @property
    def disk_share_all(self) -> float:
        """Like `disk_share`, with forthcoming instances counted."""
        return self._share(self.spindles_free_all, self.disk_free_all)

    def _share(self, spindles: int, space: int) -> float:
        if self.exclusive:
            return spindles / self.spindles if self.spindles else 1.0
        return space / self.disk_total if self.disk_total else 1.0

    def breach(self) -> Fail | None:
        """Return which ratio of its policy the node breaks, if any."""
        if self.spindles_used > self.spindle_limit:
            return Fail.DISK
        if ratio(self.cpu_used, self.cpus) > self.policy.vcpu_ratio:
            return Fail.CPU
        return None

    def with_policy(self, policy: Policy) -> Self:
        """Return the node under another policy."""
        return self.copy(
            policy=policy,
            cpu_limit=floor(policy.vcpu_ratio * self.cpus),
            spindle_limit=policy.spindle_ratio * spindles_that_count(self),
        )

    def with_disk_floor(self, share: float) -> Self:
        """Return the node with a share of its disk kept free."""
        return self.copy(disk_floor=floor(share * self.disk_total))


def spindles_that_count(node: Node) -> int:
    """Return a node's spindles, for the share of them that is in use.

    Where they are exclusive none is shared; a node that has none then has no share
    that is no number, if its master is one that tells storage units.
    """
    told = node.exclusive and node.units is not None
    return max(1, node.spindles) if told else node.spindles


def people_on(nodes: Iterable[Node]) -> set[int]:
    """Return the instances that run on some nodes, or keep a second copy there."""
    return {at for node in nodes for at in (*node.primaries, *node.secondaries)}


def from_row(idx: int, row: NodeRow, policy: Policy = DEFAULT) -> Node:
    """Return an empty node as a fleet's row describes it."""
    node = Node()
    node.idx, node.name, node.alias, node.group = idx, row.name, row.name, row.group
    node.offline, node.master, node.tags = row.offline, row.master, row.tags
    node.mem_total, node.mem_own, node.mem_free = (
        row.mem_total,
        row.mem_own,
        row.mem_free,
    )
    node.mem_missing, node.mem_inst, node.mem_base = 0, 0, 0
    node.mem_free_all = row.mem_free
    node.disk_total = row.disk_total
    node.disk_free = node.disk_free_all = row.disk_free
    node.disk_floor = 0
    node.cpus, node.cpus_own, node.cpu_speed = row.cpus, row.cpus_own, row.cpu_speed
    node.cpu_used = node.cpu_used_all = row.cpus_own
    node.spindles, node.exclusive = row.spindles, row.exclusive
    node.spindles_free = node.spindles_free_all = row.spindles_free
    node.spindles_used = node.spindles_used_all = 0.0
    node.policy, node.hypervisor = policy, row.hypervisor
    node.cpu_limit = floor(policy.vcpu_ratio * row.cpus)
    node.location_tags = node.mig_from = node.mig_into = frozenset()
    node.peers, node.reserved, node.fails_n1 = {}, 0, True
    node.primaries = node.secondaries = ()
    node.load, node.excl, node.location, node.domains = NO_LOAD, {}, 0, {}
    node.units = None if row.units is None else Units.of(row.units)
    node.spindle_limit = policy.spindle_ratio * spindles_that_count(node)
    node.row = None
    return node
