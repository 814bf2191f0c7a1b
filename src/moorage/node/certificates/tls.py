# SPDX-License-Identifier: BSD-2-Clause
"""Keys, certificates, and the contexts in which master and nodes talk.

A node's certificate is good for serving only, a master's for asking only. Nodes know
each key that may give orders, and no authority: so there is none whose key is worth
all nodes.

Dates are not looked at here, but by who asks a node (:mod:`moorage.node.calling.pins`)
and by the agent's server: they say whose certificate is over, and a known key may be
used to renew it.
"""

import datetime as dt
import hashlib
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from moorage.errors import Failed

MASTER = "moorage-master"
"""Name in the certificate of whoever gives the orders."""
RANDOM_BITS = 64
"""Of a master's serial number; above them is when it was signed, in microseconds."""
LEAF_DAYS, ROOT_DAYS = 365, 10 * 365
"""How long a certificate lives, and the authority's own."""
_ONE_DAY = dt.timedelta(days=1)
_WAITS = 120.0
"""Seconds for which a key that was drawn is the next one."""
NO_DATES = 0x200000
"""OpenSSL's ``X509_V_FLAG_NO_CHECK_TIME``."""

FROM_BACKUP = "moorage master start, with the keys from a backup in their place"

Key = ec.EllipticCurvePrivateKey
Certificate = x509.Certificate
Request = x509.CertificateSigningRequest


def new_key() -> Key:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: Key, passphrase: bytes = b"") -> bytes:
    """Return a private key as text, sealed with a passphrase if there is one."""
    sealed = serialization.BestAvailableEncryption(passphrase) if passphrase else None
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        sealed or serialization.NoEncryption(),
    )


def pem(certificate: Certificate) -> bytes:
    """Return a certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: Certificate) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    data = certificate.public_bytes(serialization.Encoding.DER)
    return hashlib.sha256(data).hexdigest()


def pin(key: ec.EllipticCurvePublicKey) -> str:
    """Return the SHA-256 of a public key, in hex: it stays when it is signed again."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    data = key.public_bytes(serialization.Encoding.DER, form)
    return hashlib.sha256(data).hexdigest()


def self_signed(key: Key, name: str) -> Certificate:
    """Return the certificate of a node that belongs to no cluster yet."""
    drawn = draft(name, name, key.public_key(), time.time(), ROOT_DAYS)
    return drawn.sign(key, hashes.SHA256())


def serving(directory: Path) -> ssl.SSLContext:
    """Return the context in which a node serves its cluster, and nobody else.

    Parameters
    ----------
    directory
        Where ``ca.pem``, ``node.pem`` and ``node.key`` are; and ``former.pem``, with
        masters that are heard, and obeyed no more.

    Raises
    ------
    Failed
        If one of them cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    # Masters' certificates are trusted themselves, and most are signed by another one.
    context.verify_flags |= NO_DATES | ssl.VERIFY_X509_PARTIAL_CHAIN
    with whole(directory, "the node's keys", new_keys(directory)):
        context.load_verify_locations(directory / "ca.pem")
        if (directory / "former.pem").exists():
            context.load_verify_locations(directory / "former.pem")
        context.load_cert_chain(*chain(directory, "node"))
    return context


def asking(directory: Path, own: str = "master") -> ssl.SSLContext:
    """Return a context in which the master asks a node.

    Parameters
    ----------
    directory
        Where ``ca.pem`` is, and a file with the master's key and certificate.
    own
        Name of that file, without its end.

    Raises
    ------
    Failed
        If one of them cannot be read.
    """
    with whole(directory, "the master's keys", FROM_BACKUP):
        context = ssl.create_default_context(cafile=str(directory / "ca.pem"))
        context.verify_flags |= NO_DATES
        context.load_cert_chain(*chain(directory, own))
    return context


def asks_with(directory: Path, own: str = "master") -> bytes:
    """Return a hash of all that :func:`asking` reads, with the same errors."""
    with whole(directory, "the master's keys", FROM_BACKUP):
        files = (directory / "ca.pem", *chain(directory, own))
        texts = [file.read_bytes() for file in files if file]
    return hashlib.sha256(b"".join(texts)).digest()


def chain(directory: Path, name: str) -> tuple[Path, Path | None]:
    """Return where a certificate and its key are.

    They are in one file, so that both change at once; in two where they are those of
    a node that was just let in, or of a cluster that was made long ago.
    """
    both, key = directory / f"{name}.pem", directory / f"{name}.key"
    return both, None if b"PRIVATE KEY" in both.read_bytes() else key


def new_keys(directory: Path) -> str:
    """Return what to type when a node has lost its keys."""
    way_back = "gnt-node add --readd --token-file join-token NODE"
    return f"rm {directory}/*; start the agent; then: {way_back}"


@contextmanager
def whole(directory: Path, what: str, way_out: str) -> Iterator[None]:
    """Say in one sentence that keys are damaged, as a power cut may leave them."""
    try:
        yield
    except (OSError, ValueError, TypeError) as error:  # ssl.SSLError is an OSError
        empty = sorted(
            path.name
            for path in directory.glob("*")
            if path.name[0] != "." and path.is_file() and not path.stat().st_size
        )
        cause = f"{', '.join(empty)} without content" if empty else str(error)
        raise Failed(
            f"{what} in {directory} cannot be read: {cause}", hint=way_out
        ) from error


def waits(path: Path) -> bool:
    """Whether a key waits in a file for its certificate, drawn just now.

    Whoever asks for it twice gets the same one. One that waits longer was not used, as
    after a renewal that was refused: somebody may have copied it since.
    """
    try:
        return 0 <= time.time() - path.stat().st_mtime < _WAITS
    except FileNotFoundError:
        return False


def load_key(path: Path) -> Key:
    """Return the key in a file; what else is there comes behind it.

    Raises
    ------
    OSError, ValueError, TypeError
        If there is none that we use.
    """
    return read_key(path.read_bytes())


def read_key(text: bytes, passphrase: bytes = b"") -> Key:
    """Return the key in a text; `passphrase` opens one that is sealed.

    Raises
    ------
    ValueError, TypeError
        If there is none that we use, or it does not open.
    """
    key = serialization.load_pem_private_key(text, passphrase or None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("it holds no elliptic-curve key")
    return key


def pin_of(certificate: Certificate) -> str:
    """Return the pin of the key that a certificate is for."""
    return pin(public(certificate))


def introduces(certificate: Certificate) -> bool:
    """Whether a certificate may sign others."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return found.value.ca


