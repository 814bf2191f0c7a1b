# SPDX-License-Identifier: BSD-2-Clause
"""What a new master puts in order once it leads: nodes forget what is no more."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from moorage.api.query import Sources
from moorage.errors import MoorageError
from moorage.jobs import Job, Run
from moorage.model import Disk, Node
from moorage.protocol import TidyNode, silent


async def tell_nodes(at: Sources) -> None:
    """Tell every node which disks there are; what it keeps of others, it may forget.

    Only a master that is new may say so: late steps of its predecessors are fenced by
    their term, and need no epochs any more. A node that gives no answer keeps what it
    has until the next time.
    """
    config = at.truth.config
    known = {disk.uuid for disk in config.all(Disk)}
    known |= set(under_way(at.engine.jobs.values()))
    objects = tuple(sorted(known))
    for node in config.named(Node):
        # The master's own node has the state itself.
        keeps = node.master_candidate and node.uuid != config.cluster.master_node
        call = TidyNode(objects=objects, candidate=keeps)
        if not node.offline:
            with suppress(MoorageError):
                await at.nodes.call(node, call, at.truth.term, silent)


def under_way(jobs: Iterable[Job]) -> Iterator[str]:
    """Yield the uuids of the disks that unfinished jobs work on, known or not yet."""
    for job in jobs:
        tasks = [task for op in job.ops for task in op.tasks if not job.finished]
        runs = (task for task in tasks if isinstance(task, Run))
        for call in (one for run in runs for one in (run.do, run.undo) if one):
            yield from (disk.uuid for disk in call.fencing())
