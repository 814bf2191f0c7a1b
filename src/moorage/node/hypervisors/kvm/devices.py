# SPDX-License-Identifier: BSD-2-Clause
"""The devices of a running guest, as its QEMU knows them: drives and network cards."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from moorage.errors import Failed

from . import guest_state, shapes, slots
from .guest_dir import Home
from .monitor import Monitor, Refusal, conversation

PLACE = "/machine/peripheral"
_IDE = re.compile(r"/ide\.([01])\Z", re.ASCII)
_TRY = 1.0
_POLL = 0.02
_FUNCTION = 3
"""Bits of a function's number."""
_LATE = ("already in the process", "not found")
"""What QEMU says of a device that is going, or has just gone."""


async def plugged(monitor: Monitor) -> list[str]:
    """Return the names of the devices that are plugged, ports among them."""
    listed = await monitor.read(shapes.Children, "qom-list", path=PLACE)
    return [item.name for item in listed]


async def number_at(
    monitor: Monitor, device: str, port: re.Pattern[str] | None = None
) -> int | None:
    """Return the number of the port or place that a device is in; None if it has gone.

    Parameters
    ----------
    port
        Finds the number in the path of a port; None for slots of a pc alone.
    """
    try:
        bus = await monitor.read(shapes.Path, "qom-get", **_of(device, "parent_bus"))
        if bus.endswith(f"/{slots.BUS}"):
            return await _number(monitor, device, "addr") >> _FUNCTION
        if port and (ide := _IDE.search(bus)):
            return 2 * int(ide[1]) + await _number(monitor, device, "unit")
        if port and bus.endswith(f"/{slots.SCSI}.0"):
            return await _number(monitor, device, "scsi-id")
    except Refusal:
        return None
    found = port.search(bus) if port else None
    return int(found[1]) if found else None


async def _number(monitor: Monitor, device: str, name: str) -> int:
    return await monitor.read(shapes.Devfn, "qom-get", **_of(device, name))


def _of(device: str, name: str) -> dict[str, str]:
    return {"path": f"{PLACE}/{device}", "property": name}


async def taken(monitor: Monitor) -> set[int]:
    """Return the slots of a pc that its devices have, as far as they have names."""
    found = [await number_at(monitor, name) for name in await plugged(monitor)]
    return {slot for slot in found if slot is not None}


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
