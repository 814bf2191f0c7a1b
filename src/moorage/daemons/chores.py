# SPDX-License-Identifier: BSD-2-Clause
"""What a master does all the time, beside its jobs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

_LOG = logging.getLogger(__name__)
_AGAIN = 60.0
"""Seconds until a chore that broke is begun again."""


async def kept_up(chore: Callable[[], Awaitable[None]], again: float = _AGAIN) -> None:
    """Do a chore until it is done; one that a defect of ours ends is begun again."""
    while True:
        try:
            return await chore()
        except Exception:  # noqa: BLE001 - nobody waits for it, so nobody would know
            _LOG.exception("a chore of the master broke: it begins again")
        await asyncio.sleep(again)
