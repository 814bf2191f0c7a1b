# SPDX-License-Identifier: BSD-2-Clause
"""Words that let somebody in, once: a node into the cluster, a person to a console.

A node keeps its token in a file; whoever adds the node hands it to the master. A ticket
is drawn by the master. Both say where a node listens, which key it shows there, and a
secret that proves that who comes has seen the word.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import TypeVar

from msgspec import DecodeError, Struct, json

from moorage.errors import BadInput

T = TypeVar("T")


class Token(Struct, frozen=True):
    """An invitation to one node.

    Attributes
    ----------
    address, port
        Where the node listens.
    fingerprint
        SHA-256 of the public key that it shows, in hex; the cluster goes on
        to know it by that.
    secret
        What the master must say.
    """

    address: str
    port: int
    fingerprint: str
    secret: str


class Ticket(Struct, frozen=True):
    """What opens the console of one guest, once, for a short time.

    Attributes
    ----------
    instance
        Its name.
    address, port
        Where the agent of its node waits.
    fingerprint
        SHA-256 of the certificate that the agent shows there, in hex.
    secret
        What the holder must say.
    """

    instance: str
    address: str
    port: int
    fingerprint: str
    secret: str


def to_text(word: Token | Ticket) -> str:
    """Return a token or a ticket as a word that can be copied."""
    return urlsafe_b64encode(json.encode(word)).decode().rstrip("=")


def from_text(text: str) -> Token:
    """Return the token that a word stands for.

    Raises
    ------
    BadInput
        If it is none.
    """
    hint = "the node's agent keeps it in its file join-token"
    return _read(text, Token, "that is no token of a node", hint)


def ticket_from_text(text: str) -> Ticket:
    """Return the ticket that a word stands for.

    Raises
    ------
    BadInput
        If it is none.
    """
    how = "gnt-instance console --show-cmd INSTANCE, on the master's node, draws one"
    return _read(text, Ticket, "MOORAGE_TICKET is no ticket of a console", how)


def _read(text: str, kind: type[T], complaint: str, hint: str) -> T:
    word = text.strip()
    try:
        data = urlsafe_b64decode(word + "=" * (-len(word) % 4))
        return json.decode(data, type=kind)
    except (Error, DecodeError, ValueError):
        raise BadInput(complaint, hint=hint) from None
