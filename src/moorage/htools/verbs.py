# SPDX-License-Identifier: BSD-2-Clause
"""Coming and going: the four verbs that change a node.

`add_primary`, `add_secondary`, `drop_primary` and `drop_secondary` return a new
node, or the reason that forbids it. They are plain functions of numbers, in
Ganeti's order of arithmetic and of checks, so that two planners that start
alike end alike, to the last digit.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.units import settle
from moorage.htools.words import Fail, Mirror, ratio

K = TypeVar("K")


def add_primary(node: Node, inst: Inst, *, force: bool = False) -> Node | Fail:
    """Run `inst` on `node`, or say why not.

    Parameters
    ----------
    force
        Skip what protects comfort (N+1, ratios, tags, floors), keep what
        cannot be (no memory, no disk).
    """
    changes = _primary_all(node, inst)
    if inst.forthcoming:
        fail = None if force else _primary_all_fail(node, inst, changes)
        return fail or node.copy(**changes)
    mem_inst = node.mem_inst + inst.mem if inst.uses_mem else node.mem_inst
    disk = node.disk_free - inst.dsk if inst.local else node.disk_free
    now = {
        "mem_inst": mem_inst,
        "fails_n1": node.mem_base - mem_inst <= node.reserved,
        "disk_free": disk,
        "spindles_free": spindles_after(node, inst, node.spindles_free),
        "spindles_used": _spindle_use(node, inst, node.spindles_used, 1),
        "cpu_used": node.cpu_used + inst.vcpus if inst.counts_cpu else node.cpu_used,
        "units": node.units and settle(node.units, inst, force=force),
    }
    fail = _primary_fail(node, inst, now, force=force)
    if fail is None and not force:
        fail = _primary_all_fail(node, inst, changes)
    if fail is not None:
        return fail
    load, more = node.load, inst.load
    return node.copy(
        **changes,
        **now,
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


def _primary_fail(
    node: Node, inst: Inst, now: dict[str, Any], *, force: bool
) -> Fail | None:
    """Return the first check of a new primary that fails."""
    if node.mem_base - now["mem_inst"] <= 0:
        return Fail.MEMORY
    if _lacks_room(node, inst, now, force=force):
        return Fail.DISK
    if inst.local and node.exclusive and now["spindles_free"] < 0:
        return Fail.SPINDLES
    return None if force else _primary_discomfort(node, inst, now)


def _lacks_room(node: Node, inst: Inst, now: dict[str, Any], *, force: bool) -> bool:
    """Say whether a disk finds no room, in its unit or on the node as a whole."""
    if node.units is not None:
        return isinstance(now["units"], Fail)
    return inst.local and _no_disk(node, now["disk_free"], force=force)


def _primary_discomfort(node: Node, inst: Inst, now: dict[str, Any]) -> Fail | None:
    """Return the first check that only protects comfort and fails."""
    if inst.local and now["spindles_used"] > node.spindle_limit:
        return Fail.DISK
    if now["fails_n1"] and not node.fails_n1:
        return Fail.MEMORY
    limit = node.policy.vcpu_ratio
    if 0 <= limit < ratio(now["cpu_used"], node.cpus):
        return Fail.CPU
    return Fail.TAGS if any(tag in node.excl for tag in inst.excl_tags) else None


def _no_disk(node: Node, left: int, *, force: bool) -> bool:
    return left <= 0 or (not force and left < node.disk_floor)


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


def _primary_all_fail(node: Node, inst: Inst, after: dict[str, Any]) -> Fail | None:
    """Return the first check that fails with forthcoming instances counted."""
    if after["mem_free_all"] <= 0:
        return Fail.MEMORY
    if inst.local:
        left = after["disk_free_all"]
        if node.units is None and _no_disk(node, left, force=False):
            return Fail.DISK
        if node.exclusive and after["spindles_free_all"] < 0:
            return Fail.SPINDLES
        if after["spindles_used_all"] > node.spindle_limit:
            return Fail.DISK
    limit = node.policy.vcpu_ratio
    over = 0 <= limit < ratio(after["cpu_used_all"], node.cpus)
    return Fail.CPU if over else None


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
    ignore_disk: bool = False,
) -> Node | Fail:
    """Keep the second copy of `inst`, which runs on `primary`, on `node`.

    Parameters
    ----------
    ignore_disk
        The copy is there already: its node was the primary until now.
    """
    changes = _secondary_all(node, inst)
    if inst.forthcoming:
        fail = None if force else _secondary_all_fail(node, inst, changes)
        return fail or node.copy(**changes)
    needed = inst.mem if inst.uses_sec_mem else 0
    peers = dict(node.peers)
    peers[primary] = peers.get(primary, 0) + needed
    reserved = max(node.reserved, peers[primary])
    now = {
        "disk_free": node.disk_free - inst.dsk,
        "spindles_free": spindles_after(node, inst, node.spindles_free),
        "spindles_used": _spindle_use(node, inst, node.spindles_used, 1),
        "reserved": reserved,
        "fails_n1": node.unallocated <= reserved,
        "units": node.units and settle(node.units, inst, force=force or ignore_disk),
    }
    fail = _secondary_fail(node, inst, now, force=force, ignore_disk=ignore_disk)
    if fail is None and not force:
        fail = _secondary_all_fail(node, inst, changes)
    if fail is not None:
        return fail
    return node.copy(
        **changes,
        **now,
        peers=peers,
        secondaries=(inst.idx, *node.secondaries),
        load=(*node.load[:2], node.load[2] + inst.load[2], node.load[3]),
    )


def _secondary_fail(
    node: Node, inst: Inst, now: dict[str, Any], *, force: bool, ignore_disk: bool
) -> Fail | None:
    """Return the first check of a new secondary that fails."""
    if inst.mirror is not Mirror.INTERNAL or isinstance(now["units"], Fail):
        return Fail.DISK
    if node.units is None:
        left = now["disk_free"]
        full = not ignore_disk and left <= 0
        if full or (not force and left < node.disk_floor):
            return Fail.DISK
    if node.exclusive and now["spindles_free"] < 0:
        return Fail.SPINDLES
    return None if force else _secondary_discomfort(node, inst, now)


def _secondary_discomfort(node: Node, inst: Inst, now: dict[str, Any]) -> Fail | None:
    """Return the first check that only protects comfort and fails."""
    if now["spindles_used"] > node.spindle_limit:
        return Fail.DISK
    if (inst.mem if inst.uses_sec_mem else 0) >= node.unallocated:
        return Fail.MEMORY
    return Fail.MEMORY if now["fails_n1"] and not node.fails_n1 else None


def _secondary_all(node: Node, inst: Inst) -> dict[str, Any]:
    return {
        "disk_free_all": node.disk_free_all - inst.dsk,
        "spindles_used_all": _spindle_use(node, inst, node.spindles_used_all, 1),
        "spindles_free_all": spindles_after(node, inst, node.spindles_free_all),
    }


def _secondary_all_fail(node: Node, inst: Inst, after: dict[str, Any]) -> Fail | None:
    """Return the first check that fails with forthcoming instances counted."""
    if inst.mirror is not Mirror.INTERNAL:
        return Fail.DISK
    if node.units is None and _no_disk(node, after["disk_free_all"], force=False):
        return Fail.DISK
    if node.exclusive and after["spindles_free_all"] < 0:
        return Fail.SPINDLES
    if after["spindles_used_all"] > node.spindle_limit:
        return Fail.DISK
    needed = inst.mem if inst.uses_sec_mem else 0
    return Fail.MEMORY if needed >= node.mem_free_all else None


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


def migrates(source: Node, target: Node) -> bool:
    """Say whether live migration between two nodes is allowed by their tags."""
    return source.mig_from <= target.mig_into


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
