# SPDX-License-Identifier: BSD-2-Clause
"""Constraints by name: what a node lacks for an instance, in numbers.

The verbs of `moorage.htools.verbs` say no with one of nine words (`Fail`), as
Ganeti's tools print them; `Fail.DISK` alone stands for eight different things.
Here each check is asked again, in the same order, for its name and its numbers.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.state import State
from moorage.htools.units import Units
from moorage.htools.words import Fail, Mirror, ratio

MIB: Final = "MiB"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that failed.

    Attributes
    ----------
    node : int
        The node that says no; -1 when no single one does.
    fail : Fail
        The word that Ganeti's tools use for it.
    constraint : str
        Its name, as in ``memory`` or ``policy disk size``.
    facts : dict
        What was asked and what was there; JSON values.
    unit : str
        What the numbers count: ``MiB``, or nothing for plain counts.
    short : int
        By how much the node misses it at least, in that unit; 0 when that is
        no quantity, or not the node's.
    because : tuple of Finding
        For survival: why each node that is left refuses the stranded one.
    """

    node: int
    fail: Fail
    constraint: str
    facts: dict[str, Any] = field(default_factory=dict)
    unit: str = ""
    short: int = 0
    because: "tuple[Finding, ...]" = ()

    def sentence(self) -> str:
        """Return name and numbers in words."""
        if "strands" in self.facts:
            return self._loss()
        told = ", ".join(
            told_fact(key, self.facts[key], self.unit) for key in self.facts
        )
        return f"{self.constraint} ({told})" if told else self.constraint

    def _loss(self) -> str:
        """Return who would be stranded, and why, in words."""
        facts = self.facts
        who = ", ".join(facts["strands"][:_STRANDED])
        more = len(facts["strands"]) - _STRANDED
        who += f" and {more} more" if more > 0 else ""
        verb = "strands" if facts["already"] else "would strand"
        ending = ", with or without this" if facts["already"] else ""
        why = "; ".join(facts["because"][:_STRANDED])
        why += "; ..." if len(facts["because"]) > _STRANDED else ""
        why = why or "no node is left"
        told = f"losing {facts['losing']} {verb} {who}{ending}"
        return f"{self.constraint} ({told}: {why})"


_STRANDED: Final = 2
"""Instances, and nodes that refuse them, in one sentence."""


def told_fact(key: str, value: Any, unit: str = "") -> str:  # noqa: ANN401 - JSON
    """Return one fact in words.

    >>> told_fact("asked", 512, "MiB"), told_fact("allowed", [[1, 8]])
    ('asked 512 MiB', 'allowed 1..8')
    """
    if value is True or key == "why":
        return key if value is True else str(value)
    if value is None:
        return f"{key} unknown"
    return f"{key} {_told(value, unit)}"


def _told(value: Any, unit: str) -> str:  # noqa: ANN401 - a JSON value
    after = f" {unit}" if unit else ""
    if isinstance(value, list):
        if value and isinstance(value[0], list):
            return " or ".join(f"{low}..{high}" for low, high in value) + after
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}{after}"
    return f"{value}{after if isinstance(value, int) else ''}"


# -- reach, tags -----------------------------------------------------------------------


def reach_finding(state: State, inst: Inst, node: Node) -> Finding | None:
    """Return why the disks of an instance cannot be used from a node."""
    if inst.reach is None or node.idx in inst.reach:
        return None
    names = [state.nodes[at].name for at in sorted(inst.reach)]
    return Finding(node.idx, Fail.DISK, "reach", {"disks usable from": names})


def migration_finding(source: Node, target: Node) -> Finding | None:
    """Return which tags forbid the way from one node to another."""
    missing = sorted(source.mig_from - target.mig_into)
    if not missing:
        return None
    facts = {f"from {source.name} with": missing, "not accepted by": target.name}
    return Finding(target.idx, Fail.MIGRATION, "migration tags", facts)


# -- primary ---------------------------------------------------------------------------


def primary_finding(
    state: State, node: Node, inst: Inst, *, force: bool = False
) -> Finding | None:
    """Return why a node cannot run an instance; the twin of `add_primary`."""
    if not inst.forthcoming:
        found = _primary_hard(node, inst, force=force)
        if found is None and not force:
            found = _primary_soft(state, node, inst)
        if found is not None:
            return found
    return None if force else _primary_planned(node, inst)


