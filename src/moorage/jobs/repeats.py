# SPDX-License-Identifier: BSD-2-Clause
"""Requests that may come twice: each has a key, and the job that it made is answered.

Who lost the answer to a request does not know whether it was heard, and asks again with
the same key. A key is kept for a day, per user, in the commit that queues the job: so
the next master knows it, too. Of whoever uses very many, the oldest is forgotten for a
new one once it is an hour old.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, json

from moorage.errors import BadInput, Conflict, WrongState
from moorage.model.commits import Write

from .job import Job, Opcodes

KIND = "repeat"
"""The kind of the records; the name is made of the user and the key."""
LASTS = 86400.0
"""Seconds that a key is kept."""
LEAST = 3600.0
"""Seconds that it is kept though its user has many."""
MOST = 10_000
"""Keys of one user that are kept; with so many within `LEAST`, more are refused."""
_LONGEST = 255


class Made(Struct, frozen=True, kw_only=True):
    """What a request made.

    Attributes
    ----------
    job
        Number of the job.
    time
        When, in seconds.
    digest
        Of the opcodes: the same key for others is a mistake.
    user
        Whose key it is.
    """

    job: int
    time: float
    digest: str
    user: str = ""


class Repeats:
    """The keys of the last day.

    Parameters
    ----------
    clock
        The time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._made: dict[str, Made] = {}  # oldest first
        self._of_users: dict[str, dict[str, None]] = {}  # likewise
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def load(self, found: Mapping[str, Made]) -> None:
        """Take over what a store has, oldest first."""
        self._made, self._of_users = {}, {}
        for name, made in sorted(found.items(), key=lambda one: one[1].time):
            self._keep(name, made)

    def turn(self, name: str) -> asyncio.Lock:
        """Return the lock of a key: two that come together make one job.

        It is there as long as somebody has it: until the job is stored, at least.
        """
        return self._turns.setdefault(name, asyncio.Lock())

    def job(self, name: str, ops: Opcodes) -> int | None:
        """Return the job that a request made before; None if it is new.

        Raises
        ------
        Conflict
            If the key was another request's.
        """
        made = self._made.get(name)
        if made is None or self._is_over(name):
            return None
        if made.digest != _digest(ops):
            raise Conflict(
                f"the key was used for another request, which made job {made.job}",
                job=made.job,
            )
        return made.job

    def check(self, user: str) -> None:
        """Raise `WrongState` if a user has so many keys that no other one is kept."""
        if len(self._of_users.get(user, ())) >= MOST and not self._spare(user):
            raise WrongState(
                f"{user} has used {MOST} keys of requests within an hour: none is kept "
                "any more",
                hint="without a key a job is made each time",
            )

    def add(self, name: str, ops: Opcodes, job: Job) -> list[Write]:
        """Note what a request makes; return what is to be stored with it."""
        now, user = self._clock(), str(job.caller)
        made = Made(job=job.id, time=now, digest=_digest(ops), user=user)
        old = list(takewhile(self._is_over, self._made))
        for one in old:
            self._forget(one)
        if name in self._made:
            self._forget(name)
        if len(self._of_users.get(user, ())) >= MOST:
            old += (spare := self._spare(user))
            for one in spare:
                self._forget(one)
        self._keep(name, made)
        return [
            *(((KIND, one), None) for one in old),
            ((KIND, name), json.encode(made)),
        ]

    def _keep(self, name: str, made: Made) -> None:
        self._made[name] = made
        self._of_users.setdefault(made.user, {})[name] = None

    def _forget(self, name: str) -> None:
        user = self._made.pop(name).user
        del self._of_users[user][name]
        if not self._of_users[user]:
            del self._of_users[user]

    def _spare(self, user: str) -> list[str]:
        """Return the oldest key of a user, if it is old enough to be forgotten."""
        oldest = next(iter(self._of_users[user]))
        return [oldest] if self._clock() - self._made[oldest].time > LEAST else []

    def _is_over(self, name: str) -> bool:
        return self._clock() - self._made[name].time > LASTS


def decoded(data: bytes) -> Made:
    """Return what a record says that a request made.

    Raises
    ------
    ValueError
        If it is none.
    """
    return json.decode(data, type=Made)


def named(user: str, key: str) -> str:
    """Return the name of a user's key.

    Raises
    ------
    BadInput
        If it is none.
    """
    if not key or len(key) > _LONGEST or not key.isascii() or not key.isprintable():
        raise BadInput(f"a key is 1 to {_LONGEST} printable characters of ASCII")
    return hashlib.sha256(json.encode([user, key])).hexdigest()


def _digest(ops: Opcodes) -> str:
    """Return a checksum of what is asked for; the reason may differ."""
    asked: list[dict[str, Any]] = [
        {name: value for name, value in op.items() if name != "reason"} for op in ops
    ]
    return hashlib.sha256(json.encode(asked, order="deterministic")).hexdigest()
