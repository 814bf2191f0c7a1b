# SPDX-License-Identifier: BSD-2-Clause
"""What this node did to make volumes, and to remove them.

Whoever takes a step back must know what came of it: a volume that the step did not make
is somebody else's, another cluster's of the same name, say. So a node notes, before the
storage is asked for a volume, that it is going to ask and whether there was one, and
then what the storage said. And before it removes one that it had to look for, because
another node made it, it notes that it saw it: who asks again, after a crash or a lost
answer, must not hear that the volume was never here.
"""

import hashlib
import logging
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from moorage import durable
from moorage.model import Disk

BEGUN, CUT_OFF, MADE = "begun", "cut off", "made"
DENIED, REMOVING = "denied", "removing"
"""What came of it: nobody knows yet, or will of an attempt; the volume; the storage
said no; it is to go."""
_AGAIN = {BEGUN: CUT_OFF, DENIED: BEGUN}
"""What is known when it is asked for again."""
_NOBODY = ""
"""Whose a record is that cannot be read: none of a disk that is gone, so it stays."""

_LOG = logging.getLogger(__name__)


class Creation(Struct, frozen=True, kw_only=True):
    """One volume that was asked for.

    Attributes
    ----------
    disk
        Uuid of the disk that it is for, or is copied from.
    copy
        Whether it is a copy, which the storage knows by its volume's name alone.
    volume
        Template and identity, for whoever reads the file.
    before
        Whether it was there before; None where nobody could tell.
    came
        What came of it.
    """

    disk: str
    volume: tuple[str, ...]
    copy: bool = False
    before: bool | None = None
    came: str = BEGUN


class Creations:
    """The makings of a node, one small file each.

    Parameters
    ----------
    directory
        Where they are kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        durable.make(directory)

    def begin(self, disk: Disk, *, of: Disk, before: bool | None) -> None:
        """Note that the volume of `disk` is going to be made, from that of `of`.

        What is known of an earlier attempt stays: only the first one could see whether
        the volume was there before. Of one that has no end, nobody knows how far it
        came; one that was refused says nothing of this one.
        """
        known = self.of(disk)
        if known and known.came in _AGAIN:
            self._write(disk, replace(known, came=_AGAIN[known.came]))
        if known is None or known.came == REMOVING:
            volume = (disk.dev_type, *map(str, disk.logical_id))
            copy = of.logical_id != disk.logical_id
            making = Creation(disk=of.uuid, volume=volume, copy=copy, before=before)
            self._write(disk, making)

    def end(self, disk: Disk, came: str) -> None:
        """Note what came of it; what was made once is made.

        A refusal is of this attempt: what is in the way may be an earlier one's.
        """
        known = self.of(disk)
        if known is None or known.came == MADE:
            return
        if known.came != CUT_OFF or came == MADE:
            self._write(disk, replace(known, came=came))

    def remove(self, disk: Disk) -> None:
        """Note that the volume was seen here, and is going to be removed."""
        volume = (disk.dev_type, *map(str, disk.logical_id))
        known = self.of(disk) or Creation(disk=disk.uuid, volume=volume)
        self._write(disk, replace(known, came=REMOVING))

    def of(self, disk: Disk) -> Creation | None:
        """Return how the volume of a disk was made here; None if it was not."""
        try:
            data = self._path(disk).read_bytes()
        except FileNotFoundError:
            return None
        return _decoded(data)

    def drop(self, disk: Disk) -> None:
        """Forget a volume: it is gone."""
        if self._path(disk).exists():
            durable.remove(self._path(disk))

    def old(self, before: float) -> set[str]:
        """Return the uuids of the disks whose volumes were made `before` a time."""
        return {one.disk for _, one in self._old(before)}

    def forget(self, disks: Collection[str], before: float) -> None:
        """Forget the volumes of some disks (uuids) that were made `before` a time."""
        found = [path for path, one in self._old(before) if one.disk in disks]
        if found:
            durable.remove(*found)

    def _old(self, before: float) -> Iterator[tuple[Path, Creation]]:
        """Yield old records, but none of which nobody can tell whose it is."""
        for path in self._directory.glob("[!.]*"):
            if path.stat().st_mtime < before:
                making = _decoded(path.read_bytes())
                if making.disk:
                    yield path, making

    def _path(self, disk: Disk) -> Path:
        return self._directory / volume_key(disk)

    def _write(self, disk: Disk, making: Creation) -> None:
        durable.write(self._path(disk), json.encode(making))


def volume_key(disk: Disk) -> str:
    """Return a word for the volume of a disk, good for a file's name."""
    volume = json.encode([disk.dev_type, *disk.logical_id])
    return f"volume-{hashlib.sha256(volume).hexdigest()[:32]}"


def _decoded(data: bytes) -> Creation:
    """Return a record; of one that cannot be read, nothing but that it was begun."""
    try:
        return json.decode(data, type=Creation)
    except (DecodeError, UnicodeError):
        _LOG.warning("a record of how a volume was made cannot be read")
        return Creation(disk=_NOBODY, volume=())
