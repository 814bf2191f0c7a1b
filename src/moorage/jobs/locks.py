# SPDX-License-Identifier: BSD-2-Clause
"""Locks: shared or exclusive, in one fixed order, first come first served by priority.

A job takes all its locks before it starts, level by level and by name within a level.
Everybody climbing the same stairs, nobody can wait for somebody who waits for them.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from msgspec import Struct

LEVELS = (
    *("cluster", "group", "pool", "node", "instance", "disk", "network"),
    "allocator",
)
"""The one order in which locks are taken. Whoever asks an allocator has it last: they
ask one after the other, each with what was chosen before in sight."""


class Lock(Struct, frozen=True, order=True):
    """One thing to hold, and whether others may hold it too.

    Attributes
    ----------
    level
        One of :data:`LEVELS`.
    name
        Uuid of the object, or the name of one that is to be made.
    """

    level: str
    name: str
    shared: bool = False


@dataclass(slots=True)
class _Waiter:
    owner: int
    shared: bool
    turn: tuple[int, int]
    granted: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _State:
    holders: dict[int, bool] = field(default_factory=dict)
    waiters: list[_Waiter] = field(default_factory=list)

    def takes(self, lock: Lock, owner: int) -> bool:
        """Let somebody in at once; return False, and do nothing, if they must wait."""
        if self.waiters or not self._fits(owner, lock.shared):
            return False
        self.holders[owner] = lock.shared
        return True

    def admit(self) -> None:
        """Let in everybody at the head of the queue who can come in."""
        self.waiters.sort(key=lambda waiter: waiter.turn)
        while self.waiters:
            waiter = self.waiters[0]
            if not self._fits(waiter.owner, waiter.shared):
                return
            self.waiters.pop(0)
            self.holders[waiter.owner] = waiter.shared
            waiter.granted.set()

    def _fits(self, owner: int, shared: bool) -> bool:
        others = [held for who, held in self.holders.items() if who != owner]
        return not others or (shared and all(others))


def in_order(locks: Iterable[Lock]) -> list[Lock]:
    """Return the locks in the order to take them; exclusive wins over shared."""
    strongest: dict[tuple[int, str], Lock] = {}
    for lock in locks:
        key = (LEVELS.index(lock.level), lock.name)
        if key not in strongest or not lock.shared:
            strongest[key] = lock
    return [strongest[key] for key in sorted(strongest)]


class Locks:
    """Who holds what, and who waits. Owners are job numbers."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], _State] = {}
        self._turns = count()

    async def acquire(self, owner: int, locks: Iterable[Lock], priority: int) -> None:
        """Take all of `locks` for `owner`, waiting where others hold them.

        Parameters
        ----------
        priority
            From -20 (first) to 19 (last), as in Ganeti.
        """
        try:
            for lock in in_order(locks):
                await self._take(owner, lock, priority)
        except BaseException:
            self.release(owner)
            raise

    async def _take(self, owner: int, lock: Lock, priority: int) -> None:
        state = self._states.setdefault((lock.level, lock.name), _State())
        if state.takes(lock, owner):
            return
        waiter = _Waiter(owner, lock.shared, (priority, next(self._turns)))
        state.waiters.append(waiter)
        state.admit()
        try:
            await waiter.granted.wait()
        finally:
            if waiter in state.waiters:
                state.waiters.remove(waiter)
                state.admit()

    def release(self, owner: int, but: Iterable[Lock] = ()) -> None:
        """Let go of what `owner` holds, but for some locks."""
        kept = {(lock.level, lock.name) for lock in but}
        for key, state in list(self._states.items()):
            if key in kept:
                continue
            if state.holders.pop(owner, None) is not None:
                state.admit()
            if not state.holders and not state.waiters:
                del self._states[key]

    def blocking(self, owner: int) -> tuple[str, str, list[int]]:
        """Return the lock that `owner` waits for: level, name, and who holds it."""
        for (level, name), state in self._states.items():
            if any(waiter.owner == owner for waiter in state.waiters):
                return level, name, sorted(state.holders)
        return "", "", []

    def rows(self) -> list[dict[str, object]]:
        """Return what ``gnt-debug locks`` shows, one row a lock."""
        return [
            {
                "name": "/".join(key),
                "mode": _mode(state),
                "owner": sorted(state.holders),
                "pending": [waiter.owner for waiter in state.waiters],
            }
            for key, state in sorted(self._states.items())
        ]


def _mode(state: _State) -> str | None:
    if not state.holders:
        return None
    return "shared" if all(state.holders.values()) else "exclusive"
