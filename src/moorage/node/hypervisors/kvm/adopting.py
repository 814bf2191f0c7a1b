# SPDX-License-Identifier: BSD-2-Clause
"""A guest of Ganeti's is taken over while it runs: its directory is all that is made.

Its process goes on as it is. The directory has the sockets of Ganeti's by our names,
and notes the process, so the guest is seen, stopped and consoled as any other. What
needs the devices that we would have given it is refused until its next start.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from socket import AF_UNIX, socket

from msgspec.structs import replace

from moorage.errors import Failed, WrongState
from moorage.model import ForeignGuest, GuestState
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.machine.sockets import short_path
from moorage.units import Mib

from . import shapes
from .foreign import Found, at_path, everyone, has_open, lives, opened
from .guest_dir import ADOPTED, Home
from .monitor import Line, conversation

_GREETING = 1.0
"""Seconds that it may take to greet."""
_BUTTON = 5.0
"""Seconds until the power button is pressed again: not all who start feel it."""
_LOOK = 0.05
"""Seconds between two looks at a process that is about to end."""
_OFF = "shutdown"
"""What a guest does that is off, where its QEMU stays (``-no-shutdown``)."""
_LOCAL = frozenset({"file", "host_device", "host_cdrom", "raw", "qcow2"})
"""Drivers of block nodes whose data are in what the process has open."""


class Ganetis:
    """The guests of a node whose processes Ganeti started.

    Parameters
    ----------
    directory
        Where Ganeti keeps what it knows of them.
    run_dir
        Keeps the directories of the guests that the agent has.

    Attributes
    ----------
    patience
        Seconds that a monitor may take to answer; another program may hold it.
    """

    def __init__(self, directory: Path, run_dir: Path) -> None:
        self._directory = directory
        self._run_dir = run_dir
        self.patience = 10.0

    def _strangers(self) -> Iterator[Found]:
        """Yield those that have not been taken over."""
        for one in everyone(self._directory):
            if not self._has(one):
                yield one

    def _has(self, found: Found) -> bool:
        """Whether one was taken over, or is just now; it may say no uuid any more."""
        homes = [
            Home(self._run_dir, path.parent.name)
            for path in self._run_dir.glob(f"*/{ADOPTED}")
        ]
        return any(
            found.uuid == home.uuid or found.pid == home.pid()
            for home in homes
            if home.has_process()
        )

    def guests(self) -> list[GuestState]:
        """Return those that have not been taken over: each may write at any time."""
        return [_seen(one) for one in self._strangers() if one.uuid]

    def find(self, uuid: str) -> GuestState | None:
        """Return one that has not been taken over.

        Raises
        ------
        Failed
            If there is one whose command line says no uuid: it may be this one.
        """
        for one in self._strangers():
            if one.uuid == uuid:
                return _seen(one)
            if not one.uuid:
                raise Failed(
                    f"guest {one.name} runs in a process that Ganeti started "
                    f"({one.pid}) without a uuid: nobody can tell which instance it is",
                    hint="power it off from inside",
                )
        return None

    def known(self, uuid: str, name: str = "") -> Home:
        """Return the directory of a guest that gets orders.

        Parameters
        ----------
        name
            Of the guest, for one whose command line says no uuid.

        Raises
        ------
        WrongState
            If Ganeti started it, and it has not been taken over.
        """
        for one in self._strangers():
            if one.uuid == uuid or (name and one.name == name):
                raise WrongState(
                    f"guest {one.name} runs in a process that Ganeti started "
                    f"({one.pid}), and that nobody has taken over",
                    hint="moorage adopt-guests",
                    guest=uuid,
                )
        return Home(self._run_dir, uuid)

    def ours(self, uuid: str, what: str) -> Home:
        """Return the directory of a guest that can have something.

        Raises
        ------
        WrongState
            If Ganeti started it.
        """
        home = self.known(uuid)
        if home.is_adopted() and home.has_process():
            name = home.spec().name
            raise WrongState(
                f"guest {name} runs as Ganeti started it: {what} needs a start of its "
                "own first",
                hint=f"gnt-instance reboot {name}",
                guest=uuid,
            )
        return home

    def shown(self, uuid: str, kind: str) -> Home:
        """Return the directory of a guest of which somebody wants to see something.

        Raises
        ------
        WrongState
            If Ganeti started it, and it was not taken over, or its screen is wanted.
        """
        return self.ours(uuid, "a screen") if kind == "vnc" else self.known(uuid)

    async def told(self) -> list[ForeignGuest]:
        """Return what there is to say of each, whether it was taken over or not."""
        found = list(everyone(self._directory))
        return [await asyncio.to_thread(self._told, one) for one in found]

    def _told(self, found: Found) -> ForeignGuest:
        adopted = self._has(found)
        files: tuple[str, ...] = ()
        try:
            files = tuple(one.path for one in opened(found))
            silent = "" if adopted else _why_silent(found)
        except OSError as error:
            silent = f"its process cannot be looked at: {error.strerror}"
        return ForeignGuest(
            uuid=found.uuid,
            name=found.name,
            pid=found.pid,
            adopted=adopted,
            files=files,
            monitor=silent,
            afar=found.afar,
        )

    async def adopt(self, spec: GuestSpec) -> None:
        """Take a guest over; one that was taken over is left alone.

        Raises
        ------
        Failed
            If it has no such process; if a disk on record is not what it has open, or
            one that it has open is not on record; or if its monitor gives no answer. It
            is as it was.
        """
        home = Home(self._run_dir, spec.uuid)
        if home.is_adopted() and home.has_process():
            return
        found = self._of(spec)
        await asyncio.to_thread(_check_disks, found, spec.drives)
        held = home.claim()
        if held is None:
            raise Failed(
                f"guest {spec.name} has a process of this node's agent already"
            )
        try:
            home.empty()
            home.write_spec(replace(spec, cards=()))
            home.write(ADOPTED, f"{found.pid}\n")
            home.file("monitor").symlink_to(found.monitor)
            home.file("console").symlink_to(found.console)
            await _check_monitor(home, found, spec, self.patience)
            home.note(found.pid)  # from here on it is ours, lock or no lock
        except BaseException:
            home.remove(held)
            raise
        os.close(held)

    async def end(self, uuid: str, name: str, patience: float) -> None:
        """Let a guest power itself off that nobody has taken over.

        Once its button was pressed, a monitor that says nothing any more is waited out.

        Raises
        ------
        Failed
            If its monitor never gives an answer, or it is there after `patience`
            seconds.
        """
        clock = asyncio.get_running_loop().time
        end, found = clock() + patience, self._stranger(uuid, name)
        pressed = False
        while found is not None and lives(found):
            left = end - clock()
            if left <= 0:
                raise Failed(
                    f"guest {name} was asked to power off, and its process "
                    f"({found.pid}) is there after {patience:g} s",
                    hint="power it off from inside, and say the same again",
                    guest=uuid,
                )
            try:
                await self._press(found, min(left, self.patience))
                pressed = True
            except Failed:
                if not pressed:
                    raise
            await self._gone(found, min(end - clock(), _BUTTON))

    def _stranger(self, uuid: str, name: str) -> Found | None:
        """Return what runs of a guest that nobody has taken over."""
        for one in self._strangers():
            if one.uuid == uuid or (one.name == name and not one.uuid):
                return one
        return None

    async def _press(self, found: Found, patience: float) -> None:
        """Press its power button; one that is off already, and waits, is let go."""
        line = Line(found.uuid, found.name, found.monitor, partial(lives, found))
        try:
            async with line.opened(patience) as monitor:
                now = (await monitor.read(shapes.Status, "query-status")).status
                await monitor.ask("quit" if now == _OFF else "system_powerdown")
        except Failed:
            if lives(found):
                raise

    async def _gone(self, found: Found, seconds: float) -> None:
        """Wait until a process has ended, but not for long."""
        for _ in range(1 + round(seconds / _LOOK)):
            if not lives(found):
                return
            await asyncio.sleep(_LOOK)

    def _of(self, spec: GuestSpec) -> Found:
        for one in everyone(self._directory):
            if one.uuid == spec.uuid or (one.name == spec.name and not one.uuid):
                return one
        raise Failed(
            f"guest {spec.name} has no process that Ganeti started here",
            guest=spec.uuid,
        )


def _seen(found: Found) -> GuestState:
    return GuestState(
        uuid=found.uuid,
        name=found.name,
        state="running",
        memory=Mib(0),
        vcpus=0,
        origin="foreign",
    )


def _check_disks(found: Found, drives: Sequence[Drive]) -> None:
    """Raise `Failed` unless a process has open what is on record, and that alone."""
    try:
        more = {one.which: one.path for one in opened(found)}
        for drive in drives:
            path = drive.where.path
            if path is None:
                raise Failed(
                    f"disk {drive.disk} of guest {found.name} has no path on this "
                    "node: what its process has open cannot be compared with it",
                    guest=found.uuid,
                )
            if not has_open(found, path):
                raise Failed(
                    f"guest {found.name} does not have {path} open, which is its disk "
                    f"{drive.disk} on record",
                    guest=found.uuid,
                )
            more.pop(at_path(path).which, None)
    except OSError as error:
        raise Failed(
            f"guest {found.name} cannot be looked at: {error}", guest=found.uuid
        ) from None
    if more:
        raise Failed(
            f"guest {found.name} has {' and '.join(sorted(more.values()))} open, which "
            "is no disk of it on record: it is left alone",
            guest=found.uuid,
        )


async def _check_monitor(
    home: Home, found: Found, spec: GuestSpec, patience: float
) -> None:
    """Raise `Failed` unless QEMU answers, is the guest, and has local disks alone."""
    async with conversation(home, patience) as monitor:
        uuid = (await monitor.read(shapes.Identity, "query-uuid")).uuid
        nodes = await monitor.read(shapes.Drivers, "query-named-block-nodes", flat=True)
    if found.uuid and uuid.lower() != spec.uuid:
        raise Failed(f"the monitor of guest {spec.name} is another guest's ({uuid})")
    afar = sorted({one.file for one in nodes if one.drv not in _LOCAL})
    if afar:
        raise Failed(
            f"guest {spec.name} reaches {' and '.join(afar)} itself: nobody can "
            "compare that with its disks on record",
            guest=spec.uuid,
        )


def _why_silent(found: Found) -> str:
    """Return why a monitor cannot be asked; empty where it lets somebody in."""
    try:
        with socket(AF_UNIX) as made, short_path(found.monitor) as path:
            made.settimeout(_GREETING)
            made.connect(path)
            greeted = made.recv(1)
    except OSError as error:
        return f"its monitor gives no answer: {error.strerror or 'it is busy'}"
    return "" if greeted else "its monitor gives no answer"
