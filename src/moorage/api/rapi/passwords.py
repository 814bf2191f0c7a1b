# SPDX-License-Identifier: BSD-2-Clause
"""Secrets as a file of users has them: clear, or as one of three hashes.

================  ======================================================================
``{cleartext}x``  the password itself; the same without a prefix
``{HA1}hex``      MD5 of ``name:Ganeti Remote API:password``, Ganeti's
``{scrypt}…``     ``cost$salt$hash``, the last two in Base64: for what people think up
``{SHA256}hex``   for what was drawn by chance, and is long: tokens
================  ======================================================================
"""

import base64
import hashlib
import hmac
import secrets

REALM = "Ganeti Remote API"
_COST = 1 << 14
_MOST_COST = 1 << 18
"""A file with a mistake in it must not take all memory."""
_BLOCK = 8
_SALT = 16


def scrypt(password: str) -> str:
    """Return the hash of a password, as the file has it."""
    salt = secrets.token_bytes(_SALT)
    made = _scrypt(password, salt, _COST)
    return "{scrypt}" + "$".join((str(_COST), _text(salt), _text(made)))


def decoy() -> str:
    """Return what no password fits, and takes as long to compare as a hash of ours."""
    salt, made = secrets.token_bytes(_SALT), secrets.token_bytes(64)
    return "{scrypt}" + "$".join((str(_COST), _text(salt), _text(made)))


def sha256(token: str) -> str:
    """Return the hash of a token, as the file has it."""
    return "{SHA256}" + hashlib.sha256(token.encode()).hexdigest()


def is_slow(kept: str) -> bool:
    """Whether it takes long to compare something with what the file has."""
    return kept.lower().startswith("{scrypt}")


def fits(kept: str, name: str, password: str) -> bool:
    """Whether a password is the one that the file has; a scheme unknown fits none."""
    scheme, rest = _parts(kept)
    match scheme:
        case "cleartext":
            return _same(rest, password)
        case "ha1":
            text = f"{name}:{REALM}:{password}".encode()
            made = hashlib.md5(text, usedforsecurity=False).hexdigest()
            return _same(rest.lower(), made)
        case "sha256":
            return _same(rest.lower(), hashlib.sha256(password.encode()).hexdigest())
        case "scrypt":
            return _fits_scrypt(rest, password)
        case _:
            return False


def _parts(kept: str) -> tuple[str, str]:
    if kept.startswith("{"):
        scheme, _, rest = kept[1:].partition("}")
        return scheme.lower(), rest
    return "cleartext", kept


def _fits_scrypt(kept: str, password: str) -> bool:
    try:
        cost, salt, made = kept.split("$")
        found = _scrypt(password, base64.b64decode(salt), int(cost))
    except ValueError:
        return False
    return _same(made, _text(found))


def _scrypt(password: str, salt: bytes, cost: int) -> bytes:
    if not 1 < cost <= _MOST_COST:
        raise ValueError("a cost that no hash of ours has")
    return hashlib.scrypt(
        password.encode(),
        salt=salt,
        n=cost,
        r=_BLOCK,
        p=1,
        maxmem=256 * _BLOCK * _MOST_COST,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
