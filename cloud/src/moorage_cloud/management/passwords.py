# SPDX-License-Identifier: BSD-2-Clause
"""Passwords for commands: typed or from a file, never a word of the command line."""

import sys
from argparse import ArgumentParser
from getpass import getpass
from pathlib import Path

from moorage_cloud.errors import BadRequest


def add_argument(parser: ArgumentParser) -> None:
    """Take where the password is."""
    parser.add_argument(
        "--password-file",
        help="its first line is the password; - is the standard input; without it, you "
        "are asked",
    )


def read(where: str | None) -> str:
    """Return the password.

    Raises
    ------
    BadRequest
        If there is none, it was typed in two ways, or nobody can be asked.
    """
    if where is None:
        if not sys.stdin.isatty():
            raise BadRequest(
                "there is no terminal to ask for the password: say --password-file"
            )
        word = getpass("Password: ")
        if word != getpass("Once more: "):
            raise BadRequest("that is not the same password")
        return word
    try:
        text = sys.stdin.read() if where == "-" else Path(where).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the password cannot be read: {error}") from None
    return text.partition("\n")[0]
