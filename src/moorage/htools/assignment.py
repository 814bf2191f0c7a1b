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
    return node.copy(**_with_primary(node, inst, 1))


def drop_primary(node: Node, inst: Inst) -> Node:
    """Return `node` without an instance that runs on it."""
    return node.copy(**_with_primary(node, inst, -1))


def _with_primary(node: Node, inst: Inst, sign: int) -> dict[str, Any]:
    """Return what changes when an instance comes to run here, or goes (-1)."""
    mem = sign * inst.mem
    cpu = sign * inst.vcpus if inst.counts_cpu else 0
    changes = _with_disks(node, inst, sign) | {
        "excl": _counted(node.excl, inst.excl_tags, sign),
        "mem_free_all": node.mem_free_all - mem,
        "cpu_used_all": node.cpu_used_all + cpu,
    }
    if inst.forthcoming:
        return changes
    mem_inst = node.mem_inst + mem if inst.uses_mem else node.mem_inst
    where = [(tag, excl) for tag in node.location_tags for excl in inst.excl_tags]
    missed = len(inst.desired - node.location_tags)
    pairs = zip(node.load, inst.load, strict=True)
    return changes | {
        "mem_inst": mem_inst,
        "fails_n1": node.mem_base - mem_inst <= node.reserved,
        "cpu_used": node.cpu_used + cpu,
        "primaries": _listed(node.primaries, inst.idx, sign),
        "load": tuple([load + sign * more for load, more in pairs]),
        "location": node.location + sign * (inst.location + missed),
        "domains": _counted(node.domains, where, sign),
    }


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
    peers = dict(node.peers)
    peers[primary] = peers.get(primary, 0) + (inst.mem if inst.uses_sec_mem else 0)
    reserved = max(node.reserved, peers[primary])
    return node.copy(**_with_secondary(node, inst, peers, reserved, 1))


def drop_secondary(node: Node, inst: Inst) -> Node:
    """Return `node` without the second copy of an instance."""
    return node.copy(**_with_secondary(node, inst, *_unreserve(node, inst), -1))


def _with_secondary(
    node: Node, inst: Inst, peers: dict[int, int], reserved: int, sign: int
) -> dict[str, Any]:
    """Return what changes when a second copy comes here, or goes (-1)."""
    changes = _with_disks(node, inst, sign)
    if inst.forthcoming:
        return changes
    cpu, mem, disk, net = node.load
    return changes | {
        "peers": peers,
        "reserved": reserved,
        "fails_n1": node.unallocated <= reserved,
        "secondaries": _listed(node.secondaries, inst.idx, sign),
        "load": (cpu, mem, disk + sign * inst.load[2], net),
    }


def _with_disks(node: Node, inst: Inst, sign: int) -> dict[str, Any]:
    """Return what changes when the disks of an instance come here, or go (-1)."""
    space = sign * inst.dsk if inst.local else 0
    use = sign * inst.spindle_use if inst.local else 0
    changes: dict[str, Any] = {
        "disk_free_all": node.disk_free_all - space,
        "spindles_used_all": 0.0 if node.exclusive else node.spindles_used_all + use,
        "spindles_free_all": spindles_after(node, inst, node.spindles_free_all, sign),
    }
    if inst.forthcoming:
        return changes
    units = node.units
    if units is not None:
        units = units.taken(inst.wants) if sign > 0 else units.released(inst.wants)
    return changes | {
        "disk_free": node.disk_free - space,
        "spindles_used": 0.0 if node.exclusive else node.spindles_used + use,
        "spindles_free": spindles_after(node, inst, node.spindles_free, sign),
        "units": units,
    }


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


def spindles_after(node: Node, inst: Inst, before: int, sign: int = 1) -> int:
    """Return free spindles with an instance, or without (-1).

    -1 when the need of one that comes is unknown.
    """
    if not node.exclusive:
        return 0
    if inst.total_spindles is None:
        return -1 if sign > 0 else before
    return before - sign * inst.total_spindles


def _counted(counts: dict[K, int], keys: Iterable[K], sign: int) -> dict[K, int]:
    """Return how often keys occur, with each of some once more, or once less."""
    new = counts
    for key in keys:
        if new is counts:
            new = dict(counts)
        left = new.get(key, 0) + sign
        if left > 0:
            new[key] = left
        else:
            new.pop(key, None)
    return new


def _listed(idxs: tuple[int, ...], idx: int, sign: int) -> tuple[int, ...]:
    """Return a list of instances with one more in front, or without it."""
    if sign > 0:
        return (idx, *idxs)
    at = idxs.index(idx) if idx in idxs else len(idxs)
    return idxs[:at] + idxs[at + 1 :]
