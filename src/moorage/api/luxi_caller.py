# SPDX-License-Identifier: BSD-2-Clause
"""Who asks over LUXI, as the kernel knows it."""

import asyncio
import socket
import struct
from contextvars import ContextVar

_WHO = struct.Struct("iII")

CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody that is known")
"""Who sent the request that is being answered: ``uid 0, pid 4711``."""


def caller_of(writer: asyncio.StreamWriter) -> str:
    """Return who is at the other end of a connection: as it was when it was made."""
    link = writer.get_extra_info("socket")
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size)
    pid, uid, _ = _WHO.unpack(told)
    return f"uid {uid}, pid {pid}"
