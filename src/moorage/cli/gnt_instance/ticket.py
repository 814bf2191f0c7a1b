# SPDX-License-Identifier: BSD-2-Clause
"""A console by a ticket: from any machine, straight to the agent of the guest's node.

The ticket is in a variable, because the words of a command are there for every user of
the machine to read.
"""

import socket
import ssl
from hashlib import sha256
from json import JSONDecodeError, loads

from moorage.errors import BadInput, Failed, Unreachable, from_json
from moorage.model.addresses import place
from moorage.model.hostnames import lowered, short_for
from moorage.model.token import Ticket, ticket_from_text

_PATIENCE = 10.0
"""Seconds that the node may take to answer."""
_AGAIN = "gnt-instance console --show-cmd {}, on the master's node, draws another one"


def connect(word: str, name: str) -> tuple[socket.socket, str]:
    """Return the connection that a ticket opens, and the name of the guest.

    Raises
    ------
    BadInput
        If it is no ticket, or one for another guest.
    Unreachable
        If nobody waits for it any more, or somebody else.
    MoorageError
        What the node says instead.
    """
    ticket = ticket_from_text(word)
    if lowered(name) != ticket.instance and not short_for(name, [ticket.instance]):
        raise BadInput(f"the ticket is for {ticket.instance}, not for {name}")
    link = _known(ticket)
    try:
        _enter(link, ticket)
    except BaseException:
        link.close()
        raise
    link.settimeout(None)
    return link, ticket.instance


def _known(ticket: Ticket) -> ssl.SSLSocket:
    """Return a connection to the agent that drew a ticket, and to nobody else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the ticket says which certificate it is
    context.verify_mode = ssl.CERT_NONE
    try:
        bare = socket.create_connection((ticket.address, ticket.port), _PATIENCE)
        link = context.wrap_socket(bare)
    except (OSError, UnicodeError, OverflowError) as error:
        raise _over(ticket, error) from error
    shown = sha256(link.getpeercert(binary_form=True) or b"").hexdigest()
    if shown == ticket.fingerprint:
        return link
    link.close()
    raise Failed(
        f"who answers at {place(ticket.address, ticket.port)} is not the node that "
        "drew the ticket: nothing was said to it",
        hint=_AGAIN.format(ticket.instance),
    )


def _enter(link: ssl.SSLSocket, ticket: Ticket) -> None:
    """Say the secret, and hear what the node says."""
    try:
        link.sendall(ticket.secret.encode())
        told = _first_line(link)
    except OSError as error:
        raise _over(ticket, error) from error
    if "error" in told:
        raise from_json(told["error"])


def _over(ticket: Ticket, error: Exception) -> Unreachable:
    why = getattr(error, "strerror", None) or error
    return Unreachable(
        f"nobody waits at {place(ticket.address, ticket.port)} for this ticket: it was "
        f"used, or is over ({why})",
        hint=_AGAIN.format(ticket.instance),
    )


def _first_line(link: socket.socket) -> dict[str, dict[str, object]]:
    """Return what the node says first: a line of JSON, and no byte more."""
    said = b""
    while not said.endswith(b"\n"):
        more = link.recv(1)
        if not more:
            raise ConnectionError("it hung up")
        said += more
    try:
        found: dict[str, dict[str, object]] = loads(said)
    except JSONDecodeError as error:
        raise ConnectionError("it says what is no answer") from error
    return found
