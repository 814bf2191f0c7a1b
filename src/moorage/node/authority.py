# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's certificate authority, on the master: who is signed, and renewed.

One authority follows another in four steps, each of which can be repeated. Between the
first and the last both are trusted, so that nobody is shut out in the middle.
"""

import secrets
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID

from moorage import durable
from moorage.errors import Failed

from . import tls
from .tls import FROM_BACKUP, Certificate, Key

DUE = 120 * 86400.0
"""Seconds before its end in which a certificate is renewed."""


class Authority:
    """The cluster's certificate authority, and the master's own certificate.

    Parameters
    ----------
    directory
        Where ``ca.key`` (the key and its certificate), ``ca.pem`` (who is trusted) and
        ``master.pem`` are, and ``next.key`` while an authority is followed by another.
    clock
        The time in seconds.

    Raises
    ------
    Failed
        If they cannot be read.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self.directory = directory
        self.clock = clock
        self._own_ends: float | None = None
        self._pair()

    @classmethod
    def make(
        cls, directory: Path, cluster: str, clock: Callable[[], float] = time.time
    ) -> "Authority":
        """Make a new authority, and the master's own certificate."""
        made = _new(cluster, clock())
        durable.write(directory / "ca.key", _text(*made))
        durable.write(directory / "ca.pem", tls.pem(made[1]))
        authority = cls(directory, clock)
        authority.renew_master()
        return authority

    @property
    def certificate(self) -> Certificate:
        """The authority's own certificate."""
        return self._pair()[1]

    @property
    def trusted(self) -> list[Certificate]:
        """The certificates of all authorities that are trusted now."""
        return tls.load_all((self.directory / "ca.pem").read_bytes())

    @property
    def own(self) -> Certificate:
        """The master's certificate.

        Raises
        ------
        Failed
            If it cannot be read.
        """
        with tls.whole(self.directory, "the master's keys", FROM_BACKUP):
            return tls.load_certificate((self.directory / "master.pem").read_bytes())

    def asking(self) -> ssl.SSLContext:
        """Return a context in which the master asks a node."""
        return tls.asking(self.directory)

    def sign_node(
        self, asked: Certificate | tls.Request, name: str, *, by_next: bool = False
    ) -> Certificate:
        """Return a certificate for the key of a node, good for serving.

        Parameters
        ----------
        by_next
            Whether the next authority signs it.
        """
        pair = self._read("next") if by_next else self._pair()
        issuer = tls.common_name(pair[1])
        days = tls.LEAF_DAYS
        drawn = tls.draft(name, issuer, tls.public(asked), self.clock(), days)
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        drawn = drawn.add_extension(names, critical=False)
        return _signed(drawn, ExtendedKeyUsageOID.SERVER_AUTH, pair)

    def _master(self, key: Key, pair: tuple[Key, Certificate]) -> Certificate:
        issuer, now = tls.common_name(pair[1]), self.clock()
        drawn = tls.draft(tls.MASTER, issuer, key.public_key(), now, tls.LEAF_DAYS)
        return _signed(drawn, ExtendedKeyUsageOID.CLIENT_AUTH, pair)

    def renew_master(self) -> None:
        """Give the master a new key and certificate."""
        self._give_master(self._pair())

    def keep(self) -> bool:
        """Renew the master's certificate when it is due; return whether it was.

        Raises
        ------
        Failed
            If it is over, and cannot be renewed.
        """
        if self._own_ends is None:
            self._own_ends = tls.ends(self.own)
        left = self._own_ends - self.clock()
        if left > DUE:
            return False
        try:
            self.renew_master()
        except (OSError, Failed) as error:
            if left > 0:
                return False  # it is tried again with the next call
            raise Failed(
                "the master's own certificate expired on "
                f"{self.own.not_valid_after_utc:%Y-%m-%d}, and cannot be renewed: "
                f"{error}",
                hint=FROM_BACKUP,
            ) from error
        return True

    def _give_master(self, pair: tuple[Key, Certificate]) -> None:
        key = tls.new_key()
        text = _text(key, self._master(key, pair))
        durable.write(self.directory / "master.pem", text)
        durable.remove(self.directory / "master.key")
        self._own_ends = None

    def prepare(self) -> None:
        """Make the next authority, and trust both."""
        if not (self.directory / "next.key").exists():
            cluster = tls.common_name(self.certificate).partition(" ")[0]
            made = _new(cluster, self.clock())
            durable.write(self.directory / "next.key", _text(*made))
        self._trust(self.certificate, self._read("next")[1])

    def abandon(self) -> None:
        """Give the next authority up; nobody has a certificate of it yet."""
        durable.remove(self.directory / "next.key")
        self._trust(self.certificate)

    def switch(self) -> None:
        """Let the next authority sign from now on, the master's certificate first."""
        if (self.directory / "next.key").exists():
            self._give_master(self._read("next"))
            (self.directory / "next.key").replace(self.directory / "ca.key")
            durable.sync(self.directory)

    def retire(self) -> None:
        """Trust nobody any more but the present authority."""
        self._trust(self.certificate)

    def _trust(self, *certificates: Certificate) -> None:
        durable.write(self.directory / "ca.pem", tls.bundle(certificates))

    def _pair(self) -> tuple[Key, Certificate]:
        return self._read("ca")

    def _read(self, name: str) -> tuple[Key, Certificate]:
        path = self.directory / f"{name}.key"
        with tls.whole(self.directory, "the cluster's keys", FROM_BACKUP):
            text = path.read_bytes()
            if b"BEGIN CERTIFICATE" not in text:  # of a cluster that was made long ago
                text = (self.directory / f"{name}.pem").read_bytes()
            return tls.load_key(path), tls.load_certificate(text)


def _new(cluster: str, now: float) -> tuple[Key, Certificate]:
    """Return an authority; its name is told apart from that of the one before it."""
    key = tls.new_key()
    name = f"{cluster[:24]} certificate authority {secrets.token_hex(4)}"
    usage = x509.BasicConstraints(ca=True, path_length=0)
    drawn = tls.draft(name, name, key.public_key(), now, tls.ROOT_DAYS)
    drawn = drawn.add_extension(usage, critical=True)
    return key, drawn.sign(key, hashes.SHA256())


def _signed(
    drawn: x509.CertificateBuilder,
    usage: x509.ObjectIdentifier,
    pair: tuple[Key, Certificate],
) -> Certificate:
    leaf = x509.BasicConstraints(ca=False, path_length=None)
    drawn = drawn.add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
    drawn = drawn.add_extension(leaf, critical=True)
    return drawn.sign(pair[0], hashes.SHA256())


def _text(key: Key, certificate: Certificate) -> bytes:
    return tls.key_pem(key) + tls.pem(certificate)
