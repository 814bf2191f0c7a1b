# SPDX-License-Identifier: BSD-2-Clause
"""What ``gnt-job cancel --kill`` adds: the script that a job waits for is ended.

Ganeti kills the process of the job. Here the job stays, for it has things to take back:
its step fails with the script, and is undone as any other that failed. A step that may
be broken off at any moment, as the copying of a disk, is ended without ``--kill``.
"""

from contextlib import suppress

from moorage.errors import MoorageError
from moorage.jobs import Job, Run
from moorage.protocol import KillPrograms, silent

from .query import Sources


async def kill(at: Sources, job: Job) -> bool:
    """End the scripts that the step under way of a job runs on its node, if any do.

    A job that was cancelled before, or failed, may still wait for one: its undo takes
    turns with it. Behind the point of no return nothing is ended: the way is forward
    only. Nor is it where the node gives no answer.
    """
    op, step = job.current, _step(job)
    if step is None or (op.committed_to() and not op.undoing):
        return False
    call = KillPrograms(objects=tuple(sorted(step.do.touched())))
    with suppress(MoorageError):
        node = at.config_store.config.node(step.node)
        return bool(await at.nodes.call(node, call, at.config_store.term, silent))
    return False


def breakable(job: Job) -> bool:
    """Whether the step under way of a job may be broken off at any moment."""
    step = _step(job)
    return step is not None and type(step.do).breakable


def _step(job: Job) -> Run | None:
    op = job.current
    step = op.tasks[op.cursor] if 0 <= op.cursor < len(op.tasks) else None
    return step if isinstance(step, Run) else None
