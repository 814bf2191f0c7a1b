# SPDX-License-Identifier: BSD-2-Clause
"""The cluster as it was reported, in rows.

Letters used for shapes everywhere in this package:

===  ==========================================================
g    node groups
n    nodes
i    instances
u    desired storage units, such as ``("drbd8", "xenvg")``
===  ==========================================================

Memory and space are MiB. A `Fleet` never changes: planning copies what it
moves into a `moorage.htools.state.State` first.
"""

from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from moorage.errors import BadInput
from moorage.htools.policy import DEFAULT, Policy

UnitName = tuple[str, ...]
"""Type, key and further parameters of a storage unit, as in ``("file", "/srv")``."""


class Unit(NamedTuple):
    """A storage unit of a node.

    Attributes
    ----------
    name : tuple of str
        Type, key, and what else tells it apart on the node.
    free, total : int or None
        MiB; None where the storage cannot tell.
    shared : bool
        Whether the space is one for all nodes that have a unit of this name.
    exclusive : bool
        Whether each disk in it has spindles of its own.
    """

    name: UnitName
    free: int | None
    total: int | None
    shared: bool = False
    exclusive: bool = False


class Disk(NamedTuple):
    """A disk of an instance.

    Attributes
    ----------
    size : int
        MiB.
    spindles : int or None
        Spindles it occupies under exclusive storage.
    unit : tuple of str or None
        The storage unit it wants; None to go by the template.
    whole : bool
        Whether `size` is all that it takes of its unit, metadata included.
    """

    size: int
    spindles: int | None = None
    unit: UnitName | None = None
    whole: bool = False


class Group(NamedTuple):
    """A node group.

    Attributes
    ----------
    alloc_policy : str
        ``preferred``, ``last_resort`` or ``unallocable``.
    networks : tuple of str
        Networks that its nodes reach.
    """

    name: str
    uuid: str
    alloc_policy: str = "preferred"
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    policy: Policy = DEFAULT


class NodeRow(NamedTuple):
    """A node as reported.

    Attributes
    ----------
    group : int
        Index of its group.
    mem_total, mem_own, mem_free : float, int, int
        MiB; `mem_own` is what the node's own system uses.
    disk_total, disk_free : float, int
        MiB.
    cpus, cpus_own, cpu_speed : float, int, float
        Processors, virtual ones of the node's own system, relative speed.
    spindles, spindles_free : int
        With exclusive storage the real ones, else the node parameter.
    units : tuple of Unit or None
        Storage units; None where the cluster does not report them.
    """

    name: str
    group: int = 0
    mem_total: float = 0.0
    mem_own: int = 0
    mem_free: int = 0
    disk_total: float = 0.0
    disk_free: int = 0
    cpus: float = 0.0
    cpus_own: int = 1
    cpu_speed: float = 1.0
    offline: bool = False
    master: bool = False
    spindles: int = 1
    spindles_free: int = 0
    exclusive: bool = False
    tags: tuple[str, ...] = ()
    hypervisor: str = ""
    units: tuple[Unit, ...] | None = None


class InstanceRow(NamedTuple):
    """An instance as recorded.

    Attributes
    ----------
    mem, disk : int
        MiB; `disk` is the sum that Ganeti accounts for.
    primary, secondary : int
        Indices of nodes; -1 for none.
    disks : tuple of Disk
        Its disks.
    networks : tuple of str
        Networks that its cards need.
    reach : frozenset of int or None
        Nodes from which **all** its disks can be used; None for the whole group.
    promised : bool
        Whether its memory counts though it is down: it should run, and will again.
    """

    name: str
    mem: int
    disk: int
    vcpus: int
    primary: int = -1
    secondary: int = -1
    status: str = "running"
    auto_balance: bool = True
    template: str = "plain"
    tags: tuple[str, ...] = ()
    spindle_use: int = 1
    disks: tuple[Disk, ...] = ()
    forthcoming: bool = False
    networks: tuple[str, ...] = ()
    reach: frozenset[int] | None = None
    promised: bool = False


class Fleet:
    """A snapshot to plan on.

    Attributes
    ----------
    groups, nodes, instances : tuple
        Rows in the order of the input; an index is a place in these.
    tags : tuple of str
        Tags of the cluster.
    policy : Policy
        The cluster's instance policy.
    first : int
        Index printed for the first group and node (1 in simulations).
    warnings : tuple of str
        What is odd about the input, though it can be read; a sentence each.

    Raises
    ------
    BadInput
        If a row names a place that does not exist.
    """

    def __init__(  # noqa: PLR0913 - a record
        self,
        groups: tuple[Group, ...],
        nodes: tuple[NodeRow, ...],
        instances: tuple[InstanceRow, ...],
        tags: tuple[str, ...] = (),
        policy: Policy = DEFAULT,
        *,
        first: int = 0,
        warnings: tuple[str, ...] = (),
    ) -> None:
        for node in nodes:
            if not 0 <= node.group < len(groups):
                raise BadInput(f"node {node.name} is in no group of this cluster")
        for inst in instances:
            _placed(inst, len(nodes))
        self.groups: Final = groups
        self.nodes: Final = nodes
        self.instances: Final = instances
        self.tags: Final = tags
        self.policy: Final = policy
        self.first: Final = first
        self.warnings: Final = warnings

    def replaced(self, **changes: Any) -> Self:  # noqa: ANN401 - any field
        """Return a copy with some fields changed."""
        return type(self)(**{**self._told(), **changes})

    def __eq__(self, other: object) -> bool:
        """Say whether another fleet has the same rows."""
        return isinstance(other, Fleet) and self._told() == other._told()

    def __hash__(self) -> int:
        """Return the same number for fleets with the same rows."""
        return hash((self.groups, self.nodes, self.instances))

    def _told(self) -> dict[str, Any]:
        """Return what it was made of, by name; not what was found in it later."""
        return {name: of for name, of in vars(self).items() if name != "units"}

    @cached_property
    def units(self) -> tuple[UnitName, ...]:
        """Every storage unit's name, shape (u,), in order of appearance."""
        rows = [unit.name for node in self.nodes for unit in node.units or ()]
        return tuple(dict.fromkeys(rows))


def _placed(inst: InstanceRow, nodes: int) -> None:
    if not 0 <= inst.primary < nodes or not -1 <= inst.secondary < nodes:
        raise BadInput(f"instance {inst.name} is on no node of this cluster")
