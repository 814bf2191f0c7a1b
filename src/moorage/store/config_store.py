# SPDX-License-Identifier: BSD-2-Clause
"""The one truth: the current snapshot, and the only way to change it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import json

from moorage.errors import Conflict, Exists, NotFound
from moorage.model import KIND_OF, KINDS, Change, Config, apply, events, load
from moorage.model.apply import headless
from moorage.model.audit import Deed, checksum, decoded
from moorage.model.change import decode, encode
from moorage.model.commits import Key, Write
from moorage.model.objects import Entity
from moorage.model.story import NOTHING, Event, Occasion

from . import audit, feed, stories
from .audit import AuditLog
from .base import ADVICE, Damaged, Store, StoreLost, believed, whole
from .feed import Feed
from .stories import Stories

_LOG = logging.getLogger(__name__)
_AUDIT = logging.getLogger("moorage.audit")
"""A copy of the audit log for whoever gathers logs: with the checksum of each entry."""
_SERIAL = ("config", "serial_no")


class ConfigStore:
    """The configuration in memory, kept equal to the store.

    Readers take :attr:`config`, a snapshot that never changes. Writers call
    :meth:`commit`; one at a time gets through.

    Attributes
    ----------
    config
        The newest snapshot.
    term
        Number of this leadership; nodes refuse steps of earlier ones.
    lost
        Set when the store could not be written: nothing is committed any more, and
        the process has to end. What the store holds is for its next leader to see.
    settled
        Waited for with the version of each commit, before anybody is told of it: until
        those have it who keep copies. It returns what is to be told of those that do
        not.
    watchers
        Called with each change that was committed.
    stories
        What is told of disks, and of those that are gone.
    feed
        What happens, for those who want to hear of it.
    audit
        Where the log stands of who had what changed.
    """

    def __init__(self, store: Store) -> None:
        self.config = Config()
        self.term = 0
        self.lost = asyncio.Event()
        self.settled: Callable[[int], Awaitable[Sequence[str]]] = _nobody
        self.watchers: list[Callable[[Change], None]] = []
        self.stories = Stories()
        self.feed = Feed()
        self.audit = AuditLog()
        self._store = store
        self._version = 0
        self._writer = asyncio.Lock()
        self._over = ""

    @classmethod
    async def open(
        cls, store: Store
    ) -> tuple["ConfigStore", dict[str, dict[str, bytes]]]:
        """Take the lead of `store`.

        Returns
        -------
        The config_store, and the records that are not configuration, by kind and name.

        Raises
        ------
        Damaged
            If a record is none of ours.
        """
        config_store = cls(store)
        config_store.term = await store.lead()
        stored = await store.load()
        config_store._version = stored.version
        config_store.config, others = loaded(stored.records)
        told, fed = others.pop(stories.KIND, {}), others.pop(feed.KIND, {})
        lines = others.pop(audit.KIND, {})
        config_store.stories = believed(
            "an event of a disk", lambda: Stories.load(told, config_store.config)
        )
        config_store.feed = believed(
            "an entry of the feed", lambda: Feed.load(fed, config_store._number())
        )
        config_store.audit = believed(
            "the newest entry of the audit log", lambda: AuditLog.load(lines)
        )
        return config_store, others

    async def commit(
        self,
        change: Change | None,
        records: Sequence[Write] = (),
        occasion: Occasion = NOTHING,
        remarks: list[str] | None = None,
        jobs: Sequence[events.Event] = (),
        deeds: Sequence[Deed] = (),
    ) -> Config:
        """Apply `change` and write `records`, all or nothing, durably.

        What it does to disks is added to their stories, with its `occasion`, and what
        it does to any object to the feed.

        Parameters
        ----------
        jobs
            What the feed tells of the jobs among `records`.
        deeds
            What the audit log tells: nothing else does, and nothing without its commit.
        remarks
            Gets what is to be told of copies that do not have it.

        Raises
        ------
        Conflict
            If an object of `change` is not the successor of what is stored; nothing
            is written.
        StoreLost
            If the store could not be written, now or before.
        """
        # A caller that is cancelled must not leave the store a version ahead of us.
        told = [] if remarks is None else remarks
        work = asyncio.create_task(
            self._commit(change, records, occasion, told, jobs, deeds)
        )
        work.add_done_callback(_heard)
        return await asyncio.shield(work)

    async def note(self, records: Sequence[Write]) -> None:
        """Write records of which nobody is told, and which wait for no copy.

        Raises
        ------
        StoreLost
            If the store could not be written, now or before.
        """
        work = asyncio.create_task(self._note(records))
        work.add_done_callback(_heard)
        await asyncio.shield(work)

    async def _note(self, records: Sequence[Write]) -> None:
        async with self._writer:
            if self._over:
                raise StoreLost(self._over)
            self._version = await self._written(records)

    async def _commit(
        self,
        change: Change | None,
        records: Sequence[Write],
        occasion: Occasion,
        remarks: list[str],
        jobs: Sequence[events.Event],
        deeds: Sequence[Deed],
    ) -> Config:
        async with self._writer:
            if self._over:
                raise StoreLost(self._over)
            old = self.config
            config = apply(old, change) if change else old
            chapter = self.stories.writes(old, config, change or Change(), occasion)
            writes = [*_writes(change, config), *chapter.writes, *records]
            number = self._number(1)
            entry = events.entry(number, old, change or Change(), jobs, occasion)
            noted = self.feed.writes(entry) if entry else []
            lines = self.audit.lines(deeds, self.term)
            noted += self.audit.writes(lines)
            self._version = await self._written([*writes, *noted])
            self.config = config
            self.stories.note(chapter)
            if entry:
                self.feed.note(number, json.encode(entry))
            self.audit.note(lines)
            version, audited = self._version, self.audit.last
        for line in lines:
            _log(line)
        remarks += await self._told(version)
        self.feed.show(number)
        self.audit.show(audited)
        if change:
            for watcher in self.watchers:
                watcher(change)
        return config

    def _number(self, commits: int = 0) -> int:
        """Return the number of the newest commit, or one of those that come."""
        return events.number(self.term, self._version + commits)

    async def _told(self, version: int) -> Sequence[str]:
        try:
            return await self.settled(version)
        except StoreLost as error:
            _LOG.critical("nothing is committed any more: %s", error)
            self._lose(str(error))
            raise

    async def _written(self, writes: Sequence[Write]) -> int:
        try:
            return await self._store.commit(writes, expected=self._version)
        except Exception as error:
            # Even a conflict: somebody else leads, and all that follows is refused.
            _LOG.critical("nothing is committed any more: %s", error, exc_info=error)
            self._lose(str(error) or type(error).__name__)
            raise StoreLost(self._over) from error

    def _lose(self, why: str) -> None:
        """Note that nothing is committed any more; the first reason is the one told."""
        self._over = self._over or why
        self.lost.set()

    async def story(self, uuid: str) -> list[Event]:
        """Return what happened to a disk, in order; it may be gone.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        found = await self._store.read(stories.KIND, stories.prefix(uuid))
        return [stories.decoded(found[name]) for name in sorted(found)]

    async def audited(self, after: int) -> list[bytes]:
        """Return the lines of the audit log behind an entry, as they were written.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        shown = self.audit.shown
        found = await self._store.read(audit.KIND, "")
        return audit.between(found, after, shown)

    async def records(self, kind: str, prefix: str = "") -> Mapping[str, bytes]:
        """Return records that are no configuration, by their names.

        Parameters
        ----------
        prefix
            What the names begin with.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        return await self._store.read(kind, prefix)

    async def end(self) -> None:
        """Commit nothing more: who leads next may be told what there is."""
        async with self._writer:
            self._over = self._over or "another node takes the lead"

    async def close(self) -> None:
        """Let go of the store."""
        async with self._writer:
            await self._store.close()


