# SPDX-License-Identifier: BSD-2-Clause
"""Processes that outlive whoever starts them: begun, found and ended by their pid."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from moorage.errors import Failed

_STEP = 0.02
_STARTED: list[subprocess.Popen[bytes]] = []
"""Children that live on; kept, lest Python complains that they were forgotten."""


def spawn(arguments: Sequence[str], pid_file: Path, log: Path) -> int:
    """Start ``python -m moorage.cli.moorage ARGUMENTS`` as a session of its own.

    Its output goes to the end of `log`, which its owner alone can read.
    """
    argv = [sys.executable, "-m", "moorage.cli.moorage", *arguments]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    _STARTED.append(process)
    pid_file.write_text(f"{process.pid}\n")
    return process.pid


def running(pid_file: Path, word: str) -> int | None:
    """Return the pid in a file, if its process is there and has `word` in its argv.

    A number that another program got meanwhile is not taken for ours.
    """
    try:
        pid = int(pid_file.read_text())
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if word.encode() in argv and alive(pid) else None


def alive(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Wait until a claim is true; return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def end(pid: int, patience: float = 10.0) -> None:
    """End a process: ask, wait `patience` seconds, then kill.

    Raises
    ------
    Failed
        If it is there all the same.
    """
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 60.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if wait_until(lambda: not _left(pid), seconds):
            return
    raise Failed(f"process {pid} does not end")


def _left(pid: int) -> bool:
    """Whether a process is there; a child of ours that has ended is buried."""
    for child in [child for child in _STARTED if child.pid == pid]:
        if child.poll() is not None:
            _STARTED.remove(child)
    return alive(pid)
