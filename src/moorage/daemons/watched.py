# SPDX-License-Identifier: BSD-2-Clause
"""When the watcher last looked, as the file tells that it leaves beside the store."""

import time
from collections.abc import Callable
from pathlib import Path

from . import systemd
from .paths import MasterPlaces


def since_now(places: MasterPlaces) -> Callable[[], float | None]:
    """Return what tells when the watcher looked last; it is not blamed for earlier."""
    begun = time.time()
    return lambda: (
        last_look(places.watcher, begun) if systemd.has_watcher(places) else None
    )


def last_look(memory: Path, begun: float) -> float:
    """Return when the watcher last kept its memory, and no less than `begun`."""
    try:
        return max(memory.stat().st_mtime, begun)
    except OSError:
        return begun