def _log(line: bytes) -> None:
    """Write an entry of the audit log into the master's log, as its head."""
    entry = decoded(line)
    who = " by ".join(word for word in (entry.user, entry.door) if word)
    told = {"number": entry.number, "checksum": checksum(line)}
    names = ("what", "user", "door", "role", "job", "status", "request")
    told |= {name: value for name in names if (value := getattr(entry, name))}
    _AUDIT.info(
        "entry %s, %s: %s %s %s of %s",
        *(entry.number, told["checksum"], entry.what, entry.job or "", entry.about),
        who or "nobody",
        extra={"always": True, "told": told},
    )


async def _nobody(_version: int) -> Sequence[str]:
    """Keep no copies."""
    return ()


def _heard(work: asyncio.Task[Any]) -> None:
    """Take note of the end of a commit that its caller may not wait for."""
    if not work.cancelled():
        work.exception()


def loaded(
    records: Mapping[Key, bytes],
) -> tuple[Config, dict[str, dict[str, bytes]]]:
    """Return the configuration in a store's records, and the others by kind and name.

    Raises
    ------
    Damaged
        If they are none of ours.
    """
    others: dict[str, dict[str, bytes]] = {}
    entities = []
    for (kind, name), value in records.items():
        if kind in KINDS:
            entities.append(_decoded(kind, name, value))
        else:
            others.setdefault(kind, {})[name] = value
    serial = others.pop("config", {}).get("serial_no", b"0")
    serial_no = believed("the configuration's serial number", lambda: whole(serial))
    try:
        config = load(serial_no, entities)
    except Conflict as error:
        raise Damaged(f"the store does not fit: {error}", hint=ADVICE) from error
    if entities and (why := headless(config)):
        raise Damaged(f"the store does not fit: {why}", hint=ADVICE)
    return config, others


def _decoded(kind: str, name: str, value: bytes) -> Entity:
    return believed(
        f"the record of {kind} {name}", lambda: decode(kind, json.decode(value))
    )


def _writes(change: Change | None, config: Config) -> list[Write]:
    if change is None:
        return []
    dropped: list[Write] = [
        ((KIND_OF[type(old)], old.uuid), None) for old in change.drop
    ]
    put: list[Write] = [
        ((KIND_OF[type(new)], new.uuid), json.encode(encode(new))) for new in change.put
    ]
    return [*dropped, *put, (_SERIAL, b"%d" % config.serial_no)]


async def create(store: Store, change: Change) -> None:
    """Write the first configuration of a cluster into an empty store.

    Raises
    ------
    Exists
        If there is a cluster already.
    """
    config_store, _ = await ConfigStore.open(store)
    if config_store.config.objects:
        raise Exists("there is a cluster already", hint="gnt-cluster info")
    await config_store.commit(change)


def require_cluster(config_store: ConfigStore) -> None:
    """Raise `NotFound` if the store holds no cluster."""
    if not config_store.config.objects:
        raise NotFound("there is no cluster yet", hint="gnt-cluster init NAME")
