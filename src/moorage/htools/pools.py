# SPDX-License-Identifier: BSD-2-Clause
"""Pools: storage that several nodes share, counted once; and losing one."""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage.htools.fleet import Fleet, UnitName
from moorage.htools.state import State


@dataclass(frozen=True, slots=True)
class Pool:
    """All units of one name.

    Attributes
    ----------
    free, total : int or None
        MiB over all nodes, a shared unit counted once; None when unknown.
    nodes : tuple of int
        Nodes that have the unit.
    """

    name: UnitName
    free: int | None
    total: int | None
    nodes: tuple[int, ...]


def pools(fleet: Fleet) -> list[Pool]:
    """Return every pool, in the order of appearance."""
    return [_pool(fleet, name) for name in fleet.units]


def _pool(fleet: Fleet, name: UnitName) -> Pool:
    held = [
        (at, unit)
        for at, node in enumerate(fleet.nodes)
        for unit in node.units or ()
        if unit.name == name
    ]
    counted = held[:1] if held[0][1].shared else held
    return Pool(
        name,
        _sum(unit.free for _, unit in counted),
        _sum(unit.total for _, unit in counted),
        tuple(at for at, _ in held),
    )


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return the sum; None when a part is unknown: unknown is not 0."""
    known = list(sizes)
    if any(size is None for size in known):
        return None
    return sum(size for size in known if size is not None)


def stranded_without(state: State, name: UnitName) -> list[int]:
    """Return the instances that the loss of a pool leaves without their data.

    Nothing restarts them: where the storage is gone, so are the disks.
    """
    return [
        inst.idx for inst in state.people if any(want == name for want, _ in inst.wants)
    ]
