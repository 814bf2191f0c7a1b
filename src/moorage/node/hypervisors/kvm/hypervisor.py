# SPDX-License-Identifier: BSD-2-Clause
"""The kvm hypervisor: guests are QEMU processes, driven through their monitors."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from socket import socket
from typing import Protocol

from moorage.errors import Failed
from moorage.model import Accelerator, GuestState
from moorage.model.hvparams import Parameters, parameters
from moorage.model.standstill import NO_ANSWER
from moorage.node.hypervisors.base import Card, Drive, GuestSpec, Target
from moorage.node.wiring import Wiring
from moorage.protocol import Door, Moved, Report, Writing

from . import (
    accelerator,
    cards,
    consoles,
    dumping,
    ending,
    hotplug,
    lines,
    migration,
    mirror,
    process,
    tls_psk,
    wakeup,
)
from .accelerator import Accelerators
from .cables import Cables
from .commandline import arguments
from .gate import Gate
from .guest_dir import Home
from .monitor import Monitor, conversation
from .openings import Images
from .starting import Start, outfit

PROGRAM = "qemu-system-x86_64"
"""Never ``kvm``: that one insists on hardware that may not be usable."""

_CLAIMS, _CLAIM_PAUSE = 10, 0.02
_BUTTON = 5.0
_UNPLUG_TRY = 1.0
_WATCH = 5.0
_LOOK = 30.0
"""Seconds that a guest may take to say how it is: the others are told of with it."""
_CUTTING = 5.0
"""Seconds between two looks at the consoles' logs."""
_VERDICTS = "accelerator.json"


class Asking(Protocol):
    """Asks a guest to let go of something; returns whether it did."""

    async def __call__(self, monitor: Monitor, *, within: float) -> bool:
        """Ask it, for so many seconds."""