def signed_by(certificate: Certificate, other: Certificate) -> bool:
    """Whether a certificate was signed with the key of another one that may do so."""
    try:
        certificate.verify_directly_issued_by(other)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return introduces(other)


def public(signed: Certificate | Request) -> ec.EllipticCurvePublicKey:
    """Return the key that a certificate or a request for one is for.

    Raises
    ------
    ValueError
        If it is of a kind that nobody of us makes.
    """
    key = signed.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ValueError("it is for no elliptic-curve key")  # noqa: TRY004 - of its text
    return key


def load_certificate(data: bytes) -> Certificate:
    """Return the certificate that a text holds, or the first of several."""
    return x509.load_pem_x509_certificate(data)


def load_all(data: bytes) -> list[Certificate]:
    """Return the certificates that a text holds."""
    return x509.load_pem_x509_certificates(data)


def bundle(certificates: Iterable[Certificate]) -> bytes:
    """Return certificates as one text."""
    return b"".join(map(pem, certificates))


def ends(certificate: Certificate) -> float:
    """Return when a certificate is over, in seconds."""
    return certificate.not_valid_after_utc.timestamp()


def request(key: Key, name: str) -> Request:
    """Return what asks for a certificate of a key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_named(name))
    return builder.sign(key, hashes.SHA256())


def request_pem(asked: Request) -> bytes:
    """Return a request as text."""
    return asked.public_bytes(serialization.Encoding.PEM)


def load_request(data: bytes) -> Request:
    """Return the request that a text holds.

    Raises
    ------
    ValueError
        If it holds none, or one of somebody who has not got the key.
    """
    found = x509.load_pem_x509_csr(data)
    if not found.is_signature_valid:
        raise ValueError("the request is not signed with its own key")
    return found


def draft(
    name: str,
    issuer: str,
    key: ec.EllipticCurvePublicKey,
    now: float,
    days: int,
    serial: int | None = None,
) -> x509.CertificateBuilder:
    """Return a certificate that nobody has signed yet.

    Parameters
    ----------
    now
        In seconds. It is valid from a day earlier: clocks are not always right.
    serial
        Its number; one drawn by chance if it is None.
    """
    start = dt.datetime.fromtimestamp(now, dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(start - _ONE_DAY)
        .not_valid_after(start + days * _ONE_DAY)
    )


def common_name(certificate: Certificate) -> str:
    """Return the name that a certificate is for."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value)


def who(certificate: Certificate) -> str:
    """Return which master a certificate is of; it stays when the key is another one.

    Empty for a master of before each had a key of its own, and for an authority.
    """
    words = common_name(certificate).split()
    return words[1] if words[0] == MASTER and len(words) > 1 else ""


def let_in(certificate: Certificate) -> int:
    """Return when a master was let in, in microseconds; 0 where nobody noted it."""
    return certificate.serial_number >> RANDOM_BITS if who(certificate) else 0


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