def _primary_hard(node: Node, inst: Inst, *, force: bool) -> Finding | None:
    needed = inst.mem if inst.uses_mem else 0
    if node.unallocated - needed <= 0:
        return _memory(node, needed, needed - node.unallocated + 1)
    if node.units is not None:
        found = unit_finding(node, node.units, inst, force=force)
    elif inst.local:
        found = _disk(node, inst, node.disk_free, force=force)
    else:
        found = None
    if found is not None:
        return found
    return _spindles(node, inst, node.spindles_free) if inst.local else None


def _memory(node: Node, needed: int, short: int) -> Finding:
    facts = _above({"asked": needed, "unallocated": node.unallocated}, short)
    return Finding(node.idx, Fail.MEMORY, "memory", facts, MIB, short)


def _above(facts: dict[str, Any], short: int) -> dict[str, Any]:
    """Return facts that say, where nothing is short but the last MiB, that it is."""
    return facts | ({"to be left at least": 1} if short == 1 else {})


def _disk(
    node: Node, inst: Inst, free: int, *, force: bool = False, ignore_full: bool = False
) -> Finding | None:
    """Return why the disk of a node, as a whole, is too small."""
    left = free - inst.dsk
    facts = {"asked": inst.dsk, "free": free}
    if left <= 0 and not ignore_full:
        facts = _above(facts, 1 - left)
        return Finding(node.idx, Fail.DISK, "disk", facts, MIB, 1 - left)
    if not force and left < node.disk_floor:
        facts["to keep free"] = node.disk_floor
        short = max(1 - left, node.disk_floor - left)
        return Finding(node.idx, Fail.DISK, "disk floor", facts, MIB, short)
    return None


def _spindles(node: Node, inst: Inst, free: int) -> Finding | None:
    """Return why the spindles of a node with exclusive storage do not do."""
    if not node.exclusive:
        return None
    asked = inst.total_spindles
    if asked is not None and free >= asked:
        return None
    facts = {"asked": asked, "free": free}
    short = 0 if asked is None else asked - free
    return Finding(node.idx, Fail.SPINDLES, "spindles", facts, "", short)


def unit_finding(
    node: Node, units: Units, inst: Inst, *, force: bool = False
) -> Finding | None:
    """Return which disk finds no room in its storage unit."""
    free = list(units.free)
    for number, (name, size) in enumerate(inst.wants):
        if name is None:
            continue
        at = units.place(name)
        facts: dict[str, Any] = {"disk": str(number), "unit": "/".join(name)}
        if at is None:
            facts["units here"] = ["/".join(one) for one in units.names]
            return Finding(node.idx, Fail.DISK, "no such unit", facts)
        room = free[at]
        if room is None or units.shared[at]:
            continue
        free[at] = room - size
        facts |= {"asked": size, "free": room}
        if room < size:
            return Finding(node.idx, Fail.DISK, "unit", facts, MIB, size - room)
        if not force and room - size < units.floor[at]:
            facts["to keep free"] = units.floor[at]
            short = units.floor[at] - (room - size)
            return Finding(node.idx, Fail.DISK, "unit floor", facts, MIB, short)
    return None


def _primary_soft(state: State, node: Node, inst: Inst) -> Finding | None:
    """Return what only protects comfort and refuses a primary."""
    found = _spindle_ratio(node, inst, node.spindles_used) if inst.local else None
    if found is None:
        after = node.unallocated - (inst.mem if inst.uses_mem else 0)
        found = _reserve(state, node, inst, after, node.reserved, node.peers)
    return found or _cpu(node, inst, node.cpu_used) or _tags(state, node, inst)


