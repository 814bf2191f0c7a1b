# SPDX-License-Identifier: BSD-2-Clause
"""The kvm hypervisor: guests are QEMU processes, driven through their monitors."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

from moorage.directories import GANETI
from moorage.errors import Failed
from moorage.model import Accelerator, ForeignGuest, GuestState
from moorage.model.hvparams import parameters
from moorage.model.processors import Processor, ProcessorModels
from moorage.node.hypervisors.base import Card, Drive, GuestSpec, Target
from moorage.node.hypervisors.wiring import Wiring
from moorage.node.machine.gate import Gate
from moorage.protocol import Door, Moved, Report, Writing
from moorage.units import Mib

from . import (
    arrival,
    ballooning,
    blockdev,
    cards,
    consoles,
    devices,
    dumping,
    ending,
    hotplug,
    lines,
    migration,
    mirror,
    netdev,
    observing,
    power,
    process,
    throttling,
    tls_psk,
    wakeup,
)
from .adopting import Ganetis
from .cables import Cables
from .guest_dir import Home
from .launching import Launcher
from .monitor import conversation
from .openings import Images
from .processors import Processors

PROGRAM = "qemu-system-x86_64"
"""Never ``kvm``: that one insists on hardware that may not be usable."""

_TENDING = 5.0
"""Seconds between two looks at the consoles' logs, and at the cards' filters."""


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

    Attributes
    ----------
    ganetis
        The guests here that Ganeti started.
    unsafe_live_emulation
        Whether emulated guests run while they are sent, though they may lose what they
        write: for tests of the live way where there is no KVM.
    """

    name = "kvm"
    pretends = False

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
        self._unplug_timeout = unplug_timeout
        self._cables = Cables(wiring or Wiring())
        self.unsafe_live_emulation = False
        self._gates: dict[str, Gate] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self.ganetis = Ganetis(Path(GANETI), self.run_dir)
        self._launcher = Launcher(self.run_dir, program, self._cables, images)
        self._processors = Processors(program, self._launcher.accelerators)

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
        home = self.ganetis.shown(uuid, kind)
        return await lines.connect(home, await self.find(uuid), kind, ticket)

    async def guests(self) -> list[GuestState]:
        """Return every guest that has a process here."""
        return [*await observing.guests(self.run_dir), *self.ganetis.guests()]

    async def foreign(self) -> list[ForeignGuest]:
        """Return the guests here whose processes Ganeti started."""
        return await self.ganetis.told()

    async def adopt(self, spec: GuestSpec) -> None:
        """Take over a guest that Ganeti started, while it runs."""
        await self.ganetis.adopt(spec)

    async def end_foreign(self, uuid: str, name: str, timeout: float) -> None:  # noqa: ASYNC109
        """Let a guest power itself off that Ganeti started, and nobody took over."""
        await self.ganetis.end(uuid, name, timeout)

    async def find(self, uuid: str) -> GuestState | None:
        """Return one guest, without looking at the others; None if it has none.

        A guest whose monitor gives no answer counts as paused: it has a process, and
        must not be started elsewhere.
        """
        return await observing.find(self._home(uuid)) or self.ganetis.find(uuid)

    async def powered_off(self) -> tuple[str, ...]:
        """Return the guests that powered themselves off; see :mod:`.ending`."""
        return ending.powered_off(self.run_dir)

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
        self.ganetis.known(spec.uuid, spec.name)
        if await self._launcher.launch(spec, incoming=False):
            if not spec.paused:
                await self._launcher.watch(spec)
            return
        found = await self.find(spec.uuid)
        if found and found.state == "paused" and not spec.paused:
            await wakeup.wake(self._home(spec.uuid), found)
        if found and found.state in ("incoming", "moved"):
            raise Failed(
                f"guest {spec.name} cannot start: its process here is {found.state}"
            )

    async def tend(self) -> None:
        """Find out the accelerator, and from then on keep order.

        Consoles' logs stay short, and network cards filtered.
        """
        await self._cables.keep_filtered(self.run_dir)
        await self._launcher.accelerators.verdict()
        while True:
            consoles.cut(self.run_dir)
            await self._cables.keep_filtered(self.run_dir)
            await asyncio.sleep(_TENDING)

    async def stop(self, uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        """Ask the guest to power down; after `timeout` seconds, end its process.

        A guest that does not run is left alone; 0 seconds is a pulled plug.
        """
        home = self.ganetis.known(uuid)
        async with self._cables.to_end(home):
            await power.shut_down(home, timeout)

    async def reboot(self, uuid: str) -> None:
        """Reset the guest without giving up its process; it runs afterwards."""
        home = self.ganetis.known(uuid)
        exits = parameters(home.spec().hvparams).reboot_behavior == "exit"
        await power.reset(partial(conversation, home), exits=exits)

    def accelerator(self) -> Accelerator | None:
        """Return what is known of this node's accelerator; None if nothing is yet."""
        return self._launcher.accelerators.known()

    async def look_at_accelerator(self, *, again: bool) -> Accelerator:
        """Return the accelerator, trying it if nobody has yet, or `again`."""
        if again:
            return await self._launcher.accelerators.look_again()
        return await self._launcher.accelerators.verdict()

    async def processor(self, given: Mapping[str, Any]) -> Processor:
        """Return what the processors of a guest with some parameters would be here."""
        return await self._processors.processor(given)

    async def processor_models(self) -> ProcessorModels:
        """Return the models of processors that guests can have here."""
        return await self._processors.models()

    async def plug(self, uuid: str, drive: Drive) -> None:
        """Hot-plug a drive; one that is plugged is left alone."""
        home = self.ganetis.ours(uuid, "a disk that is plugged")
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
        home = self.ganetis.ours(uuid, "a disk that is unplugged")
        if not home.has_process():
            return
        name, close = blockdev.device_name(disk), partial(hotplug.let_go, disk=disk)
        what, patience = f"disk {disk}", self._unplug_timeout
        await devices.let_go(home, name, close, what, patience, disk=disk)

    async def plug_card(self, uuid: str, card: Card) -> None:
        """Hot-plug a network card; one that is plugged is left alone."""
        home = self.ganetis.ours(uuid, "a network card that is plugged")
        spec = home.spec()
        given = parameters(spec.hvparams)
        async with conversation(home) as monitor:
            if card.uuid in (await cards.layout(monitor) or {}):
                return
            await cards.free_seat(monitor, card, given)
            async with self._cables.one_more(home, spec, card, given) as tap:
                await cards.plug(monitor, card, tap, given)

    async def unplug_card(self, uuid: str, card: str) -> None:
        """Hot-unplug a network card, and take its cable away.

        Raises
        ------
        Failed
            If the guest did not let go of it in time.
        """
        home = self.ganetis.ours(uuid, "a network card that is unplugged")
        if home.has_process():
            name, close = netdev.device_name(card), partial(cards.let_go, card=card)
            what, patience = f"network card {card}", self._unplug_timeout
            await devices.let_go(home, name, close, what, patience)
            await self._cables.unplugged(home, card)

    async def arrived(self, uuid: str) -> int | None:
        """Route to a guest that runs here now, and let it say where it is.

        Returns how long it took to come; see :func:`.arrival.took`.
        """
        home = self._home(uuid)
        lasted = arrival.took(home)
        await self._cables.arrived(home)
        async with conversation(home) as monitor:
            await monitor.ask("announce-self", **migration.ANNOUNCEMENT)
        return lasted

    async def resize(self, uuid: str, drive: Drive) -> None:
        """Tell the guest that the drive's data has grown to ``drive.size``."""
        home = self.ganetis.ours(uuid, "a disk that grows")
        given = parameters(home.spec().hvparams)
        async with conversation(home) as monitor:
            await hotplug.resize(monitor, drive, self._images, given)

    async def throttle(self, uuid: str, disk: str, limits: Mapping[str, int]) -> None:
        """Let a guest ask no more of a drive than its limits; of none, anything."""
        home = self.ganetis.ours(uuid, "a disk that is throttled")
        async with conversation(home) as monitor:
            await throttling.throttle(monitor, disk, limits)

    async def fill(self, uuid: str, memory: Mib, patience: float) -> None:
        """Let a guest have so much of its memory, and give the rest back."""
        home = self.ganetis.ours(uuid, "a change of its memory")
        await ballooning.fill(home, memory, patience)

    async def mirror(self, uuid: str, disk: str, new: Drive, rate: int) -> None:
        """Begin to copy a drive of a running guest to another one, and write to both.

        One that is mirrored already is left alone.
        """
        home = self.ganetis.ours(uuid, "a disk that gets other storage")
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

    async def dump(
        self,
        uuid: str,
        targets: Sequence[Target],
        writing: Writing,
        report: Report,
    ) -> None:
        """Copy drives of a running guest into files, all as they are at one moment."""
        talk = partial(conversation, self.ganetis.ours(uuid, "a copy of its disks"))
        await dumping.dump(talk, targets, writing, self._images, report)

    async def end_dump(self, uuid: str) -> bool:
        """End such copying, if it goes on; its :meth:`dump` fails then."""
        home = self._home(uuid)
        if not home.is_guest() or not home.has_process():
            return False
        async with conversation(home) as monitor:
            return await dumping.end(monitor)

    async def incoming(self, spec: GuestSpec, address: str = "") -> Door:
        """Prepare a guest that waits for a migration; return where to send it.

        A guest that waits already with the same specification goes on waiting; one
        with another is replaced.
        """
        home = self.ganetis.known(spec.uuid, spec.name)
        if home.has_process() and home.spec() != spec:
            await self.abort(spec.uuid)
        if not await self._launcher.launch(spec, incoming=True):
            await observing.only(home, "incoming", "prepared for a migration")
        gate = self._gates.get(spec.uuid)
        if gate is None or not gate.is_open():
            gate = self._gates[spec.uuid] = await self._open_gate(home, spec, address)
        async with conversation(home) as monitor:
            ports = await hotplug.layout(monitor)
        machine = observing.devices(home)
        return Door(
            port=gate.port, key=gate.key, ports=ports, tells=True, machine=machine
        )

    async def _open_gate(self, home: Home, spec: GuestSpec, address: str) -> Gate:
        talk = partial(conversation, home)
        async with talk() as monitor:
            key = await tls_psk.receive(monitor, home)
        first = parameters(spec.hvparams).migration_port
        begin = partial(self._begin, home)
        return await migration.wait(talk, address or self.address, first, key, begin)

    def _begin(self, home: Home) -> None:
        """Note that a guest is on its way here, and see to it when it has come."""
        arrival.begin(home)
        tell = partial(self.arrived, home.uuid)
        watch = arrival.watch(home, partial(conversation, home), tell)
        self._watches[home.uuid] = task = asyncio.create_task(watch)
        task.add_done_callback(lambda _: self._watches.pop(home.uuid, None))

    async def migrate(
        self, uuid: str, address: str, door: Door, report: Report, *, live: bool = True
    ) -> Moved:
        """Send a running guest to a door of the node at `address`, or carry on.

        Raises
        ------
        BadInput
            If it is no address, or no door that a guest goes through.
        """
        home = self.ganetis.ours(uuid, "a migration")
        given = parameters(home.spec().hvparams)
        unsafe = self.unsafe_live_emulation
        way = migration.Way(home, address, door, given, live, unsafe)
        return await migration.send(partial(conversation, home), way, report)

    async def resume(self, uuid: str) -> None:
        """Give up a migration: the guest runs here as before."""
        await migration.give_up(partial(conversation, self._home(uuid)))

    async def go_on(self, uuid: str) -> None:
        """Let a guest run that came here standing still, from an earlier version."""
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
        home = self._home(uuid)
        if await observing.only(home, state, verb):
            async with self._cables.to_end(home):
                await process.end(home)
