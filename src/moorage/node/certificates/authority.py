# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's certificate authority, on the master, and the master's own key.

The authority signs nodes, and no node takes orders of what it signed. Its key stays on
one machine: the next master makes an authority of its own, and believes both.

One authority follows another in four steps, each of which can be repeated. Between the
first and the last both are trusted, so that nobody is shut out in the middle.

A master's own key is known to the nodes by its certificate. A new one is signed with
the key of the master that lets it in, or with the one that it follows: a node that was
off meanwhile takes it for what it knows.
"""

import ipaddress
import secrets
import ssl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from moorage import durable
from moorage.errors import Failed

from . import tls
from .tls import FROM_BACKUP, Certificate, Key

_LATEST = "signed"
"""Name of the file with the date of the last master that was let in, microseconds."""
DUE = 120 * 86400.0
"""Seconds before its end in which a certificate is renewed."""


def _called(name: str) -> x509.GeneralName:
    """Return what clients compare with what they typed: a name, or an IP address."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authority:
    """The cluster's certificate authority, and the master's own certificate.

    Parameters
    ----------
    directory
        Where ``ca.key`` (the key and its certificate), ``ca.pem`` (who is trusted) and
        ``master.pem`` are, and ``next.key`` while an authority is followed by another.
        Who only asks needs no ``ca.key``.
    clock
        The time in seconds.
    own
        Name of the file with the key and certificate to ask with, without its end.

    Raises
    ------
    Failed
        If they cannot be read.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.time,
        own: str = "master",
    ) -> None:
        self.directory = directory
        self.clock = clock
        self._own = own
        self._own_ends: float | None = None
        self._last = 0
        if (directory / "ca.key").exists():
            self._pair()
        elif not (directory / "ca.pem").exists():
            self._pair()  # says what is missing

    @classmethod
    def make(
        cls, directory: Path, cluster: str, clock: Callable[[], float] = time.time
    ) -> "Authority":
        """Make a new authority, and the master's own certificate."""
        made = _new(cluster, clock())
        durable.write(directory / "ca.key", _text(*made))
        durable.write(directory / "ca.pem", tls.pem(made[1]))
        authority = cls(directory, clock)
        key = tls.new_key()
        authority._give_master(_text(key, _first_master(key, clock())))
        return authority

    def follow(self, bundle: bytes) -> None:
        """Trust whom the master before trusted, and nobody else.

        An authority that was made here stays, if it is one of these.
        """
        trusted = tls.load_all(bundle)
        known = (self.directory / "ca.key").exists() and self.certificate in trusted
        if not known:
            durable.remove(self.directory / "ca.key", self.directory / "next.key")
        self._trust(*trusted)

    def complete(self) -> None:
        """Make an authority where there is none: the one before kept its key."""
        if (self.directory / "ca.key").exists():
            return
        before = self.trusted
        made = _new(tls.common_name(before[0]).partition(" ")[0], self.clock())
        self._trust(*before, made[1])
        durable.write(self.directory / "ca.key", _text(*made))

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
        return self._own_pair()[1]

    def _own_pair(self) -> tuple[Key, Certificate]:
        with tls.whole(self.directory, "the master's keys", FROM_BACKUP):
            both, apart = tls.chain(self.directory, self._own)
            signed = tls.load_certificate(both.read_bytes())
            return tls.load_key(apart or both), signed

    @property
    def changing(self) -> bool:
        """Whether a next authority is trusted beside the present one."""
        return (self.directory / "next.key").exists()

    def asking(self) -> ssl.SSLContext:
        """Return a context in which the master asks a node."""
        return tls.asking(self.directory, self._own)

    def asks_with(self) -> bytes:
        """Return what is another one when a context would be another one."""
        return tls.asks_with(self.directory, self._own)

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
        names = x509.SubjectAlternativeName([_called(name)])
        drawn = drawn.add_extension(names, critical=False)
        return _signed(drawn, ExtendedKeyUsageOID.SERVER_AUTH, pair)

    def sign_master(self, asked: Certificate | tls.Request) -> Certificate:
        """Return a certificate for the key of a master, good for asking.

        It is signed with the key of this one. A master of before each had a key of
        its own cannot sign: the authority does it, which nodes still trust then.
        """
        return self._sign(tls.public(asked), secrets.token_hex(4))

    def _sign(self, key: ec.EllipticCurvePublicKey, who: str) -> Certificate:
        pair = self._own_pair()
        if not tls.introduces(pair[1]):
            pair = self._pair()
        signed = _master(key, pair, self.clock(), who)
        self._note([signed])
        return signed

    def told(self, listed: Iterable[Certificate]) -> int:
        """Return when a list of masters is told, in microseconds.

        That is no earlier than anybody was let in, as far as this machine has seen:
        whoever is not in the list any more was let in before. A clock may go back.
        """
        self._note(listed)
        return max(int(self.clock() * 1e6), self._latest())

    def _note(self, signed: Iterable[Certificate]) -> None:
        """Remember when the last one of masters was let in."""
        found = max(map(tls.let_in, signed), default=0)
        if found > self._latest():
            self._last = found
            with suppress(OSError):  # a full disk keeps nobody from telling nodes
                durable.write(self.directory / _LATEST, f"{found}\n".encode())

    def _latest(self) -> int:
        path = self.directory / _LATEST
        text = path.read_text().strip() if path.exists() else ""
        return max(self._last, int(text) if text.isdecimal() else 0)

    def own_text(self) -> tuple[str, str]:
        """Return the master's certificate and key, as PEM."""
        key, signed = self._own_pair()
        return tls.pem(signed).decode(), tls.key_pem(key).decode()

    def prepare_master(self) -> Certificate:
        """Return the certificate of the master's next key; the same one for minutes."""
        path = self.directory / "next-master.pem"
        with tls.whole(self.directory, "the master's keys", FROM_BACKUP):
            if tls.waits(path):
                return self._next_master()
            key = tls.new_key()
            signed = self._sign(key.public_key(), tls.who(self.own))
            durable.write(path, _text(key, signed))
            return signed

    def _next_master(self) -> Certificate:
        return tls.load_certificate((self.directory / "next-master.pem").read_bytes())

    def renew_master(self, promised: str = "") -> None:
        """Give the master its next key and certificate.

        A step further would lead away from those who know the one before: a master
        that has the `promised` certificate (PEM) keeps it.
        """
        path = self.directory / "next-master.pem"
        if promised == self.own_text()[0] and not path.exists():
            return
        if not (path.exists() and tls.pem(self._next_master()).decode() == promised):
            self.prepare_master()  # however long ago, what was promised is given
        self._give_master(path.read_bytes())
        durable.remove(path)

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

    def take_own(self, text: bytes) -> None:
        """Ask with this key from now on, which somebody else has got a certificate for.

        Raises
        ------
        OSError, ValueError, TypeError
            If it is no key with its certificate; nothing was changed then.
        """
        tls.read_key(text)
        tls.load_certificate(text)
        self._give_master(text)

    def _give_master(self, text: bytes) -> None:
        durable.write(self.directory / "master.pem", text)
        durable.remove(self.directory / "master.key")
        self._own_ends = None

    def prepare(self) -> None:
        """Make the next authority, and trust both."""
        if not (self.directory / "next.key").exists():
            cluster = tls.common_name(self.certificate).partition(" ")[0]
            made = _new(cluster, self.clock())
            durable.write(self.directory / "next.key", _text(*made))
        others = [one for one in self.trusted if one != self._read("next")[1]]
        self._trust(*others, self._read("next")[1])

    def abandon(self) -> None:
        """Give the next authority up; nobody has a certificate of it yet."""
        if self.changing:
            given_up = self._read("next")[1]
            self._trust(*(one for one in self.trusted if one != given_up))
            durable.remove(self.directory / "next.key")

    def switch(self) -> None:
        """Let the next authority sign from now on."""
        if self.changing:
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


def _first_master(key: Key, now: float) -> Certificate:
    """Return the certificate of a cluster's first master, which nobody lets in."""
    return _master(key.public_key(), (key, None), now, secrets.token_hex(4))


def _master(
    public: ec.EllipticCurvePublicKey,
    pair: tuple[Key, Certificate | None],
    now: float,
    who: str,
) -> Certificate:
    """Return a certificate for a master's key; its name is told apart from others'.

    Its serial number begins with the microsecond in which it was signed. `who` stays
    when a master's key follows another one of its own.
    """
    name = f"{tls.MASTER} {who} {secrets.token_hex(4)}"
    serial = (int(now * 1e6) << tls.RANDOM_BITS) | secrets.randbits(tls.RANDOM_BITS)
    issuer = tls.common_name(pair[1]) if pair[1] else name
    usage = x509.BasicConstraints(ca=True, path_length=0)
    drawn = tls.draft(name, issuer, public, now, tls.ROOT_DAYS, serial)
    asks = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    drawn = drawn.add_extension(usage, critical=True)
    return drawn.add_extension(asks, critical=True).sign(pair[0], hashes.SHA256())


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
