# SPDX-License-Identifier: BSD-2-Clause
"""One truth: engines that keep records, and the configuration on top."""

from moorage.model.commits import Key, Write

from .base import (
    Damaged,
    Elsewhere,
    Store,
    Stored,
    StoreError,
    StoreLost,
    believed,
    whole,
)
from .config_store import ConfigStore, create, loaded, require_cluster
from .engine import etcd_of, store_at
from .inspection import Inspection, inspect
from .memory import MemoryStore
from .sqlite import SqliteStore, lay, raise_term
