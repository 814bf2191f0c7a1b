# SPDX-License-Identifier: BSD-2-Clause
"""Carrying something out: job sets over LUXI, one set after the other."""

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple

from moorage.api.luxi import LuxiClient
from moorage.cli.declaration import Options
from moorage.cli.htools.remote import connect
from moorage.cli.options import PRIORITIES
from moorage.errors import Failed
from moorage.htools.plans.balancing import Plan, Step
from moorage.htools.plans.plan import opcodes

Opcode = dict[str, Any]

_OVER: Final = ("success", "error", "canceled", "archived")
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 15.0
"""Seconds between two looks at jobs."""


class JobSet(NamedTuple):
    """Jobs that run at the same time.

    Attributes
    ----------
    jobs : list of list of opcode
        Opcodes as JSON values.
    heading : str
        What to print before them; nothing if empty.
    """

    jobs: list[list[Opcode]]
    heading: str = ""


def run_sets(path: str, sets: Iterable[JobSet], comma: str) -> None:
    """Submit each set to the master at `path`, wait for it, then the next.

    After SIGINT the running set is the last.

    Parameters
    ----------
    comma
        Between the numbers of jobs, where they are printed.

    Raises
    ------
    Failed
        If a job of a set did not succeed; later sets are not submitted.
    """
    asked: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        print("Cancel request registered, will exit at the end of the current job set")

    before = signal.signal(signal.SIGINT, stop)
    try:
        with connect(path) as link:
            for one in sets:
                if asked:
                    print("Exiting early due to user request")
                    return
                _run(link, one, comma)
    finally:
        signal.signal(signal.SIGINT, before)


def _run(link: LuxiClient, one: JobSet, comma: str) -> None:
    """Submit the jobs of a set and wait until all have succeeded."""
    if one.heading:
        print(one.heading)
    numbers = [link.submit_job(job) for job in one.jobs]
    print("Got job IDs " + comma.join(map(str, numbers)), flush=True)
    states, pause = _states(link, numbers), _FIRST_PAUSE
    while not all(state in _OVER for state in states):
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        states = _states(link, numbers)
    if any(state != "success" for state in states):
        raise Failed(
            "not every job of the set succeeded: " + ", ".join(states), jobs=numbers
        )


def _states(link: LuxiClient, numbers: Sequence[Any]) -> list[str]:
    rows = link.query_jobs(numbers, ["status"])
    return [str(row[0]) if row else "archived" for row in rows]


def execute(options: Options, sets: Sequence[Sequence[Step]], found: Plan) -> None:
    """Carry out the job sets of a balancing plan (see `run_sets`)."""
    run_sets(options.luxi, _balancing(options, sets, found), ", ")


def _balancing(
    options: Options, sets: Sequence[Sequence[Step]], found: Plan
) -> Iterator[JobSet]:
    for steps in sets:
        names = ", ".join(step.before.name for step in steps)
        jobs = [
            [_annotated(op, options) for op in opcodes(step, found.start.nodes)]
            for step in steps
        ]
        yield JobSet(jobs, f"Executing jobset for instances {names}")


def _annotated(opcode: Opcode, options: Options) -> Opcode:
    """Return the opcode with who asked for it, and how urgently."""
    why = options.reason or "hbal called"
    noted = opcode | {
        "comment": "rebalancing via hbal",
        "reason": [["hbal", why, time.time_ns()]],
    }
    if options.priority:
        noted["priority"] = PRIORITIES[options.priority]
    return noted
