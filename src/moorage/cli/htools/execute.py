# SPDX-License-Identifier: BSD-2-Clause
"""Carrying a plan out: job sets over LUXI, one set after the other."""

import signal
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from moorage.api.luxi import LuxiClient
from moorage.cli.declaration import Options
from moorage.cli.htools.remote import connect
from moorage.errors import Failed
from moorage.htools.plans.balancing import Plan, Step
from moorage.htools.plans.plan import opcodes

PRIORITIES: Final = {"low": 10, "normal": 0, "high": -10}
_DONE: Final = ("success", "error", "canceled", "archived")
_PAUSE: Final = 1.0


class _Stop:
    """Whether somebody pressed ^C: stop after the running set."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        print("Cancel request registered, will exit at the end of the current job set")


def execute(options: Options, sets: Sequence[Sequence[Step]], found: Plan) -> None:
    """Submit each set, wait for it, then the next.

    Raises
    ------
    Failed
        If a job of a set did not succeed; later sets are not submitted.
    """
    stop = _Stop()
    before = signal.signal(signal.SIGINT, stop)
    try:
        with connect(options.luxi) as link:
            for steps in sets:
                if stop.asked:
                    print("Exiting early due to user request")
                    return
                _run_set(link, options, steps, found)
    finally:
        signal.signal(signal.SIGINT, before)


def _run_set(
    link: LuxiClient,
    options: Options,
    steps: Sequence[Step],
    found: Plan,
) -> None:
    names = ", ".join(step.before.name for step in steps)
    print(f"Executing jobset for instances {names}")
    jobs = [
        link.submit_job([_annotated(op, options) for op in _ops(step, found)])
        for step in steps
    ]
    print("Got job IDs " + ", ".join(map(str, jobs)))
    states = _wait(link, jobs)
    if any(state != "success" for state in states):
        raise Failed(
            "not every job of the set succeeded: " + ", ".join(states), jobs=jobs
        )


def _ops(step: Step, found: Plan) -> list[dict[str, Any]]:
    return opcodes(step, found.start.nodes)


def _annotated(opcode: dict[str, Any], options: Options) -> dict[str, Any]:
    """Return the opcode with who asked for it, and how urgently."""
    why = options.reason or "hbal called"
    noted = opcode | {
        "comment": "rebalancing via hbal",
        "reason": [["hbal", why, time.time_ns()]],
    }
    if options.priority:
        noted["priority"] = PRIORITIES[options.priority]
    return noted


def _wait(link: LuxiClient, jobs: Sequence[Any]) -> list[str]:
    """Return the state of each job once all have ended."""
    while True:
        rows = link.query_jobs(jobs, ["status"])
        states = [str(row[0]) if row else "archived" for row in rows]
        if all(state in _DONE for state in states):
            return states
        time.sleep(_PAUSE)
