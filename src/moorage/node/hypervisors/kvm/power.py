# SPDX-License-Identifier: BSD-2-Clause
"""The buttons of a guest: power and reset."""

import asyncio

from moorage.errors import Failed, WrongState

from . import guest_state, migration, process
from .guest_dir import Home
from .migration import Talk
from .monitor import conversation

_BUTTON = 5.0


async def shut_down(home: Home, timeout: float) -> None:  # noqa: ASYNC109
    """Ask a guest to power down; after `timeout` seconds, end its process."""
    clock = asyncio.get_running_loop().time
    end = clock() + timeout
    while (left := end - clock()) > 0 and await _press_button(home):
        # pressed again and again: a guest that is starting does not feel it
        if await process.gone(home, min(left, _BUTTON)):
            return
    await process.end(home)


async def _press_button(home: Home) -> bool:
    """Press the power button; return whether the guest is one that can feel it."""
    if not home.has_process():
        return False
    try:
        async with conversation(home) as monitor:
            running = await guest_state.state(monitor) == "running"
            await monitor.ask("system_powerdown")
    except Failed:
        return False
    return running


async def reset(talk: Talk, *, exits: bool = False) -> None:
    """Reset a guest without giving up its process; it runs afterwards.

    It is looked at first: of one that has moved QEMU says, once it is reset, that it
    waits to be started.

    Parameters
    ----------
    exits
        Whether QEMU ends when the guest reboots. The firmware of one that is reset
        does so once more: QEMU cannot be told to let that pass.

    Raises
    ------
    WrongState
        If QEMU would end.
    Failed
        If it is on its way to another node, or not here.
    """
    async with talk() as monitor:
        if await guest_state.migrates(monitor):
            raise Failed(
                f"guest {monitor.guest} is on its way in a migration, so it cannot be "
                "reset"
            )
        now = await guest_state.state(monitor)
        if now not in ("running", "paused"):
            raise Failed(f"guest {monitor.guest} is {now}, so it cannot be reset")
        if exits:
            raise WrongState(
                f"guest {monitor.guest} ends when it is reset: it was started with "
                "reboot_behavior=exit",
                hint=f"gnt-instance reboot -t hard {monitor.guest}",
            )
        await monitor.ask("system_reset")
        await migration.run_again(monitor)
