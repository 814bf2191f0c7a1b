# SPDX-License-Identifier: BSD-2-Clause
"""Carrying a squeeze out: moves, tags and power over LUXI, set after set."""

import time
from collections.abc import Iterator
from typing import Final

from moorage.cli.htools.execute import JobSet, Opcode, run_sets
from moorage.htools.node import Node
from moorage.htools.plans import plan
from moorage.htools.squeezing import STANDBY_AUTO, Squeeze

_OOB_TIMEOUT: Final = 60
_POWER_DELAY: Final = 2.0
"""Seconds."""


def execute(path: str, found: Squeeze, *, offline: bool) -> None:
    """Carry a squeeze out (see `moorage.cli.htools.execute.run_sets`)."""
    sets = (
        JobSet([[_annotated(op, found, offline) for op in job] for job in jobs])
        for jobs in job_sets(found, offline=offline)
    )
    run_sets(path, sets, ",")


def job_sets(found: Squeeze, *, offline: bool) -> Iterator[list[list[Opcode]]]:
    """Yield the job sets: power comes before moves onto nodes, and after moves off."""
    start = found.plan.start.nodes
    nodes = [start[at] for at in found.nodes]
    # To name no node would mean all of them.
    if nodes and not offline:
        yield [_power(nodes, offline=False)]
    for steps in plan.job_sets(found.plan.steps):
        yield [plan.opcodes(step, start) for step in steps]
    if nodes and offline:
        yield from ([[_tag(node)]] for node in nodes)
        yield [_power(nodes, offline=True)]


def _tag(node: Node) -> Opcode:
    return {
        "OP_ID": "OP_TAGS_SET",
        "kind": "node",
        "tags": [STANDBY_AUTO],
        "name": node.name,
    }


def _power(nodes: list[Node], *, offline: bool) -> list[Opcode]:
    """Return the job that switches nodes off or on."""
    marks = [
        {
            "OP_ID": "OP_NODE_SET_PARAMS",
            "node_name": node.name,
            "force": False,
            "offline": offline,
            "auto_promote": False,
        }
        for node in nodes
    ]
    switch = {
        "OP_ID": "OP_OOB_COMMAND",
        "node_names": [node.name for node in nodes],
        "command": "power-off" if offline else "power-on",
        "timeout": _OOB_TIMEOUT,
        "ignore_status": False,
        "power_delay": _POWER_DELAY,
    }
    return [*marks, switch]


def _annotated(opcode: Opcode, found: Squeeze, offline: bool) -> Opcode:
    """Return the opcode with who asked for it, and what for."""
    what = "condensing" if offline else "expanding"
    return opcode | {
        "comment": f"{what} by {len(found.nodes)} nodes",
        "reason": [["hsqueeze", "hsqueeze called", time.time_ns()]],
    }
