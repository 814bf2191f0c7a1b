# SPDX-License-Identifier: BSD-2-Clause
"""The way to one node: what it shows is compared with what the cluster knows of it.

The authority's signature says that somebody was let in, once. The pin (SHA-256 of the
public key) says who bears the name today: a node that was removed, or let in anew, is
not asked any more with its old key, however long its certificate lives.
"""

import ssl
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

from cryptography import x509

from moorage.node.certificates import tls

_DATE = "%Y-%m-%d"


class Mistrusted(ssl.SSLCertVerificationError):
    """What a node shows is not believed; nothing was sent to it.

    Parameters
    ----------
    words
        The end of the sentence "no trust in its certificate: ...".
    hint
        What to type.
    expired
        Whether it is a known key, and its certificate is over.
    """

    def __init__(self, words: str, hint: str, *, expired: bool = False) -> None:
        super().__init__(1, words)
        self.verify_message = words
        self.hint = hint
        self.expired = expired


@dataclass(frozen=True, slots=True)
class Shown:
    """What a node showed when the connection was made.

    Attributes
    ----------
    pin
        SHA-256 of its public key, in hex.
    ends
        When its certificate is over, in seconds.
    """

    pin: str
    ends: float


class Way:
    """The way to one node.

    Parameters
    ----------
    shared
        What this side shows and whom it believes, for many ways; its connections look
        at nothing more (:func:`watched`).
    name
        Of the node.
    pins
        The keys that are believed; any if there are none.
    clock
        The time in seconds; None if the dates are not looked at.

    Attributes
    ----------
    context
        Of this node alone: connections that it made are used again for this way only,
        and so with the same pins.
    shown
        What the node showed last; None before the first connection.
    speaks
        The newest version of the protocol that the node spoke last.
    expired
        Whether the node showed a certificate last whose dates are over.
    """

    def __init__(
        self,
        shared: ssl.SSLContext,
        name: str,
        pins: Collection[str],
        clock: Callable[[], float] | None = time.time,
    ) -> None:
        self.context = _OneNodes(shared, self._look)
        self.pins = frozenset(pins)
        self.shown: Shown | None = None
        self.speaks = 0
        self.expired = False
        self._name = name
        self._clock = clock

    @property
    def over(self) -> bool:
        """Whether the certificate that the node showed has come to its end since."""
        return bool(self._clock and self.shown and self.shown.ends < self._clock())

    def _look(self, data: bytes) -> None:
        """Raise `Mistrusted` unless the certificate is the node's, and still good."""
        try:
            found = x509.load_der_x509_certificate(data)
            shown = Shown(tls.pin(tls.public(found)), tls.ends(found))
        except ValueError as error:
            raise Mistrusted(f"it cannot be read: {error}", "") from None
        if self.pins and shown.pin not in self.pins:
            again = f"gnt-node add --readd --token-file join-token {self._name}"
            raise Mistrusted(
                f"its key (SHA-256 {shown.pin[:16]}…) is not the one that the cluster "
                f"knows of {self._name}",
                f"if the node was made anew: {again}",
            )
        self.expired = bool(self._clock and shown.ends < self._clock())
        if self.expired:
            raise Mistrusted(
                f"it expired on {found.not_valid_after_utc:{_DATE}}",
                "gnt-cluster renew-crypto --new-node-certificates",
                expired=True,
            )
        self.shown = shown


class _Watched(ssl.SSLObject):
    """A connection whose handshake ends with a look at the peer."""

    look: Callable[[bytes], None]

    def do_handshake(self) -> None:
        super().do_handshake()
        self.look(self.getpeercert(binary_form=True) or b"")


def watched(context: ssl.SSLContext) -> ssl.SSLContext:
    """Have a context make connections that a way looks at, and no others: they fail."""
    context.sslobject_class = _Watched
    return context


class _OneNodes(ssl.SSLContext):
    """A context that stands for one which many share: keys and trust take memory."""

    def __new__(cls, *_: object) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, shared: ssl.SSLContext, look: Callable[[bytes], None]) -> None:
        self._shared = shared
        self._look = look

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:  # noqa: ANN401
        """Begin a connection to the node."""
        made = self._shared.wrap_bio(*args, **kwargs)
        vars(made)["look"] = self._look
        return made
