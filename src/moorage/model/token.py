# SPDX-License-Identifier: BSD-2-Clause
"""The token by which a new node is let into the cluster.

The node keeps it in a file; whoever adds the node hands it to the master. It says where
the node listens, which key it shows there, and a secret that proves that the
orders come from somebody who has seen the token.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from msgspec import DecodeError, Struct, json

from moorage.errors import BadInput


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


def to_text(token: Token) -> str:
    """Return the token as a word that can be copied."""
    return urlsafe_b64encode(json.encode(token)).decode().rstrip("=")


def from_text(text: str) -> Token:
    """Return the token that a word stands for.

    Raises
    ------
    BadInput
        If it is none.
    """
    word = text.strip()
    try:
        data = urlsafe_b64decode(word + "=" * (-len(word) % 4))
        return json.decode(data, type=Token)
    except (Error, DecodeError, ValueError):
        raise BadInput(
            "that is no token of a node",
            hint="the node's agent keeps it in its file join-token",
        ) from None
