# SPDX-License-Identifier: BSD-2-Clause
"""The watcher's jobs: submitted together, and waited for, but not for ever.

A job may wait for another that holds its instance for hours. The next look must not
wait with it, and must not submit a second one.
"""

import time
from collections.abc import Mapping
from typing import Any

from moorage.cli.command import Call
from moorage.cli.errors import show
from moorage.cli.follow import opcode
from moorage.client import ENDED
from moorage.errors import MoorageError

PATIENCE = 240.0
"""Seconds that jobs are waited for: less than from one look to the next."""
_POLL = 0.2


def unfinished(call: Call, jobs: Mapping[str, int]) -> dict[str, int]:
    """Return the jobs of earlier looks that have not ended, by instance."""
    if not jobs:
        return {}
    rows = call.client.jobs(list(jobs.values()), ["status"])
    told = zip(jobs.items(), rows, strict=True)
    return {name: job for (name, job), row in told if row and row[0] not in ENDED}


def carried_out(
    call: Call, ops: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> tuple[set[str], dict[str, int]]:
    """Carry out a job an instance, and tell what went wrong.

    Parameters
    ----------
    ops
        Opcode and its fields, by instance.

    Returns
    -------
    The instances whose jobs failed, and the jobs that go on, by instance.
    """
    if not ops:
        return set(), {}
    jobs = [[opcode(call, op_id, fields)] for op_id, fields in ops.values()]
    answers = call.client.submit_many(jobs)
    failed: set[str] = set()
    waiting: dict[str, int] = {}
    for name, answer in zip(ops, answers, strict=True):
        if isinstance(answer, int):
            call.terminal.print(f"Job {answer}: {ops[name][0]} for {name}")
            waiting[name] = answer
        else:
            show(answer, call.terminal)
            failed.add(name)
    left = _awaited(call, waiting)
    for name, job in waiting.items():
        if name in left:
            call.terminal.print(f"Job {job} for {name} goes on")
        elif not _succeeded(call, job):
            failed.add(name)
    return failed, left


def _awaited(call: Call, jobs: Mapping[str, int]) -> dict[str, int]:
    """Wait for jobs; return those that did not end in time."""
    end = time.monotonic() + PATIENCE
    left = unfinished(call, jobs)
    while left and time.monotonic() < end:
        time.sleep(_POLL)
        left = unfinished(call, left)
    return left


def _succeeded(call: Call, job: int) -> bool:
    try:
        call.client.job(job).outcome()
    except MoorageError as error:
        show(error, call.terminal)
        return False
    return True
