# SPDX-License-Identifier: BSD-2-Clause
"""What real guests wrote to their disks, and must find there ever after.

In quiet each guest that answers writes a stamp to each of its disks, once, and syncs
it. From then on the disk's image file has it, wherever the disk goes, and whether it
grows or lies about; and whatever guest has the disk reads it.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from moorage.errors import CommandFailed, MoorageError
from moorage.testing.guest import Guest

LENGTH = 32
"""Bytes of a stamp; it stands at a disk's beginning."""
PATIENCE = 90.0
"""Seconds for a guest that is emulated, on a busy machine, to come up and to answer."""
_READ = (
    "for d in /sys/block/vd*; do "
    f"echo $(cat $d/serial) $(head -c {LENGTH} /dev/${{d##*/}} | tr -c 0-9a-f .) "
    "${d##*/}; done"
)
Seen = dict[str, tuple[str, str]]
"""What a guest sees: the beginning of each disk and its name, by the disk's serial."""


class Stamps:
    """The stamps of all disks.

    Attributes
    ----------
    counts
        Stamps that were written and read again, and how often a guest was silent.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._known: dict[str, str] = {}

    def look(
        self, images: dict[str, Path], guests: Iterable[tuple[Path, frozenset[str]]]
    ) -> Iterator[str]:
        """Yield what is not there any more; let guests write what they have not yet.

        Parameters
        ----------
        images
            The image of each sound disk, by its uuid.
        guests
            The channel of each running guest, and the uuids of its disks.
        """
        for disk, stamp in self._known.items():
            there = _beginning(images[disk]) if disk in images else stamp
            if there != stamp:
                yield f"disk {disk} begins with {there!r}; a guest wrote {stamp}"
        for channel, disks in guests:
            try:
                yield from asyncio.run(self._visit(channel, disks))
            except CommandFailed as error:
                yield f"a guest cannot read or write its disks: {error.message}"
            except (MoorageError, OSError):
                self.counts["guests silent"] += 1

    async def _visit(self, channel: Path, disks: frozenset[str]) -> list[str]:
        async with Guest(channel) as guest:
            seen = _parsed(await guest.run(_READ, PATIENCE))
            faults = []
            for disk in sorted(disks):
                begins, name = seen.get(disk[:20], ("", ""))
                known = self._known.get(disk)
                if not name:
                    faults.append(f"a guest does not see its disk {disk}: {seen}")
                elif known is None:
                    await self._write(guest, disk, name)
                elif begins == known:
                    self.counts["stamps read"] += 1
                else:
                    faults.append(f"a guest reads {begins} from {disk}, not {known}")
            return faults

    async def _write(self, guest: Guest, disk: str, name: str) -> None:
        stamp = secrets.token_hex(LENGTH // 2)
        where = f"of=/dev/{name} bs={LENGTH} count=1 conv=notrunc,fsync"
        await guest.run(f"printf {stamp} | dd {where} 2>/dev/null", PATIENCE)
        self._known[disk] = stamp
        self.counts["stamps written"] += 1


def _beginning(image: Path) -> str:
    with image.open("rb") as file:
        return file.read(LENGTH).decode(errors="replace")


def _parsed(said: str) -> Seen:
    rows = (line.split() for line in said.splitlines())
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}
