# SPDX-License-Identifier: BSD-2-Clause
"""What was done and stays, though the operation ends as if it had not been.

A command that ran on a node is not taken back by anybody: whoever reads how such a job
ended is told what ran, what may have, and what did not.
"""

from collections.abc import Sequence

from moorage.errors import Failed, MoorageError, Unreachable
from moorage.units import counted

from .job import FAILED, UNKNOWN, Job, Op
from .task import Run, Task

_SHOWN = 5


def stays(task: Task) -> bool:
    """Whether what a task did cannot be taken back."""
    return isinstance(task, Run) and task.do.stays


def failing(task: Run, error: MoorageError) -> str:
    """Return what became of a task that failed so: nobody knows, if it stays."""
    return UNKNOWN if stays(task) and doubtful(error) else FAILED


def doubtful(error: MoorageError) -> bool:
    """Whether a node may have done what it was asked for, and never said so."""
    return isinstance(error, Unreachable) and error.facts.get("sent") is not False


def stopped(job: Job, op: Op) -> Failed:
    """Return why an operation of a master that died turns back."""
    if job.cancel_asked:
        return Failed("the job was canceled")
    all_undone = not any(map(stays, op.begun()))
    undone = "; what was begun is undone" if all_undone else ""
    return Failed(f"the master was stopped in the middle{undone}")


def left(op: Op, error: MoorageError, *, doubt: bool) -> None:
    """Note what stays of an operation that is cut off, and say it with its error.

    Parameters
    ----------
    doubt
        Whether the task at the cursor may have been done.
    """
    if doubt and stays(op.tasks[op.cursor]):
        op.passed[op.cursor] = UNKNOWN
    done = [
        task.what
        for at, task in enumerate(op.tasks[: op.cursor])
        if stays(task) and at not in op.passed
    ]
    unknown = [op.tasks[at].what for at, how in op.passed.items() if how == UNKNOWN]
    if done:
        error.message += f". This was done, and stays: {_told(done)}"
    if unknown:
        error.message += f". Nobody knows whether this was done: {_told(unknown)}"
    if done or unknown:
        error.facts["done_before"] = True  # so it is no refusal that changed nothing


def _told(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    more = f", and {counted(rest, 'more step')}" if rest > 0 else ""
    return ", ".join(names[:_SHOWN]) + more
