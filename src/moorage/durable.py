# SPDX-License-Identifier: BSD-2-Clause
"""Small files that outlive a power cut: as they were or as they are to be, never torn.

A rename alone is not enough. It may reach the disk before the data of the file that it
names, and then the cut leaves an empty one. So the data is synced first, and after the
rename the directory that holds the name.
"""

import os
from pathlib import Path


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that its owner alone can read; it is on the disk on return.

    Its directory is made where it is missing: a node that leaves its cluster forgets
    its fences while a last question may still be under way.

    Parameters
    ----------
    mode
        Who may read, write and run it, where not its owner alone.
    """
    make(path.parent)
    draft = path.with_name(f".{path.name}")
    draft.unlink(missing_ok=True)  # one that a crash left may be anybody's to read
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)  # of a full disk, say
        raise
    sync(path.parent)


def make(directory: Path) -> None:
    """Make a directory that its owner alone can enter, and what it lies in."""
    if directory.is_dir():
        return
    make(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    sync(directory.parent)


def remove(*paths: Path) -> None:
    """Remove files, those that are there; they do not come back with the power."""
    for path in paths:
        path.unlink(missing_ok=True)
    for directory in {path.parent for path in paths}:
        if directory.is_dir():
            sync(directory)


def sync(directory: Path) -> None:
    """Put the names in a directory on the disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
