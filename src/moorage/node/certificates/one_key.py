# SPDX-License-Identifier: BSD-2-Clause
"""TLS between two who hold one key, and nobody else.

Python's TLS has no pre-shared keys before 3.13. So both ends make one certificate of
the key, the same to the last bit, show it, and trust it alone: who has not got the key
can neither show it nor read what is said to it.
"""

import datetime as dt
import hmac
import os
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from moorage.node.machine.proc import descriptor

from .tls import NO_DATES, pem

NAME = "moorage-one-key"
_ALWAYS = (
    dt.datetime(2000, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2999, 1, 1, tzinfo=dt.UTC),
)
"""From when to when it is good: the key says when it is over, and no clock."""


def context(key: str, *, serves: bool) -> ssl.SSLContext:
    """Return the context in which one end talks to the other one.

    Parameters
    ----------
    key
        In hex.
    serves
        Whether it is the end that listened.
    """
    side = ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT
    found = ssl.SSLContext(side)
    found.minimum_version = ssl.TLSVersion.TLSv1_3
    found.check_hostname = False  # who has the key is the one, whatever its name
    found.verify_mode = ssl.CERT_REQUIRED
    found.verify_flags |= NO_DATES | ssl.VERIFY_X509_PARTIAL_CHAIN
    own = Ed25519PrivateKey.from_private_bytes(
        hmac.digest(bytes.fromhex(key), NAME.encode(), "sha256")
    )
    shown = pem(_certificate(own))
    found.load_verify_locations(cadata=shown.decode())
    _show(found, shown + _secret(own))
    return found


def _certificate(own: Ed25519PrivateKey) -> x509.Certificate:
    """Return the one certificate of a key: such signatures have nothing random."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    drawn = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(own.public_key())
        .serial_number(1)
        .not_valid_before(_ALWAYS[0])
        .not_valid_after(_ALWAYS[1])
    )
    return drawn.sign(own, None)


def _secret(own: Ed25519PrivateKey) -> bytes:
    return own.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _show(found: ssl.SSLContext, chain: bytes) -> None:
    """Let a context show a certificate; Python reads it from a file, this from none."""
    memory = os.memfd_create(NAME, os.MFD_CLOEXEC)
    try:
        os.write(memory, chain)
        found.load_cert_chain(descriptor(memory))
    finally:
        os.close(memory)
