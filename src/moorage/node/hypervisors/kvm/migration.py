# SPDX-License-Identifier: BSD-2-Clause
"""Live migration between two QEMUs, as seen from the source.

A guest runs at its destination as soon as it is whole there: its QEMU lets it, whether
or not it stood still when it was sent, and nobody's word is waited for. So the source
must never run again once the other side can have everything:

- The stream flows one way, QEMU's return path stays off. With it, a source that waits
  for the destination's word would run again when that word is lost.
- The last byte of the stream is the one that makes the guest whole (see `_WHOLE`). The
  source has failed if its kernel did not take all of it: then the other side cannot
  have that byte. If the kernel took all of it, the source has completed, for good.
- A migration under way is given up by breaking its connection, and then that is how it
  ends, too. ``migrate_cancel`` asks nobody: between the last byte and QEMU's own word
  that all is sent, it lets the guest run again.
- ``cont`` comes only in a conversation that has seen that no migration is under way,
  and then that the guest is not one that has moved (:func:`run_again`).

A node that loses power, or an agent or a master that dies, changes nothing in this.
(ADR 0044.)
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6, SHUT_RDWR, socket

from moorage.errors import BadInput, Failed
from moorage.model.hvparams import NOT_EARLIER, Parameters
from moorage.model.standstill import told
from moorage.node.machine.gate import Gate, knock, listen
from moorage.node.text import clean
from moorage.protocol import Door, Moved, Report
from moorage.units import MIB

from . import emulation, guest_state, observing, shapes, tls_psk
from .guest_dir import Home
from .hotplug import layout
from .monitor import Monitor, Refusal
from .shapes import Migration

ANNOUNCEMENT = {"initial": 50, "max": 550, "rounds": 5, "step": 100}
"""When a guest says where it is: five times, with pauses in milliseconds that grow."""
SETUP = 30.0
"""Seconds that a destination may take for its TLS; it needs milliseconds."""
_SAID = 2000
"""Characters of QEMU's reason."""
_POLL = 0.05
_SETTLED = 5.0
"""Seconds that QEMU may take to bring a guest out of a migration that ended."""
_LANDING = 300.0
"""Seconds that a destination may read on when the source has sent all."""
_PORTS, _TRIES = 1 << 16, 256
_NAME = "migration"
_WHOLE = {"path": "/machine", "property": "suppress-vmdesc", "value": True}
"""Without this QEMU sends, behind what makes the guest whole, a description of it for
debuggers: a source that could not send that would run again, and so would both."""
_TRICKLE = 40960
"""Bytes a second at which no guest gets anywhere; below ten QEMU has no limit."""

Talk = Callable[[], AbstractAsyncContextManager[Monitor]]
"""Opens a short conversation with the guest's monitor."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where a guest goes, and how fast.

    Attributes
    ----------
    live
        Whether it runs meanwhile, if it can.
    unsafe
        Whether an emulated one does, too (:mod:`.emulation`).

    Raises
    ------
    BadInput
        If the address or the door are none that a guest goes to.
    """

    home: Home
    address: str
    door: Door
    given: Parameters
    live: bool = True
    unsafe: bool = False

    def __post_init__(self) -> None:
        """Refuse a way that does not lead to a node's QEMU and nowhere else."""
        family(self.address)
        if self.door.place or not self.door.key:
            raise BadInput("a guest goes to a port, behind a key, and nowhere else")


def family(address: str) -> int:
    """Return the family of the only thing that a guest goes to: a literal address.

    Raises
    ------
    BadInput
        If it is none.
    """
    try:
        found = ip_address(address)
    except ValueError:
        raise BadInput(f"a guest goes to an IP address, not to '{address}'") from None
    if isinstance(found, IPv6Address) and found.scope_id is not None:
        raise BadInput(f"a guest does not go to '{address}': it names an interface")
    return AF_INET6 if isinstance(found, IPv6Address) else AF_INET


async def wait(
    talk: Talk, address: str, first: int, key: str, begin: Callable[[], None]
) -> Gate:
    """Let a guest wait for the holder of a key, at the first free port.

    Parameters
    ----------
    begin
        Is called when that one is there.
    """

    async def take(connection: socket) -> None:
        begin()
        async with talk() as monitor:
            await _hand(monitor, connection)
            await monitor.ask("migrate-incoming", uri=f"fd:{_NAME}")

    ports = range(first, min(first + _TRIES, _PORTS))
    return Gate(listen(family(address), address, ports), key, take)


