# SPDX-License-Identifier: BSD-2-Clause
"""What few clusters have, as arrays for the kernel: tags of places, reach, units.

Each is made only where somebody uses it; without it the kernel does not ask.
"""

from array import array
from collections.abc import Sequence

from moorage.htools.constraints.admission import migration
from moorage.htools.fleet import UnitName
from moorage.htools.inst import Inst
from moorage.htools.kernel.columns import BOUNDLESS, COUNTED
from moorage.htools.metrics import merged_domains
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.units import together


def paths(nodes: Sequence[Node]) -> "array[int] | None":
    """Return where live migration may go, shape (n * n,); None for everywhere."""
    if not any(node.mig_from or node.mig_into for node in nodes):
        return None
    return array("i", [int(migration(a, b) is None) for a in nodes for b in nodes])


def reach(
    nodes: Sequence[Node], insts: Sequence[Inst], room: int
) -> "tuple[array[int], array[int]] | None":
    """Return which nodes reach the disks of instances; None where all reach all.

    Returns
    -------
    storages : (room,)
        The storage of each instance, by number; 0 is that which is everywhere.
    reached : (storages * n,)
        1 where a node reaches it.
    """
    if all(inst.reach is None for inst in insts):
        return None
    known: dict[frozenset[int] | None, int] = {None: 0}
    storages = array("i", bytes(4 * max(1, room)))
    for place, inst in enumerate(insts):
        storages[place] = known.setdefault(inst.reach, len(known))
    flags = [where is None or node.idx in where for where in known for node in nodes]
    return storages, array("i", map(int, flags))


def free_choices(
    nodes: Sequence[Node], insts: Sequence[Inst], room: int
) -> "tuple[array[int], array[int]] | None":
    """Return on which nodes memory alone decides; None where it is so everywhere.

    Returns
    -------
    classes : (room,)
        The class of each instance; 0 for all nodes, -1 where room for its disks
        decides, too.
    open : (classes * n,)
        1 where instances of a class may run if there is memory for them.
    """
    if all(inst.reach is None and not inst.wants for inst in insts):
        return None
    everywhere = (1,) * len(nodes)
    known: dict[tuple[int, ...] | None, int] = {None: -1, everywhere: 0}
    choices: dict[tuple[object, ...], int] = {}
    classes = array("i", bytes(4 * max(1, room)))
    for place, inst in enumerate(insts):
        names = tuple(dict.fromkeys(name for name, _ in inst.wants if name is not None))
        if (inst.reach, names) not in choices:
            choice = _choice(nodes, inst.reach, names)
            choices[inst.reach, names] = known.setdefault(choice, len(known) - 1)
        classes[place] = choices[inst.reach, names]
    flags = [flag for choice in known if choice is not None for flag in choice]
    return classes, array("i", flags)


def _choice(
    nodes: Sequence[Node], reach: frozenset[int] | None, names: Sequence[UnitName]
) -> tuple[int, ...] | None:
    """Return 1 for each node that offers some units; None where one may be full."""
    flags = []
    for node in nodes:
        units = node.units
        places = [] if units is None else [units.place(name) for name in names]
        rooms = [at for name in names for at in (units.rooms(name) if units else ())]
        if units and any(map(units.is_bound, rooms)):
            return None
        reached = reach is None or node.idx in reach
        flags.append(int(reached and None not in places))
    return tuple(flags)


