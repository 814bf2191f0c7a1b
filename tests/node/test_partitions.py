# SPDX-License-Identifier: BSD-2-Clause
"""Partition tables of images: what is grown and added, and what is refused."""

import os
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from moorage.errors import BadInput
from moorage.node.system_images.partitions import Disk, Partition, check, parts, settle

MIB = 2048
"""Sectors."""
SEED = Partition(1024, 2048)
TYPE = bytes(range(16))


def gpt(sectors: int, *found: Partition, number: int = 128) -> bytes:
    """Return the begin of a disk with a GPT."""
    entries = b"".join(
        struct.pack("<16s16sQQQ72s", TYPE, TYPE, one.start, one.end - 1, 0, b"")
        for one in found
    ).ljust(number * 128, b"\0")
    first = 2 + number * 128 // 512

    def head(checksum: int) -> bytes:
        place = (b"EFI PART", 1 << 16, 92, checksum, 0, 1, sectors - 1, first)
        rest = (sectors - first, TYPE, 2, number, 128, crc32(entries))
        return struct.pack("<8sIIIIQQQQ16sQIII", *place, *rest)

    header = head(crc32(head(0))).ljust(512, b"\0")
    return mbr((0xEE, Partition(1, sectors))) + header + entries


def mbr(*found: tuple[int, Partition]) -> bytes:
    rows = b"".join(
        struct.pack("<B3sB3sII", 0, b"", kind, b"", one.start, one.end - one.start)
        for kind, one in found
    )
    return bytes(446) + rows.ljust(64, b"\0") + b"\x55\xaa"


@contextmanager
def disk(path: Path, begin: bytes, mib: int = 64) -> Iterator[Disk]:
    path.write_bytes(begin)
    os.truncate(path, mib << 20)
    handle = os.open(path, os.O_RDWR)
    try:
        yield Disk(handle, mib << 20)
    finally:
        os.close(handle)


SYSTEM = Partition(9 * MIB, 16 * MIB)
TABLES = {
    "gpt": gpt(16 * MIB, Partition(MIB, 9 * MIB), SYSTEM),
    "mbr": mbr((0x83, SYSTEM), (0x0C, Partition(MIB, 9 * MIB))),
}


@pytest.mark.parametrize("kind", TABLES)
def test_the_last_one_grows_and_one_is_added(tmp_path: Path, kind: str) -> None:
    with disk(tmp_path / "d", TABLES[kind]) as found:
        check(found, SEED)
        assert parts(found) == [Partition(MIB, 9 * MIB), SYSTEM]
        assert settle(found, SEED) == ""
        first, second, last = parts(found)
        assert (first, second) == (SEED, Partition(MIB, 9 * MIB))
        end = 64 * MIB - (33 if kind == "gpt" else 0)
        assert last == Partition(SYSTEM.start, end)


def test_both_copies_of_a_gpt_are_written(tmp_path: Path) -> None:
    with disk(tmp_path / "d", TABLES["gpt"]) as found:
        settle(found, SEED)
        end = 64 * MIB - 1
        assert found.read(end - 32, 32) == found.read(2, 32)
        own, other = struct.unpack_from("<QQ", found.read(end), 24)
        assert (own, other) == (end, 1)
        assert struct.unpack_from("<I", found.read(0), 446 + 12) == (end,)


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (b"", "no partition table"),
        (mbr(), "no partition table that is sound"),
        (mbr((0x83, Partition(MIB, 65 * MIB))), "behind the end of the disk"),
        (
            mbr((0x83, Partition(MIB, 9 * MIB)), (0x83, Partition(8 * MIB, 9 * MIB))),
            "no partition table that is sound",
        ),
        (mbr(*((0x83, Partition(n * MIB, n * MIB + 1)) for n in (1, 2, 3, 4))), "four"),
        (mbr((0x83, Partition(MIB, MIB))), "no partition table that is sound"),
        (gpt(16 * MIB, Partition(MIB, MIB), SYSTEM), "no partitions that are sound"),
        (gpt(16 * MIB), "no partitions that are sound"),
        (gpt(16 * MIB, Partition(MIB, 65 * MIB)), "behind the end of the disk"),
        (gpt(16 * MIB, Partition(3, MIB)), "no partitions that are sound"),
        (gpt(16 * MIB, *[SYSTEM] * 2), "no partitions that are sound"),
        (
            gpt(16 * MIB, *(Partition(n, n + 1) for n in range(5000, 5004)), number=4),
            "no entry left",
        ),
    ],
)
def test_a_table_that_is_refused(tmp_path: Path, begin: bytes, said: str) -> None:
    with disk(tmp_path / "d", begin) as found:
        for tried in (check, settle):
            with pytest.raises(BadInput, match=said):
                tried(found, SEED)
        assert found.read(0, 64).startswith(begin), "nothing was written"


def test_an_extended_partition_stays(tmp_path: Path) -> None:
    rows = (0x83, Partition(MIB, 9 * MIB)), (0x05, SYSTEM)
    with disk(tmp_path / "d", mbr(*rows)) as found:
        assert "extended" in settle(found, SEED)
        assert parts(found)[-1] == SYSTEM


@pytest.mark.parametrize("kind", TABLES)
def test_any_byte_may_be_wrong(tmp_path: Path, kind: str) -> None:
    """A table is refused, or what it becomes is sound; never is there another error."""
    chance = random.Random(1)  # noqa: S311
    for _ in range(400):
        begin = bytearray(TABLES[kind])
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(446, min(len(begin), 1800))
            begin[at] = chance.randrange(256)
        if chance.random() < 0.5 and kind == "gpt":  # one whose checksums fit
            entries = bytes(begin[1024:])
            struct.pack_into("<I", begin, 512 + 88, crc32(entries))
            struct.pack_into("<I", begin, 512 + 16, 0)
            struct.pack_into("<I", begin, 512 + 16, crc32(bytes(begin[512:604])))
        with disk(tmp_path / "d", bytes(begin)) as found:
            try:
                settle(found, SEED)
            except BadInput:
                assert found.read(0, 34).startswith(begin[: 34 * 512])
                continue
            after = parts(found)
            assert SEED in after
            edges = [edge for one in after for edge in (one.start, one.end)]
            assert edges == sorted(edges)
            assert edges[-1] <= found.sectors
