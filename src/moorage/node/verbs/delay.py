# SPDX-License-Identifier: BSD-2-Clause
"""The verb that does nothing for a while, for tests."""

import asyncio

from moorage.protocol import Pause, Report

from .context import NodeContext


async def delay(_at: NodeContext, args: Pause, _report: Report) -> None:
    """Wait; nobody else waits for it."""
    await asyncio.sleep(args.seconds)


VERBS = (Pause.done_by(delay),)
"""Every verb of waiting."""
