# SPDX-License-Identifier: BSD-2-Clause
"""Carrying a squeeze out: moves, tags and power over LUXI, set after set."""

import signal
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from moorage.api.luxi import LuxiClient
from moorage.cli.htools.remote import connect
from moorage.errors import Failed
from moorage.htools.node import Node
from moorage.htools.plans import plan
from moorage.htools.squeezing import STANDBY_AUTO, Squeeze

Opcode = dict[str, Any]
JobSet = list[list[Opcode]]
"""Jobs that run at the same time, each a list of opcodes."""

_OVER: Final = ("success", "error", "canceled", "archived")
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 15.0
_OOB_TIMEOUT: Final = 60
_POWER_DELAY: Final = 2.0
"""Seconds."""


def execute(path: str, found: Squeeze, *, offline: bool) -> None:
    """Submit each job set to the master at `path`, and wait for it.

    After SIGINT the running set is the last.

    Raises
    ------
    Failed
        If a job did not succeed; later sets are not submitted.
    """
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        print("Cancel request registered, will exit at the end of the current job set")

    before = signal.signal(signal.SIGINT, stop)
    try:
        with connect(path) as link:
            for jobs in job_sets(found, offline=offline):
                if asked:
                    print("Exiting early due to user request")
                    return
                _run(link, [[_annotated(op, found, offline) for op in j] for j in jobs])
    finally:
        signal.signal(signal.SIGINT, before)


def job_sets(found: Squeeze, *, offline: bool) -> Iterator[JobSet]:
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


def _run(link: LuxiClient, jobs: JobSet) -> None:
    """Submit the jobs of a set and wait until all have succeeded."""
    numbers = [link.submit_job(job) for job in jobs]
    print("Got job IDs " + ",".join(map(str, numbers)), flush=True)
    states, pause = _states(link, numbers), _FIRST_PAUSE
    while not all(state in _OVER for state in states):
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        states = _states(link, numbers)
    if any(state != "success" for state in states):
        raise Failed(
            "not every job of the set succeeded: " + ", ".join(states), jobs=numbers
        )


def _states(link: LuxiClient, numbers: list[Any]) -> list[str]:
    rows = link.query_jobs(numbers, ["status"])
    return [str(row[0]) if row else "archived" for row in rows]
