# SPDX-License-Identifier: BSD-2-Clause
"""A plan as people and shells read it: step lines, job sets, commands."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from moorage.disk_templates import IN_UNITS
from moorage.htools.constants import PAIRED, fixed
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.moves import FA, FR, FRF, RF, F, R
from moorage.htools.node import Node
from moorage.htools.plans.balancing import Step

_LETTERS: Final = {
    F: "f",
    FA: "fa:{}",
    R: "r:{}",
    RF: "r:{} f",
    FRF: "f r:{} f",
    FR: "f r:{}",
}
_WORK: Final = {
    F: ("migrate",),
    FA: ("migrate to",),
    R: ("replace",),
    RF: ("replace", "migrate"),
    FRF: ("migrate", "replace", "migrate"),
    FR: ("migrate", "replace"),
}
"""What each verb makes `gnt-instance` do."""


def letters(step: Step, nodes: Sequence[Node]) -> str:
    """Return the short form of a move, as in ``f r:node3``."""
    target = step.move.target
    return _LETTERS[step.move.verb].format(nodes[target].alias if target >= 0 else "")


def commands(step: Step, nodes: Sequence[Node]) -> list[str]:
    """Return the arguments of `gnt-instance` for each command of a step."""
    name, target = step.before.alias, step.move.target
    to = nodes[target].alias if target >= 0 else ""
    verb = "migrate" if step.before.is_running else "failover"
    texts = {
        "migrate": f"{verb} -f {name}",
        "migrate to": f"{verb} -f -n {to} {name}",
        "replace": f"replace-disks -n {to} {_naming(step.before)}{name}",
    }
    return [texts[work] for work in _WORK[step.move.verb]]


def opcodes(step: Step, nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the opcodes of a step, as JSON values."""
    target = step.move.target
    to = nodes[target].name if target >= 0 else None
    return [
        replace_opcode(step.before, to)
        if work == "replace"
        else migrate_opcode(step.before, to if work == "migrate to" else None)
        for work in _WORK[step.move.verb]
    ]


def mirrored_slots(inst: Inst) -> list[int]:
    """Return the slots of mirrored disks, where there are others, too; else nothing."""
    kinds = [IN_UNITS.get(one.unit[0]) if one.unit else None for one in inst.disks]
    found = [at for at, kind in enumerate(kinds) if kind and kind.name == PAIRED]
    return found if len(found) < len(kinds) else []


def _naming(inst: Inst) -> str:
    slots = mirrored_slots(inst)
    return f"--disks={','.join(map(str, slots))} " if slots else ""


def replace_opcode(inst: Inst, to: str | None) -> dict[str, Any]:
    """Return the opcode that gives an instance another secondary.

    Beside disks of other kinds, the mirrored ones are named.
    """
    return {
        "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
        "instance_name": inst.name,
        "early_release": False,
        "ignore_ipolicy": False,
        "mode": "replace_new_secondary",
        "disks": mirrored_slots(inst),
        "remote_node": to,
    }


def migrate_opcode(inst: Inst, to: str | None) -> dict[str, Any]:
    """Return the opcode that takes an instance to its other, or a named, node."""
    opcode: dict[str, Any] = {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": inst.name,
    }
    if inst.forthcoming:
        opcode["OP_ID"] = "OP_INSTANCE_FAILOVER"
        opcode |= {"shutdown_timeout": 120, "ignore_consistency": False}
    if to is not None:
        opcode["target_node"] = to
    if inst.forthcoming:
        return opcode | {"ignore_ipolicy": False, "cleanup": False}
    return opcode | {
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }


def place(p: int, s: int, nodes: Sequence[Node]) -> str:
    """Return a pair of nodes as ``primary:secondary``."""
    return nodes[p].alias + (f":{nodes[s].alias}" if s != NOWHERE else "")


class Widths(NamedTuple):
    """Widest aliases, for step lines that line up."""

    node: int
    instance: int

    @classmethod
    def of(cls, nodes: Sequence[Node], insts: Sequence[Inst]) -> "Widths":
        """Return the widths for these nodes and instances."""
        return cls(
            max((len(node.alias) for node in nodes), default=0),
            max((len(inst.alias) for inst in insts), default=0),
        )


def step_line(step: Step, number: int, nodes: Sequence[Node], widths: Widths) -> str:
    """Return the line that describes a step."""
    pair = 2 * widths.node + 1
    old = place(step.before.p, step.before.s, nodes)
    new = place(step.moved.inst.p, step.moved.inst.s, nodes)
    return (
        f"  {number:3d}. {step.before.alias:<{widths.instance}} {old:<{pair}} => "
        f"{new:<{pair}} {fixed(step.score, 8):>12} a={letters(step, nodes)}"
    )


def involved(step: Step) -> set[int]:
    """Return the nodes that a step touches."""
    new = step.moved.inst
    return {at for at in (new.p, new.s, *step.before.nodes) if at >= 0}


def job_sets(steps: Sequence[Step]) -> list[list[Step]]:
    """Return steps in sets whose members touch different nodes.

    Sets run one after the other, the members of one at the same time. A step
    joins the set that starts before it if it can; it is read from the end.
    """
    sets: list[list[Step]] = []
    busy: set[int] = set()
    for step in reversed(steps):
        nodes = involved(step)
        if sets and not nodes & busy:
            sets[0].insert(0, step)
            busy |= nodes
        else:
            sets.insert(0, [step])
            busy = nodes
    return sets


def shell(sets: Sequence[Sequence[Step]], nodes: Sequence[Node]) -> str:
    """Return the commands of job sets, as a script prints and runs them."""
    lines: list[str] = []
    for number, steps in enumerate(sets, 1):
        lines += ["", f"echo jobset {number}, {len(steps)} jobs"]
        for at, step in enumerate(steps, 1):
            lines += [f"  echo job {number}/{at}", "  check"]
            lines += [f"  gnt-instance {text}" for text in commands(step, nodes)]
    return "".join(line + "\n" for line in lines)
