# SPDX-License-Identifier: BSD-2-Clause
"""The partition table of an image on its disk: the last one grows, one is added.

Tables are those of the UEFI specification (2.10, chapter 5: GPT) and of the PC's master
boot record; a sector has 512 bytes. Whoever made the image may have written anything
there: nothing is written before all of the table was found to be sound.
"""

import os
import struct
from dataclasses import dataclass
from uuid import UUID, uuid4
from zlib import crc32

from moorage.errors import BadInput

SECTOR = 512
_ENTRIES = struct.Struct("<16s16sQQQ72s")
_HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
_SIGNATURE, _REVISION = b"EFI PART", 0x00010000
_DATA = UUID("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7").bytes_le
"""Microsoft's "basic data", by which firmware and installers leave a FAT alone."""
_NOTHING = bytes(16)
_RECORD = struct.Struct("<B3sB3sII")
_RECORDS, _MARK = 446, b"\x55\xaa"
_PROTECTIVE, _FAT, _EXTENDED = 0xEE, 0x01, {0x05, 0x0F, 0x85}
_HIGHEST = (1 << 32) - 1
"""Sectors that a master boot record can count."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Where a partition lies, in sectors; `end` is the first one behind it."""

    start: int
    end: int


class Disk:
    """A disk that is open for reading and writing.

    Parameters
    ----------
    size
        In bytes.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.sectors = size // SECTOR

    def read(self, sector: int, number: int = 1) -> bytes:
        """Return so many sectors; zeros for what is behind the disk's end."""
        wanted = number * SECTOR
        return os.pread(self._descriptor, wanted, sector * SECTOR).ljust(wanted, b"\0")

    def write(self, sector: int, data: bytes) -> None:
        """Write at a sector."""
        view, at = memoryview(data), sector * SECTOR
        while view:
            done = os.pwrite(self._descriptor, view, at)
            view, at = view[done:], at + done

    def sync(self) -> None:
        """Have all that was written with the storage."""
        os.fsync(self._descriptor)


def parts(disk: Disk) -> list[Partition]:
    """Return the partitions of a disk, by where they begin.

    Raises
    ------
    BadInput
        If it has no partition table that is sound.
    """
    return sorted(_table(disk).parts(), key=lambda one: one.start)


def settle(disk: Disk, place: Partition) -> str:
    """Let the last partition have the rest of the disk, and add one at `place`.

    Return why the last one was not grown; empty if it was, or had all.

    Raises
    ------
    BadInput
        If there is no sound partition table, or none that takes another one.
    """
    table, told = _settled(disk, place)
    table.write()
    return told


def check(disk: Disk, place: Partition) -> None:
    """Raise `BadInput` where `settle` would; nothing is written."""
    _settled(disk, place)


def _settled(disk: Disk, place: Partition) -> "tuple[_Gpt | _Mbr, str]":
    table = _table(disk)
    told = table.grow()
    table.add(place)
    return table, told


def _table(disk: Disk) -> "_Gpt | _Mbr":
    record = disk.read(0)
    if record[510:] != _MARK:
        raise BadInput("the image has no partition table")
    kinds = {_RECORD.unpack_from(record, _RECORDS + 16 * n)[2] for n in range(4)}
    return _Gpt(disk, record) if _PROTECTIVE in kinds else _Mbr(disk, record)


