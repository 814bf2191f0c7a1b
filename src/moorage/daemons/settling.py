# SPDX-License-Identifier: BSD-2-Clause
"""What a new master puts in order once it leads: nodes forget what is no more."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from moorage.api.query import Sources
from moorage.errors import MoorageError
from moorage.jobs import Job, Run
from moorage.jobs.turns import together
from moorage.model import Node
from moorage.protocol import ForgetObjects, ListOldObjects, silent


async def tell_nodes(at: Sources) -> None:
    """Tell every node which of the disks that it keeps something of are no more.

    Only a master that is new may say so: late steps of its predecessors are fenced by
    their term, and need no epochs any more. A node that gives no answer keeps what it
    has until the next time, and holds up no other.
    """
    await together(_tell(at, node) for node in at.truth.config.online())


async def _tell(at: Sources, node: Node) -> None:
    term = at.truth.term
    with suppress(MoorageError):
        kept = await at.nodes.call(node, ListOldObjects(), term, silent)
        if gone := _unknown(at, kept):
            await at.nodes.call(node, ForgetObjects(objects=gone), term, silent)


def _unknown(at: Sources, uuids: Iterable[str]) -> tuple[str, ...]:
    """Return what is neither on record now, nor in the hands of a job."""
    gone = [one for one in uuids if one not in at.truth.config.objects]
    busy = set(under_way(at.engine.jobs.values() if gone else ()))
    return tuple(one for one in gone if one not in busy)


def under_way(jobs: Iterable[Job]) -> Iterator[str]:
    """Yield the uuids of the disks that unfinished jobs work on, known or not yet."""
    for job in jobs:
        tasks = [task for op in job.ops for task in op.tasks if not job.finished]
        runs = (task for task in tasks if isinstance(task, Run))
        for call in (one for run in runs for one in (run.do, run.undo) if one):
            yield from (disk.uuid for disk in call.fencing())
