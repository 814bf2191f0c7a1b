# SPDX-License-Identifier: BSD-2-Clause
"""A line to a guest: bytes that a master lets an agent carry."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from moorage.hypervisors import USUAL

from .sender import Mark, Sender, Term
from .verb import Reading

Kind = Literal["serial", "vnc"]
"""The serial console, or the screen, which speaks VNC (RFC 6143)."""

Asker = Annotated[str, Meta(max_length=255)]


class GuestLine(Struct, frozen=True, kw_only=True):
    """Which line, of which guest.

    Attributes
    ----------
    uuid, name
        Of the instance.
    ticket
        The password that VNC asks for, for two minutes, unless the guest has its own.
    by
        Who asked the master for it, for the log.
    """

    uuid: str
    name: str
    hypervisor: str = USUAL
    kind: Kind = "serial"
    ticket: str = ""
    by: Asker = ""


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
    term: Term
    mark: Mark = ""
    sender: Sender = Sender()


class Drawn(Struct, frozen=True, kw_only=True):
    """A ticket, in the words of its node, which says no address.

    Attributes
    ----------
    port
        At the node's address.
    secret
        Opens the line, once.
    fingerprint
        SHA-256 of the certificate that the node shows there, in hex.
    lasts
        Seconds in which it can be used.
    """

    port: Annotated[int, Meta(ge=1, le=65535)]
    secret: Annotated[str, Meta(pattern=r"\A[0-9A-Za-z_-]{32}\Z")]
    fingerprint: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    lasts: int


class DrawTicket(Reading[Drawn], frozen=True, kw_only=True, tag="console.ticket"):
    """Wait for whoever brings a ticket, and connect this one to a guest's console.

    Attributes
    ----------
    uuid, name
        Of the instance.
    address
        Of the node, where they come.
    by
        Who asked the master for it, for the log.
    """

    uuid: str
    name: str
    hypervisor: str = USUAL
    address: str
    by: Asker = ""
