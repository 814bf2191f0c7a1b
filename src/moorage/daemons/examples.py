# SPDX-License-Identifier: BSD-2-Clause
"""Where the examples are that come with Moorage: providers and OS definitions."""

import sys
from pathlib import Path

from moorage.errors import NotFound


def share() -> Path:
    """Return the directory that has ``extstorage`` and ``os``.

    In a checkout it stands beside ``src``; installed, under the prefix.
    """
    checkout = Path(__file__).resolve().parents[3] / "share"
    for found in (checkout, Path(sys.prefix) / "share" / "moorage"):
        if (found / "extstorage").is_dir():
            return found
    raise NotFound("the examples that come with Moorage are not installed")
