# SPDX-License-Identifier: BSD-2-Clause
"""Verbs between a node and its master: leaving, tidying up, ending programs.

How a node gets in is another door.
"""

import time
from typing import Any

from moorage.node.hypervisors.base import Report

from .fact import FactArgs
from .station import Station

_YOUNG = 3600.0
"""Seconds for which nothing is forgotten: the master may not know of it yet."""


async def leave(at: Station, _args: FactArgs, _report: Report) -> None:
    """Leave the cluster: its certificates are forgotten, and the door opens again."""
    at.leave()


async def tidy(at: Station, args: FactArgs, _report: Report) -> None:
    """Forget what is left of objects that the cluster does not know any more.

    A new master asks for it. Late steps of its predecessors are fenced by their term,
    so the epochs of disks that are gone fence nothing any more.
    """
    before = time.time() - _YOUNG
    at.fence.keep(args.objects, before)
    at.makings.keep(args.objects, before)


async def kill(at: Station, args: FactArgs, _report: Report) -> int:
    """End the programs that earlier steps run on some objects; return how many.

    Their verbs fail, and are undone as any other that failed.
    """
    return at.machine.kill(args.objects)


VERBS: dict[str, Any] = {"node.leave": leave, "node.tidy": tidy, "script.kill": kill}
"""Every verb of membership."""