def _spindle_ratio(
    node: Node, inst: Inst, used: float, name: str = "spindle ratio"
) -> Finding | None:
    use = 0 if node.exclusive else inst.spindle_use
    over = (0.0 if node.exclusive else used) + use - node.spindle_limit
    if over <= 0:
        return None
    facts = {"asked": use, "used": used, "limit": node.spindle_limit}
    per = node.policy.spindle_ratio
    short = -int(-over // per) if per > 0 else 0
    return Finding(node.idx, Fail.DISK, name, facts, "", short)


def _reserve(
    state: State,
    node: Node,
    inst: Inst,
    after: int,
    reserved: int,
    peers: dict[int, int],
) -> Finding | None:
    """Return which failover would no longer find its memory."""
    if after > reserved or node.fails_n1:
        return None
    most = max(peers, key=lambda at: peers[at], default=-1)
    facts: dict[str, Any] = {
        "asked": inst.mem,
        "unallocated": node.unallocated,
        "reserved": reserved,
    }
    if most >= 0:
        facts["for the loss of"] = state.nodes[most].name
    short = reserved - after + 1
    facts = _above(facts, short)
    return Finding(node.idx, Fail.MEMORY, "failover memory", facts, MIB, short)


def _cpu(node: Node, inst: Inst, used: int, name: str = "cpu") -> Finding | None:
    limit = node.policy.vcpu_ratio
    after = used + (inst.vcpus if inst.counts_cpu else 0)
    if not 0 <= limit < ratio(after, node.cpus):
        return None
    facts = {
        "asked": inst.vcpus,
        "used": used,
        "limit": limit * node.cpus,
        "ratio": limit,
    }
    short = -int(-(after / limit - node.cpus) // 1) if limit > 0 else 0
    return Finding(node.idx, Fail.CPU, name, facts, "", max(1, short) if limit else 0)


def _tags(state: State, node: Node, inst: Inst) -> Finding | None:
    here = [tag for tag in inst.excl_tags if tag in node.excl]
    if not here:
        return None
    held = [
        state.insts[at].name
        for at in sorted(node.primaries)
        if set(here) & set(state.insts[at].excl_tags)
    ]
    facts = {"tags": here, "held by": held}
    return Finding(node.idx, Fail.TAGS, "exclusion tags", facts)


def _primary_planned(node: Node, inst: Inst) -> Finding | None:
    """Return what refuses a primary when planned instances are counted too."""
    free = node.mem_free_all
    if free - inst.mem <= 0:
        short = inst.mem - free + 1
        facts = _above({"asked": inst.mem, "free with planned instances": free}, short)
        return Finding(node.idx, Fail.MEMORY, "planned memory", facts, MIB, short)
    found = _planned_room(node, inst) if inst.local else None
    return found or _cpu(node, inst, node.cpu_used_all, "planned cpu")


def _planned_room(node: Node, inst: Inst) -> Finding | None:
    found = None
    if node.units is None:
        found = _renamed(_disk(node, inst, node.disk_free_all), "planned disk")
    if found is None:
        spindles = _spindles(node, inst, node.spindles_free_all)
        found = _renamed(spindles, "planned spindles")
    used = node.spindles_used_all
    return found or _spindle_ratio(node, inst, used, "planned spindle ratio")


def _renamed(found: Finding | None, name: str) -> Finding | None:
    if found is None:
        return None
    facts = found.facts
    return Finding(found.node, found.fail, name, facts, found.unit, found.short)


# -- secondary -------------------------------------------------------------------------


def secondary_finding(
    state: State,
    node: Node,
    inst: Inst,
    primary: int,
    *,
    force: bool = False,
    ignore_disk: bool = False,
) -> Finding | None:
    """Return why a node cannot keep a second copy; the twin of `add_secondary`."""
    if inst.mirror is not Mirror.INTERNAL:
        facts = {"template": inst.template}
        return Finding(node.idx, Fail.DISK, "no second copy", facts)
    if not inst.forthcoming:
        found = _secondary_hard(node, inst, force=force, ignore_disk=ignore_disk)
        if found is None and not force:
            found = _secondary_soft(state, node, inst, primary)
        if found is not None:
            return found
    return None if force else _secondary_planned(node, inst)


def _secondary_hard(
    node: Node, inst: Inst, *, force: bool, ignore_disk: bool
) -> Finding | None:
    if node.units is not None:
        found = unit_finding(node, node.units, inst, force=force or ignore_disk)
    else:
        found = _disk(node, inst, node.disk_free, force=force, ignore_full=ignore_disk)
    return found or _spindles(node, inst, node.spindles_free)


def _secondary_soft(
    state: State, node: Node, inst: Inst, primary: int
) -> Finding | None:
    found = _spindle_ratio(node, inst, node.spindles_used)
    if found is not None:
        return found
    needed = inst.mem if inst.uses_sec_mem else 0
    if needed >= node.unallocated:
        return _memory(node, needed, needed - node.unallocated + 1)
    peers = dict(node.peers)
    peers[primary] = peers.get(primary, 0) + needed
    reserved = max(node.reserved, peers[primary])
    return _reserve(state, node, inst, node.unallocated, reserved, peers)


def _secondary_planned(node: Node, inst: Inst) -> Finding | None:
    found = _planned_room(node, inst)
    if found is not None:
        return found
    needed = inst.mem if inst.uses_sec_mem else 0
    free = node.mem_free_all
    if needed < free:
        return None
    short = needed - free + 1
    facts = _above({"asked": needed, "free with planned instances": free}, short)
    return Finding(node.idx, Fail.MEMORY, "planned memory", facts, MIB, short)
