# SPDX-License-Identifier: BSD-2-Clause
"""Who asks over LUXI, as the kernel knows it."""

import asyncio
import pwd
import socket
import struct
from contextvars import ContextVar
from typing import Final, NamedTuple

from moorage.model.caller import Caller

DOOR = "luxi"
_WHO = struct.Struct("iII")


class Peer(NamedTuple):
    """The process at the other end of a connection, as it was when that was made."""

    uid: int
    pid: int

    def __str__(self) -> str:
        if self == UNKNOWN:
            return "nobody that is known"
        return f"uid {self.uid}, pid {self.pid}"

    @property
    def caller(self) -> Caller:
        """Its user: whoever can open the socket may do everything."""
        if self == UNKNOWN:
            return Caller("", DOOR)
        try:
            name = "root" if self.uid == 0 else pwd.getpwuid(self.uid).pw_name
        except KeyError:
            name = f"uid {self.uid}"
        return Caller(name, DOOR)


UNKNOWN: Final = Peer(-1, -1)
CALLER: ContextVar[Peer] = ContextVar("CALLER", default=UNKNOWN)
"""Who sent the request that is being answered."""


def caller_of(writer: asyncio.StreamWriter) -> Peer:
    """Return who is at the other end of a connection: as it was when it was made."""
    link = writer.get_extra_info("socket")
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size)
    pid, uid, _ = _WHO.unpack(told)
    return Peer(uid, pid)
