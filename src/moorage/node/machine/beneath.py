# SPDX-License-Identifier: BSD-2-Clause
"""Files that are opened beneath a directory, without following a link.

Others may write into a shared directory: a node that is not to be trusted any more, or
whoever runs the file server. A link that is put in a file's place leads nowhere.
"""

import ctypes
import errno
import os
from pathlib import PurePosixPath

_OPENAT2 = 437
"""Number of the system call, on every architecture."""
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08
_RESOLVE = _NO_MAGIC_LINKS | _NO_LINKS | _BENEATH
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o600
_TRIES = 64
"""Attempts, where somebody renames directories at the same moment."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    """The system call's argument."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def open_beneath(root: int, path: str, flags: int) -> int:
    """Return a descriptor of what is at `path`, seen from a directory.

    Parameters
    ----------
    root
        Descriptor of the directory.
    path
        Relative, without ``..``.
    flags
        As for :func:`os.open`; a program that is started never inherits the descriptor.
        A file that is made is its owner's alone.

    Raises
    ------
    OSError
        ``ELOOP`` if there is a link on the way or at the end (``ENOTDIR`` where a
        directory is asked for), ``EXDEV`` if the path leads out; else as for
        :func:`os.open`.
    """
    if "\0" in path:  # the system would stop reading there, and open something else
        raise OSError(errno.EINVAL, "a null character is in its name", path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return _openat2(root, path, flags)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return walk(root, path, flags)


def _openat2(root: int, path: str, flags: int) -> int:
    makes = flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE
    how = _How(flags, _MODE if makes else 0, _RESOLVE)
    for _ in range(_TRIES):
        found = _LIBC.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if found >= 0:
            return int(found)
        if ctypes.get_errno() != errno.EAGAIN:
            break
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), path)


def walk(root: int, path: str, flags: int) -> int:
    """Do the same for Linux before 5.6: open one directory after the other."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    *folders, name = pure.parts or (".",)
    at = os.dup(root)
    try:
        for folder in folders:
            deeper = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = deeper
        return os.open(name, flags, _MODE, dir_fd=at)
    except NotADirectoryError as error:
        number = errno.ELOOP if folders else error.errno or errno.ENOTDIR
        raise OSError(number, os.strerror(number), path) from None
    finally:
        os.close(at)
