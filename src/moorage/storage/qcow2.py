# SPDX-License-Identifier: BSD-2-Clause
"""The header of a qcow2 image: what must be known of one before QEMU reads it.

A few numbers at fixed places, read here and not by QEMU, which would have parsed the
whole image by then. Pure.
"""

import struct
from dataclasses import dataclass

from moorage.errors import BadInput

LENGTH = 104
"""Bytes of the longest header that is looked at."""
_MAGIC = b"QFI\xfb"
_FIRST = struct.Struct(">4sIQ8xQ")
"""Magic, version, place of the backing file's name, and (behind two more) the size."""
_FEATURES = struct.Struct(">72xQ")
_DATA_FILE = 1 << 2
"""The feature: data are in another file, whose name the image tells."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a header says.

    Attributes
    ----------
    size
        Of the disk, in bytes.
    foreign
        Whether the image names another file: one that it is a difference to, or one
        that its data are in.
    """

    size: int
    foreign: bool


def header(dumped: str) -> Header:
    """Return what the beginning of an image says, as ``od -An -v -tx1`` prints it.

    Raises
    ------
    BadInput
        If it is no qcow2 image.

    >>> header("51 46 49 fb 00 00 00 02" + " 00" * 16 + " 00 00 00 00 00 40 00 00")
    Header(size=4194304, foreign=False)
    """
    try:
        told = bytes.fromhex(dumped)
        magic, version, backing, size = _FIRST.unpack_from(told)
        newer = version > 2
        features = _FEATURES.unpack_from(told)[0] if newer else 0
    except (ValueError, struct.error):
        raise BadInput("it is no qcow2 image") from None
    if magic != _MAGIC or version not in (2, 3):
        raise BadInput("it is no qcow2 image")
    return Header(size, foreign=bool(backing or features & _DATA_FILE))
