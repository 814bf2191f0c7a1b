# SPDX-License-Identifier: BSD-2-Clause
"""A node's keys once it belongs to a cluster: served with, and changed meanwhile."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from moorage import durable
from moorage.errors import BadInput

from . import tls

_FILES = ("node.pem", "node.key", "next.key", "ca.pem", "name")


class Keys:
    """The keys of a node that was let in.

    A new key waits in ``next.key`` for its certificate. Then both are written to
    ``node.pem`` at once, so that a power cut leaves the old pair or the new one.

    Parameters
    ----------
    directory
        Where ``node.pem`` and ``ca.pem`` are.

    Attributes
    ----------
    context
        In which the node serves; connections that begin after a change see it.

    Raises
    ------
    Failed
        If they cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.context = _Changing(tls.serving(directory))

    def for_strangers(self) -> tuple[ssl.SSLContext, str]:
        """Return a context that asks nobody for a certificate, and what it shows.

        That is the SHA-256 of this node's certificate, in hex.
        """
        context = tls.serving(self.directory)
        context.verify_mode = ssl.CERT_NONE
        with self._whole():
            shown = (self.directory / "node.pem").read_bytes()
            found = tls.load_certificate(shown[shown.index(b"-----BEGIN CERT") :])
        return context, tls.fingerprint(found)

    def request(self) -> str:
        """Return the request for a certificate of a new key; the same one until then.

        Raises
        ------
        Failed
            If the keys cannot be read.
        """
        path = self.directory / "next.key"
        if not path.exists() or self._pin(path) == self._pin(self._key()):
            durable.write(path, tls.key_pem(tls.new_key()))
        with self._whole():
            asked = tls.request(tls.load_key(path), "moorage node")
        return tls.request_pem(asked).decode()

    def take(self, text: str) -> None:
        """Serve with a new certificate, and its key, from now on.

        Raises
        ------
        BadInput
            If it is for no key of this node; nothing was changed then.
        """
        try:
            wanted = tls.pin(tls.public(tls.load_certificate(text.encode())))
        except ValueError as error:
            raise BadInput(f"the certificate cannot be read: {error}") from None
        for path in (self.directory / "next.key", self._key()):
            if path.exists() and self._pin(path) == wanted:
                break
        else:
            raise BadInput("the certificate is for another key than this node's")
        pair = tls.key_pem(tls.load_key(path)) + text.encode()
        durable.write(self.directory / "node.pem", pair)
        self._changed()
        durable.remove(*(self.directory / name for name in ("next.key", "node.key")))

    def trust(self, texts: tuple[str, ...]) -> None:
        """Take orders from whoever one of these authorities signed.

        Raises
        ------
        BadInput
            If there is none, or one cannot be read; nothing was changed then.
        """
        try:
            found = [tls.load_certificate(text.encode()) for text in texts]
        except ValueError as error:
            raise BadInput(f"an authority's certificate is off: {error}") from None
        if not found:
            raise BadInput("a node needs an authority to trust")
        durable.write(self.directory / "ca.pem", tls.bundle(found))
        self._changed()

    def trusts(self, peer: Mapping[str, Any]) -> bool:
        """Whether a certificate that was seen to be good is of an authority of today.

        A connection may be older than the trust, and no two authorities share a name.
        """
        trusted = self.context.now.get_ca_certs()
        return peer["issuer"] in [one["subject"] for one in trusted]

    def _changed(self) -> None:
        self.context.now = tls.serving(self.directory)

    def _key(self) -> Path:
        """Return the file with the key that the node serves with."""
        both, apart = tls.chain(self.directory, "node")
        return apart or both

    def _pin(self, path: Path) -> str:
        with self._whole():
            return tls.pin(tls.load_key(path).public_key())

    def _whole(self) -> Any:  # noqa: ANN401
        way_out = tls.new_keys(self.directory)
        return tls.whole(self.directory, "the node's keys", way_out)


def forget(directory: Path) -> None:
    """Forget the cluster: what it gave the node, and the keys that it knew."""
    durable.remove(*(directory / name for name in _FILES))


class _Changing(ssl.SSLContext):
    """A context that stands for another one, which may change while it serves."""

    now: ssl.SSLContext

    def __new__(cls, _now: ssl.SSLContext) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, now: ssl.SSLContext) -> None:
        self.now = now

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:  # noqa: ANN401
        """Begin a connection, with the keys of this moment."""
        return self.now.wrap_bio(*args, **kwargs)
