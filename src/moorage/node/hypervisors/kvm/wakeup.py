# SPDX-License-Identifier: BSD-2-Clause
"""Guests that QEMU has stopped: waking them, and watching for it."""

import asyncio
from contextlib import suppress

from moorage.errors import Failed
from moorage.model import GuestState
from moorage.model.standstill import WAKEABLE, remedy, told

from . import guest_state, migration
from .guest_dir import Home
from .monitor import conversation

_AWAKE = 1.0
"""Seconds after which a request that failed before would have failed again."""
_POLL = 0.1


async def wake(home: Home, guest: GuestState) -> None:
    """Let a guest that stands still go on.

    Raises
    ------
    Failed
        If it cannot, or stops again at once.
    """
    if guest.cause not in WAKEABLE:
        raise _still(guest, guest.cause)
    async with conversation(home) as monitor:
        await migration.run_again(monitor)
    again = await stopped_within(home, _AWAKE)
    if again:
        raise _still(guest, again)


def _still(guest: GuestState, cause: str) -> Failed:
    return Failed(
        f"guest {guest.name} stands still ({told(cause)})",
        hint=remedy(cause, guest.name),
        guest=guest.uuid,
        cause=cause,
    )


async def stopped_within(home: Home, seconds: float) -> str:
    """Watch a guest; return why QEMU stopped it, or nothing if it did not.

    A guest whose process ended has stopped by itself.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while clock() < end and home.has_process():
        with suppress(Failed):
            async with conversation(home) as monitor:
                state, cause = await guest_state.with_cause(monitor)
            if state == "paused":
                return cause
        await asyncio.sleep(_POLL)
    return ""
