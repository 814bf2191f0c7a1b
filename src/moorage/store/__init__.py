# SPDX-License-Identifier: BSD-2-Clause
"""One truth: engines that keep records, and the configuration on top."""

from .base import Damaged, Key, Store, Stored, StoreError, StoreLost, Write
from .inspection import Inspection, inspect
from .memory import MemoryStore
from .sqlite import SqliteStore
from .truth import Truth, create, require_cluster

__all__ = [
    "Damaged",
    "Inspection",
    "Key",
    "MemoryStore",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoreLost",
    "Stored",
    "Truth",
    "Write",
    "create",
    "inspect",
    "require_cluster",
]
