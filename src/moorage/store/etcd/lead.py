# SPDX-License-Identifier: BSD-2-Clause
"""The lead: a key in etcd that goes with its lease, and a lease that is renewed.

This side's clock ends a lead before etcd's can: a lease counts from the moment at which
its renewal was asked for, and a part of it is left out for clocks that run apart. The
lead makes sure that there is one master at a time in ordinary life. It is no guard of
what is written: each write names the key of the lead itself.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence

from msgspec import DecodeError, Struct, ValidationError, json

from moorage.errors import Refused
from moorage.store import migrations
from moorage.store.base import Damaged, Elsewhere, StoreError, StoreLost

from . import gateway
from .gateway import Gateway, Lease, Value, now
from .layout import Keys
from .settings import EtcdSettings

_RENEWALS = 4
"""How often a lease is renewed while it lasts."""
_LOOK = 0.2
"""Seconds between two looks at the clock: sleep itself stops while a machine does."""
_MARGIN = 0.2
"""The part of a lease that this side does not count on."""
_LAST_WORDS = 1.0
"""Seconds in which a lead is given back."""


class Leader(Struct, frozen=True):
    """Who leads.

    Attributes
    ----------
    mark
        Drawn by chance: no two leads have the same.
    host, pid
        For people.
    format
        Which it writes; 0 where it does not say.
    """

    mark: str
    host: str = ""
    pid: int = 0
    format: int = 0

    @classmethod
    def this(cls) -> "Leader":
        """Return this process, for one lead."""
        mark = os.urandom(16).hex()
        return cls(mark, socket.gethostname(), os.getpid(), migrations.FORMAT)


def decoded(value: bytes) -> Leader:
    """Return who leads; one of whom nothing is known if it cannot be read."""
    try:
        return json.decode(value, type=Leader)
    except (DecodeError, ValidationError, UnicodeError):
        return Leader("")


class Lead:
    """A lead that was taken.

    Attributes
    ----------
    revision
        At which its key was made: what each write names.
    until
        When it ends, by :func:`.gateway.now`, if it is not renewed.
    over
        Why it is lost; empty as long as it is not.
    """

    def __init__(self, etcd: Gateway, lease: int, revision: int, until: float) -> None:
        self.revision = revision
        self.until = until
        self.over = ""
        self._etcd = etcd
        self._lease = lease

    async def keep(self, ended: Callable[[str], None]) -> None:
        """Renew the lease until it is lost, and tell that; it is to be cancelled."""
        try:
            due = now() + self._length / _RENEWALS
            while not self.over:
                left = min(self.until, due) - now()
                await asyncio.sleep(max(0.0, min(left, _LOOK)))
                if now() >= min(self.until, due):
                    due = now() + self._length / _RENEWALS
                    await self._renew()
        except Exception as error:  # noqa: BLE001 - a lead that nobody keeps is lost
            self.over = f"the lead in etcd is not renewed any more: {error!r}"
        ended(self.over)

    @property
    def _length(self) -> float:
        return self._etcd.settings.lease * (1 - _MARGIN)

    async def _renew(self) -> None:
        asked = now()
        if asked >= self.until:
            self.over = "the lead in etcd could not be renewed in time"
            return
        try:
            seconds = await self._etcd.renew(self._lease, self.until)
        except StoreError as error:
            if now() >= self.until:
                self.over = f"the lead in etcd could not be renewed: {error.message}"
            return
        if not seconds:
            self.over = "the lead in etcd has run out"
        self.until = asked + seconds * (1 - _MARGIN)

    def ended(self) -> bool:
        """Whether it is lost, or has to count as lost by now."""
        return bool(self.over) or now() >= self.until

    def look(self, ended: Callable[[str], None]) -> None:
        """Look at the clock before a word that only who leads may say.

        A process that stood still goes on where it was: what it was about to say may be
        faster than the thread that keeps the lead.

        Raises
        ------
        StoreLost
            If it is lost, and `ended`, which is told of that, does not end the process.
        """
        if self.ended():
            why = self.over or "the lead in etcd was not renewed in time"
            ended(why)
            raise StoreLost(why)

    async def give_back(self) -> None:
        """End the lead at once, for the next one."""
        self.over = self.over or "the lead was given back"
        await self._etcd.revoke(self._lease, now() + _LAST_WORDS)


async def taken(etcd: Gateway, keys: Keys, until: float, *, new: bool) -> Lead:
    """Take the lead.

    Parameters
    ----------
    new
        Whether an empty prefix may become this cluster's.

    Raises
    ------
    Refused
        If somebody has it, or another node is wished to.
    Damaged
        If what is there is another cluster's, or none of ours, or nothing.
    Elsewhere
        If the state was moved away.
    StoreError
        If etcd gives no answer.
    """
    _, there = await etcd.range(keys.leader, None, until)
    if there:  # who waits for the lead looks often, and writes nothing
        raise _led(etcd, there[0])
    _, wish = await etcd.range(keys.wish, None, until)
    if wish and wish[0].value != etcd.settings.node.encode():
        raise Refused(
            f"another node is about to lead on {etcd.settings.label}",
            hint="gnt-cluster getmaster",
            led=True,
        )
    asked = now()
    lease = await etcd.ask("lease/grant", {"TTL": etcd.settings.lease}, Lease, until)
    ends = asked + lease.TTL * (1 - _MARGIN)
    mine = Leader.this()
    try:
        if new:
            await _claim(etcd, keys, until)
        revision = await _named(etcd, keys, (lease.ID, json.encode(mine)), until)
    except BaseException:
        await etcd.revoke(lease.ID, now() + _LAST_WORDS)
        raise
    return Lead(etcd, lease.ID, revision, ends)


async def _named(
    etcd: Gateway, keys: Keys, lease: tuple[int, bytes], until: float
) -> int:
    """Write the leader's key; return the revision at which it was made."""
    number, mine = lease
    ours = etcd.settings.cluster.encode()
    answer = await etcd.txn(
        [
            gateway.holds(keys.cluster, ours),
            gateway.is_new(keys.leader),
            gateway.is_new(keys.moved),
        ],
        [gateway.put(keys.leader, mine, number)],
        [keys.cluster, keys.leader, keys.moved],
        until,
    )
    if answer.succeeded:
        return answer.header.revision
    cluster, leader, left = answer.found
    check_ours(etcd.settings, cluster)
    check_here(etcd.settings, left)
    if leader[0].value != mine:
        raise _led(etcd, leader[0])
    return leader[0].create_revision  # by a try that nobody heard of


