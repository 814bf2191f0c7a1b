# SPDX-License-Identifier: BSD-2-Clause
"""Whether an instance may be somewhere at all: policy, reach, migration tags, pools."""

from collections import Counter

from moorage.htools.constants import Fail
from moorage.htools.constraints.violation import MIB, Names, Violation
from moorage.htools.fleet import UnitName
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.policy import broken_limit


def policy(node: Node, inst: Inst) -> Violation | None:
    """Return what the policy of a node's group has against an instance."""
    limit = broken_limit(node.policy, inst, exclusive=node.exclusive)
    if limit is not None:
        facts = {"asked": limit.asked, "allowed": limit.allowed(node.policy)}
        unit = MIB if limit.fail in (Fail.MEMORY, Fail.DISK) else ""
        return Violation(node.idx, limit.fail, limit.constraint, facts, unit)
    if inst.template in node.policy.templates:
        return None
    named = {"asked": inst.template, "allowed": list(node.policy.templates)}
    return Violation(node.idx, Fail.DISK, "policy template", named)


def reach(node: Node, inst: Inst, names: Names | None = None) -> Violation | None:
    """Return why the disks of an instance cannot be used from a node."""
    if inst.reach is None or node.idx in inst.reach:
        return None
    facts = {}
    if names is not None:
        facts = {"disks usable from": [names.nodes[i].name for i in sorted(inst.reach)]}
    return Violation(node.idx, Fail.DISK, "reach", facts)


def migration(source: Node, target: Node) -> Violation | None:
    """Return which tags forbid the way from one node to another."""
    if source.mig_from <= target.mig_into:
        return None
    missing = sorted(source.mig_from - target.mig_into)
    facts = {f"from {source.name} with": missing, "not accepted by": target.name}
    return Violation(target.idx, Fail.MIGRATION, "migration tags", facts)


def pool(node: Node, inst: Inst) -> Violation | None:
    """Return which shared unit has no room for disks that do not exist yet."""
    if node.units is None:
        return None
    need: Counter[UnitName] = Counter()
    for name, size in inst.wants:
        if name is not None:
            need[name] += size
    for name, size in need.items():
        at = node.units.place(name)
        free = None if at is None else node.units.free[at]
        if at is None or free is None or not node.units.shared[at] or free >= size:
            continue
        called = "/".join(name)
        facts = {"pool": called, "asked": size, "free": free}
        short = size - free
        return Violation(node.idx, Fail.DISK, "pool", facts, MIB, short, called)
    return None
