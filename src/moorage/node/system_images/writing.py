# SPDX-License-Identifier: BSD-2-Clause
"""An image on a disk: its content by a QEMU without rights, its table, its seed."""

import asyncio
import os
import struct
import sys
from pathlib import Path

from moorage.errors import BadInput, Failed
from moorage.model.uidpool import UidPool
from moorage.node.machine import proc
from moorage.node.machine.contents import Contents, Image
from moorage.storage import Content

from . import partitions, seed
from .partitions import Disk, Partition

_QCOW2 = struct.Struct(">4sIQIIQ")
"""Magic, version, backing file (offset, size), bits of a cluster, size of the disk."""
_INCOMPATIBLE, _EXTERNAL, _ENCRYPTED = 72, 1 << 2, 32
_MAGIC = b"QFI\xfb"
_IMAGE = "image"


def content_of(descriptor: int, form: str) -> tuple[Content, int]:
    """Return the format of an image, and the bytes that its disk has.

    Parameters
    ----------
    form
        What its catalogue says; empty to look.

    Raises
    ------
    BadInput
        If it needs other files, is encrypted, or has another format.
    """
    head = os.pread(descriptor, 512, 0)
    packed = head[:4] == _MAGIC and len(head) >= _QCOW2.size
    if (form or ("qcow2" if packed else "raw")) == "raw":
        return Content(form="raw"), os.fstat(descriptor).st_size
    if not packed:
        raise BadInput("the image is no qcow2")
    _, version, backing, _, _, size = _QCOW2.unpack_from(head)
    if backing:
        raise BadInput("the image has a backing file: only a whole one is taken")
    if version >= 3:  # the version that has features
        (features,) = struct.unpack_from(">Q", head, _INCOMPATIBLE)
        if features & _EXTERNAL:
            raise BadInput("the image keeps its data in another file: none is opened")
    if struct.unpack_from(">I", head, _ENCRYPTED)[0]:
        raise BadInput("the image is encrypted")
    return Content(form="qcow2"), size


def whole_disk(path: str) -> tuple[int, int]:
    """Return a descriptor of a disk, for reading and writing, and its bytes."""
    try:
        found = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise Failed(f"the disk {path} is not opened: {error.strerror}") from None
    return found, os.lseek(found, 0, os.SEEK_END)


async def install(
    image: int, form: str, disk: tuple[int, int], pool: UidPool, place: Path
) -> str:
    """Write an image to a disk, with room for its seed; return what was not done.

    Parameters
    ----------
    image
        A descriptor of it, for reading.
    disk
        A descriptor of it, and its bytes.
    pool
        Of the users that the QEMU may be.
    place
        A directory where it is met.

    Raises
    ------
    BadInput
        If the image is larger than the disk, or has no table that takes a seed.
    Failed
        If it cannot be read.
    """
    content, size = content_of(image, form)
    descriptor, there = disk
    if size > there:
        raise BadInput(
            f"the first disk has {there >> 20} MiB, and the image needs "
            f"{-(-size >> 20)} MiB"
        )
    if content.form == "raw":  # what a qcow2 holds is known when it is on the disk
        _check_table(Disk(image, there))
    contents = Contents(place, bound=True)
    given = {_IMAGE: Image(image, content)}
    async with contents.served(given, pool, alone=False) as handed:
        words = ("qemu-img", "convert", "-n", "-O", "raw", _IMAGE)
        child = await asyncio.create_subprocess_exec(
            *handed.argv(words),
            proc.descriptor(descriptor),
            pass_fds=(*handed.descriptors, descriptor),
        )
        if await child.wait():
            raise Failed("the image cannot be written to the disk")
    target = Disk(descriptor, there)
    _check_table(target)
    return partitions.settle(target, seed.PLACE)


def _check_table(disk: Disk) -> None:
    """Raise `BadInput` unless a table takes a seed, and nothing is where it will be."""
    place = seed.PLACE
    first = partitions.parts(disk)[0].start
    if first < place.end or any(disk.read(place.start, place.end - place.start)):
        raise BadInput(
            f"the image has no {seed.SIZE >> 10} KiB before its first partition, where "
            "what cloud-init is told would lie"
        )
    partitions.check(disk, place)


def put_seed(descriptor: int, size: int, data: bytes) -> None:
    """Write what cloud-init finds, a file system, to its partition.

    Raises
    ------
    BadInput
        If the disk has no such partition (any more).
    """
    disk = Disk(descriptor, size)
    if Partition(seed.PLACE.start, seed.PLACE.end) not in partitions.parts(disk):
        raise BadInput("the first disk has no partition for what cloud-init is told")
    disk.write(seed.PLACE.start, data)
    disk.sync()


def say(text: str) -> None:
    """Print a line to the script's log."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
