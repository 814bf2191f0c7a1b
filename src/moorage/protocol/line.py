# SPDX-License-Identifier: BSD-2-Clause
"""A line to a guest: bytes that a master lets an agent carry."""

from typing import Literal

from msgspec import Struct

from .sender import Sender

Kind = Literal["serial", "vnc"]
"""The serial console, or the screen, which speaks VNC (RFC 6143)."""


class GuestLine(Struct, frozen=True, kw_only=True):
    """Which line, of which guest.

    Attributes
    ----------
    uuid, name
        Of the instance.
    ticket
        The password that VNC asks for, for two minutes, unless the guest has its own.
    """

    uuid: str
    name: str
    hypervisor: str = "kvm"
    kind: Kind = "serial"
    ticket: str = ""


class LineRequest(Struct, frozen=True):
    """What a master says first on a connection to ``/line``.

    The agent answers a line of JSON, ``{"result": null}`` or ``{"error": …}``; bytes
    follow, both ways.

    Attributes
    ----------
    term, mark, sender
        Of the master, as with every verb.
    """

    line: GuestLine
    term: int
    mark: str = ""
    sender: Sender = Sender()
