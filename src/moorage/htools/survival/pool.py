# SPDX-License-Identifier: BSD-2-Clause
"""Pools: storage that several nodes share, counted once; and losing one."""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage.htools.fleet import Fleet, UnitName
from moorage.htools.inst import Inst
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
    shared : bool
        Whether it is one storage for all of them, rather than one on each.
    """

    name: UnitName
    free: int | None
    total: int | None
    nodes: tuple[int, ...]
    shared: bool = False


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
        held[0][1].shared,
    )


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return the sum; None when a part is unknown: unknown is not 0."""
    known = list(sizes)
    if any(size is None for size in known):
        return None
    return sum(size for size in known if size is not None)


def disks_in(state: State, inst: Inst, name: UnitName) -> list[int]:
    """Return which disks of an instance a pool holds, counted from 0.

    A disk that names none is in the only pool of its template's type.
    """
    kind = inst.template == name[0] and _is_only(state, name)
    return [
        at
        for at, (wanted, _) in enumerate(inst.wants)
        if wanted == name or (wanted is None and kind)
    ]


def _is_only(state: State, name: UnitName) -> bool:
    return [one for one in state.fleet.units if one[0] == name[0]] == [name]


def stranded_without(state: State, name: UnitName) -> list[int]:
    """Return the instances that the loss of a pool leaves without their data.

    Nothing restarts them: where the storage is gone, so are the disks.
    """
    return [inst.idx for inst in state.people if disks_in(state, inst, name)]


def unsaid(state: State, name: UnitName) -> list[int]:
    """Return instances that may be in a pool: of several they name none."""
    return [
        inst.idx
        for inst in state.people
        if inst.template == name[0]
        and not _is_only(state, name)
        and any(wanted is None for wanted, _ in inst.wants)
    ]