async def send(talk: Talk, way: Way, report: Report) -> Moved:
    """Send a guest on its way, or carry on with a migration that is under way."""
    connection = None
    async with talk() as monitor:
        if way.live and await emulation.may_lose_writes(monitor):
            way = replace(way, live=way.unsafe)
            if way.unsafe:
                report(0, 0, "log", emulation.WARNING.format(monitor.guest))
        if await guest_state.state(
            monitor
        ) != "moved" and not await guest_state.migrates(monitor):
            connection = await _begin(monitor, way)
    with connection or nullcontext():
        stats = await _followed(talk, connection, report)
    return await _result(talk, stats, way)


async def _followed(talk: Talk, connection: socket | None, report: Report) -> Migration:
    """Tell of a migration's progress, and return QEMU's last figures.

    A destination that takes the connection and then says nothing is hung up on: QEMU
    itself would wait for ever. Nothing of the guest has been sent by then, so it can
    run nowhere else.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + SETUP
    async for stats in _progress(talk):
        _tell(stats, report)
        if connection and stats.status == "setup" and clock() > end:
            with suppress(OSError):  # it ended this very moment
                connection.shutdown(SHUT_RDWR)
    return stats


async def _begin(monitor: Monitor, way: Way) -> socket:
    """Let a guest begin to go; return the connection on which it does."""
    now, cause = await guest_state.with_cause(monitor)
    if now != "running":
        still = f" ({told(cause)})" if cause else ""
        raise Failed(f"guest {monitor.guest} is {now}{still}, so it cannot migrate")
    ports = await layout(monitor)
    if ports != way.door.ports:
        raise Failed(
            f"guest {monitor.guest} has other drives than the destination waits for: "
            f"{_label(ports)} here, {_label(way.door.ports)} there"
        )
    _check_devices(monitor, way)
    converge = {"capability": "auto-converge", "state": True}
    await monitor.ask("migrate-set-capabilities", capabilities=[converge])
    await monitor.ask(
        "migrate-set-parameters",
        max_bandwidth=way.given.migration_bandwidth * MIB,
        downtime_limit=way.given.migration_downtime,
    )
    try:
        return await _go(monitor, way)
    except Failed as error:
        raise _stays(monitor, way, error.message) from error


def _check_devices(monitor: Monitor, way: Way) -> None:
    """Raise `Failed` if another machine waits: QEMU would see it when it is too late.

    An earlier agent does not say what it made, nor make what it does not know.
    """
    here = observing.devices(way.home)
    for name, there in (NOT_EARLIER | way.door.machine).items():
        if name in here and here[name] != there:
            raise Failed(
                f"guest {monitor.guest} has another machine than the destination: "
                f"{name} is '{here[name]}' here, and '{there}' there",
                hint="if the other node has an earlier Moorage, upgrade it first",
            )


async def _go(monitor: Monitor, way: Way) -> socket:
    where = family(way.address), way.address, way.door.port
    connection = await knock(*where, way.door.key, asks=way.door.tells)
    try:
        await tls_psk.send(monitor, way.home, way.door.key)
        await _hand(monitor, connection)
        await monitor.ask("qom-set", **_WHOLE)
        if not way.live:
            await monitor.ask("stop")
        await monitor.ask("migrate", uri=f"fd:{_NAME}")
    except BaseException:
        connection.close()
        with suppress(Failed):
            await run_again(monitor)
        raise
    return connection


async def _hand(monitor: Monitor, connection: socket) -> None:
    """Give QEMU a connection that does not make it wait.

    QEMU makes what it is given a blocking one. During TLS it would stand still with
    its monitor, and before long with its guest, while the other side says nothing.
    """
    await monitor.give(_NAME, connection.fileno())
    connection.setblocking(False)


def _label(ports: dict[str, int]) -> str:
    return ",".join(f"{disk}@{port}" for disk, port in sorted(ports.items())) or "none"


async def _progress(talk: Talk) -> AsyncIterator[Migration]:
    """Yield QEMU's figures, the last time when the migration is no longer under way."""
    while True:
        async with talk() as monitor:
            stats = await monitor.read(Migration, "query-migrate")
        yield stats
        if stats.status not in guest_state.UNDER_WAY:
            return
        await asyncio.sleep(_POLL)


