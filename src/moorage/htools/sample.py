# SPDX-License-Identifier: BSD-2-Clause
"""Random clusters, for comparing planners: the same seed, the same cluster."""

from dataclasses import dataclass
from random import Random
from typing import Final

from moorage.htools.fleet import (
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    Unit,
    UnitName,
)
from moorage.htools.policy import DEFAULT, Policy

KINDS: Final = ("drbd", "shared", "mixed", "plain")
SHARED: Final = ("sharedfile", "rbd", "ext", "gluster", "blockdev", "diskless")
_TEMPLATES: Final = {
    "drbd": ("drbd",),
    "shared": SHARED,
    "mixed": ("drbd", "drbd", "plain", "file", *SHARED),
    "plain": ("drbd", "plain"),
}
_IDLE: Final = ("ADMIN_down", "ADMIN_offline", "ERROR_down", "ERROR_up", "USER_down")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a random cluster looks like.

    Attributes
    ----------
    kind : str
        Which templates occur.
    nodes, instances, groups : int
        How many; `nodes` is per cluster.
    oddity : float
        Chance in [0, 1] that a thing is unusual (down, offline, tagged).
    uneven : bool
        Whether nodes differ in size.
    fill : float
        Share of the memory that instances ask for.
    exclusive : bool
        Whether nodes have exclusive storage.
    units : bool
        Whether nodes list their storage units, and some disks reach some nodes only.
    """

    kind: str = "drbd"
    nodes: int = 6
    instances: int = 20
    groups: int = 1
    oddity: float = 0.1
    uneven: bool = False
    fill: float = 0.5
    exclusive: bool = False
    units: bool = False


@dataclass(slots=True)
class _Maker:
    """Draws a cluster piece by piece; keeps book of what is used."""

    draw: Random
    shape: Shape

    def odd(self) -> bool:
        return self.draw.random() < self.shape.oddity

    def tags(self, *choices: tuple[str, int]) -> tuple[str, ...]:
        """Return tags such as ``rack:2``, each with the chance of an oddity."""
        return tuple(
            f"{name}:{self.draw.randrange(count)}"
            for name, count in choices
            if self.odd() or self.odd()
        )


def shape(draw: Random, *, largest: int = 10) -> Shape:
    """Return a random shape of a cluster of up to `largest` nodes."""
    nodes = draw.randint(2, largest)
    groups = draw.choice((1, 1, 1, 2, 3))
    return Shape(
        kind=draw.choice(KINDS),
        nodes=nodes,
        instances=draw.randint(1, nodes * 4),
        groups=min(groups, max(1, nodes // 2)),
        oddity=draw.choice((0.0, 0.0, 0.05, 0.2, 0.4)),
        uneven=draw.random() < 0.5,
        fill=draw.choice((0.2, 0.5, 0.7, 0.95)),
        exclusive=draw.random() < 0.1,
    )


def cluster(seed: int, wanted: Shape | None = None) -> Fleet:
    """Return the random cluster of a seed."""
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    maker = _Maker(draw, wanted or shape(draw))
    groups = tuple(_group(maker, at) for at in range(maker.shape.groups))
    nodes = [_node(maker, at) for at in range(maker.shape.nodes)]
    insts = tuple(_instance(maker, at, nodes) for at in range(maker.shape.instances))
    nodes = [_used(maker, at, node, insts) for at, node in enumerate(nodes)]
    if maker.shape.units:
        nodes = [_with_units(maker, node) for node in nodes]
        insts = tuple(_with_wants(maker, inst) for inst in insts)
    return Fleet(groups, tuple(nodes), insts, _cluster_tags(maker), _policy(maker))


def _cluster_tags(maker: _Maker) -> tuple[str, ...]:
    tags = [
        "htools:iextags:service:",
        "htools:nlocation:rack",
        "htools:nlocation:power",
    ]
    tags += ["htools:desiredlocation:rack", "htools:migration:cpu"]
    tags += ["htools:allowmigration:cpu:0::cpu:1", "env:test"]
    if not maker.shape.oddity:
        return ()
    return tuple(tag for tag in tags if maker.draw.random() < 0.7)


def _policy(maker: _Maker) -> Policy:
    if not maker.odd():
        return DEFAULT
    ratio = maker.draw.choice((1.5, 2.0, 6.5))
    return DEFAULT._replace(vcpu_ratio=ratio, spindle_ratio=16.0)


def _group(maker: _Maker, at: int) -> Group:
    policy = _policy(maker)
    if maker.odd():
        low, high = policy.ranges[0]
        middle = high._replace(
            memory=2048, cpus=2, disk=8192, disks=2, nics=2, spindles=2
        )
        policy = policy._replace(ranges=((low, middle), (middle, high)))
    alloc = maker.draw.choice(("preferred", "preferred", "last_resort", "unallocable"))
    name = f"group-{at:02d}"
    return Group(
        name, f"uuid-{at:02d}", alloc if maker.odd() else "preferred", policy=policy
    )


def _node(maker: _Maker, at: int) -> NodeRow:
    draw = maker.draw
    grow = draw.choice((1, 2, 3)) if maker.shape.uneven else 2
    mem = 16384 * grow
    cpus = float(4 * grow)
    return NodeRow(
        name=f"node{at:03d}.example.com",
        group=at % maker.shape.groups,
        mem_total=float(mem),
        mem_own=draw.choice((512, 1024)),
        disk_total=float(512000 * grow),
        cpus=cpus,
        cpus_own=draw.choice((0, 1, 2)),
        cpu_speed=draw.choice((0.8, 1.0, 1.3)) if maker.odd() else 1.0,
        offline=maker.odd() and at > 0,
        master=at == 0,
        spindles=draw.choice((1, 4, 8)) if maker.shape.uneven else 4,
        exclusive=maker.shape.exclusive,
        spindles_free=draw.randint(0, 8) if maker.shape.exclusive else 0,
        tags=maker.tags(("rack", 3), ("power", 2), ("cpu", 2)),
    )


def _instance(maker: _Maker, at: int, nodes: list[NodeRow]) -> InstanceRow:
    draw = maker.draw
    group = draw.randrange(maker.shape.groups)
    mates = [idx for idx, node in enumerate(nodes) if node.group == group]
    template = draw.choice(_TEMPLATES[maker.shape.kind])
    if template == "drbd" and len(mates) < 2:
        template = "plain"
    places = draw.sample(mates, 2 if template == "drbd" else 1)
    average = maker.shape.fill * 32768 * maker.shape.nodes / maker.shape.instances
    mem = max(128, int(average * draw.uniform(0.3, 1.7)) // 128 * 128)
    exclusive = maker.shape.exclusive
    disk = draw.choice((1024, 2048, 5120, 10240, 20480))
    return InstanceRow(
        name=f"inst{at:04d}.example.com",
        mem=min(mem, 16384),
        disk=disk,
        vcpus=draw.choice((1, 1, 2, 4)),
        primary=places[0],
        secondary=places[1] if template == "drbd" else -1,
        status=draw.choice(_IDLE) if maker.odd() else "running",
        auto_balance=not maker.odd(),
        template=template,
        tags=maker.tags(("service", 4), ("rack", 3), ("other", 2)),
        spindle_use=draw.choice((1, 1, 1, 2)),
        disks=(
            Disk(disk, draw.choice((1, 2, None)) if exclusive else None, whole=True),
        ),
        forthcoming=maker.odd() and maker.odd(),
    )


def _used(
    maker: _Maker, at: int, node: NodeRow, insts: tuple[InstanceRow, ...]
) -> NodeRow:
    """Return the node with what its instances leave free."""
    here = [inst for inst in insts if at == inst.primary and not inst.forthcoming]
    idle = {"ADMIN_down", "ADMIN_offline", "ERROR_down", "USER_down"}
    mem = sum(inst.mem for inst in here if inst.status not in idle)
    disk = sum(
        inst.disk
        for inst in insts
        if at in (inst.primary, inst.secondary)
        and inst.template in ("drbd", "plain")
        and not inst.forthcoming
    )
    noise = maker.draw.randint(-300, 700) if maker.odd() else 0
    left = int(node.mem_total) - node.mem_own - mem - noise
    return node._replace(mem_free=max(0, left), disk_free=int(node.disk_total) - disk)


_POOL: Final = ("ext", "pool")
"""A unit that all nodes share."""
_UNITS: Final[tuple[UnitName, ...]] = (
    ("drbd8", "xenvg"),
    ("lvm-vg", "xenvg"),
    _POOL,
    ("ext", "other"),
)


def _with_units(maker: _Maker, node: NodeRow) -> NodeRow:
    """Return the node with most of the units; one in ten nodes lists none."""
    draw = maker.draw
    if draw.random() < 0.1:
        return node
    units = tuple(
        Unit(
            name,
            None if maker.odd() else draw.randrange(300000),
            draw.choice((None, 0)) if maker.odd() else 400000,
            shared=name == _POOL,
        )
        for name in _UNITS
        if draw.random() < 0.8
    )
    return node._replace(units=units)


def _with_wants(maker: _Maker, inst: InstanceRow) -> InstanceRow:
    """Return the instance with a unit for each disk, some with a second disk."""
    draw = maker.draw
    own = {"drbd": _UNITS[0], "plain": _UNITS[1]}
    unit = own.get(inst.template) or draw.choice(_UNITS[2:])
    disks = tuple(disk._replace(unit=unit, whole=False) for disk in inst.disks)
    if maker.odd():
        disks = (*disks, Disk(1024, 1, unit))
    near = draw.sample(range(maker.shape.nodes), min(4, maker.shape.nodes))
    reach = frozenset({*near, inst.primary}) if maker.odd() else None
    return inst._replace(disks=disks, reach=reach)
