# SPDX-License-Identifier: BSD-2-Clause
"""A simulated hypervisor: guests are records, and nobody may write to a disk twice."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import PurePosixPath
from socket import socket, socketpair
from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import replace

from moorage.errors import Failed, WrongState
from moorage.model import Accelerator, ForeignGuest, GuestState, hvparams
from moorage.model.processors import (
    WHATEVER,
    Processor,
    ProcessorModels,
    model_of,
)
from moorage.node.hypervisors.base import Card, Drive, GuestSpec, Target, seat
from moorage.protocol import Door, Moved, Report, Writing
from moorage.units import Mib

from . import contents, exports, screens
from .storage import San


class TwoWriters(AssertionError):
    """Two guests could write to one disk: what must never happen, happened."""


class SimHypervisor:
    """The hypervisor of one simulated node.

    Parameters
    ----------
    node
        Its name.
    san
        Where the guests of all nodes are recorded.

    Attributes
    ----------
    executes
        What the node says of its accelerator.
    keeps_memory
        Whether guests give none back: they have no driver.
    models
        What the node says of models of processors.
    sends_as_before
        Whether a guest that is not sent live stands still when it has arrived, until it
        is told to go on: an earlier version started it.
    """

    name = "kvm"
    pretends = False

    def __init__(self, node: str, san: San) -> None:
        self._node = node
        self._san = san
        self.executes: Accelerator | None = None
        self.keeps_memory = False
        self.models: ProcessorModels | None = None
        self.sends_as_before = False
        self._talking: set[asyncio.Task[None]] = set()

    async def guests(self) -> list[GuestState]:
        """Return every guest of this node."""
        mine = [key for key in self._san.guests if key.startswith(f"{self._node} ")]
        found = map(self._san.guests.get, mine)  # other processes' nodes end theirs
        return [convert(one["state"], GuestState) for one in found if one]

    async def foreign(self) -> list[ForeignGuest]:
        """Return the guests of this node that Ganeti started."""
        return [
            ForeignGuest(
                uuid=one.uuid,
                name=one.name,
                pid=1,
                adopted=one.origin == "adopted",
                monitor=self._ganetis(one.uuid).get("monitor", ""),
                afar=self._ganetis(one.uuid).get("afar", ()),
            )
            for one in await self.guests()
            if one.origin
        ]

    async def adopt(self, spec: GuestSpec) -> None:
        """Take over a guest, if it has the disks that are on record."""
        guest = await self._there(spec.uuid)
        if guest.origin != "foreign":
            return
        told = _state(spec, "running")
        if set(guest.disks) != set(told.disks):
            raise Failed(f"guest {guest.name} has disks that are not on record")
        self._put(
            replace(told, cards=None, machine={}, origin="adopted"),
            drives=_places(spec.drives),
            limits={one.disk: one.limits for one in spec.drives},
        )

    async def end_foreign(self, uuid: str, name: str, timeout: float) -> None:  # noqa: ASYNC109
        """End a guest that Ganeti started, but for one that stays."""
        found = await self.find(uuid)
        if found is None or found.origin != "foreign":
            return
        if self._ganetis(uuid).get("stays"):
            raise Failed(f"guest {name} is there after {timeout:g} s")
        self._san.guests.pop(f"{self._node} {uuid}", None)

    def _ganetis(self, uuid: str) -> dict[str, Any]:
        """Return what is odd about a process of Ganeti's: ``monitor``, ``afar`` …."""
        found: dict[str, Any] = self._san.guests[f"{self._node} {uuid}"]
        odd: dict[str, Any] = found.get("ganetis", {})
        return odd

    async def powered_off(self) -> tuple[str, ...]:
        """Return the guests of this node that powered themselves off."""
        mine = [key.split(" ") for key in self._san.ended]
        return tuple(uuid for node, uuid in mine if node == self._node)

    async def find(self, uuid: str) -> GuestState | None:
        """Return one guest."""
        found = self._san.guests.get(f"{self._node} {uuid}")
        return convert(found["state"], GuestState) if found else None

    async def start(self, spec: GuestSpec) -> None:
        """Start a guest; one that runs is left alone."""
        found = await self.find(spec.uuid)
        stands = found is not None and found.state == "paused" and spec.paused
        if found is None or (found.state != "running" and not stands):
            self._san.ended.pop(f"{self._node} {spec.uuid}", None)
            self._put(
                _state(spec, "paused" if spec.paused else "running"),
                drives=_places(spec.drives),
                limits={one.disk: one.limits for one in spec.drives},
                wires=_wires(spec.cards),
            )

    async def stop(self, uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        """End a guest."""
        del timeout
        found = await self.find(uuid)
        if found and found.origin == "foreign":
            raise WrongState(f"guest {found.name} runs in a process of Ganeti's")
        self._san.guests.pop(f"{self._node} {uuid}", None)

    async def reboot(self, uuid: str) -> None:
        """Reset a guest."""
        await self._there(uuid)

    async def fill(self, uuid: str, memory: Mib, patience: float) -> None:
        """Let a guest have more or less of its memory, unless it is to keep it."""
        guest = await self._there(uuid)
        if self.keeps_memory:
            raise Failed(
                f"guest {guest.name} has {guest.holds} MiB, and not {memory}, after "
                f"{patience:.0f} s"
            )
        self._put(replace(guest, now=memory))

    async def plug(self, uuid: str, drive: Drive) -> None:
        """Plug a drive."""
        guest = await self._there(uuid)
        if drive.disk not in guest.disks:
            new = replace(guest, disks=(*guest.disks, drive.disk))
            self._put(new, drives=_places([drive]), limits={drive.disk: drive.limits})

    async def unplug(self, uuid: str, disk: str) -> None:
        """Unplug a drive; a guest that is gone has none."""
        guest = await self.find(uuid)
        if guest:
            left = tuple(one for one in guest.disks if one != disk)
            self._put(replace(guest, disks=left))

    async def plug_card(self, uuid: str, card: Card) -> None:
        """Plug a network card."""
        guest = await self._there(uuid)
        cards = guest.cards or {}
        if card.uuid not in cards:
            at = seat(cards, card.index, len(cards) + 1) or 0
            new = replace(guest, cards=cards | {card.uuid: at})
            self._put(new, wires=_wires([card]))

    async def unplug_card(self, uuid: str, card: str) -> None:
        """Unplug a network card; a guest that is gone has none."""
        guest = await self.find(uuid)
        if guest and guest.cards:
            left = {one: n for one, n in guest.cards.items() if one != card}
            self._put(replace(guest, cards=left))

    async def arrived(self, uuid: str) -> int | None:
        """Return how long it took to come."""
        del uuid
        return 20

    async def resize(self, uuid: str, drive: Drive) -> None:
        """Show a guest the new size."""
        guest = await self._there(uuid)
        if drive.disk not in guest.disks:
            raise Failed(f"guest {guest.name} has no disk {drive.disk}")
        self._put(guest, sizes={drive.disk: drive.size})

    async def throttle(self, uuid: str, disk: str, limits: Mapping[str, int]) -> None:
        """Note what a guest may ask of a drive."""
        guest = await self._there(uuid)
        if guest.origin == "adopted":
            raise WrongState(f"guest {guest.name} runs as Ganeti started it")
        if disk not in guest.disks:
            raise Failed(f"guest {guest.name} has no disk {disk}")
        self._put(guest, limits={disk: dict(limits)})

    async def mirror(self, uuid: str, disk: str, new: Drive, rate: int) -> None:
        """Begin to write a drive's data to another volume, too."""
        del rate
        guest = await self._there(uuid)
        if disk not in guest.disks or guest.state != "running":
            raise Failed(f"guest {guest.name} has no disk {disk} that could be copied")
        place = _places([new])[new.disk]
        self._put(guest, mirrors={disk: {"to": place, "switched": False}})

    async def follow_mirror(self, uuid: str, disk: str, report: Report) -> None:
        """Copy what there was."""
        guest, mirror = await self._there(uuid), self._mirror(uuid, disk)
        if mirror is None:
            raise Failed(f"disk {disk} of guest {guest.name} has no mirror")
        report(50, 100, "MiB", "mirrored")
        await asyncio.sleep(0)
        self._copy(self._drives(uuid)[disk], mirror["to"])

    async def switch(self, uuid: str, disk: str) -> None:
        """Let a guest stand still, with its drive on the other volume."""
        guest, mirror = await self._there(uuid), self._mirror(uuid, disk)
        if mirror is None:
            raise Failed(f"disk {disk} of guest {guest.name} has no mirror")
        if not mirror["switched"]:
            self._exchange(guest, disk, mirror, switched=True)

    def _exchange(
        self, guest: GuestState, disk: str, mirror: dict[str, Any], *, switched: bool
    ) -> None:
        """Let a guest that stands still have the other one of two equal volumes."""
        old = self._drives(guest.uuid)[disk]
        self._copy(old, mirror["to"])
        still = replace(guest, state="paused")
        new = {disk: {"to": old, "switched": switched}}
        self._put(still, drives={disk: mirror["to"]}, mirrors=new)

    async def split(self, uuid: str, disk: str) -> None:
        """End a mirror, both volumes being equal."""
        guest, mirror = await self._there(uuid), self._mirror(uuid, disk)
        if mirror:
            source = self._drives(uuid)[disk]
            self._copy(source, mirror["to"])
        self._put(guest, mirrors={disk: None})

    async def settle(self, uuid: str, disk: str, report: Report) -> None:
        """Let a guest go on."""
        del report
        guest = await self._there(uuid)
        self._put(replace(guest, state="running"), mirrors={disk: None})

    async def drop_mirror(self, uuid: str, disk: str) -> None:
        """Let a guest go on with the drive that it had, once all drives are so."""
        guest, mirror = await self._there(uuid), self._mirror(uuid, disk)
        if mirror and mirror["switched"]:
            self._exchange(guest, disk, mirror, switched=False)
        others = (self._mirror(uuid, one) for one in guest.disks if one != disk)
        still = any(one and one["switched"] for one in others)
        state = "paused" if still else "running"
        self._put(replace(guest, state=state), mirrors={disk: None})

    def _copy(self, source: str, target: str) -> None:
        said = contents.copied(self._san, self._node, source, target)
        if said.code:
            raise Failed(said.stdout)

    def _drives(self, uuid: str) -> dict[str, str]:
        """Return where the disks' data are."""
        found: dict[str, str] = self._san.guests[f"{self._node} {uuid}"]["drives"]
        return found

    def _mirror(self, uuid: str, disk: str) -> dict[str, Any] | None:
        known = self._san.guests[f"{self._node} {uuid}"].get("mirrors", {})
        found: dict[str, Any] | None = known.get(disk)
        return found

    async def dump(
        self,
        uuid: str,
        targets: Sequence[Target],
        writing: Writing,
        report: Report,
    ) -> None:
        """Copy what drives hold into files that are there."""
        del writing
        guest = await self._there(uuid)
        drives = self._san.guests[f"{self._node} {uuid}"]["drives"]
        for target in targets:
            if target.disk not in guest.disks:
                raise Failed(f"guest {guest.name} has no disk {target.disk}")
            report(50, 100, "MiB", "copy the running guest's disks")
            held = exports.contents(self._san, self._node, drives[target.disk])
            key = self._san.key(self._node, target.path)
            self._san.files[key] |= held

    async def end_dump(self, uuid: str) -> bool:
        """Do nothing: copying takes no time."""
        del uuid
        return False

    async def incoming(self, spec: GuestSpec, address: str = "") -> Door:
        """Prepare a guest that waits."""
        del address
        found = await self.find(spec.uuid)
        if found is None:
            self._put(
                _state(spec, "incoming"),
                drives=_places(spec.drives),
                limits={one.disk: one.limits for one in spec.drives},
                wires=_wires(spec.cards),
            )
        elif found.state != "incoming":
            raise Failed(f"guest {spec.name} runs on {self._node} already")
        return Door(port=1, place=f"sim:{self._node}")

    async def migrate(
        self, uuid: str, address: str, door: Door, report: Report, *, live: bool = True
    ) -> Moved:
        """Move a guest, as one step that is either done or not."""
        del address
        guest = await self._there(uuid)
        there = f"{door.place.removeprefix('sim:')} {uuid}"
        if guest.state != "moved":
            waiting = self._san.guests.get(there)
            if waiting is None or waiting["state"]["state"] != "incoming":
                raise Failed(f"nobody waits for guest {guest.name} at {door.place}")
            if waiting["state"]["memory"] != guest.memory:
                raise Failed(f"guest {guest.name} has other memory than who waits")
            report(50, 100, "MiB", "memory")
            await asyncio.sleep(0)
            self._put(replace(guest, state="moved"))
            waits = self.sends_as_before and not live
            state = ("paused", "paused") if waits else ("running", "")
            now = dict(zip(("state", "cause"), state, strict=True))
            kept = {"disks": guest.disks, "now": guest.now}
            arrived = waiting["state"] | now | kept
            self._san.guests[there] = waiting | {"state": arrived}
            self._check(guest.disks)
        return Moved(total_ms=20, downtime_ms=2, transferred=100)

    async def resume(self, uuid: str) -> None:
        """Give up a migration."""
        guest = await self._there(uuid)
        if guest.state == "moved":
            raise Failed(f"guest {guest.name} has moved away from {self._node}")

    async def go_on(self, uuid: str) -> None:
        """Let a guest run that came standing still, from an earlier version."""
        guest = await self._there(uuid)
        self._put(replace(guest, state="running", cause=""))

    async def abort(self, uuid: str) -> None:
        """End a guest that waits."""
        guest = await self.find(uuid)
        if guest and guest.state != "incoming":
            raise Failed(f"guest {guest.name} runs on {self._node}")
        self._san.guests.pop(f"{self._node} {uuid}", None)

    async def discard(self, uuid: str) -> None:
        """End what is left of a guest that moved."""
        guest = await self.find(uuid)
        if guest and guest.state == "running":
            raise Failed(f"guest {guest.name} runs on {self._node}")
        self._san.guests.pop(f"{self._node} {uuid}", None)

    def console(self, uuid: str) -> str:
        """Return a path that nobody listens on."""
        return f"/sim/{self._node}/{uuid}/console"

    async def connect(self, uuid: str, kind: str, ticket: str) -> socket:
        """Return a connection to a guest that says its name, and then what it hears.

        A screen has a colour instead, and another one with each key.
        """
        del ticket
        guest = await self.find(uuid)
        if guest is None or guest.state != "running":
            raise WrongState(f"guest {uuid} does not run on node {self._node}")
        ours, theirs = socketpair()
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        talk = (
            _shown(theirs, guest.name)
            if kind == "vnc"
            else _echo(theirs, f"{guest.name} {kind}: ")
        )
        self._talking.add(loop.create_task(talk))
        return ours

    async def tend(self) -> None:
        """Do nothing: these guests have no logs."""

    def accelerator(self) -> Accelerator | None:
        """Return what the simulation was told to say."""
        return self.executes

    async def look_at_accelerator(self, *, again: bool) -> Accelerator | None:
        """Return the same."""
        del again
        return self.executes

    async def processor(self, given: Mapping[str, Any]) -> Processor | None:
        """Return what the simulation was told to lack of a model."""
        known = self.models
        name = model_of(str(given.get("cpu_type", "")))
        if known is None or name in WHATEVER:
            return None
        if name not in known.lacking:
            why = f"unable to find CPU model '{name}'"
            return Processor(accelerator=known.accelerator, problem=why)
        lacking = known.lacking[name]
        return Processor(accelerator=known.accelerator, lacking=lacking)

    async def processor_models(self) -> ProcessorModels | None:
        """Return what the simulation was told to say."""
        return self.models

    async def _there(self, uuid: str) -> GuestState:
        await asyncio.sleep(0)
        guest = await self.find(uuid)
        if guest is None:
            raise WrongState(f"no guest {uuid} on {self._node}")
        return guest

    def _put(self, guest: GuestState, **news: dict[str, Any]) -> None:
        """Record a guest; `news` are drives' places and sizes, and cards' wires."""
        key = f"{self._node} {guest.uuid}"
        known: dict[str, Any] = self._san.guests.get(key, {})
        merged = {name: known.get(name, {}) | new for name, new in news.items()}
        self._san.guests[key] = known | merged | {"state": to_builtins(guest)}
        if guest.state == "running":
            self._check(guest.disks)

    def _check(self, disks: tuple[str, ...]) -> None:
        """Look at every guest of every node: a disk has one writer at most."""
        for disk in disks:
            writers = [
                key
                for key, found in self._san.guests.items()
                if found["state"]["state"] == "running"
                and disk in found["state"]["disks"]
            ]
            if len(writers) > 1:
                told = f"disk {disk} has two writers: {writers}"
                self._san.broken.append(told)
                raise TwoWriters(told)


def _places(drives: Iterable[Drive]) -> dict[str, str]:
    """Return where each disk's data is: a file's path, or the name of a volume."""
    return {
        drive.disk: drive.where.path or PurePosixPath(drive.where.uris["kvm"]).name
        for drive in drives
    }


def _wires(cards: Iterable[Card]) -> dict[str, list[str]]:
    """Return how each card is connected: mode, link, VLAN, and its filter, if any."""
    return {
        card.uuid: [card.mode, card.link, card.vlan, *filter(None, [card.filter])]
        for card in cards
    }


def _state(spec: GuestSpec, state: str) -> GuestState:
    return GuestState(
        uuid=spec.uuid,
        name=spec.name,
        state=state,
        memory=spec.memory,
        vcpus=spec.vcpus,
        cause="prelaunch" if state == "paused" else "",
        disks=tuple(drive.disk for drive in spec.drives),
        cards=spec.seats,
        machine=(machine := hvparams.of_machine(spec.hvparams)),
        now=spec.memory if machine["balloon"] else None,
    )


async def _shown(line: socket, name: str) -> None:
    """Show a screen until nobody looks."""
    reader, writer = await asyncio.open_connection(sock=line)
    with closing(writer), suppress(OSError, EOFError, KeyError):
        await screens.show(reader, writer, name)


async def _echo(line: socket, greeting: str) -> None:
    """Greet, then say everything again until nobody listens."""
    loop = asyncio.get_running_loop()
    with line, suppress(OSError):
        await loop.sock_sendall(line, greeting.encode())
        while data := await loop.sock_recv(line, 4096):
            await loop.sock_sendall(line, data)
