# SPDX-License-Identifier: BSD-2-Clause
"""Coming and going: the four verbs that change a node.

`add_primary`, `add_secondary`, `drop_primary` and `drop_secondary` return a new
node, or the check of `moorage.htools.constraints` that forbids it. They are plain
functions of numbers, in Ganeti's order of arithmetic, so that two planners that start
alike end alike, to the last digit.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from moorage.htools.constraints.checks import COPYING, RUNNING, Arrival
from moorage.htools.constraints.violation import Names, Violation
from moorage.htools.inst import Inst
from moorage.htools.node import Node

K = TypeVar("K")


def add_primary(
    node: Node, inst: Inst, *, force: bool = False, names: Names | None = None
) -> Node | Violation:
    """Run `inst` on `node`, or say why not.

    Parameters
    ----------
    force
        Skip what protects comfort (N+1, ratios, tags, floors), keep what
        cannot be (no memory, no disk).
    names
        For the violation, to name others.
    """
    found = RUNNING.violation(Arrival(node, inst, None, force, names=names))
    if found is not None:
        return found
    changes = _primary_all(node, inst)
    if inst.forthcoming:
        return node.copy(**changes)
    mem_inst = node.mem_inst + inst.mem if inst.uses_mem else node.mem_inst
    load, more = node.load, inst.load
    return node.copy(
        **changes,
        mem_inst=mem_inst,
        fails_n1=node.mem_base - mem_inst <= node.reserved,
        disk_free=node.disk_free - inst.dsk if inst.local else node.disk_free,
        spindles_free=spindles_after(node, inst, node.spindles_free),
        spindles_used=_spindle_use(node, inst, node.spindles_used, 1),
        cpu_used=node.cpu_used + inst.vcpus if inst.counts_cpu else node.cpu_used,
        units=node.units and node.units.taken(inst.wants),
        primaries=(inst.idx, *node.primaries),
        load=(
            load[0] + more[0],
            load[1] + more[1],
            load[2] + more[2],
            load[3] + more[3],
        ),
        location=node.location + inst.location + _missed(node, inst),
        domains=_count(node.domains, _domains(node, inst)),
    )


def _primary_all(node: Node, inst: Inst) -> dict[str, Any]:
    """Return the changes that count forthcoming instances too."""
    space = node.disk_free_all
    cpu = node.cpu_used_all
    return {
        "excl": _count(node.excl, inst.excl_tags),
        "mem_free_all": node.mem_free_all - inst.mem,
        "disk_free_all": space - inst.dsk if inst.local else space,
        "cpu_used_all": cpu + inst.vcpus if inst.counts_cpu else cpu,
        "spindles_used_all": _spindle_use(node, inst, node.spindles_used_all, 1),
        "spindles_free_all": spindles_after(node, inst, node.spindles_free_all),
    }


def drop_primary(node: Node, inst: Inst) -> Node:
    """Return `node` without an instance that runs on it."""
    space, cpu = node.disk_free_all, node.cpu_used_all
    changes: dict[str, Any] = {
        "excl": _uncount(node.excl, inst.excl_tags),
        "mem_free_all": node.mem_free_all + inst.mem,
        "disk_free_all": space + inst.dsk if inst.local else space,
        "cpu_used_all": cpu - inst.vcpus if inst.counts_cpu else cpu,
        "spindles_used_all": _spindle_use(node, inst, node.spindles_used_all, -1),
        "spindles_free_all": _spindles_freed(node, inst, node.spindles_free_all),
    }
    if inst.forthcoming:
        return node.copy(**changes)
    mem_inst = node.mem_inst - inst.mem if inst.uses_mem else node.mem_inst
    load, less = node.load, inst.load
    return node.copy(
        **changes,
        mem_inst=mem_inst,
        fails_n1=node.mem_base - mem_inst <= node.reserved,
        disk_free=node.disk_free + inst.dsk if inst.local else node.disk_free,
        spindles_free=_spindles_freed(node, inst, node.spindles_free),
        spindles_used=_spindle_use(node, inst, node.spindles_used, -1),
        cpu_used=node.cpu_used - inst.vcpus if inst.counts_cpu else node.cpu_used,
        primaries=_without(node.primaries, inst.idx),
        load=(
            load[0] - less[0],
            load[1] - less[1],
            load[2] - less[2],
            load[3] - less[3],
        ),
        location=node.location - inst.location - _missed(node, inst),
        domains=_uncount(node.domains, _domains(node, inst)),
        units=node.units and node.units.released(inst.wants),
    )


def add_secondary(
    node: Node,
    inst: Inst,
    primary: int,
    *,
    force: bool = False,
    copied: bool = False,
    names: Names | None = None,
) -> Node | Violation:
    """Keep the second copy of `inst`, which runs on `primary`, on `node`.

    Parameters
    ----------
    force
        Skip what protects comfort.
    copied
        The copy is there already: its node was the primary until now.
    names
        For the violation, to name others.
    """
    found = COPYING.violation(Arrival(node, inst, primary, force, copied, names))
    if found is not None:
        return found
    changes = {
        "disk_free_all": node.disk_free_all - inst.dsk,
        "spindles_used_all": _spindle_use(node, inst, node.spindles_used_all, 1),
        "spindles_free_all": spindles_after(node, inst, node.spindles_free_all),
    }
    if inst.forthcoming:
        return node.copy(**changes)
    peers = dict(node.peers)
    peers[primary] = peers.get(primary, 0) + (inst.mem if inst.uses_sec_mem else 0)
    reserved = max(node.reserved, peers[primary])
    return node.copy(
        **changes,
        disk_free=node.disk_free - inst.dsk,
        spindles_free=spindles_after(node, inst, node.spindles_free),
        spindles_used=_spindle_use(node, inst, node.spindles_used, 1),
        reserved=reserved,
        fails_n1=node.unallocated <= reserved,
        units=node.units and node.units.taken(inst.wants),
        peers=peers,
        secondaries=(inst.idx, *node.secondaries),
        load=(*node.load[:2], node.load[2] + inst.load[2], node.load[3]),
    )


def drop_secondary(node: Node, inst: Inst) -> Node:
    """Return `node` without the second copy of an instance."""
    changes: dict[str, Any] = {
        "disk_free_all": node.disk_free_all + (inst.dsk if inst.local else 0),
        "spindles_used_all": _spindle_use(node, inst, node.spindles_used_all, -1),
        "spindles_free_all": _spindles_freed(node, inst, node.spindles_free_all),
    }
    if inst.forthcoming:
        return node.copy(**changes)
    peers, reserved = _unreserve(node, inst)
    return node.copy(
        **changes,
        disk_free=node.disk_free + (inst.dsk if inst.local else 0),
        spindles_free=_spindles_freed(node, inst, node.spindles_free),
        spindles_used=_spindle_use(node, inst, node.spindles_used, -1),
        peers=peers,
        reserved=reserved,
        fails_n1=node.unallocated <= reserved,
        secondaries=_without(node.secondaries, inst.idx),
        load=(*node.load[:2], node.load[2] - inst.load[2], node.load[3]),
        units=node.units and node.units.released(inst.wants),
    )


def _unreserve(node: Node, inst: Inst) -> tuple[dict[int, int], int]:
    """Return peers and reserve after a secondary left."""
    peers = dict(node.peers)
    before = peers.pop(inst.p, 0)
    after = before - inst.mem if inst.uses_sec_mem else before
    if after > 0:
        peers[inst.p] = after
    if before < node.reserved:
        return peers, node.reserved
    return peers, max([0, *peers.values()])


def _spindle_use(node: Node, inst: Inst, before: float, sign: int) -> float:
    if node.exclusive:
        return 0.0
    return before + sign * inst.spindle_use if inst.local else before


def spindles_after(node: Node, inst: Inst, before: int) -> int:
    """Return free spindles with an instance; -1 when its need is unknown."""
    if not node.exclusive:
        return 0
    return -1 if inst.total_spindles is None else before - inst.total_spindles


def _spindles_freed(node: Node, inst: Inst, before: int) -> int:
    if not node.exclusive:
        return 0
    return before + (inst.total_spindles or 0)


def _missed(node: Node, inst: Inst) -> int:
    """Return how many desired locations the node does not offer."""
    return len(inst.desired - node.location_tags)


def _domains(node: Node, inst: Inst) -> list[tuple[str, str]]:
    return [(loc, tag) for loc in node.location_tags for tag in inst.excl_tags]


def _count(counts: dict[K, int], keys: Iterable[K]) -> dict[K, int]:
    new = counts
    for key in keys:
        if new is counts:
            new = dict(counts)
        new[key] = new.get(key, 0) + 1
    return new


def _uncount(counts: dict[K, int], keys: Iterable[K]) -> dict[K, int]:
    new = counts
    for key in keys:
        if new is counts:
            new = dict(counts)
        left = new.get(key, 0) - 1
        if left > 0:
            new[key] = left
        else:
            new.pop(key, None)
    return new


def _without(places: tuple[int, ...], idx: int) -> tuple[int, ...]:
    at = places.index(idx) if idx in places else len(places)
    return places[:at] + places[at + 1 :]
