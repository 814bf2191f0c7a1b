# SPDX-License-Identifier: BSD-2-Clause
"""A guest is asked to let go of something that it has, again and again."""

import asyncio
from typing import Protocol

from moorage.errors import Failed

from . import migration
from .guest_dir import Home
from .monitor import Monitor, conversation

_TRY = 1.0


class Asking(Protocol):
    """Asks a guest to let go of something; returns whether it did."""

    async def __call__(self, monitor: Monitor, *, within: float) -> bool:
        """Ask it, for so many seconds."""


async def let_go(
    home: Home, ask: Asking, what: str, patience: float, **facts: str
) -> None:
    """Ask a guest to let go of something, until it does or takes too long."""
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while (left := end - clock()) > 0:
        async with conversation(home) as monitor:
            if await ask(monitor, within=min(left, _TRY)):
                return
            state, cause = await migration.standing(monitor)
    raise Failed(
        f"guest {home.spec().name} ({cause or state}) did not let go of {what} in "
        f"{patience:.0f} s: a guest that is starting, hangs or has no "
        "system cannot",
        hint="try again later, or shut the instance down first",
        guest=home.uuid,
        **facts,
    )
