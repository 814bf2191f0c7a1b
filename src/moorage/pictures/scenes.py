# SPDX-License-Identifier: BSD-2-Clause
"""Scenes: a cluster before and after, and what each node holds in it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from moorage.htools.fleet import UnitName
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.units import together
from moorage.units import format_size

from .bars import COPY, OWN, STAYS, Bar, Part


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster at one moment.

    Attributes
    ----------
    name : str
        When this is.
    other : State or None
        The moment to compare with: who is on a node now and not then is marked.
    mark : str
        The kind of part that marks them.
    labels : dict
        Instance -> what stands in its part.
    word : str
        What is said about a marked one, before its label.
    """

    name: str
    state: State
    other: State | None = None
    mark: str = STAYS
    labels: dict[int, str] = field(default_factory=dict)
    word: str = ""

    def node(self, at: int) -> Node:
        """Return a node in this scene."""
        return self.state.nodes[at]

    def primaries(self, at: int) -> list[Inst]:
        """Return who runs on a node, in order."""
        return [self.state.insts[idx] for idx in sorted(self.node(at).primaries)]

    def secondaries(self, at: int) -> list[Inst]:
        """Return who has a second copy on a node, in order."""
        return [self.state.insts[idx] for idx in sorted(self.node(at).secondaries)]

    def then(self, at: int) -> Node:
        """Return a node at the moment to compare with."""
        return (self.other or self.state).nodes[at]


Held = Iterable[tuple[Inst, float, str]]
"""An instance, how much it takes, and the kind of part if it is not marked."""


def _parts(
    scene: Scene, held: Held, there: set[int], show: Callable[[float], str]
) -> Iterator[Part]:
    """Yield the parts of a bar: first who stays, so that they line up."""
    marked = []
    for inst, amount, kind in held:
        name = f"{inst.alias} {show(amount)}"
        name = f"second copy of {name}" if kind == COPY else name
        if inst.idx in there:
            yield Part(kind, amount, name)
        else:
            label = scene.labels.get(inst.idx, "")
            said = f"{name}, {scene.word} {label}".rstrip()
            marked.append(Part(scene.mark, amount, said, label))
    yield from marked


def memory(scene: Scene, at: int) -> Bar:
    """Return the memory of a node."""
    node = scene.node(at)
    own = node.mem_own + max(0, node.mem_missing)
    held = ((inst, inst.mem, STAYS) for inst in scene.primaries(at) if inst.uses_mem)
    parts = _parts(scene, held, set(scene.then(at).primaries), format_size)
    return Bar(
        scene=scene.name,
        parts=(Part(OWN, own), *parts),
        used=node.mem_total - node.unallocated,
        capacity=node.mem_total,
        kept=node.reserved,
        show=format_size,
    )


def cpu(scene: Scene, at: int) -> Bar:
    """Return the virtual processors of a node, by what its policy allows."""
    node = scene.node(at)
    held = (
        (inst, inst.vcpus, STAYS) for inst in scene.primaries(at) if inst.counts_cpu
    )
    parts = _parts(scene, held, set(scene.then(at).primaries), count)
    return Bar(
        scene=scene.name,
        parts=(Part(OWN, node.cpus_own), *parts),
        used=node.cpu_used,
        capacity=node.cpu_limit if node.cpu_limit > 0 else node.cpus,
        kept=0,
        show=count,
    )


def count(amount: float) -> str:
    """Return a number of things."""
    return f"{amount:.0f}"


def disk(scene: Scene, at: int) -> Bar:
    """Return the disk of a node that does not tell storage units apart."""
    node = scene.node(at)

    def amount(inst: Inst) -> float:
        return inst.dsk if inst.local else 0

    return _space(scene, at, amount, node.disk_total, node.disk_free)


def unit(scene: Scene, at: int, name: UnitName) -> Bar:
    """Return a storage unit of a node whose room is known."""
    units = scene.node(at).units
    place = None if units is None else units.place(name)
    total = None if units is None or place is None else units.total[place]
    free = None if units is None or place is None else units.free[place]

    def amount(inst: Inst) -> float:
        return sum(size for want, size in inst.wants if want in together(name))

    return _space(scene, at, amount, total or 0, free or 0)


def _space(
    scene: Scene, at: int, amount: Callable[[Inst], float], total: float, free: float
) -> Bar:
    then = scene.then(at)
    people = [(inst, STAYS) for inst in scene.primaries(at)]
    people += [(inst, COPY) for inst in scene.secondaries(at)]
    held = [(inst, amount(inst), kind) for inst, kind in people if amount(inst)]
    there = {*then.primaries, *then.secondaries}
    other = total - free - sum(size for _, size, _ in held)
    parts = _parts(scene, held, there, format_size)
    return Bar(
        scene=scene.name,
        parts=(Part(OWN, max(0, other)), *parts),
        used=total - free,
        capacity=total,
        kept=0,
        show=format_size,
    )


@dataclass(frozen=True, slots=True)
class Room:
    """A storage unit of one node, or its disk as a whole.

    Attributes
    ----------
    name : UnitName or None
        None for the disk as a whole.
    """

    name: UnitName | None
    bars: tuple[Bar, ...]

    @property
    def title(self) -> str:
        """What to call it."""
        return "disk" if self.name is None else " ".join(self.name)


def rooms(scenes: Sequence[Scene], at: int) -> list[Room]:
    """Return the storage of a node: its units, or its disk as a whole.

    Units that nodes share are left out, and units that cannot tell their room. Those
    that have one room together are one.
    """
    units = scenes[0].node(at).units
    if units is None:
        return [Room(None, tuple(disk(scene, at) for scene in scenes))]
    known = [
        units.names[at]
        for at in units.apart()
        if units.is_bound(at) and units.total[at] is not None
    ]
    return [Room(name, tuple(unit(s, at, name) for s in scenes)) for name in known]


def summed(bars: Sequence[Bar]) -> Bar:
    """Return bars of one scene as one, its parts one for each kind."""
    kinds = dict.fromkeys(part.kind for bar in bars for part in bar.parts)
    amounts = {
        kind: sum(p.amount for bar in bars for p in bar.parts if p.kind == kind)
        for kind in kinds
    }
    return Bar(
        scene=bars[0].scene,
        parts=tuple(Part(kind, amount, kind) for kind, amount in amounts.items()),
        used=sum(bar.used for bar in bars),
        capacity=sum(bar.capacity for bar in bars),
        kept=0,
        show=bars[0].show,
    )
