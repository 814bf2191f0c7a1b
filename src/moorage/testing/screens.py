# SPDX-License-Identifier: BSD-2-Clause
"""The screen of a simulated guest: one colour, and another one with each key.

It speaks as much of VNC (RFC 6143) as a viewer needs to look and type.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable

WIDTH, HEIGHT = 320, 200
COLOURS = (0x2F5D3A, 0x3A2F5D)
"""Of all pixels, in the order of their bytes; a key takes the next one."""
_VERSION = b"RFB 003.008\n"
_NONE = b"\x01"
"""Nobody is asked for a password."""
_FORMAT = struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 0, 8, 16)
_LENGTHS = {0: 19, 2: 3, 3: 9, 4: 7, 5: 5, 6: 7}
"""Bytes of each message behind its kind: those before what varies."""
Read = Callable[[int], Awaitable[bytes]]


async def show(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str
) -> None:
    """Show a screen to a viewer until it hangs up."""
    await _greet(reader.readexactly, writer, name)
    colour, asked = 0, False
    while kind := await reader.readexactly(1):
        body = await reader.readexactly(_LENGTHS[kind[0]])
        if kind[0] == 2:
            await reader.readexactly(4 * struct.unpack_from(">H", body, 1)[0])
        elif kind[0] == 6:
            await reader.readexactly(struct.unpack_from(">I", body, 3)[0])
        elif kind[0] == 4 and body[0]:
            colour = (colour + 1) % len(COLOURS)
            if asked:
                writer.write(_picture(colour))
        elif kind[0] == 3:
            asked = True
            if not body[0]:  # all of it, and not what has changed since
                writer.write(_picture(colour))
        await writer.drain()


async def _greet(read: Read, writer: asyncio.StreamWriter, name: str) -> None:
    writer.write(_VERSION)
    await read(len(_VERSION))
    writer.write(b"\x01" + _NONE)
    await read(1)
    writer.write(bytes(4))
    await read(1)
    size = struct.pack(">HH", WIDTH, HEIGHT)
    known = name.encode()
    writer.write(size + _FORMAT + struct.pack(">I", len(known)) + known)


def _picture(colour: int) -> bytes:
    head = struct.pack(">BxHHHHHi", 0, 1, 0, 0, WIDTH, HEIGHT, 0)
    return head + struct.pack("<I", COLOURS[colour]) * (WIDTH * HEIGHT)
