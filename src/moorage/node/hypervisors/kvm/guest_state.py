# SPDX-License-Identifier: BSD-2-Clause
"""What a guest does, as its QEMU tells."""

from . import shapes
from .monitor import Monitor
from .shapes import Migration

UNDER_WAY = frozenset(
    {"setup", "active", "device", "pre-switchover", "wait-unplug", "cancelling"}
)


async def state(monitor: Monitor) -> str:
    """Return what the guest does: running, paused, incoming or moved."""
    return (await with_cause(monitor))[0]


async def with_cause(monitor: Monitor) -> tuple[str, str]:
    """Return what the guest does, and QEMU's word for why a paused one stands still."""
    status = await _status(monitor)
    if status == "paused":
        if await migrates(monitor):
            return "running", ""  # it stands still while it goes
        status = await _status(monitor)  # what was under way has just ended, maybe
    if status in ("postmigrate", "finish-migrate"):
        migration = await monitor.read(Migration, "query-migrate")
        if migration.status == "completed":
            return "moved", ""
    known = {"running": "running", "finish-migrate": "running", "inmigrate": "incoming"}
    found = known.get(status, "paused")
    return found, status if found == "paused" else ""


async def _status(monitor: Monitor) -> str:
    return (await monitor.read(shapes.Status, "query-status")).status


async def migrates(monitor: Monitor) -> bool:
    """Whether a migration of the guest is under way."""
    found = await monitor.read(Migration, "query-migrate")
    return found.status in UNDER_WAY
