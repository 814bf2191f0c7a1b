# SPDX-License-Identifier: BSD-2-Clause
"""The logs of guests' serial consoles: kept short, because guests write them.

QEMU appends to a log, so it can be cut while QEMU has it open.
"""

import os
from pathlib import Path

LARGEST = 1 << 20
"""Bytes of a log, before it is cut."""
KEPT = 1 << 18
"""Bytes at its end that are kept."""
_LOG = "consolelog"


def cut(run_dir: Path) -> None:
    """Cut the logs of all guests of a run directory that have grown too large."""
    for log in run_dir.glob(f"*/{_LOG}"):
        try:
            if log.stat().st_size > LARGEST:
                _cut(log)
        except FileNotFoundError:  # the guest ended meanwhile
            continue


def _cut(log: Path) -> None:
    with log.open("rb") as file:
        file.seek(-KEPT, os.SEEK_END)
        tail = file.read(KEPT)
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(tail)
