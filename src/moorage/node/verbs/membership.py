# SPDX-License-Identifier: BSD-2-Clause
"""Verbs between a node and its master: leaving, tidying up, ending programs.

How a node gets in is another door.
"""

import time

from moorage.protocol import KillPrograms, LeaveCluster, Report, TidyNode

from .context import NodeContext

_YOUNG = 3600.0
"""Seconds for which nothing is forgotten: the master may not know of it yet."""


async def leave(at: NodeContext, _args: LeaveCluster, _report: Report) -> None:
    """Leave the cluster: its certificates are forgotten, and the door opens again."""
    at.leave()


async def tidy(at: NodeContext, args: TidyNode, _report: Report) -> None:
    """Forget what is left of objects that the cluster does not know any more.

    A new master asks for it. Late steps of its predecessors are fenced by their term,
    so the epochs of disks that are gone fence nothing any more.
    """
    before = time.time() - _YOUNG
    at.fence.keep(args.objects, before)
    at.makings.keep(args.objects, before)
    if not args.candidate:
        await at.copies.run(at.copies.state.drop)


async def kill(at: NodeContext, args: KillPrograms, _report: Report) -> int:
    """End the programs that earlier steps run on some objects; return how many.

    The copying that a guest's QEMU does for a dump counts as one.

    Their verbs fail, and are undone as any other that failed.
    """
    ended = at.machine.kill(args.objects)
    for hypervisor in at.hypervisors.values():
        for uuid in args.objects:
            ended += await hypervisor.end_dump(uuid)
    return ended


VERBS = (
    LeaveCluster.done_by(leave),
    TidyNode.done_by(tidy),
    KillPrograms.done_by(kill),
)
"""Every verb of membership."""
