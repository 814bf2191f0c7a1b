# SPDX-License-Identifier: BSD-2-Clause
"""Directories of keys and records: what is in them becomes root's word."""

import os
import pwd
import stat
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

from moorage import durable
from moorage.errors import Failed, WrongState
from moorage.node.machine.trust import distrust

P = ParamSpec("P")
R = TypeVar("R")


def as_owner(
    directory: Path, does: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Do something as the user that a directory belongs to, if root is to do it.

    What root would write among the files of another user, that user could not change;
    and that user could lead root astray. Arguments, result and errors are copied.
    """
    owner = directory.stat().st_uid if directory.is_dir() else 0
    if os.geteuid() or not owner:
        return does(*args, **kwargs)
    with ProcessPoolExecutor(1, get_context("fork"), _become, (owner,)) as pool:
        return pool.submit(does, *args, **kwargs).result()


def become_owner(directory: Path) -> None:
    """Go on, to the end of this process, as the user that a directory belongs to.

    As :func:`as_owner`, for a command of root's that does all it does as that user.
    """
    owner = directory.stat().st_uid if directory.is_dir() else 0
    if owner and not os.geteuid():
        _become(owner)


def _become(uid: int) -> None:
    user = pwd.getpwuid(uid)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(uid)


def claim(directory: Path, what: str, *, given: bool = False) -> None:
    """Make a directory that this user alone can enter, or make one so.

    Parameters
    ----------
    what
        What is to be in it, for the sentence: "the master's keys".
    given
        Whether it may be one that root, who this is, gave to the user of a daemon:
        nobody else can, where root alone writes. What is put there is to be given, too.

    Raises
    ------
    WrongState
        If somebody else could write there, or put another directory in its place.
    Failed
        If it cannot be made.
    """
    if given and _is_given(directory):
        _check(directory.parent, what)
        return
    _check(directory, what)
    try:
        durable.make(directory)
    except OSError as error:
        raise Failed(f"{directory} cannot be made: {error.strerror}") from error
    _check(directory, what)  # somebody may have been faster
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        directory.chmod(0o700)


def _is_given(directory: Path) -> bool:
    """Whether this is root, and another user alone can enter the directory."""
    if os.geteuid() or directory.is_symlink() or not directory.is_dir():
        return False
    known = directory.stat()
    return known.st_uid != 0 and not stat.S_IMODE(known.st_mode) & 0o077


def _check(directory: Path, what: str) -> None:
    told = distrust(directory)
    if told:
        raise WrongState(
            f"{what} cannot be kept in {directory}: {told}, and who writes there could "
            "do what this user can",
            hint=f"namei -lx {directory}",
        )


def give(path: Path) -> None:
    """Give a file or a tree to the owner of the directory that it lies in.

    A command of root's may write what a daemon with a user of its own is to use. That
    user may have put a link there: what it leads to is not given.
    """
    owner = path.parent.stat()
    whose = owner.st_uid, owner.st_gid
    os.chown(path, *whose, follow_symlinks=False)
    for _, directories, files, handle in os.fwalk(path) if path.is_dir() else ():
        for name in (*directories, *files):
            os.chown(name, *whose, dir_fd=handle, follow_symlinks=False)
