# SPDX-License-Identifier: BSD-2-Clause
"""Volumes that certifications made here, noted before they are made.

Whatever interrupts a certification, whoever clears up finds them.
"""

from collections.abc import Iterable
from pathlib import Path

from msgspec import DecodeError, json

from moorage import durable
from moorage.model import Disk


class Trials:
    """The volumes of each certification, a file each.

    Parameters
    ----------
    directory
        Where they are noted.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, run: str, prefix: str = "") -> tuple[Disk, ...]:
        """Return the disks whose volumes may be there, the latest first.

        Parameters
        ----------
        prefix
            How the names of their volumes begin.
        """
        try:
            found = json.decode(self._path(run).read_bytes(), type=list[Disk])
        except (FileNotFoundError, DecodeError):
            return ()
        return tuple(one for one in reversed(found) if one.volume.startswith(prefix))

    def note(self, run: str, disk: Disk) -> None:
        """Note that the volume of a disk is going to be made, or used."""
        known = self.of(run)
        if disk.volume not in {one.volume for one in known}:
            self._write(run, (disk, *known))

    def drop(self, run: str, volumes: Iterable[str]) -> None:
        """Forget volumes, by their names: they are gone."""
        gone = set(volumes)
        known = self.of(run)
        left = tuple(one for one in known if one.volume not in gone)
        if left != known:
            self._write(run, left)

    def _write(self, run: str, disks: tuple[Disk, ...]) -> None:
        if disks:
            durable.write(self._path(run), json.encode(disks[::-1]))
        else:
            durable.remove(self._path(run))

    def _path(self, run: str) -> Path:
        return self._directory / f"{run}.json"
