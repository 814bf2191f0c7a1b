# SPDX-License-Identifier: BSD-2-Clause
"""What lets people in at the door: its certificate, and the tokens it takes."""

import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from moorage import durable
from moorage.api.rapi import passwords
from moorage.api.rapi.roles import Role, User
from moorage.api.rapi.users import Entry, entries
from moorage.errors import BadInput, Exists, Failed, NotFound
from moorage.node.certificates import tls
from moorage.node.certificates.authority import DUE, Authority

from .paths import MasterPlaces
from .state_directory import as_owner, give

_DAY = 86400.0


def renew(places: MasterPlaces, path: Path, name: str) -> bool:
    """Give the door a certificate of the authority's; return whether it got one.

    One that lasts is left alone, and so is one that somebody else signed.

    Parameters
    ----------
    places
        The master's.
    path
        The door's file: its key, its certificate, and the authority's.
    name
        What clients call this machine.

    Raises
    ------
    Failed
        If the cluster's keys cannot be read, or the file cannot be written.
    """
    text = as_owner(places.root, _renewed, places.keys, _read(path), name)
    if not text:
        return False
    _write(path, text)
    return True


def _renewed(keys: Path, kept: bytes, name: str) -> bytes:
    """Return what the door's file is to hold; nothing if it may stay as it is."""
    authority = Authority(keys)
    if kept:
        found = tls.load_certificate(kept[kept.index(b"-----BEGIN CERT") :])
        ours = any(tls.signed_by(found, one) for one in authority.trusted)
        if not ours or tls.ends(found) - authority.clock() > DUE:
            return b""
    key = tls.new_key()
    signed = authority.sign_node(tls.request(key, name), name)
    return tls.key_pem(key) + tls.bundle([signed, authority.certificate])


def _read(path: Path) -> bytes:
    """Return what is in a file of the door's, whom nobody follows through a link."""
    try:
        found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from error
    with open(found, "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise Failed(f"{path} is no file")
        return file.read()


def _write(path: Path, text: bytes) -> None:
    try:
        durable.write(path, text)
        if not os.geteuid():
            give(path)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}") from error


def tokens(path: Path) -> list[User]:
    """Return whom tokens are of, by their names."""
    return sorted((one.user for one in _tokens(path)), key=lambda user: user.name)


def _tokens(path: Path) -> list[Entry]:
    return list(entries(_read(path).decode()))


def add_token(path: Path, name: str, role: Role, days: int, users: Path) -> str:
    """Make a token; return it: nobody can read it again.

    Parameters
    ----------
    users
        The file of users: of who is in it, no token counts.

    Raises
    ------
    BadInput
        If the name is none, or it would not last.
    Exists
        If there is one of that name, or a user.
    """
    if not name or name.startswith("#") or set(name) & set(": \t\n"):
        raise BadInput(f"'{name}' is no name of a token: no blanks and no colons")
    if days < 1:
        raise BadInput(f"a token lasts a day at least, not {days}")
    known = _tokens(path)
    if any(one.user.name == name for one in known):
        raise Exists(
            f"there is a token '{name}'", hint=f"moorage rapi remove-token {name}"
        )
    if _names_user(users, name):
        raise Exists(f"{users} has the user '{name}', who counts before a token")
    token = secrets.token_urlsafe(32)
    user = User(name, role, time.time() + days * _DAY)
    _write_tokens(path, [*known, Entry(passwords.sha256(token), user)])
    return token


def _names_user(users: Path, name: str) -> bool:
    found: list[Entry] = []
    with suppress(Failed):  # who may not read it finds nothing
        found += entries(_read(users).decode(errors="replace"))
    return any(one.user.name == name for one in found)


def remove_token(path: Path, name: str) -> None:
    """Revoke a token: the door takes it no more.

    Raises
    ------
    NotFound
        If there is none of that name.
    """
    known = _tokens(path)
    left = [one for one in known if one.user.name != name]
    if len(left) == len(known):
        raise NotFound(f"there is no token '{name}'", hint="moorage rapi list-tokens")
    _write_tokens(path, left)


def _write_tokens(path: Path, left: list[Entry]) -> None:
    _write(path, "".join(one.line() for one in left).encode())
