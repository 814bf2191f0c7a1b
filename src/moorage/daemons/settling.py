# SPDX-License-Identifier: BSD-2-Clause
"""What a master puts in order while it leads: nodes forget what is no more."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from moorage.api.query import Sources
from moorage.errors import MoorageError
from moorage.jobs import Job, Run
from moorage.jobs.turns import together
from moorage.model import Node
from moorage.protocol import ForgetObjects, ListOldObjects, silent

_AGAIN = 3600.0
"""Seconds until nodes are told again."""


async def keep_telling(at: Sources) -> None:
    """Tell nodes what is no more, now and every hour: a master may lead for months."""
    while True:
        await tell_nodes(at)
        await asyncio.sleep(_AGAIN)


async def tell_nodes(at: Sources) -> None:
    """Tell every node which of the disks that it keeps something of are no more.

    Late steps of earlier masters are fenced by their term, and need no epochs any more.
    Its own cannot be so late: a node tells only what has been still for an hour, what a
    job has in hand is left, and of its own steps on one disk a node takes none that
    was asked before another. A node that gives no answer keeps what it has until the
    next time, and holds up no other.
    """
    await together(_tell(at, node) for node in at.config_store.config.online())


async def _tell(at: Sources, node: Node) -> None:
    term = at.config_store.term
    with suppress(MoorageError):
        kept = await at.nodes.call(node, ListOldObjects(), term, silent)
        if gone := _unknown(at, kept):
            await at.nodes.call(node, ForgetObjects(objects=gone), term, silent)


def _unknown(at: Sources, uuids: Iterable[str]) -> tuple[str, ...]:
    """Return what is neither on record now, nor in the hands of a job."""
    gone = [one for one in uuids if one not in at.config_store.config.objects]
    busy = set(under_way(at.engine.jobs.values() if gone else ()))
    return tuple(one for one in gone if one not in busy)


def under_way(jobs: Iterable[Job]) -> Iterator[str]:
    """Yield the uuids of the disks that unfinished jobs work on, known or not yet."""
    for job in jobs:
        tasks = [task for op in job.ops for task in op.tasks if not job.finished]
        runs = (task for task in tasks if isinstance(task, Run))
        for call in (one for run in runs for one in (run.do, run.undo) if one):
            yield from (disk.uuid for disk in call.fencing())
