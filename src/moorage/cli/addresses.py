# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of machines that people write as names."""

from moorage.errors import BadInput

from .command import Call


def resolved(call: Call, option: str, version: int = 0) -> str | None:
    """Return the address that an option names, if it was given.

    Parameters
    ----------
    version
        Of IP, 4 or 6; 0 for either.

    Raises
    ------
    BadInput
        If the name has no such address.
    """
    word = call.option(option)
    return address_of(str(word), version) if word else None


def address_of(word: str, version: int = 0) -> str:
    """Return the address that a word is, or is the name of; it may be in brackets."""
    import socket  # noqa: PLC0415 - most commands name no machine

    family = {4: socket.AF_INET, 6: socket.AF_INET6}.get(version, socket.AF_UNSPEC)
    bare = word[1:-1] if word.startswith("[") and word.endswith("]") else word
    try:
        found = socket.getaddrinfo(bare, None, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        kind = f"IPv{version} address" if version else "address"
        why = getattr(error, "strerror", None) or error
        raise BadInput(f"'{word}' is the name of no {kind}: {why}") from None
    return str(found[0][4][0])


def ip_version(text: str) -> int:
    """Return a version of IP.

    Raises
    ------
    ValueError
        If it is none.
    """
    if text not in ("4", "6"):
        raise ValueError("a version of IP is 4 or 6")
    return int(text)
