# SPDX-License-Identifier: BSD-2-Clause
"""Machine-readable output: shell variables, one a line."""

import re
from collections.abc import Iterable
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9.]*")


def show(prefix: str, **pairs: object) -> None:
    """Print keys and values; a value is quoted unless it is plain."""
    show_all(prefix, pairs.items())


def show_all(prefix: str, pairs: Iterable[tuple[str, object]]) -> None:
    """Print keys and values in order."""
    for key, value in pairs:
        print(f"{prefix}_{key.upper()}={quoted(str(value))}")


def quoted(text: str) -> str:
    """Return a word for the shell.

    >>> quoted("1.5"), quoted("1,2=3")
    ('1.5', "'1,2=3'")
    """
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\\\''") + "'"
