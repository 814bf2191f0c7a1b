# SPDX-License-Identifier: BSD-2-Clause
"""Small file systems that can be filled up, in a mount namespace of the driver's own.

They end with the driver and what it started, whatever becomes of it. Root is needed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIZE = 400
"""MiB of each."""
_OWN = "CHAOS_HAS_OWN_MOUNTS"
_FILLER = ".filler"


def enter() -> None:
    """Start this program again with mounts of its own; without root do nothing."""
    if os.geteuid() == 0 and not os.environ.get(_OWN):
        os.environ[_OWN] = "yes"
        argv = ["unshare", "--mount", "--propagation", "private", sys.executable]
        os.execvp(argv[0], [*argv, *sys.argv])  # noqa: S606


def there() -> bool:
    """Whether file systems can be mounted."""
    return bool(os.environ.get(_OWN))


def mount(path: Path) -> None:
    """Let a directory be a file system of its own, with what is in it."""
    path.mkdir(mode=0o700, exist_ok=True)
    kept = path.with_name(f"{path.name}.before")
    path.rename(kept)
    path.mkdir(mode=0o700)
    options = f"size={SIZE}m,mode=700"
    argv = ["mount", "-t", "tmpfs", "-o", options, "chaos", str(path)]
    subprocess.run(argv, check=True)
    for one in kept.iterdir():
        shutil.move(one, path / one.name)
    kept.rmdir()


def unmount(root: Path) -> None:
    """Unmount all below a directory, the innermost first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [words[4] for words in map(str.split, lines)]
    for point in sorted(points, reverse=True):
        if point.startswith(f"{root}/"):
            subprocess.run(["umount", "--lazy", point], check=True)


@contextmanager
def filled(path: Path) -> Iterator[None]:
    """Leave no room in a directory's file system for a while."""
    filler = path / _FILLER
    try:
        _fill(filler)
        yield
    finally:
        filler.unlink(missing_ok=True)


def _fill(filler: Path) -> None:
    handle = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        free = os.fstatvfs(handle)
        with suppress(OSError):
            os.posix_fallocate(handle, 0, free.f_bavail * free.f_frsize)
        os.lseek(handle, 0, os.SEEK_END)
        with suppress(OSError):
            while True:
                os.write(handle, bytes(4096))
    finally:
        os.close(handle)
