# SPDX-License-Identifier: BSD-2-Clause
"""Processes that outlive whoever starts them: begun, found and ended by their pid.

A process that must be the only one of its kind holds a lock file. The kernel says who
does, so nobody has to believe a number that somebody wrote down once.
"""

import fcntl
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from moorage.errors import Failed, WrongState

_STEP = 0.02
_STARTED: list[subprocess.Popen[bytes]] = []
"""Children that live on; kept, lest Python complains that they were forgotten."""
WORD = "moorage.cli.moorage"
"""The module of all these processes; among the words of their command lines."""
_FLOCK = "hhqqi4x"
"""``struct flock`` of Linux: type, whence, start, length, pid."""


def command(*arguments: str) -> list[str]:
    """Return the command line of ``moorage ARGUMENTS``, by this very Python."""
    return [sys.executable, "-m", WORD, *arguments]


@contextmanager
def held(path: Path, refusal: str, hint: str = "") -> Iterator[None]:
    """Hold a lock file; the lock falls with the process, however that ends.

    Raises
    ------
    WrongState
        If another process holds it: `refusal`, and what helps.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    _give(handle, path.parent)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise WrongState(refusal, hint=hint) from None
    try:
        yield
    finally:
        os.close(handle)


def _give(handle: int, directory: Path) -> None:
    """Give a lock file of root's to the owner of its directory, who locks it later.

    One that has a second name may be a file of root's elsewhere, and stays.
    """
    known, owner = os.fstat(handle), directory.stat()
    plain = stat.S_ISREG(known.st_mode) and known.st_nlink == 1
    if plain and not known.st_uid and owner.st_uid and not os.geteuid():
        os.fchown(handle, owner.st_uid, owner.st_gid)


def holder(path: Path) -> int | None:
    """Return the process that holds a lock file; None if nobody does."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        told = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    finally:
        os.close(handle)
    return None if told[0] == fcntl.F_UNLCK else int(told[4])


def spawn(arguments: Sequence[str], log: Path, pid_file: Path | None = None) -> int:
    """Start ``moorage ARGUMENTS`` as a session of its own; return its pid."""
    return launch(command(*arguments), log, pid_file)


def launch(
    argv: Sequence[str],
    log: Path,
    pid_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Start a program as a session of its own; return its pid.

    Its output goes to the end of `log`, which its owner alone can read.

    Parameters
    ----------
    environ
        All its variables; None stands for ours.
    """
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environ,
            start_new_session=True,
        )
    _STARTED.append(process)
    if pid_file:
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


def not_up(what: str, seconds: float, words: Sequence[str]) -> Failed:
    """Return what is told of a process that does not answer after some seconds.

    Parameters
    ----------
    words
        The last lines of its log.
    """
    if words:
        return Failed(f"{what} does not come up:\n" + "\n".join(words))
    return Failed(
        f"{what} gives no answer after {seconds:g} s, and has said nothing: on a busy "
        "machine it may still be starting"
    )


def end(pid: int, patience: float = 10.0) -> None:
    """End a process: ask, wait `patience` seconds, then kill.

    Raises
    ------
    Failed
        If it is there all the same.
    """
    end_all([pid], patience)


def end_all(pids: Iterable[int], patience: float) -> None:
    """End some processes at once: ask all, wait `patience` seconds, kill who is left.

    Raises
    ------
    Failed
        If one is there all the same.
    """
    left = list(pids)
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 60.0)):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        wait_until(partial(_none_left, left), seconds)
        left = [pid for pid in left if _left(pid)]
    if left:
        raise Failed(f"process {left[0]} does not end")


def _none_left(pids: Sequence[int]) -> bool:
    return not any(map(_left, pids))


def _left(pid: int) -> bool:
    """Whether a process is there; a child of ours that has ended is buried."""
    for child in [child for child in _STARTED if child.pid == pid]:
        if child.poll() is not None:
            _STARTED.remove(child)
    return alive(pid)
