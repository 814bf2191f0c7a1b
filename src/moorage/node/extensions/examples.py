# SPDX-License-Identifier: BSD-2-Clause
"""What comes with Moorage beside its modules: examples, and a program for scripts."""

import sys
from contextlib import suppress
from pathlib import Path

from moorage.errors import NotFound


def share() -> Path:
    """Return the directory that has ``extstorage``, ``os`` and ``bin``.

    In a checkout it stands beside ``src``; installed, under the prefix.
    """
    checkout = Path(__file__).resolve().parents[4] / "share"
    for found in (checkout, Path(sys.prefix) / "share" / "moorage"):
        if (found / "extstorage").is_dir():
            return found
    raise NotFound("the examples that come with Moorage are not installed")


def opener() -> str:
    """Return the program that opens files for scripts of providers, over no link.

    It is empty where what comes with Moorage is not installed.
    """
    with suppress(NotFound):
        return str(share() / "bin" / "moorage-open")
    return ""
