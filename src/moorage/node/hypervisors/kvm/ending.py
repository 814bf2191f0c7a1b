# SPDX-License-Identifier: BSD-2-Clause
"""How a guest ended: it powered itself off, or something else happened to it.

QEMU traces who asked for a shutdown into the guest's log. So nobody need listen at the
moment when a guest ends: an agent that was away reads it later. A guest that was
killed, or whose node lost power, leaves no such line.
"""

import re
from functools import lru_cache
from pathlib import Path
from uuid import UUID

TRACED = ("qemu_system_powerdown_request", "qemu_system_shutdown_request")
"""The events: somebody pressed the power button, and the machine is to end."""
_POWERDOWN, _SHUTDOWN = TRACED
_REASON = re.compile(rf"^{_SHUTDOWN} reason=([0-9]+)", re.MULTILINE)
_BY_GUEST = "6"
"""``guest-shutdown`` among QEMU's ShutdownCause."""
_MOST = 1 << 16
"""Bytes at the end of a log that are looked at."""


def powered_off(run_dir: Path) -> tuple[str, ...]:
    """Return the uuids of guests that ended of their own will, and have no process.

    Those whose button was pressed are not among them: somebody else wanted it.
    """
    logs = sorted(run_dir.glob("*.log")) if run_dir.is_dir() else []
    return tuple(one.stem for one in logs if _is_uuid(one.stem) and _by_itself(one))


def _by_itself(log: Path) -> bool:
    try:
        seen = log.stat()
        return _told(log, seen.st_mtime_ns, seen.st_size)
    except FileNotFoundError:
        return False  # it starts again just now


@lru_cache(maxsize=1024)  # a log that lies there says the same at every look
def _told(log: Path, _written: int, size: int) -> bool:
    with log.open("rb") as file:
        file.seek(max(0, size - _MOST))
        said = file.read(_MOST).decode(errors="replace")
    reasons = _REASON.findall(said)
    return reasons[-1:] == [_BY_GUEST] and _POWERDOWN not in said


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
