# SPDX-License-Identifier: BSD-2-Clause
"""Carrying something out: job sets over LUXI, one set after the other."""

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from moorage.cli.declaration import Options
from moorage.cli.htools.remote import connect
from moorage.cli.options import PRIORITIES
from moorage.client import Client
from moorage.errors import Failed, NotFound
from moorage.htools.plans.balancing import Plan, Step
from moorage.htools.plans.plan import opcodes

Opcode = dict[str, Any]


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


def _run(link: Client, one: JobSet, comma: str) -> None:
    """Submit the jobs of a set and wait until all have succeeded."""
    if one.heading:
        print(one.heading)
    numbers = [link.submit(*job) for job in one.jobs]
    print("Got job IDs " + comma.join(map(str, numbers)), flush=True)
    states = [_end(link, number) for number in numbers]
    if any(state != "success" for state in states):
        raise Failed(
            "not every job of the set succeeded: " + ", ".join(states), jobs=numbers
        )


def _end(link: Client, number: int) -> str:
    """Wait for a job; return its last status."""
    try:
        return link.wait(number).status
    except NotFound:
        return "archived"


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
