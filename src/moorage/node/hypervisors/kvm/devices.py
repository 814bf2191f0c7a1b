# SPDX-License-Identifier: BSD-2-Clause
"""The devices of a running guest, as its QEMU knows them: drives and network cards."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from moorage.errors import Failed

from . import guest_state, shapes
from .guest_dir import Home
from .monitor import Monitor, Refusal, conversation

PLACE = "/machine/peripheral"
_TRY = 1.0
_POLL = 0.02
_LATE = ("already in the process", "not found")
"""What QEMU says of a device that is going, or has just gone."""


async def plugged(monitor: Monitor) -> list[str]:
    """Return the names of the devices that are plugged, ports among them."""
    listed = await monitor.read(shapes.Children, "qom-list", path=PLACE)
    return [item.name for item in listed]


async def number_at(monitor: Monitor, device: str, port: re.Pattern[str]) -> int | None:
    """Return the number of the port that a device is in; None if it has just gone.

    Parameters
    ----------
    port
        Finds the number in the path of a port.
    """
    words = {"path": f"{PLACE}/{device}", "property": "parent_bus"}
    try:
        found = port.search(await monitor.read(shapes.Path, "qom-get", **words))
    except Refusal:
        return None
    return int(found[1]) if found else None


async def let_go(
    home: Home,
    device: str,
    close: Callable[[Monitor], Awaitable[None]],
    what: str,
    patience: float,
    **facts: str,
) -> None:
    """Ask a guest to let go of a device, until it does or takes too long.

    It is asked again and again: a guest that is starting loses the first requests.

    Parameters
    ----------
    close
        Closes what the device had, when it is gone.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while (left := end - clock()) > 0:
        async with conversation(home) as monitor:
            if await _lets_go(monitor, device, min(left, _TRY)):
                await close(monitor)
                return
            state, cause = await guest_state.with_cause(monitor)
    raise Failed(
        f"guest {home.spec().name} ({cause or state}) did not let go of {what} in "
        f"{patience:.0f} s: a guest that is starting, hangs or has no "
        "system cannot",
        hint="try again later, or shut the instance down first",
        guest=home.uuid,
        **facts,
    )


async def _lets_go(monitor: Monitor, device: str, within: float) -> bool:
    """Ask the guest once; return whether it has let go after so many seconds."""
    if device in await plugged(monitor):
        try:
            await monitor.ask("device_del", id=device)
        except Refusal as error:
            if not any(words in error.said for words in _LATE):
                raise
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while device in await plugged(monitor):
        if loop.time() > end:
            return False
        await asyncio.sleep(_POLL)
    return True
