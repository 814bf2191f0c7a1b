# SPDX-License-Identifier: BSD-2-Clause
"""Looking after this node itself."""

import asyncio
import logging

from moorage.errors import MoorageError
from moorage.model.lvm import Lvm
from moorage.protocol import (
    GetLvm,
    PowerCycle,
    RepairGroup,
    Report,
    RunScript,
    Said,
    SetAllocatable,
)
from moorage.storage import Command, maintenance

from .context import NodeContext

_LOG = logging.getLogger(__name__)
REBOOT = ("systemctl", "--force", "--force", "reboot")
"""Reboots as a power cycle would: nothing is stopped, nothing is synced."""
SOON = 1.0
"""Seconds until then, in which the answer gets on its way."""
_cycles: set[asyncio.Task[None]] = set()


async def lvm(at: NodeContext, _args: GetLvm, _report: Report) -> Lvm:
    """Return the physical and logical volumes of this node."""
    return await at.do(maintenance.survey())


async def allocatable(at: NodeContext, args: SetAllocatable, _report: Report) -> None:
    """Say whether new volumes may lie on a physical volume."""
    await at.do(maintenance.allocatable(args.device, wanted=args.wanted))


async def repair(at: NodeContext, args: RepairGroup, _report: Report) -> None:
    """Take devices that are gone out of a volume group."""
    await at.do(maintenance.repair(args.group))


async def powercycle(at: NodeContext, _args: PowerCycle, _report: Report) -> None:
    """Reboot this node in a moment."""
    task = asyncio.create_task(_cycle(at))
    _cycles.add(task)
    task.add_done_callback(_cycles.discard)


async def _cycle(at: NodeContext) -> None:
    await asyncio.sleep(SOON)
    try:
        await at.run(Command(REBOOT))
    except MoorageError as error:
        _LOG.error("this node was to be rebooted: %s", error.message)


async def script(at: NodeContext, args: RunScript, _report: Report) -> Said:
    """Run a script of this node's administrator."""
    return await at.machine.admin_script(args.directory, args.script, args.arguments)


VERBS = (
    GetLvm.done_by(lvm),
    SetAllocatable.done_by(allocatable),
    RepairGroup.done_by(repair),
    PowerCycle.done_by(powercycle),
    RunScript.done_by(script),
)
"""Every verb that looks after a node."""