def _tell(stats: Migration, report: Report) -> None:
    ram = stats.ram
    if ram:
        total, left = ram.total // MIB, ram.remaining // MIB
        report(total - left, total, "MiB", f"pass {ram.dirty_sync_count}")


async def _result(talk: Talk, stats: Migration, way: Way) -> Moved:
    if stats.status == "completed":
        stats = await _figures(talk, stats)
        return Moved(
            total_ms=stats.total_time,
            downtime_ms=stats.downtime if way.live else stats.total_time,
            transferred=(stats.ram or shapes.NO_RAM).transferred // MIB,
        )
    async with talk() as monitor:
        await run_again(monitor)
        raise _stays(monitor, way, clean(stats.error_desc[:_SAID]) or stats.status)


async def _figures(talk: Talk, stats: Migration) -> Migration:
    """Return the figures of a migration that is complete.

    QEMU says that it is a moment before it computes them: they are 0 until then.
    """
    for _ in range(round(_SETTLED / _POLL)):
        if stats.total_time:
            break
        await asyncio.sleep(_POLL)
        async with talk() as monitor:
            stats = await monitor.read(Migration, "query-migrate")
    return stats


def _stays(monitor: Monitor, way: Way, cause: str) -> Failed:
    return Failed(
        f"guest {monitor.guest} did not get to {way.address} port {way.door.port}: "
        f"{cause}; it runs here as before"
    )


async def run_again(monitor: Monitor) -> None:
    """Let a guest whose migration failed run; QEMU mostly does so by itself.

    One whose migration is under way, or complete, is left alone. The order matters: no
    other migration can begin during this conversation, so what the guest does is looked
    at when none is under way any more.

    QEMU says that a migration failed a moment before the guest is out of it: what it
    does then is not what it is going to do.
    """
    if await guest_state.migrates(monitor):
        return
    for _ in range(round(_SETTLED / _POLL)):
        status = (await monitor.read(shapes.Status, "query-status")).status
        if status != "finish-migrate":
            break
        await asyncio.sleep(_POLL)
    if await guest_state.state(monitor) == "paused":
        await monitor.ask("cont")


async def go_on(talk: Talk) -> None:
    """Let a guest run that came here standing still: an earlier version started it.

    The source has sent all of it by now, and this side may be reading yet: until it is
    through, QEMU hears no word that the guest is to run.

    Raises
    ------
    Failed
        If it does not come to its end.
    """
    async with talk() as monitor:
        await _landed(monitor)
        await run_again(monitor)


async def _landed(monitor: Monitor) -> None:
    for _ in range(round(_LANDING / _POLL)):
        status = (await monitor.read(shapes.Status, "query-status")).status
        if status != "inmigrate" or not await guest_state.migrates(monitor):
            return
        await asyncio.sleep(_POLL)
    raise Failed(f"guest {monitor.guest} has not arrived whole within {_LANDING:g} s")


async def give_up(talk: Talk) -> None:
    """Stop a migration, and leave the guest running here, unless it has moved by then.

    Raises
    ------
    Failed
        If the guest has moved, or is one that waits for a migration.
    """
    async with talk() as monitor:
        await _check_here(monitor)
        if await guest_state.migrates(monitor):
            await _break_off(monitor)
    async for _ in _progress(talk):
        pass
    async with talk() as monitor:
        await _check_here(monitor)
        await run_again(monitor)


async def _check_here(monitor: Monitor) -> None:
    now = await guest_state.state(monitor)
    if now in _NOT_HERE:
        raise Failed(_NOT_HERE[now].format(monitor.guest), state=now)


async def _break_off(monitor: Monitor) -> None:
    """Break a migration's connection, so that QEMU tells whether all had been sent.

    While TLS is being made QEMU has nothing to break, and nothing has been sent. It may
    begin to send at any moment; but not a whole guest, at such a rate.
    """
    await monitor.ask("migrate-set-parameters", max_bandwidth=_TRICKLE)
    now = await monitor.read(Migration, "query-migrate")
    if now.status == "setup":
        await monitor.ask("migrate_cancel")
        return
    with suppress(Refusal):  # it ended this very moment
        await monitor.ask("yank", instances=[{"type": "migration"}])


_NOT_HERE = {
    "moved": "guest {} has moved: it runs on the other node, and must not run here too",
    "incoming": "guest {} only waits for a migration here",
}