class Kvm:
    """Guests in QEMU processes; each has a directory below the run directory.

    Parameters
    ----------
    run_dir
        Keeps the guests' directories.
    address
        Where this node receives migrations.
    images
        Opens image files; without it, no guest gets one.
    wiring
        Connects network cards.
    program
        The QEMU to run.
    unplug_timeout
        How long a guest may take to let go of a drive, in seconds.
    """

    name = "kvm"

    def __init__(
        self,
        run_dir: Path,
        address: str = "127.0.0.1",
        images: Images | None = None,
        *,
        wiring: Wiring | None = None,
        program: str = PROGRAM,
        unplug_timeout: float = 30.0,
    ) -> None:
        self.run_dir = run_dir.absolute()
        self.address = address
        self._images = images
        self._program = program
        self._unplug_timeout = unplug_timeout
        self._cables = Cables(wiring or Wiring())
        self._gates: dict[str, Gate] = {}
        self._accelerators = Accelerators(self.run_dir / _VERDICTS, program)

    def _home(self, uuid: str) -> Home:
        return Home(self.run_dir, uuid)

    def console(self, uuid: str) -> str:
        """Return the path of the Unix socket of the serial console."""
        return str(self._home(uuid).file("console"))

    def channel(self, uuid: str) -> str:
        """Return the path of the Unix socket of the guest's channel."""
        return str(self._home(uuid).file("channel"))

    async def connect(self, uuid: str, kind: str, ticket: str) -> socket:
        """Return a connection to a guest's serial console, or to its screen.

        Raises
        ------
        NotSupported
            If it has none.
        WrongState
            If it does not run here, or somebody is at its console.
        """
        return await lines.connect(
            self._home(uuid), await self.find(uuid), kind, ticket
        )

    # -- what is there ------------------------------------------------------------

    async def guests(self) -> list[GuestState]:
        """Return every guest that has a process here."""
        if not self.run_dir.is_dir():
            return []
        names = sorted(path.name for path in self.run_dir.iterdir())
        uuids = [name for name in names if self._home(name).is_guest()]
        found = await asyncio.gather(*map(self.find, uuids))
        return [guest for guest in found if guest]

    async def powered_off(self) -> tuple[str, ...]:
        """Return the guests that powered themselves off; see :mod:`.ending`."""
        return ending.powered_off(self.run_dir)

    async def find(self, uuid: str) -> GuestState | None:
        """Return one guest, without looking at the others; None if it has none.

        A guest whose monitor gives no answer counts as paused: it has a process, and
        must not be started elsewhere.
        """
        home = self._home(uuid)
        if not home.has_process():
            return None
        spec = home.spec()
        state, cause, ports = "paused", NO_ANSWER, dict[str, int]()
        seats = spec.seats
        try:
            async with asyncio.timeout(_LOOK), conversation(home) as monitor:
                state, cause = await migration.standing(monitor)
                ports = await hotplug.layout(monitor)
                seats = await cards.layout(monitor)
        except (Failed, TimeoutError):
            state, cause = "paused", NO_ANSWER
            if not home.has_process():
                return None
        return GuestState(
            uuid=uuid,
            name=spec.name,
            state=state,
            cause=cause,
            memory=spec.memory,
            vcpus=spec.vcpus,
            disks=tuple(sorted(ports, key=ports.__getitem__)),
            ports=ports,
            cards=seats,
        )

    # -- start and stop -----------------------------------------------------------

    async def start(self, spec: GuestSpec) -> None:
        """Start a guest; one that runs is left alone, one that stands still is woken.

        But for one that is to stand still: it is left alone, too.

        Raises
        ------
        Failed
            With QEMU's words; or if the guest waits for a migration here, has moved
            away, or cannot go on.
        BadInput
            If a hypervisor parameter or a URI cannot be honoured.
        """
        if await self._launch(spec, incoming=False):
            if not spec.paused:
                await self._watch(spec)
            return
        found = await self.find(spec.uuid)
        if found and found.state == "paused" and not spec.paused:
            await wakeup.wake(self._home(spec.uuid), found)
        if found and found.state in ("incoming", "moved"):
            raise Failed(
                f"guest {spec.name} cannot start: its process here is {found.state}"
            )

    async def _launch(self, spec: GuestSpec, *, incoming: bool) -> bool:
        """Start a process for the guest; return False if it has one."""
        given = parameters(spec.hvparams)
        home = self._home(spec.uuid)
        held = await _claim(home)
        if held is None:
            await process.settled(home)
            return False
        try:
            home.empty()
            home.last_words.unlink(missing_ok=True)
            home.write_spec(spec)
            await self._run(home, spec, given, held, incoming=incoming)
        finally:
            os.close(held)
            started = home.has_process()  # if not, nothing is left of it
        return started

    async def _run(
        self,
        home: Home,
        spec: GuestSpec,
        given: Parameters,
        held: int,
        *,
        incoming: bool,
    ) -> None:
        accel = await self._accelerator(given, spec.memory)
        if shutil.which(self._program) is None:
            raise Failed(
                f"{self._program} is missing", hint="apt-get install qemu-system-x86"
            )
        async with self._cables.to_start(home, spec, given) as taps:
            start = Start(accel, taps, incoming)
            with outfit(home, spec, given, self._images, start) as one:
                words = arguments(spec, given, one.launch)
                argv = [*one.user, self._program, *words]
                await process.launch(home, spec.name, argv, [held, *one.keep])
                try:
                    await lines.furnish(home, given, one.port)
                except BaseException:
                    await process.end(home)
                    raise

    async def tend(self) -> None:
        """Find out the accelerator, and keep the consoles' logs short from then on."""
        await self._accelerators.verdict()
        while True:
            consoles.cut(self.run_dir)
            await asyncio.sleep(_CUTTING)

    # -- the accelerator ----------------------------------------------------------

    def accelerator(self) -> Accelerator | None:
        """Return what is known of this node's accelerator; None if nothing is yet."""
        return self._accelerators.known()

    async def look_at_accelerator(self, *, again: bool) -> Accelerator:
        """Return the accelerator, trying it if nobody has yet, or `again`."""
        if again:
            return await self._accelerators.look_again()
        return await self._accelerators.verdict()

    async def _accelerator(self, given: Parameters, memory: int) -> str:
        wanted = given.accelerator
        if wanted == "auto":
            wanted = (await self._accelerators.verdict(given.kernel_path)).name
        return wanted if wanted == "kvm" else accelerator.emulated(memory)

    async def _watch(self, spec: GuestSpec) -> None:
        """Watch a first guest on a weak proof; start it again if KVM stopped it."""
        given = parameters(spec.hvparams)
        if given.accelerator != "auto":
            return
        verdict = await self._accelerators.verdict(given.kernel_path)
        if verdict.name != "kvm" or verdict.proof != "firmware":
            return
        home = self._home(spec.uuid)
        cause = await wakeup.stopped_within(home, _WATCH)
        self._accelerators.watched(given.kernel_path, cause)
        if cause:
            await process.end(home)
            await self._launch(spec, incoming=False)

    async def stop(self, uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        """Ask the guest to power down; after `timeout` seconds, end its process.

        A guest that does not run is left alone; 0 seconds is a pulled plug.
        """
        home = self._home(uuid)
        clock = asyncio.get_running_loop().time
        end = clock() + timeout
        async with self._cables.to_end(home):
            while (left := end - clock()) > 0 and await self._press_button(home):
                # pressed again and again: a guest that is starting does not feel it
                if await process.gone(home, min(left, _BUTTON)):
                    return
            await process.end(home)

    async def _press_button(self, home: Home) -> bool:
        """Press the power button; return whether the guest is one that can feel it."""
        if not home.has_process():
            return False
        try:
            async with conversation(home) as monitor:
                running = await migration.state(monitor) == "running"
                await monitor.ask("system_powerdown")
        except Failed:
            return False
        return running

    async def reboot(self, uuid: str) -> None:
        """Reset the guest without giving up its process; it runs afterwards."""
        async with conversation(self._home(uuid)) as monitor:
            await monitor.ask("system_reset")
            if await migration.state(monitor) == "paused":
                await monitor.ask("cont")

    # -- drives -------------------------------------------------------------------

    async def plug(self, uuid: str, drive: Drive) -> None:
        """Hot-plug a drive; one that is plugged is left alone."""
        home = self._home(uuid)
        given = parameters(home.spec().hvparams)
        async with conversation(home) as monitor:
            await hotplug.plug(monitor, drive, self._images, given)

    async def unplug(self, uuid: str, disk: str) -> None:
        """Hot-unplug a drive and let go of its data before returning.

        Raises
        ------
        Failed
            If the guest did not let go of it in time, with what the guest does.
        """
        home = self._home(uuid)
        if not home.has_process():
            return
        ask = partial(hotplug.ask_to_unplug, disk=disk)
        await self._let_go(home, ask, f"disk {disk}", disk=disk)

    async def _let_go(self, home: Home, ask: Asking, what: str, **facts: str) -> None:
        """Ask a guest to let go of something, until it does or takes too long."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._unplug_timeout
        while (left := end - clock()) > 0:
            async with conversation(home) as monitor:
                if await ask(monitor, within=min(left, _UNPLUG_TRY)):
                    return
                state, cause = await migration.standing(monitor)
        raise Failed(
            f"guest {home.spec().name} ({cause or state}) did not let go of {what} in "
            f"{self._unplug_timeout:.0f} s: a guest that is starting, hangs or has no "
            "system cannot",
            hint="try again later, or shut the instance down first",
            guest=home.uuid,
            **facts,
        )

    # -- network cards ------------------------------------------------------------

    async def plug_card(self, uuid: str, card: Card) -> None:
        """Hot-plug a network card; one that is plugged is left alone."""
        home = self._home(uuid)
        spec = home.spec()
        given = parameters(spec.hvparams)
        async with conversation(home) as monitor:
            if card.uuid in (await cards.layout(monitor) or {}):
                return
            await cards.free_seat(monitor, card)
            async with self._cables.one_more(home, spec, card, given) as tap:
                await cards.plug(monitor, card, tap, given)

    async def unplug_card(self, uuid: str, card: str) -> None:
        """Hot-unplug a network card, and take its cable away.

        Raises
        ------
        Failed
            If the guest did not let go of it in time.
        """
        home = self._home(uuid)
        if home.has_process():
            ask = partial(cards.ask_to_unplug, card=card)
            await self._let_go(home, ask, f"network card {card}")
            await self._cables.unplugged(home, card)

    async def arrived(self, uuid: str) -> None:
        """Route to a guest that runs here now, and let it say where it is."""
        home = self._home(uuid)
        await self._cables.arrived(home)
        async with conversation(home) as monitor:
            await monitor.ask("announce-self", **migration.ANNOUNCEMENT)

    async def resize(self, uuid: str, drive: Drive) -> None:
        """Tell the guest that the drive's data has grown to ``drive.size``."""
        home = self._home(uuid)
        given = parameters(home.spec().hvparams)
        async with conversation(home) as monitor:
            await hotplug.resize(monitor, drive, self._images, given)

    async def mirror(self, uuid: str, disk: str, new: Drive, rate: int) -> None:
        """Begin to copy a drive of a running guest to another one, and write to both.

        One that is mirrored already is left alone.
        """
        home = self._home(uuid)
        talk = partial(conversation, home)
        given = parameters(home.spec().hvparams)
        await mirror.start(talk, disk, new, rate, self._images, given)

    async def follow_mirror(self, uuid: str, disk: str, report: Report) -> None:
        """Wait until a drive and what it is mirrored to are equal."""
        await mirror.follow(partial(conversation, self._home(uuid)), disk, report)

    async def switch(self, uuid: str, disk: str) -> None:
        """Let a guest stand still, and give it what its drive was mirrored to."""
        await mirror.switch(partial(conversation, self._home(uuid)), disk)

    async def split(self, uuid: str, disk: str) -> None:
        """End a mirror: what was written besides is a copy of this moment."""
        await mirror.split(partial(conversation, self._home(uuid)), disk)

    async def settle(self, uuid: str, disk: str, report: Report) -> None:
        """Let a guest that was switched go on, and close what the drive was before."""
        await mirror.settle(partial(conversation, self._home(uuid)), disk, report)

    async def drop_mirror(self, uuid: str, disk: str) -> None:
        """Give a mirror up, switched or not: the guest goes on with what it had."""
        await mirror.drop(partial(conversation, self._home(uuid)), disk)

    # -- dumps --------------------------------------------------------------------

    async def dump(
        self,
        uuid: str,
        targets: Sequence[Target],
        writing: Writing,
        report: Report,
    ) -> None:
        """Copy drives of a running guest into files, all as they are at one moment."""
        talk = partial(conversation, self._home(uuid))
        await dumping.dump(talk, targets, writing, self._images, report)

    async def end_dump(self, uuid: str) -> bool:
        """End such copying, if it goes on; its :meth:`dump` fails then."""
        home = self._home(uuid)
        if not home.is_guest() or not home.has_process():
            return False
        async with conversation(home) as monitor:
            return await dumping.end(monitor)

    # -- migration ----------------------------------------------------------------

    async def incoming(self, spec: GuestSpec, address: str = "") -> Door:
        """Prepare a guest that waits for a migration; return where to send it.

        A guest that waits already with the same specification goes on waiting; one
        with another is replaced.
        """
        home = self._home(spec.uuid)
        if home.has_process() and home.spec() != spec:
            await self.abort(spec.uuid)
        if not await self._launch(spec, incoming=True):
            await self._only(spec.uuid, "incoming", "prepared for a migration")
        gate = self._gates.get(spec.uuid)
        if gate is None or not gate.is_open():
            gate = self._gates[spec.uuid] = await self._open_gate(home, spec, address)
        async with conversation(home) as monitor:
            ports = await hotplug.layout(monitor)
        return Door(port=gate.port, key=gate.key, ports=ports)

    async def _open_gate(self, home: Home, spec: GuestSpec, address: str) -> Gate:
        talk = partial(conversation, home)
        async with talk() as monitor:
            key = await tls_psk.receive(monitor, home)
        first = parameters(spec.hvparams).migration_port
        return await migration.wait(talk, address or self.address, first, key)

    async def migrate(
        self, uuid: str, address: str, door: Door, report: Report, *, live: bool = True
    ) -> Moved:
        """Send a running guest to a door of the node at `address`, or carry on.

        Raises
        ------
        BadInput
            If it is no address, or no door that a guest goes through.
        """
        home = self._home(uuid)
        given = parameters(home.spec().hvparams)
        way = migration.Way(home, address, door, given, live)
        return await migration.send(partial(conversation, home), way, report)

    async def resume(self, uuid: str) -> None:
        """Give up a migration: the guest runs here as before."""
        await migration.give_up(partial(conversation, self._home(uuid)))

    async def go_on(self, uuid: str) -> None:
        """Let a guest run that came here standing still."""
        await migration.go_on(partial(conversation, self._home(uuid)))

    async def abort(self, uuid: str) -> None:
        """End a guest that waits for a migration; raises `Failed` if it runs."""
        gate = self._gates.pop(uuid, None)
        if gate:
            gate.close()
        await self._end(uuid, "incoming", "given up as a migration's destination")

    async def discard(self, uuid: str) -> None:
        """End the process of a guest that moved away; raises `Failed` if it runs."""
        await self._end(uuid, "moved", "discarded")

    async def _end(self, uuid: str, state: str, verb: str) -> None:
        if await self._only(uuid, state, verb):
            async with self._cables.to_end(self._home(uuid)):
                await process.end(self._home(uuid))

    async def _only(self, uuid: str, state: str, verb: str) -> bool:
        """Whether the guest has a process; it must be in a state, or `Failed`."""
        found = await self.find(uuid)
        if found and found.state != state:
            raise Failed(
                f"guest {found.name} is {found.state} here, so it cannot be {verb}",
                guest=uuid,
                state=found.state,
            )
        return found is not None


async def _claim(home: Home) -> int | None:
    """Return the lock of a guest without a process; None if it has one.

    Whoever only looks holds the lock for a moment, hence more than one attempt.
    """
    for _ in range(_CLAIMS):
        held = home.claim()
        if held is not None or home.pid():
            return held
        await asyncio.sleep(_CLAIM_PAUSE)
    return None
