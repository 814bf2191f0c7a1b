# SPDX-License-Identifier: BSD-2-Clause
"""The logs of guests: kept short, because guests can make them grow.

QEMU appends to a log, so it can be cut while QEMU has it open.
"""

import logging
import os
from pathlib import Path

_LOG = logging.getLogger(__name__)
LARGEST = 1 << 20
"""Bytes of a log, before it is cut."""
KEPT = 1 << 18
"""Bytes at its end that are kept."""
_LOGS = ("consolelog", "log")
"""Of its serial console, and of its QEMU."""


def cut(run_dir: Path) -> None:
    """Cut the logs of all guests of a run directory that have grown too large."""
    for log in (found for name in _LOGS for found in run_dir.glob(f"*/{name}")):
        try:
            if log.stat().st_size > LARGEST:
                _cut(log)
        except OSError as error:  # the guest ended meanwhile, or QEMU cut its log, too
            _LOG.debug("%s was not cut: %s", log, error)


def _cut(log: Path) -> None:
    with log.open("rb") as file:
        file.seek(-KEPT, os.SEEK_END)
        tail = file.read(KEPT)
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(tail)
