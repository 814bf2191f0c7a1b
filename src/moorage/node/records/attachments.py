# SPDX-License-Identifier: BSD-2-Clause
"""The disks that are attached on a node: where each one is, and who has it.

Kept in small files, so that an agent that was killed finds what it holds. It is no
truth: a file that is lost, or cannot be read, costs one more ``attach``. What was
attached before the node's last boot is not attached any more: no process of then lives.
"""

import logging
from pathlib import Path

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from moorage import durable
from moorage.disk_templates import limits
from moorage.model import Disk, Held
from moorage.storage import Where

_LOG = logging.getLogger(__name__)


class _Entry(Struct, frozen=True):
    """What is kept of one disk.

    ``users`` are (hypervisor, guest) pairs that were given the disk; whether they
    still have it, the hypervisor knows. ``lent`` is the pair whose mirror writes to the
    disk. ``boot`` is the boot of the node in which it was attached; a former version
    did not note it. ``limits`` is what a guest may ask of the disk.
    """

    epoch: int
    where: Where
    users: tuple[tuple[str, str], ...] = ()
    lent: tuple[str, str] | None = None
    boot: str = ""
    limits: dict[str, int] = {}


class Attachments:
    """What a node holds, by the disk's uuid.

    Parameters
    ----------
    directory
        Where the files are.
    boot
        What tells this boot of the node from others; empty if nobody asks.
    """

    def __init__(self, directory: Path, boot: str = "") -> None:
        self._directory = directory
        self._boot = boot
        durable.make(directory)
        for name, entry in self._entries():
            if boot and entry.boot and entry.boot != boot:
                _LOG.info("disk %s was attached here before the last boot", name)
                self.drop(name)

    def put(self, disk: Disk, where: Where) -> None:
        """Remember where an attached disk is."""
        old = self._read(disk.uuid)
        users, lent = (old.users, old.lent) if old else ((), None)
        more = (self._boot, limits(disk.params))
        self._write(disk.uuid, _Entry(disk.epoch, where, users, lent, *more))

    def get(self, disk: str) -> Where | None:
        """Return where a disk is, or None when it is not attached here."""
        entry = self._read(disk)
        return entry.where if entry else None

    def limits(self, disk: str) -> dict[str, int]:
        """Return what a guest may ask of a disk; see :func:`.disk_templates.limits`."""
        entry = self._read(disk)
        return entry.limits if entry else {}

    def use(self, disk: str, hypervisor: str, guest: str) -> None:
        """Remember that a guest is given the disk."""
        entry = self._read(disk)
        user = (hypervisor, guest)
        if entry and user not in entry.users:
            self._write(disk, replace(entry, users=(*entry.users, user)))

    def users(self, disk: str) -> tuple[tuple[str, str], ...]:
        """Return the (hypervisor, guest) pairs that were given the disk."""
        entry = self._read(disk)
        return entry.users if entry else ()

    def lend(self, disk: str, hypervisor: str, guest: str) -> None:
        """Remember that a guest's mirror is going to write to the disk."""
        entry = self._read(disk)
        if entry:
            self._write(disk, replace(entry, lent=(hypervisor, guest)))

    def take_back(self, disk: str) -> None:
        """Remember that no mirror writes to the disk any more."""
        entry = self._read(disk)
        if entry and entry.lent:
            self._write(disk, replace(entry, lent=None))

    def borrower(self, disk: str) -> tuple[str, str] | None:
        """Return the (hypervisor, guest) whose mirror may write to the disk."""
        entry = self._read(disk)
        return entry.lent if entry else None

    def drop(self, disk: str) -> None:
        """Forget a disk that was detached."""
        (self._directory / disk).unlink(missing_ok=True)

    def all(self) -> list[Held]:
        """Return every disk that is attached here."""
        return [
            Held(disk=n, path=e.where.path, uris=e.where.uris, epoch=e.epoch)
            for n, e in self._entries()
        ]

    def _entries(self) -> list[tuple[str, _Entry]]:
        names = sorted(path.name for path in self._directory.iterdir())
        entries = ((name, self._read(name)) for name in names if name[0] != ".")
        return [(name, entry) for name, entry in entries if entry]

    def _read(self, disk: str) -> _Entry | None:
        try:
            data = (self._directory / disk).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return json.decode(data, type=_Entry)
        except (DecodeError, UnicodeError):
            _LOG.warning("what is known of disk %s here cannot be read", disk)
            return None

    def _write(self, disk: str, entry: _Entry) -> None:
        durable.write(self._directory / disk, json.encode(entry))