def check_ours(settings: EtcdSettings, found: Sequence[Value]) -> None:
    """Raise `Damaged` unless this cluster's name is what was `found` in its place."""
    if not found:
        raise Damaged(
            f"{settings.label} holds no cluster's state",
            hint="put a backup back, or what was there",
        )
    if found[0].value != settings.cluster.encode():
        raise Damaged(
            f"{settings.label} holds the state of another cluster",
            hint="give this cluster a prefix of its own",
        )


class Left(Struct, frozen=True):
    """Where the state is that was here: which move took it there, and where to."""

    move: str
    to: str


def check_here(settings: EtcdSettings, found: Sequence[Value]) -> None:
    """Raise `Elsewhere` if `found` says that the state was moved away."""
    if not found:
        return
    try:
        left = json.decode(found[0].value, type=Left)
    except (DecodeError, ValidationError, UnicodeError):
        left = Left("", "another place")
    raise Elsewhere(
        f"the state was moved from {settings.label} to {left.to}",
        hint="gnt-cluster getmaster, on a node of the cluster",
        move=left.move,
    )


async def _claim(etcd: Gateway, keys: Keys, until: float) -> None:
    """Make an empty prefix this cluster's, unless another one is faster."""
    answer = await etcd.txn(
        [gateway.is_empty(keys.root)],
        [gateway.put(keys.cluster, etcd.settings.cluster.encode())],
        [keys.cluster],
        until,
    )
    if not answer.succeeded and not answer.found[0]:
        raise Damaged(
            f"{etcd.settings.label} is not empty, and holds no cluster's state",
            hint="give this cluster a prefix of its own",
        )


def _led(etcd: Gateway, leader: Value) -> Refused:
    found = decoded(leader.value)
    who = f" ({found.host}, process {found.pid})" if found.host else ""
    said = f"another master leads on {etcd.settings.label}{who}"
    late = found.format > migrations.FORMAT
    if late:
        said += (
            f"; it is a later Moorage's, which writes format {found.format}: this one "
            f"reads up to {migrations.FORMAT}, and cannot lead after it"
        )
    return Refused(said, hint="stop it first", host=found.host, led=True, late=late)
