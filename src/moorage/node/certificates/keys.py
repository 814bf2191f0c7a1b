# SPDX-License-Identifier: BSD-2-Clause
"""A node's keys once it belongs to a cluster: served with, and changed meanwhile."""

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from cryptography import x509

from moorage import durable
from moorage.errors import BadInput

from . import tls

_FILES = (
    *("node.pem", "node.key", "next.key", "ca.pem", "former.pem", "issued", "name"),
)


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
    taken_back
        Called when a key that gave orders gives none any more.

    Raises
    ------
    Failed
        If they cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.context = _Changing(tls.serving(directory))
        self.taken_back: list[Callable[[], None]] = []
        self._masters = self._known()
        self._late: set[str] = set()

    @property
    def masters(self) -> tuple[str, ...]:
        """Pins of the keys whose orders are taken."""
        return tuple(sorted(self._masters))

    def believes(self, pins: frozenset[str]) -> bool:
        """Whether orders are taken of a master that is known by one of some keys."""
        return not pins.isdisjoint(self._masters.keys() | self._late)

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
        """Return the request for a certificate of a new key; the same one for minutes.

        Raises
        ------
        Failed
            If the keys cannot be read.
        """
        path = self.directory / "next.key"
        if not tls.waits(path) or self._pin(path) == self._pin(self._key()):
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

    def trust(
        self, texts: tuple[str, ...], former: tuple[str, ...] = (), issued: int = 0
    ) -> None:
        """Take orders from the masters of these certificates, and of nobody else.

        Parameters
        ----------
        former
            Certificates of masters that are told so much.
        issued
            When this was said, in microseconds; it never falls here.

        Raises
        ------
        BadInput
            If there is none, or one cannot be read; nothing was changed then.
        """
        try:
            found = [tls.load_certificate(text.encode()) for text in texts]
            before = [tls.load_certificate(text.encode()) for text in former]
        except ValueError as error:
            raise BadInput(f"a master's certificate is off: {error}") from None
        if not found:
            raise BadInput("a node needs a master to trust")
        durable.write(self.directory / "ca.pem", tls.bundle(found))
        write_issued(self.directory, max(issued, self._issued()))
        if before:
            durable.write(self.directory / "former.pem", tls.bundle(before))
        else:
            durable.remove(self.directory / "former.pem")
        known = self._masters.keys() | self._late
        self._late = set()
        self._changed()
        if known - self._masters.keys():
            for tell in self.taken_back:
                tell()

    def speaker(self, shown: bytes) -> frozenset[str]:
        """Return the pins of who shows a certificate (DER) that was seen to be good.

        It is empty for who shows none, or is trusted no more: a connection may be older
        than the trust. A node that was off takes the word of a master that it knows:
        for that one's next key, which has the same rights; and for a candidate that was
        let in later than the node was told whom to obey, or else it was taken back.
        """
        if not shown:
            return frozenset()
        found = x509.load_der_x509_certificate(shown)
        own = tls.pin_of(found)
        if own in self._masters:
            return frozenset({own})
        for pin, one in self._masters.items():
            if not tls.signed_by(found, one):
                continue
            if tls.who(one) in ("", tls.who(found)):
                return frozenset({own, pin})
            if tls.let_in(found) > self._issued():
                self._late.add(own)
                return frozenset({own})
        return frozenset()

    def _issued(self) -> int:
        """Return when the node was told last whom to obey, in the master's time."""
        path = self.directory / "issued"
        text = path.read_text().strip() if path.exists() else ""
        return int(text) if text.isdecimal() else 0

    def _changed(self) -> None:
        self.context.now = tls.serving(self.directory)
        self._masters = self._known()

    def _known(self) -> Mapping[str, tls.Certificate]:
        with self._whole():
            found = tls.load_all((self.directory / "ca.pem").read_bytes())
            return {tls.pin_of(one): one for one in found}

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


def write_issued(directory: Path, issued: int) -> None:
    """Note when a node was told whom to obey, in microseconds."""
    durable.write(directory / "issued", f"{issued}\n".encode())


def listed(texts: Iterable[str]) -> Iterator[str]:
    """Yield the pins of certificates, as PEM.

    Raises
    ------
    BadInput
        If one cannot be read.
    """
    try:
        yield from (tls.pin_of(tls.load_certificate(one.encode())) for one in texts)
    except ValueError as error:
        raise BadInput(f"a master's certificate is off: {error}") from None


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
