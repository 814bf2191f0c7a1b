# SPDX-License-Identifier: BSD-2-Clause
"""Verbs between a node and its master: leaving, tidying up, ending programs.

How a node gets in is another door.
"""

import time

from moorage.protocol import (
    ForgetObjects,
    KillPrograms,
    LeaveCluster,
    ListOldObjects,
    Report,
)

from .context import NodeContext

_YOUNG = 3600.0
"""Seconds for which nothing is forgotten: the master may not know of it yet."""


async def leave(at: NodeContext, _args: LeaveCluster, _report: Report) -> None:
    """Leave the cluster: its certificates are forgotten, and the door opens again.

    What was written in the place of Ganeti's files is taken away first.
    """
    if at.machine.ssconf:
        at.machine.ssconf.restore()
    at.leave()


async def old(
    at: NodeContext, _args: ListOldObjects, _report: Report
) -> tuple[str, ...]:
    """Return the uuids of what this node fences, or has made, for more than an hour."""
    before = time.time() - _YOUNG
    return tuple(sorted(at.fence.old(before) | at.creations.old(before)))


async def forget(at: NodeContext, args: ForgetObjects, _report: Report) -> None:
    """Forget what is left of old objects that the cluster does not know any more.

    Late steps of earlier masters are fenced by their term, and the master that asks
    has none under way: the epochs of disks that are gone fence nothing any more.
    """
    before = time.time() - _YOUNG
    for kept in (at.fence, at.creations):
        kept.forget(args.objects, before)


async def kill(at: NodeContext, args: KillPrograms, _report: Report) -> int:
    """End the programs that earlier steps run on some objects; return how many.

    The copying that a guest's QEMU does for a dump counts as one, and so does an export
    on its way to this node.

    Their verbs fail, and are undone as any other that failed.
    """
    ended = at.machine.kill(args.objects)
    for hypervisor in at.hypervisors.values():
        for uuid in args.objects:
            ended += await hypervisor.end_dump(uuid)
    return ended


VERBS = (
    LeaveCluster.done_by(leave),
    ListOldObjects.done_by(old),
    ForgetObjects.done_by(forget),
    KillPrograms.done_by(kill),
)
"""Every verb of membership."""
