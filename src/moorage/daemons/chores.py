# SPDX-License-Identifier: BSD-2-Clause
"""What a master does all the time, beside its jobs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final

from moorage.api import deeds
from moorage.api.query import Sources

from . import (
    key_renewal,
    leading_keys,
    master_address,
    pauses,
    settling,
    ssconf_files,
)

_LOG = logging.getLogger(__name__)
_AGAIN = 60.0
"""Seconds until a chore that broke is begun again."""
_KEPT = 6 * 3600.0
"""Seconds that a finished job stays in the list."""
_TIDIED = 300.0
"""Seconds between two looks at them, and at whether anything goes on."""
_WHOLE = 288
"""One of so many looks for garbage goes through everything: once a day."""
_BUSY = 12
"""So many such looks in a row find a master busy until that counts no more."""


async def _tidy(sources: Sources) -> None:
    """Put away old jobs, now and then; Ganeti's watcher does it after six hours."""
    while True:
        await deeds.archive_old(sources, _KEPT)
        await sources.engine.queue.archived.expire(sources.clock())
        await asyncio.sleep(_TIDIED)


async def sweep_when_idle(sources: Sources, look: float = _TIDIED) -> None:
    """Look for cyclic garbage when no job runs; after an hour, whoever waits."""
    for number in count(1):
        for _ in range(_BUSY):
            await asyncio.sleep(look)
            if not sources.engine.queue.working:
                break
        pauses.sweep(whole=number % _WHOLE == 0)


async def _keep_informed(sources: Sources) -> None:
    """Know what nodes said lately, for those who choose among them."""
    await sources.engine.recent.renew()


_CHORES: Final = (
    settling.keep_telling,
    _tidy,
    sweep_when_idle,
    key_renewal.watch,
    leading_keys.watch,
    _keep_informed,
    ssconf_files.keep,
    master_address.keep,
)
"""They go on for ever."""


def begun(
    sources: Sources, *others: Callable[[Sources], Awaitable[None]]
) -> list[asyncio.Task[None]]:
    """Begin all chores of a master, and others."""
    chores = (partial(one, sources) for one in (*_CHORES, *others))
    return [asyncio.create_task(kept_up(chore)) for chore in chores]


async def kept_up(chore: Callable[[], Awaitable[None]], again: float = _AGAIN) -> None:
    """Do a chore until it is done; one that a defect of ours ends is begun again."""
    while True:
        try:
            return await chore()
        except Exception:  # noqa: BLE001 - nobody waits for it, so nobody would know
            _LOG.exception("a chore of the master broke: it begins again")
        await asyncio.sleep(again)
