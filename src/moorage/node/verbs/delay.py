# SPDX-License-Identifier: BSD-2-Clause
"""The verb that does nothing for a while, for tests."""

import asyncio
from typing import Any

from moorage.node.hypervisors.base import Report

from .fact import FactArgs
from .station import Station


class DelayArgs(FactArgs, frozen=True, kw_only=True):
    """Arguments of the verb.

    Attributes
    ----------
    seconds
        How long to wait.
    """

    seconds: float = 0.0


async def delay(_at: Station, args: DelayArgs, _report: Report) -> None:
    """Wait; nobody else waits for it."""
    await asyncio.sleep(args.seconds)


VERBS: dict[str, Any] = {"delay": delay}
"""Every verb of waiting."""
