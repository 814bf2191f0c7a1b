# SPDX-License-Identifier: BSD-2-Clause
"""Which limit of a policy refuses an instance, by name and with its numbers."""

from collections.abc import Sequence
from typing import Final

from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.policy import Spec, breach
from moorage.htools.why.constraints import MIB, Finding

_BOUNDS: Final = (
    ("memory", MIB),
    ("disk", MIB),
    ("cpus", ""),
    ("spindles", ""),
    ("disks", ""),
)
_POLICY_NAMES: Final = {
    "memory": "policy memory",
    "disk": "policy disk size",
    "cpus": "policy vcpus",
    "spindles": "policy spindles",
    "disks": "policy disk count",
}


def policy_finding(node: Node, inst: Inst) -> Finding | None:
    """Return what the policy of a node's group has against an instance."""
    fail = breach(node.policy, inst, exclusive=node.exclusive)
    if fail is None:
        return None
    ranges = node.policy.ranges
    broken = _broken(ranges[0][0], ranges[0][1], inst, node) if ranges else None
    if broken is None or _in_some_range(node, inst):
        templates = list(node.policy.templates)
        named = {"asked": inst.template, "allowed": templates}
        return Finding(node.idx, fail, "policy template", named)
    what, asked, unit = broken
    allowed = [[getattr(low, what), getattr(high, what)] for low, high in ranges]
    facts = {"asked": asked, "allowed": allowed}
    return Finding(node.idx, fail, _POLICY_NAMES[what], facts, unit)


def _in_some_range(node: Node, inst: Inst) -> bool:
    return any(
        _broken(low, high, inst, node) is None for low, high in node.policy.ranges
    )


def _broken(
    low: Spec, high: Spec, inst: Inst, node: Node
) -> tuple[str, int | None, str] | None:
    """Return the first bound of one range that is broken: name, value, unit."""
    for spec, sign in ((low, 1), (high, -1)):
        for what, unit in _BOUNDS:
            bound = getattr(spec, what)
            for asked in _asked(what, inst, node):
                if asked is None or sign * (bound - asked) > 0:
                    return what, asked, unit
    return None


def _asked(what: str, inst: Inst, node: Node) -> Sequence[int | None]:
    """Return what an instance asks for, as the policy looks at it."""
    if what == "memory":
        return (inst.mem,)
    if what == "disk":
        return inst.sizes
    if what == "cpus":
        return (inst.vcpus,)
    if what == "spindles":
        return (inst.total_spindles if node.exclusive else inst.spindle_use,)
    return () if inst.template == "diskless" else (len(inst.sizes),)
