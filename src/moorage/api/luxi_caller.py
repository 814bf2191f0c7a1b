# SPDX-License-Identifier: BSD-2-Clause
"""Who asks over LUXI: as the kernel knows it, or as another door says it."""

import asyncio
import pwd
import socket
import struct
from contextvars import ContextVar
from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from moorage.errors import Forbidden
from moorage.model.caller import Caller, Role
from moorage.model.misfit import misfit

DOOR = "luxi"
_WHO = struct.Struct("iII")
_LONGEST = 255
"""Characters of what a door says of who asks: it is journalled, logged and shown."""

UNKNOWN: Final = Caller("", DOOR, detail="nobody that is known")
CALLER: ContextVar[Caller] = ContextVar("CALLER", default=UNKNOWN)
"""Who sent the request that is being answered."""


class Believed(Struct, frozen=True):
    """A user whose word is taken for who asks: that of a door to other machines.

    Attributes
    ----------
    uid
        The only one who may connect.
    most
        The highest role that is believed.
    """

    uid: int
    door: str = "rapi"
    most: Role = Role.WRITE


class _Said(Struct, frozen=True, forbid_unknown_fields=True):
    """What a door says of who asks."""

    name: str
    role: Role
    detail: str = ""
    request: str = ""


def peer(writer: asyncio.StreamWriter) -> tuple[int, Caller]:
    """Return the user at the other end of a connection, as it was when it was made.

    Whoever can open the socket may do everything.
    """
    link = writer.get_extra_info("socket")
    told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size)
    pid, uid, _ = _WHO.unpack(told)
    try:
        name = "root" if uid == 0 else pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return uid, Caller(name, DOOR, detail=f"uid {uid}, pid {pid}")


def said(believed: Believed, words: Any) -> Caller:  # noqa: ANN401
    """Return who asks, by the word of a door: with no higher role than it may give.

    Raises
    ------
    Forbidden
        If it does not say.
    """
    try:
        told = convert(words, _Said)
    except ValidationError as error:
        raise Forbidden(
            f"who asks is not said as it should be: {misfit(error, 'the caller')}"
        ) from None
    if not told.name:
        raise Forbidden(f"nobody comes by {believed.door} without a name")
    for text in (told.name, told.detail, told.request):
        if len(text) > _LONGEST or not text.isprintable():
            raise Forbidden(
                f"who asks is said in {_LONGEST} printable characters at most"
            )
    role = min(told.role, believed.most)
    return Caller(told.name, believed.door, role, told.detail, told.request)
