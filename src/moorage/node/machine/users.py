# SPDX-License-Identifier: BSD-2-Clause
"""The users that guests run as: no two guests of a machine have the same one.

A lock says that a user is taken. QEMU inherits it for life, as it does the lock of its
directory: it falls when the last process of the guest is gone, whatever became of the
agent. All agents of a machine share the locks.
"""

import fcntl
import logging
import os
import pwd
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from moorage.errors import BadInput, Failed
from moorage.model.hvparams import Parameters
from moorage.model.uidpool import UidPool, shown
from moorage.node.machine.proc import living

LOCKS = Path("/run/moorage-uid-pool")
_LOG = logging.getLogger(__name__)
_UNPRIVILEGED = ("--inh-caps=-all", "--no-new-privs")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whom a guest runs as.

    Attributes
    ----------
    uid, gid
        None for the agent's own.
    groups
        Others that it belongs to.
    lock
        Descriptor that holds the user for the guest, if it is the guest's alone.
    """

    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    lock: int | None = None

    def words(self, *more: int) -> list[str]:
        """Return what starts a program as this user, without any capability.

        Parameters
        ----------
        more
            Groups that it belongs to, too.
        """
        found = ["setpriv", *_UNPRIVILEGED]
        if os.geteuid() == 0:
            found.append("--bounding-set=-all")
        if self.uid is not None:
            groups = ",".join(map(str, (*self.groups, *more)))
            found += [f"--reuid={self.uid}", f"--regid={self.gid}"]
            found.append(f"--groups={groups}" if groups else "--clear-groups")
        return [*found, "--"]


def take(given: Parameters, pool: UidPool, locks: Path = LOCKS) -> User:
    """Return the user for a new guest; its lock, if there is one, is to be closed.

    Parameters
    ----------
    pool
        The cluster's.
    locks
        Directory of the locks.

    Raises
    ------
    BadInput
        If the user that is asked for does not exist.
    Failed
        If all users of the pool are taken.
    """
    if given.security_model == "none":
        return User()
    if os.geteuid() != 0:
        _LOG.warning("the agent is not root: its guests run as the user that it is")
        return User()
    if given.security_model == "user":
        return _named(given.security_domain)
    return _own(pool, locks)


@contextmanager
def lent(pool: UidPool) -> Iterator[User]:
    """Lend a user that nobody else is to a program, which inherits its open lock.

    An agent that is not root has but its own.

    Raises
    ------
    Failed
        If all users of the pool are taken.
    """
    user = take(Parameters(), pool)
    try:
        yield user
    finally:
        if user.lock is not None:
            os.close(user.lock)


def _named(name: str) -> User:
    if not name:
        raise BadInput(
            "security_model=user needs a user's name",
            hint="add security_domain=NAME",
        )
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise BadInput(
            f"there is no user '{name}' on this node, whom security_domain names",
            hint=f"useradd {name}",
        ) from None
    groups = tuple(os.getgrouplist(name, found.pw_gid))
    return User(uid=found.pw_uid, gid=found.pw_gid, groups=groups)


def _own(pool: UidPool, locks: Path) -> User:
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    used = set(_used(pool))
    for uid in _candidates(pool):
        lock = None if uid in used else _locked(locks / str(uid))
        if lock is not None:
            return User(uid=uid, gid=uid, lock=lock)
    told = f"all users of the pool {shown(pool)} are taken" if pool else "it is empty"
    raise Failed(
        f"the user-id pool has no user for another guest: {told}",
        hint="gnt-cluster modify --add-uids FIRST-LAST",
    )


def _candidates(pool: UidPool) -> Iterator[int]:
    """Yield the pool's users, from any one on: so a user is seldom the last guest's."""
    ranges = [range(first, last + 1) for first, last in pool]
    size = sum(map(len, ranges))
    start = secrets.randbelow(size) if size else 0
    for at in chain(range(start, size), range(start)):
        yield _at(ranges, at)


def _at(ranges: list[range], position: int) -> int:
    for one in ranges:
        if position < len(one):
            return one[position]
        position -= len(one)
    raise IndexError(position)


def _used(pool: UidPool) -> Iterator[int]:
    """Yield the pool's users that have processes, which may be somebody else's."""
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it ended meanwhile
            uid = entry.stat().st_uid
            if any(first <= uid <= last for first, last in pool) and living(entry.name):
                yield uid


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds a lock; None if somebody has it.

    QEMU inherits it, and could fill the file system if it could write to it.
    """
    found = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(found)
        return None
    return found


def kvm_group(user: User, device: Path) -> tuple[int, ...]:
    """Return the group that lets a user open the device of KVM, if one is needed.

    Raises
    ------
    Failed
        If no group does.
    """
    if user.uid is None or not device.exists():
        return ()  # the agent's user looked already, and QEMU says what is missing
    about = device.stat()
    if user.uid == about.st_uid or about.st_mode & 0o006 == 0o006:
        return ()
    if about.st_mode & 0o060 == 0o060 and about.st_gid != 0:
        return (about.st_gid,)
    raise Failed(
        f"the users that guests run as cannot open {device}: its group cannot, or is "
        "root's",
        hint=f"chown root:kvm {device}; chmod 660 {device}",
    )
