# SPDX-License-Identifier: BSD-2-Clause
"""How a master comes to its store: it waits for room, and for the lead."""

import asyncio
import contextlib
import logging
import os
import time
from functools import partial
from threading import Thread

from moorage.api.luxi_server import LuxiServer
from moorage.copies import CommitLog
from moorage.errors import Conflict, MoorageError, NotMaster, Refused, Unreachable
from moorage.store import ConfigStore, StoreError, store_at
from moorage.units import counted

from .lead import Opened
from .paths import MasterPlaces

_LOG = logging.getLogger(__name__)
STORE_LOST = 75
"""Exit status when the store cannot be written; ``EX_TEMPFAIL``: start it again."""
_FOLLOWS = 0.2
"""Seconds between two looks of a master that waits for the lead."""
_BARRED = 2.0
"""Seconds in which others get the lead that this master may not use."""
_LAST_WORDS = 0.1
"""Seconds that a log gets to take why the lead is lost; less than a lease has left."""


async def opened(
    places: MasterPlaces, server: LuxiServer, stopped: asyncio.Event
) -> Opened | None:
    """Take the lead; wait as long as the store cannot be opened or written.

    Returns None when the master is told to end meanwhile.
    """
    pause, since = 0.5, time.monotonic()
    # One for all looks: where etcd.json is moved away meanwhile, no other one is made.
    log = CommitLog(store_at(places.store, _lead_lost))
    while not stopped.is_set():
        try:
            return log, *await ConfigStore.open(log)
        except StoreError as error:
            await log.close()
            if error.lasting:
                raise
            _LOG.warning("%s; trying again in %g s", error.message, pause)
            server.excuse = partial(_waiting, places, error.message, since)
        except Conflict as error:  # somebody was faster, or the lead is lost by now
            await log.close()
            _LOG.warning("%s; trying again in %g s", error.message, pause)
            server.excuse = partial(_waiting, places, error.message, since)
        except Refused as error:
            if "led" not in error.facts:
                await log.close()
                raise
            server.excuse = partial(_follows, error)
            pause, since = _FOLLOWS, time.monotonic()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), pause)
        pause = min(pause * 2, 8.0)
    await log.close()
    return None


def _waiting(places: MasterPlaces, why: str, since: float) -> MoorageError:
    so_far = counted(int(time.monotonic() - since), "second")
    there = "etcdctl endpoint status" if places.etcd.exists() else ""
    return Unreachable(
        f"the master waits until it can write, for {so_far} now: {why}",
        hint=there or f"make room in {places.root}",
        waits=True,
    )


def _follows(led: Refused) -> MoorageError:
    return NotMaster(
        f"this master waits for the lead: {led.message}",
        hint="gnt-cluster getmaster names the node where it leads: type it there",
        **led.facts,
    )


async def stopped_while_barred(
    server: LuxiServer, error: MoorageError, stopped: asyncio.Event
) -> bool:
    """Tell whoever asks why this master may not lead, while others get their turn.

    Returns whether it was told to end meanwhile.
    """
    server.excuse = lambda: error
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), _BARRED)
    return stopped.is_set()


def _lead_lost(why: str) -> None:
    """End at once: another master may lead in a moment, and its word is the one."""
    try:
        # A log may hang, or somebody may hold its lock: this thread waits for neither.
        told = "%s: ending, to follow whoever leads"
        telling = Thread(target=_LOG.critical, args=(told, why), daemon=True)
        telling.start()
        telling.join(_LAST_WORDS)
    finally:
        os._exit(STORE_LOST)
