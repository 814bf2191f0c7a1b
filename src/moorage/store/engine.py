# SPDX-License-Identifier: BSD-2-Clause
"""The engine of a master's store: it is chosen here, and nowhere else."""

from pathlib import Path

from .base import Store
from .sqlite import SqliteStore


def store_at(path: Path) -> Store:
    """Return the store that a master's directory has at `path`; nobody leads it yet."""
    return SqliteStore(path)
