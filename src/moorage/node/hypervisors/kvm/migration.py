# SPDX-License-Identifier: BSD-2-Clause
"""Live migration between two QEMUs, as seen from the source.

The stream flows one way: QEMU's return path stays off. With it, a source that waits
for the destination's word would run again when that word is lost, while the guest runs
over there: two writers. Without it a source that has sent everything never runs again,
and one that has not was never understood by the destination.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from moorage.errors import Failed
from moorage.model.hvparams import Parameters
from moorage.model.standstill import told
from moorage.node.hypervisors.base import Moved, Report

from .drives import layout
from .monitor import Monitor, Refusal

UNDER_WAY = frozenset(
    {"setup", "active", "device", "pre-switchover", "wait-unplug", "cancelling"}
)
_POLL = 0.05
_MIB = 20


class Talk(Protocol):
    """Opens a short conversation with the guest's monitor."""

    def __call__(self) -> AbstractAsyncContextManager[Monitor]:
        """Open it."""


async def state(monitor: Monitor) -> str:
    """Return what the guest does: running, paused, incoming or moved."""
    return (await standing(monitor))[0]


async def standing(monitor: Monitor) -> tuple[str, str]:
    """Return what the guest does, and QEMU's word for why a paused one stands still."""
    status = str((await monitor.ask("query-status"))["status"])
    if status == "postmigrate":
        migration = await monitor.ask("query-migrate")
        if migration.get("status") == "completed":
            return "moved", ""
    known = {"running": "running", "finish-migrate": "running", "inmigrate": "incoming"}
    found = known.get(status, "paused")
    return found, status if found == "paused" else ""


def label(uri: str, ports: dict[str, int]) -> str:
    """Return the target that names an address and the drives that wait there."""
    drives = ",".join(f"{disk}@{port}" for disk, port in sorted(ports.items()))
    return f"{uri}#{drives}"


async def open_door(monitor: Monitor, address: str, first: int, tries: int) -> str:
    """Let a waiting guest listen at the first free port; return its URI.

    Raises
    ------
    Failed
        If none of the ports could be taken.
    """
    host = f"[{address}]" if ":" in address else address
    said = "no port was tried"
    for port in range(first, first + tries):
        try:
            await monitor.ask("migrate-incoming", uri=f"tcp:{host}:{port}")
        except Refusal as error:
            said = error.said
        else:
            return f"tcp:{host}:{port}"
    raise Failed(
        f"guest {monitor.guest} found no free port for its migration on {address} "
        f"from {first} on: {said}"
    )


async def send(talk: Talk, target: str, given: Parameters, report: Report) -> Moved:
    """Send a guest to `target`, or carry on with a migration that is under way."""
    async with talk() as monitor:
        if await state(monitor) != "moved" and not await _is_under_way(monitor):
            await _begin(monitor, target, given)
    async for stats in _progress(talk):
        _tell(stats, report)
    return await _result(talk, stats, target)


async def _is_under_way(monitor: Monitor) -> bool:
    return (await monitor.ask("query-migrate")).get("status") in UNDER_WAY


async def _begin(monitor: Monitor, target: str, given: Parameters) -> None:
    now, cause = await standing(monitor)
    if now != "running":
        still = f" ({told(cause)})" if cause else ""
        raise Failed(f"guest {monitor.guest} is {now}{still}, so it cannot migrate")
    uri, _, _ = target.partition("#")
    ports = await layout(monitor)
    if label(uri, ports) != target:
        raise Failed(
            f"guest {monitor.guest} has other drives than the destination waits for: "
            f"{label('', ports)[1:] or 'none'} here, "
            f"{target.partition('#')[2] or 'none'} there",
            target=target,
        )
    converge = {"capability": "auto-converge", "state": True}
    await monitor.ask("migrate-set-capabilities", capabilities=[converge])
    await monitor.ask(
        "migrate-set-parameters",
        max_bandwidth=given.migration_bandwidth << _MIB,
        downtime_limit=given.migration_downtime,
    )
    await monitor.ask("migrate", uri=uri)


async def _progress(talk: Talk) -> AsyncIterator[dict[str, Any]]:
    """Yield QEMU's figures, the last time when the migration is no longer under way."""
    while True:
        async with talk() as monitor:
            stats = await monitor.ask("query-migrate")
        yield stats
        if stats.get("status") not in UNDER_WAY:
            return
        await asyncio.sleep(_POLL)


def _tell(stats: dict[str, Any], report: Report) -> None:
    ram = stats.get("ram")
    if ram:
        total, left = ram["total"] >> _MIB, ram["remaining"] >> _MIB
        report(total - left, total, "MiB", f"pass {ram.get('dirty-sync-count', 1)}")


async def _result(talk: Talk, stats: dict[str, Any], target: str) -> Moved:
    if stats.get("status") == "completed":
        return Moved(
            total_ms=stats.get("total-time", 0),
            downtime_ms=stats.get("downtime", 0),
            transferred=stats.get("ram", {}).get("transferred", 0) >> _MIB,
        )
    async with talk() as monitor:
        await run_again(monitor)
        raise Failed(
            f"guest {monitor.guest} did not get to {target.partition('#')[0]}: "
            f"{stats.get('error-desc', stats.get('status'))}; it runs here as before",
            target=target,
        )


async def run_again(monitor: Monitor) -> None:
    """Let a guest whose migration failed run; QEMU mostly does so by itself."""
    if await state(monitor) == "paused":
        await monitor.ask("cont")


async def give_up(talk: Talk) -> None:
    """Stop a migration, and leave the guest running here.

    Raises
    ------
    Failed
        If the guest has moved, or is one that waits for a migration.
    """
    async with talk() as monitor:
        if await _is_under_way(monitor):
            await monitor.ask("migrate_cancel")
    async for _ in _progress(talk):
        pass
    async with talk() as monitor:
        now = await state(monitor)
        if now in ("moved", "incoming"):
            raise Failed(_NOT_HERE[now].format(monitor.guest), state=now)
        await run_again(monitor)


_NOT_HERE = {
    "moved": "guest {} has moved: it runs on the other node, and must not run here too",
    "incoming": "guest {} only waits for a migration here",
}
