# SPDX-License-Identifier: BSD-2-Clause
"""The fake hypervisor: guests that are one small file each, for tests of scale.

Each verb reads and writes the file of its guest alone, so its cost does not grow with
their number. The rules are those of real guests, down to the order in a migration: the
source is marked as moved before the destination runs, so that no moment has two.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from moorage.errors import Failed, NotSupported
from moorage.model import Accelerator, ForeignGuest, GuestState
from moorage.model.processors import Processor, ProcessorModels
from moorage.protocol import Door, Moved, Report, Writing
from moorage.units import Mib

from .base import Card, Drive, GuestSpec, Target, seat

_SCHEME = "fake:"
_SUFFIX = ".json"


class _Record(Struct, frozen=True, kw_only=True):
    """What the file of a guest holds: the guest, and the sizes of its drives in MiB.

    `place` is where a guest that moved has gone; `mirrors` are the drives that are
    written twice.
    """

    guest: GuestState
    sizes: dict[str, int]
    place: str = ""
    mirrors: tuple[str, ...] = ()


class Fake:
    """Guests without processes.

    Parameters
    ----------
    run_dir
        Keeps a file a guest; a migration to another `Fake` reaches into its directory.
    """

    name = "fake"
    pretends = True

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir.absolute()
        self.run_dir.mkdir(parents=True, exist_ok=True)

    def console(self, uuid: str) -> str:
        """Return where the socket of a console would be; there is none."""
        return str(self.run_dir / f"{uuid}.console")

    async def connect(self, uuid: str, kind: str, ticket: str) -> socket:
        """Raise `NotSupported`: there is nobody to talk to."""
        del ticket
        raise NotSupported(f"guest {uuid} is not real: it has no {kind} console")

    async def tend(self) -> None:
        """Do nothing: these guests have no logs."""

    def accelerator(self) -> Accelerator | None:
        """Return None: nothing executes these guests."""
        return None

    async def look_at_accelerator(self, *, again: bool) -> Accelerator | None:
        """Return None: there is nothing to look at."""
        del again
        return None

    async def processor(self, given: Mapping[str, Any]) -> Processor | None:
        """Return None: these guests have no processors."""
        del given
        return None

    async def processor_models(self) -> ProcessorModels | None:
        """Return None: these guests have no processors."""
        return None

    async def guests(self) -> list[GuestState]:
        """Return every guest."""
        found = map(_read, sorted(self.run_dir.glob(f"*{_SUFFIX}")))
        return [record.guest for record in found if record]

    async def foreign(self) -> list[ForeignGuest]:
        """Return nothing: these guests have no processes."""
        return []

    async def adopt(self, spec: GuestSpec) -> None:
        """Raise `Failed`: there is nothing to take over."""
        raise Failed(f"guest {spec.name} has no process that Ganeti started here")

    async def end_foreign(self, uuid: str, name: str, timeout: float) -> None:  # noqa: ASYNC109
        """Do nothing: there is nothing that Ganeti started."""
        del uuid, name, timeout

    async def powered_off(self) -> tuple[str, ...]:
        """Return nothing: these guests have no will."""
        return ()

    async def find(self, uuid: str) -> GuestState | None:
        """Return one guest, without looking at the others."""
        record = _read(self._file(uuid))
        return record.guest if record else None

    def _file(self, uuid: str) -> Path:
        return self.run_dir / f"{uuid}{_SUFFIX}"

    def _get(self, uuid: str) -> _Record:
        record = _read(self._file(uuid))
        if record is None:
            raise Failed(f"guest {uuid} does not run on this node", guest=uuid)
        return record

    async def start(self, spec: GuestSpec) -> None:
        """Start a guest; one that runs is left alone."""
        record = _read(self._file(spec.uuid))
        if record is None:
            state = "paused" if spec.paused else "running"
            _write(self._file(spec.uuid), _born(spec, state))
        elif record.guest.state == "paused":
            self._put_state(record, "paused" if spec.paused else "running")
        elif record.guest.state != "running":
            raise Failed(f"guest {spec.name} is {record.guest.state} here")

    async def stop(self, uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        """End a guest; it takes no time."""
        del timeout
        self._file(uuid).unlink(missing_ok=True)

    async def reboot(self, uuid: str) -> None:
        """Reset a guest: nothing changes."""
        self._get(uuid)

    async def fill(self, uuid: str, memory: Mib, patience: float) -> None:
        """Let a guest have more or less of its memory."""
        del patience
        record = self._get(uuid)
        guest = replace(record.guest, now=memory)
        _write(self._file(uuid), replace(record, guest=guest))

    async def plug(self, uuid: str, drive: Drive) -> None:
        """Plug a drive; one that is plugged is left alone."""
        record = self._get(uuid)
        if drive.disk not in record.sizes:
            sizes = record.sizes | {drive.disk: drive.size}
            _write(self._file(uuid), _with_drives(record, sizes))

    async def unplug(self, uuid: str, disk: str) -> None:
        """Unplug a drive; one that is not plugged is left alone."""
        record = _read(self._file(uuid))
        if record and disk in record.sizes:
            sizes = {
                other: size for other, size in record.sizes.items() if other != disk
            }
            _write(self._file(uuid), _with_drives(record, sizes))

    async def plug_card(self, uuid: str, card: Card) -> None:
        """Plug a network card; one that is plugged is left alone."""
        record = self._get(uuid)
        cards = record.guest.cards or {}
        if card.uuid not in cards:
            at = seat(cards, card.index, len(cards) + 1) or 0
            self._put_cards(record, cards | {card.uuid: at})

    async def unplug_card(self, uuid: str, card: str) -> None:
        """Unplug a network card; one that is not plugged is left alone."""
        record = _read(self._file(uuid))
        cards = record.guest.cards if record else None
        if record and cards:
            left = {one: at for one, at in cards.items() if one != card}
            self._put_cards(record, left)

    def _put_cards(self, record: _Record, cards: dict[str, int]) -> None:
        guest = replace(record.guest, cards=cards)
        _write(self._file(guest.uuid), replace(record, guest=guest))

    async def arrived(self, uuid: str) -> int | None:
        """Do nothing: nobody looks for these guests, and they come in no time."""
        del uuid
        return 0

    async def resize(self, uuid: str, drive: Drive) -> None:
        """Make a drive larger."""
        record = self._get(uuid)
        if drive.disk not in record.sizes:
            raise Failed(f"guest {record.guest.name} does not have disk {drive.disk}")
        size = max(record.sizes[drive.disk], drive.size)
        sizes = record.sizes | {drive.disk: size}
        _write(self._file(uuid), _with_drives(record, sizes))

    async def throttle(self, uuid: str, disk: str, limits: Mapping[str, int]) -> None:
        """Do nothing: these guests ask nothing of their drives."""
        del uuid, disk, limits

    async def mirror(self, uuid: str, disk: str, new: Drive, rate: int) -> None:
        """Note that a drive is written twice; it takes no time."""
        del new, rate
        record = self._get(uuid)
        if disk not in record.sizes:
            raise Failed(f"guest {record.guest.name} does not have disk {disk}")
        mirrors = tuple({*record.mirrors, disk})
        _write(self._file(uuid), replace(record, mirrors=mirrors))

    async def follow_mirror(self, uuid: str, disk: str, report: Report) -> None:
        """Check that a drive is mirrored."""
        record = self._get(uuid)
        if disk not in record.mirrors:
            raise Failed(f"disk {disk} of guest {record.guest.name} has no mirror")
        report(record.sizes[disk], record.sizes[disk], "MiB", "mirrored")

    async def switch(self, uuid: str, disk: str) -> None:
        """Let a guest stand still."""
        record = self._get(uuid)
        if disk not in record.mirrors:
            raise Failed(f"disk {disk} of guest {record.guest.name} has no mirror")
        self._put_state(record, "paused")

    async def split(self, uuid: str, disk: str) -> None:
        """End a mirror."""
        await self.drop_mirror(uuid, disk)

    async def settle(self, uuid: str, disk: str, report: Report) -> None:
        """Let a guest go on."""
        del report
        await self.drop_mirror(uuid, disk)

    async def drop_mirror(self, uuid: str, disk: str) -> None:
        """Let a guest go on, its drive written once."""
        record = self._get(uuid)
        mirrors = tuple(one for one in record.mirrors if one != disk)
        self._put_state(replace(record, mirrors=mirrors), "running")

    def _put_state(self, record: _Record, state: str) -> None:
        guest = replace(record.guest, state=state)
        _write(self._file(guest.uuid), replace(record, guest=guest))

    async def dump(
        self,
        uuid: str,
        targets: Sequence[Target],
        writing: Writing,
        report: Report,
    ) -> None:
        """Refuse: these guests have no data."""
        del uuid, targets, writing, report
        raise NotSupported("guests of the fake hypervisor have no data to copy")

    async def end_dump(self, uuid: str) -> bool:
        """Do nothing: nothing is copied."""
        del uuid
        return False

    async def incoming(self, spec: GuestSpec, address: str = "") -> Door:
        """Prepare a guest that waits; its place is the directory, as ``fake:DIR``."""
        del address
        await self._must_be(spec.uuid, "incoming", "prepared for a migration")
        _write(self._file(spec.uuid), _born(spec, "incoming"))
        return Door(port=1, place=f"{_SCHEME}{self.run_dir}")

    async def migrate(
        self, uuid: str, address: str, door: Door, report: Report, *, live: bool = True
    ) -> Moved:
        """Send a guest to the directory that the door names; it runs there at once."""
        del address, live
        record = self._get(uuid)
        if record.guest.state == "running":
            self._leave(record, door.place)
        elif record.place != door.place:
            raise Failed(f"guest {record.guest.name} is {record.guest.state} here")
        memory = record.guest.memory
        report(memory, memory, "MiB", "pass 1")
        _arrive(_there(door.place, uuid))
        return Moved(total_ms=0, downtime_ms=0, transferred=memory)

    def _leave(self, record: _Record, place: str) -> None:
        guest = record.guest
        there = _read(_there(place, guest.uuid))
        if there is None or there.guest.state != "incoming":
            raise Failed(f"guest {guest.name} is not waited for at {place}")
        if set(there.sizes) != set(record.sizes):
            raise Failed(f"guest {guest.name} has other drives than {place} waits for")
        _write(_ready(_there(place, guest.uuid)), _in_state(there, "running"))
        moved = replace(_in_state(record, "moved"), place=place)
        _write(self._file(guest.uuid), moved)

    async def resume(self, uuid: str) -> None:
        """Give up a migration; refused when it is complete."""
        record = self._get(uuid)
        if record.guest.state != "running":
            raise Failed(f"guest {record.guest.name} is {record.guest.state} here")

    async def go_on(self, uuid: str) -> None:
        """Do nothing: guests run when they come."""

    async def abort(self, uuid: str) -> None:
        """End a guest that waits for a migration; refused if it runs."""
        await self._must_be(uuid, "incoming", "given up as a migration's destination")
        self._file(uuid).unlink(missing_ok=True)
        _ready(self._file(uuid)).unlink(missing_ok=True)

    async def discard(self, uuid: str) -> None:
        """Forget a guest that moved away; refused if it runs."""
        await self._must_be(uuid, "moved", "discarded")
        self._file(uuid).unlink(missing_ok=True)

    async def _must_be(self, uuid: str, state: str, verb: str) -> None:
        found = await self.find(uuid)
        if found and found.state != state:
            raise Failed(
                f"guest {found.name} is {found.state} here, so it cannot be {verb}",
                guest=uuid,
                state=found.state,
            )


def _there(place: str, uuid: str) -> Path:
    if not place.startswith(_SCHEME):
        raise Failed(f"'{place}' is not the place of a fake guest")
    return Path(place.removeprefix(_SCHEME)) / f"{uuid}{_SUFFIX}"


def _ready(file: Path) -> Path:
    """Return where the file of a guest that is about to arrive is.

    It is written before the guest leaves: a full disk keeps no real one from coming.
    """
    return file.with_suffix(".ready")


def _arrive(file: Path) -> None:
    with suppress(FileNotFoundError):
        _ready(file).rename(file)


def _in_state(record: _Record, state: str) -> _Record:
    return replace(record, guest=replace(record.guest, state=state))


def _born(spec: GuestSpec, state: str) -> _Record:
    guest = GuestState(
        uuid=spec.uuid,
        name=spec.name,
        state=state,
        memory=spec.memory,
        vcpus=spec.vcpus,
        cards=spec.seats,
    )
    record = _Record(guest=guest, sizes={})
    return _with_drives(record, {drive.disk: drive.size for drive in spec.drives})


def _with_drives(record: _Record, sizes: Mapping[str, int]) -> _Record:
    guest = replace(record.guest, disks=tuple(sizes))
    return replace(record, guest=guest, sizes=dict(sizes))


def _read(file: Path) -> _Record | None:
    try:
        return json.decode(file.read_bytes(), type=_Record)
    except FileNotFoundError:
        return None


def _write(file: Path, record: _Record) -> None:
    scratch = file.with_suffix(".part")
    scratch.write_bytes(json.encode(record))
    scratch.rename(file)
