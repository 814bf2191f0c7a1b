# SPDX-License-Identifier: BSD-2-Clause
"""Storage units: how much room each named storage has on one node.

A disk wants one unit, by type and key. It fits on a node that has a unit of
that name with the room; several disks of an instance settle one after the
other, each taking its room before the next one is tried. A unit that several
nodes share (``shared``) gives nothing back when an instance leaves a node and
takes nothing when it comes: its room is one number for the whole cluster, which
only new disks take (`Units.spent`).

A volume group is two units, for plain and for mirrored volumes, with one room: what a
disk takes of one of them, it takes of the other, and both must have it (`together`).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Self

from moorage.disk_templates import FACTS, IN_UNITS, sharing
from moorage.htools.fleet import Disk, InstanceRow, NodeRow, Unit, UnitName

Wants = tuple[tuple[UnitName | None, int], ...]


class Units(NamedTuple):
    """The units of one node.

    Attributes
    ----------
    names : tuple
        What each is called.
    free, total : tuple of (int or None)
        MiB; None where the storage cannot tell.
    shared : tuple of bool
        Whether the room is the whole cluster's.
    floor : tuple of int
        Room to leave free unless forced, MiB.
    """

    names: tuple[UnitName, ...]
    free: tuple[int | None, ...]
    total: tuple[int | None, ...]
    shared: tuple[bool, ...]
    floor: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[Unit], floor: float = 0.0) -> Self:
        """Return the units as reported; `floor` is a share of each total."""
        return cls(
            names=tuple(row.name for row in rows),
            free=tuple(row.free for row in rows),
            total=tuple(row.total for row in rows),
            shared=tuple(row.shared for row in rows),
            floor=tuple(int(floor * (row.total or 0)) for row in rows),
        )

    def __bool__(self) -> bool:
        """Be true: a node with the field and no unit still has the field."""
        return True

    def place(self, name: UnitName) -> int | None:
        """Return where a unit stands in the tuples; None when it is not here."""
        return self.names.index(name) if name in self.names else None

    def rooms(self, name: UnitName | None) -> list[int]:
        """Return where the units stand whose room a disk takes that wants one."""
        places = [] if name is None else map(self.place, together(name))
        return [at for at in places if at is not None]

    def apart(self) -> list[int]:
        """Return where the first unit of each room stands: some have one together."""
        return [at for at, name in enumerate(self.names) if at == min(self.rooms(name))]

    def is_bound(self, at: int) -> bool:
        """Say whether moving an instance changes the room of a unit, if it has any."""
        return self.free[at] is not None and not self.shared[at]

    def share(self, name: UnitName) -> float | None:
        """Return the free share of a unit; None when absent or unknown."""
        at = self.place(name)
        if at is None:
            return None
        free, total = self.free[at], self.total[at]
        if free is None or total is None:
            return None
        return free / total if total else 1.0

    def taken(self, wants: Wants) -> Self:
        """Return the units after disks came; nothing is checked."""
        return self._changed(wants, -1, shared=False)

    def released(self, wants: Wants) -> Self:
        """Return the units after disks left."""
        return self._changed(wants, 1, shared=False)

    def spent(self, wants: Wants) -> Self:
        """Return the units after new disks took their room of the shared ones."""
        return self._changed(wants, -1, shared=True)

    def _changed(self, wants: Wants, sign: int, *, shared: bool) -> Self:
        """Return the units with the room of the shared, or of the other ones, changed.

        The same object, where that changes nothing.
        """
        free = list(self.free)
        for name, size in wants:
            for at in self.rooms(name):
                room = free[at]
                if room is not None and self.shared[at] is shared:
                    free[at] = room + sign * size
        if free == list(self.free):
            return self
        return type(self)(self.names, tuple(free), self.total, self.shared, self.floor)


@cache
def together(name: UnitName) -> tuple[UnitName, ...]:
    """Return the units that have one room on a node, a named one first."""
    return tuple((kind, *name[1:]) for kind in sharing(name[0]))


def units_by_type(nodes: Iterable[NodeRow]) -> Mapping[str, list[UnitName]]:
    """Return the names of all units that some nodes have, by type."""
    names = dict.fromkeys(unit.name for node in nodes for unit in node.units or ())
    found: dict[str, list[UnitName]] = {}
    for name in names:
        found.setdefault(name[0], []).append(name)
    return found


def wishes(
    inst: InstanceRow, nodes: Sequence[NodeRow], known: Mapping[str, list[UnitName]]
) -> Wants:
    """Return the unit and size of each disk, by name or by template.

    A disk that names no unit wants the one of its template's type on its own
    node, or the only one in the cluster. Which of several pools an instance on
    pooled storage uses cannot be told: it then wants none.

    Parameters
    ----------
    known
        All units of the nodes, by type; asked for many instances, it is made once.

    Raises
    ------
    ValueError
        If two units of that type leave the choice open; the text says which.
    """
    facts, unit = FACTS[inst.template], None
    if facts.unit and _unnamed(inst):
        pools = known.get(facts.unit, [])
        if not facts.pooled:
            unit = _only(inst, facts.unit, nodes, pools)
        elif len(pools) == 1:
            unit = pools[0]
    return tuple(_want(disk, disk.unit or unit) for disk in inst.disks)


def _want(disk: Disk, name: UnitName | None) -> tuple[UnitName | None, int]:
    """Return a unit, and what a disk takes of it: metadata, too."""
    kind = None if disk.whole or name is None else IN_UNITS.get(name[0])
    return name, disk.size + (kind.metadata if kind else 0)


def _unnamed(inst: InstanceRow) -> bool:
    """Whether no disk says where it is; beside one that does, silence is no unit."""
    return all(disk.unit is None for disk in inst.disks)


def _only(
    inst: InstanceRow, kind: str, nodes: Sequence[NodeRow], everywhere: list[UnitName]
) -> UnitName | None:
    """Return the one unit of a type that an instance can mean.

    Ganeti's masters send requests that name none: for a new instance that is the first
    one of its type that a node lists.
    """
    home = nodes[inst.primary].units if inst.primary >= 0 else None
    here = (unit.name for unit in home or ())
    found = list(dict.fromkeys(n for n in here if n[0] == kind)) or everywhere
    if len(found) > 1 and inst.primary >= 0:
        names = " and ".join("/".join(name) for name in found)
        raise ValueError(
            f"instance {inst.name} does not say which storage unit it uses, "
            f"and there are several of type {kind}: {names}"
        )
    return found[0] if found else (kind,)