class Domains:
    """Failure domains: which nodes stand where, who desires what, who is together.

    Parameters
    ----------
    tags : dict
        Exclusion tag -> its place.
    room : int
        How many instances there may be.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        insts: Sequence[Inst],
        tags: dict[str, int],
        room: int,
    ) -> None:
        names = dict.fromkeys(
            tag for node in nodes for tag in sorted(node.location_tags)
        )
        # A wish counts even where no node offers anything.
        names = names or dict.fromkeys(tag for one in insts for tag in one.desired)
        self.names = {name: place for place, name in enumerate(names)}
        self.tags = tags
        size = len(self.names)
        self.stands = array("d", bytes(8 * max(1, len(nodes) * size)))
        for j, node in enumerate(nodes):
            for tag in node.location_tags:
                self.stands[j * size + self.names[tag]] = 1.0
        self.wishes = array("d", bytes(8 * max(1, room * size)))
        for i, inst in enumerate(insts):
            for tag in inst.desired & self.names.keys():
                self.wishes[i * size + self.names[tag]] = 1.0
        self.crowd = array("d", bytes(8 * max(1, size * len(tags))))

    def renew(self, state: State) -> float:
        """Count who is together in a state; return what that adds to the score."""
        online = [node for node in state.seen if not node.offline]
        self.crowd[:] = array("d", bytes(8 * len(self.crowd)))
        for node in online:
            for (place, tag), count in node.domains.items():
                self.crowd[self.names[place] * len(self.tags) + self.tags[tag]] += count
        return merged_domains(online)


def domains(
    nodes: Sequence[Node], insts: Sequence[Inst], tags: dict[str, int], room: int
) -> Domains | None:
    """Return the failure domains; None where there are none."""
    tagged = any(node.location_tags for node in nodes)
    tagged = tagged or any(inst.desired for inst in insts)
    return Domains(nodes, insts, tags, room) if tagged else None


class UnitTables:
    """Storage units: what every node has, and what instances want.

    Those whose room some node online tells come first; they are part of the score.
    """

    def __init__(self, nodes: Sequence[Node], insts: Sequence[Inst]) -> None:
        online = [node.units for node in nodes if node.units and not node.offline]
        known = dict.fromkeys(
            name
            for units in online
            for name in units.names
            if units.share(name) is not None
        )
        listed = [node.units for node in nodes if node.units is not None]
        names = known | dict.fromkeys(name for one in listed for name in one.names)
        # Of none whose room is known, one stands for all: nothing is spread.
        self.counted = max(len(known), min(1, len(names)) if online else 0)
        self.names = {name: place for place, name in enumerate(names)}
        shape = bytes(8 * max(1, len(nodes) * len(names)))
        self.stock = array("d", bytes(8 * max(1, (len(nodes) + 3) * len(names))))
        self.totals, self.floors = array("d", shape), array("d", shape)
        self.kinds, self.seen = array("d", shape), array("d", shape)
        for j, node in enumerate(nodes):
            self._describe(j, node)
            self.renew(j, node)
        self.wanted, self.sizes = array("i"), array("d")
        self.spans = [self._want(inst) for inst in insts]
        self.wanted.append(-1)
        self.sizes.append(0.0)

    def _describe(self, j: int, node: Node) -> None:
        """Fill in what never changes."""
        for at, name in enumerate(node.units.names if node.units else ()):
            units, place = node.units, j * len(self.names) + self.names[name]
            assert units is not None  # noqa: S101 - it has names
            free, total = units.free[at], units.total[at]
            self.kinds[place] = COUNTED if units.is_bound(at) else BOUNDLESS
            self.totals[place] = total or 0
            self.floors[place] = units.floor[at]
            self.seen[place] = float(free is not None and total is not None)

    def renew(self, j: int, node: Node) -> None:
        """Take over the free room of a node."""
        for at, name in enumerate(node.units.names if node.units else ()):
            free = node.units.free[at] if node.units else None
            self.stock[j * len(self.names) + self.names[name]] = free or 0

    def _want(self, inst: Inst) -> tuple[int, int]:
        """Note what an instance wants of each unit; return where, and how many."""
        sums: dict[int, int] = {}
        wants = [(name, size) for name, size in inst.wants if name is not None]
        named = {self.names.get(name, -1) for name, _ in wants}
        for name, size in wants:
            for one in together(name):
                place = self.names.get(one, -1)
                if one != name and place < 0:
                    continue
                place = place if place in named else -2 - place
                sums[place] = sums.get(place, 0) + size
        start = len(self.wanted)
        self.wanted.extend(sums)
        self.sizes.extend(sums.values())
        return start, len(sums)


def unit_tables(nodes: Sequence[Node], insts: Sequence[Inst]) -> UnitTables | None:
    """Return the storage units; None where no node lists any."""
    listed = any(node.units is not None for node in nodes)
    return UnitTables(nodes, insts) if listed else None
