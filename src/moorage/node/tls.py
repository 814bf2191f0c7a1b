# SPDX-License-Identifier: BSD-2-Clause
"""Who may talk to whom: the cluster's certificate authority and what it signs.

A node's certificate is good for serving only, the master's for asking only. So a node
whose key was stolen cannot give orders to another one.
"""

import datetime as dt
import hashlib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from moorage.errors import Failed

from . import durable

MASTER = "moorage-master"
"""Name in the certificate of whoever gives the orders."""
_YEARS = 10
_ONE_DAY = dt.timedelta(days=1)
_FROM_BACKUP = "moorage master start, with the keys from a backup in their place"

Key = ec.EllipticCurvePrivateKey
Certificate = x509.Certificate


def new_key() -> Key:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: Key) -> bytes:
    """Return a private key as text."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def pem(certificate: Certificate) -> bytes:
    """Return a certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: Certificate) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    data = certificate.public_bytes(serialization.Encoding.DER)
    return hashlib.sha256(data).hexdigest()


def self_signed(key: Key, name: str) -> Certificate:
    """Return the certificate of a node that belongs to no cluster yet."""
    return _draft(name, name, key.public_key()).sign(key, hashes.SHA256())


class Authority:
    """The cluster's certificate authority.

    Parameters
    ----------
    directory
        Where its key and certificate are: ``ca.key`` and ``ca.pem``.

    Raises
    ------
    Failed
        If they cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with _whole(directory, "the cluster's keys", _FROM_BACKUP):
            self._key = _load_key(directory / "ca.key")
            self.certificate = load_certificate((directory / "ca.pem").read_bytes())

    @classmethod
    def make(cls, directory: Path, cluster: str) -> "Authority":
        """Make a new authority, and the master's own certificate."""
        key = new_key()
        name = f"{cluster} certificate authority"
        usage = x509.BasicConstraints(ca=True, path_length=0)
        builder = _draft(name, name, key.public_key())
        builder = builder.add_extension(usage, critical=True)
        durable.write(directory / "ca.key", key_pem(key))
        durable.write(directory / "ca.pem", pem(builder.sign(key, hashes.SHA256())))
        authority = cls(directory)
        own = new_key()
        durable.write(directory / "master.key", key_pem(own))
        durable.write(directory / "master.pem", pem(authority.sign_master(own)))
        return authority

    def sign_master(self, key: Key) -> Certificate:
        """Return a certificate that may give orders to nodes."""
        builder = _draft(MASTER, self._name(), key.public_key())
        return self._signed(builder, ExtendedKeyUsageOID.CLIENT_AUTH)

    def sign_node(self, asked: Certificate, name: str) -> Certificate:
        """Return a certificate for the key of a node that joins, good for serving."""
        builder = _draft(name, self._name(), asked.public_key())  # type: ignore[arg-type]
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        builder = builder.add_extension(names, critical=False)
        return self._signed(builder, ExtendedKeyUsageOID.SERVER_AUTH)

    def _signed(
        self, builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier
    ) -> Certificate:
        use = x509.ExtendedKeyUsage([usage])
        leaf = x509.BasicConstraints(ca=False, path_length=None)
        builder = builder.add_extension(use, critical=True)
        builder = builder.add_extension(leaf, critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def _name(self) -> str:
        found = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(found[0].value)

    def asking(self) -> ssl.SSLContext:
        """Return the context in which the master asks nodes.

        Raises
        ------
        Failed
            If the master's own key or certificate cannot be read.
        """
        with _whole(self.directory, "the master's keys", _FROM_BACKUP):
            context = ssl.create_default_context(cafile=str(self.directory / "ca.pem"))
            context.load_cert_chain(
                self.directory / "master.pem", self.directory / "master.key"
            )
        return context


def serving(directory: Path) -> ssl.SSLContext:
    """Return the context in which a node serves its cluster, and nobody else.

    Parameters
    ----------
    directory
        Where ``ca.pem``, ``node.pem`` and ``node.key`` are.

    Raises
    ------
    Failed
        If one of them cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    with _whole(directory, "the node's keys", new_keys(directory)):
        context.load_verify_locations(directory / "ca.pem")
        context.load_cert_chain(directory / "node.pem", directory / "node.key")
    return context


def new_keys(directory: Path) -> str:
    """Return what to type when a node has lost its keys."""
    way_back = "gnt-node add --readd --token-file join-token NODE"
    return f"rm {directory}/*; start the agent; then: {way_back}"


@contextmanager
def _whole(directory: Path, what: str, way_out: str) -> Iterator[None]:
    """Say in one sentence that keys are damaged, as a power cut may leave them."""
    try:
        yield
    except (OSError, ValueError, TypeError) as error:  # ssl.SSLError is an OSError
        empty = sorted(
            path.name
            for path in directory.glob("*")
            if path.is_file() and not path.stat().st_size
        )
        cause = f"{', '.join(empty)} without content" if empty else str(error)
        raise Failed(
            f"{what} in {directory} cannot be read: {cause}", hint=way_out
        ) from error


def _load_key(path: Path) -> Key:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} holds no elliptic-curve key")
    return key


def load_certificate(data: bytes) -> Certificate:
    """Return the certificate that a text holds."""
    return x509.load_pem_x509_certificate(data)


def _draft(
    name: str, issuer: str, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    # A day of slack: the clocks of new nodes are not always right.
    start = dt.datetime.now(dt.UTC) - _ONE_DAY
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _YEARS * 365 * _ONE_DAY)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
