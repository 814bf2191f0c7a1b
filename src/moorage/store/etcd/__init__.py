# SPDX-License-Identifier: BSD-2-Clause
"""The engine over etcd: the state is on most members, and a lead ends by itself."""

from .engine import EtcdStore
from .members import health, troubles
from .settings import EtcdSettings, read, settings_from, to_bytes
from .wish import wish, wished, wishing