class _Gpt:
    """A GUID partition table."""

    def __init__(self, disk: Disk, record: bytes) -> None:
        self._disk, self._record = disk, bytearray(record)
        raw = disk.read(1)
        (signature, revision, size, checksum, _, own, _, first, last, self._guid) = (
            _HEADER.unpack_from(raw)[:10]
        )
        at, number, each, entries = _HEADER.unpack_from(raw)[10:]
        if (signature, revision, own, at) != (_SIGNATURE, _REVISION, 1, 2):
            raise BadInput("the image's GPT is none that is known")
        blank = raw[:16] + bytes(4) + raw[20:size] if 92 <= size <= SECTOR else b""
        if crc32(blank) != checksum or each != _ENTRIES.size or not 4 <= number <= 1024:
            raise BadInput("the image's GPT is damaged")
        self._length = -(-number * each // SECTOR)
        data = disk.read(at, self._length)[: number * each]
        if crc32(data) != entries:
            raise BadInput("the image's GPT is damaged")
        self._entries = [list(one) for one in _ENTRIES.iter_unpack(data)]
        self._first = first
        found = sorted(self.parts(), key=lambda one: one.start)
        if first < 2 + self._length or last < first or not _apart(found, first):
            raise BadInput("the image's GPT has no partitions that are sound")
        self._last = disk.sectors - self._length - 2
        if found[-1].end > self._last + 1:
            raise BadInput("the image's partitions reach behind the end of the disk")

    def parts(self) -> list[Partition]:
        return [Partition(e[2], e[3] + 1) for e in self._entries if e[0] != _NOTHING]

    def add(self, place: Partition) -> None:
        if place.start < self._first:
            raise BadInput("the image's GPT leaves no room before its partitions")
        free = next((e for e in self._entries if e[0] == _NOTHING), None)
        if free is None:
            raise BadInput("the image's GPT has no entry left")
        name = "cidata".encode("utf-16-le")
        free[:] = [_DATA, uuid4().bytes_le, place.start, place.end - 1, 0, name]

    def grow(self) -> str:
        used = [one for one in self._entries if one[0] != _NOTHING]
        max(used, key=lambda one: int(one[2]))[3] = self._last
        return ""

    def write(self) -> None:
        """Write both copies: the one at the end first, which nobody reads yet."""
        disk, end = self._disk, self._disk.sectors - 1
        data = b"".join(_ENTRIES.pack(*one) for one in self._entries)
        padded = data.ljust(self._length * SECTOR, b"\0")
        disk.write(end - self._length, padded)
        disk.write(end, self._header(end, 1, end - self._length, data))
        disk.sync()
        disk.write(2, padded)
        disk.write(1, self._header(1, end, 2, data))
        for at in range(_RECORDS, 510, 16):  # the record that keeps others away
            if self._record[at + 4] == _PROTECTIVE and self._record[at + 8] == 1:
                struct.pack_into("<I", self._record, at + 12, min(end, _HIGHEST))
        disk.write(0, bytes(self._record))
        disk.sync()

    def _header(self, own: int, other: int, entries: int, data: bytes) -> bytes:
        def packed(checksum: int) -> bytes:
            return _HEADER.pack(
                *(_SIGNATURE, _REVISION, _HEADER.size, checksum, 0, own, other),
                *(self._first, self._last, self._guid, entries),
                *(len(self._entries), _ENTRIES.size, crc32(data)),
            )

        return packed(crc32(packed(0))).ljust(SECTOR, b"\0")


class _Mbr:
    """The table of a master boot record: four partitions; one may hold more."""

    def __init__(self, disk: Disk, record: bytes) -> None:
        self._disk, self._record = disk, bytearray(record)
        self._rows = [
            list(_RECORD.unpack_from(record, _RECORDS + 16 * n)) for n in range(4)
        ]
        found = sorted(self.parts(), key=lambda one: one.start)
        flags = {row[0] for row in self._rows}
        if flags - {0, 0x80} or not _apart(found, 1):
            raise BadInput("the image has no partition table that is sound")
        if found[-1].end > disk.sectors:
            raise BadInput("the image's partitions reach behind the end of the disk")

    def parts(self) -> list[Partition]:
        return [Partition(row[4], row[4] + row[5]) for row in self._rows if row[2]]

    def add(self, place: Partition) -> None:
        free = next((row for row in self._rows if not row[2]), None)
        if free is None:
            raise BadInput("the image has four partitions, and room for no other one")
        far = b"\xfe\xff\xff"  # where it lies is said by sectors alone
        free[:] = [0, far, _FAT, far, place.start, place.end - place.start]

    def grow(self) -> str:
        row = max((row for row in self._rows if row[2]), key=lambda one: int(one[4]))
        if row[2] in _EXTENDED:
            return "the last partition is an extended one, which stays as it is"
        row[5] = min(self._disk.sectors, _HIGHEST) - row[4]
        return ""

    def write(self) -> None:
        for number, row in enumerate(self._rows):
            _RECORD.pack_into(self._record, _RECORDS + 16 * number, *row)
        self._disk.write(0, bytes(self._record))
        self._disk.sync()


def _apart(found: list[Partition], first: int) -> bool:
    """Whether there are partitions, one behind the other, and none empty."""
    edges = [first, *(edge for one in found for edge in (one.start, one.end))]
    whole = all(one.start < one.end for one in found)
    return bool(found) and whole and edges == sorted(edges)
