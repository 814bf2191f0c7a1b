# SPDX-License-Identifier: BSD-2-Clause
"""Who could change what is at a path: what root runs or believes is root's alone.

A file is as safe as the weakest step that leads to it. Who owns a directory on the way,
or may write to it, can put another file in the place of this one. In a directory with
the sticky bit, as ``/tmp`` has, that is left to the owner of each entry.
"""

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LINKS = 40
"""Symbolic links that may be followed on one way, as in the kernel."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def distrust(path: Path) -> str:
    """Return who besides root and this process's user could change what is at `path`.

    Empty if nobody can. Every step of the way is looked at, and symbolic links with
    what they lead to; steps that are not there yet are left out.
    """
    steps = _steps(path)
    found = (_fault(step, known, last=last) for step, known, last in steps)
    return next((told for told in found if told), "")


def distrust_below(directory: Path) -> str:
    """Return who could change what lies in a directory, and deeper.

    The directory itself is :func:`distrust`'s. A script reads what lies beside it.
    """
    found = map(_own_fault, sorted(directory.rglob("*")))
    return next((told for told in found if told), "")


def _own_fault(path: Path) -> str:
    if path.is_symlink():
        return distrust(path)
    try:
        return _fault(path, path.lstat(), last=True)
    except FileNotFoundError:  # a script that runs has files that come and go
        return ""


def _fault(step: Path, known: os.stat_result, *, last: bool) -> str:
    mode = stat.S_IMODE(known.st_mode)
    if known.st_uid not in (0, os.geteuid()):
        return f"{step} belongs to {_name(known.st_uid)} (mode {mode:04o})"
    kept = stat.S_ISLNK(known.st_mode) or (mode & stat.S_ISVTX and not last)
    if not mode & _OTHERS or kept:
        return ""
    if not mode & stat.S_IWOTH and _is_private(step, known):
        return ""
    return (
        f"{step}, which belongs to {_name(known.st_uid)}, may be written by others "
        f"(mode {mode:04o})"
    )


def _is_private(step: Path, known: os.stat_result) -> bool:
    """Whether the group is its owner's own, as many systems give one to each user.

    An access control list shows in the bits of the group, whoever is in it.
    """
    with suppress(OSError):
        os.getxattr(step, "system.posix_acl_access", follow_symlinks=False)
        return False
    try:
        user, group = pwd.getpwuid(known.st_uid), grp.getgrgid(known.st_gid)
    except KeyError:
        return False
    alone = set(group.gr_mem) <= {user.pw_name}
    return user.pw_gid == known.st_gid and user.pw_name == group.gr_name and alone


def _name(uid: int) -> str:
    with suppress(KeyError):
        return f"user {pwd.getpwuid(uid).pw_name}"
    return f"user {uid}"


def _steps(path: Path) -> Iterator[tuple[Path, os.stat_result, bool]]:
    """Yield what leads to a path, with whether it is what the path stands for.

    That is directories and links, and where these lead.
    """
    at, left, links = Path("/"), [*reversed(path.absolute().parts[1:])], 0
    yield at, at.lstat(), not left
    while left:
        part = left.pop()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        try:
            known = step.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return
        linked = stat.S_ISLNK(known.st_mode)
        yield step, known, not left and not linked
        if not linked:
            at = step
            continue
        links += 1
        if links > _LINKS:
            return  # nothing can be opened behind it
        target = step.readlink()
        at = Path("/") if target.is_absolute() else at
        left += [part for part in reversed(target.parts) if part != "/"]
