# SPDX-License-Identifier: BSD-2-Clause
"""The engine: a commit is one request that names the lead and the head it stands on.

Whether a request took effect that nobody answered, the next one tells: it has the same
guard, which fails if the head is another one, and shows that head. So a commit ends as
done, as refused, or with the lead; and nobody is told of it before.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import json

from moorage.errors import Conflict
from moorage.model.commits import Head, Key, Write
from moorage.store import checksums
from moorage.store.base import ADVICE, Damaged, Stored, StoreError

from . import gateway, layout
from .aside import Aside
from .gateway import Compacted, Gateway, Silent, now
from .layout import Keys, Place, Put, behind
from .lead import Lead, Left, check_here, check_ours, taken
from .settings import EtcdSettings

_LOG = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE = 10.0
"""Seconds that etcd gets where no lead is at stake."""
KEPT = 1000
"""Commits after which what etcd keeps of earlier ones is dropped; at the taking of the
lead, what it keeps of those before."""
_SCANS = 5
"""How often all is read anew, when it was dropped meanwhile what was to be read."""


class EtcdStore:
    """A store in etcd.

    Parameters
    ----------
    ended
        Called when the lead is lost, with the reason: in a thread of the store's own,
        which no work of the master's can hold up. What leads has to end at once.
    new
        Whether an empty prefix may become this cluster's.

    Attributes
    ----------
    head
        What the last commit made, or else the taking of the lead.
    """

    def __init__(
        self,
        settings: EtcdSettings,
        ended: Callable[[str], None] | None = None,
        *,
        new: bool = True,
    ) -> None:
        self._new = new
        self.settings = settings
        self.head = Head(0, 0, 0)
        self._keys = Keys(settings.prefix)
        self._ended = ended or _told
        self._aside: Aside | None = None
        self._etcd: Gateway | None = None
        self._lead: Lead | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        # Of each record the checksum, and in how many pieces it lies.
        self._known: dict[Key, tuple[int, int]] | None = None
        self._mod = 0
        self._since, self._kept_from = 0, 0

    async def lead(self) -> int:
        """Become the only writer; return the term."""
        return await self._run(self._take())

    async def load(self) -> Stored:
        """Return all records."""
        head, records = await self._run(self._all())
        return Stored(head.version, records)

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and the head that they belong to; it needs no lead."""
        return await self._run(self._all())

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return the records of a kind whose names begin with `prefix`, by name."""
        return await self._run(self._some(kind, prefix))

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Apply `writes` at version `expected`; return the new version."""
        return await self._run(self._commit(writes, expected))

    def look(self) -> None:
        """Look whether the lead is over: in any thread, for the clock tells it."""
        if held := self._lead:
            held.look(self._ended)

    async def fill(self, head: Head, records: Mapping[Key, bytes]) -> None:
        """Take over what another store holds, in no lower term; this one is empty."""
        await self._run(self._fill(head, records))

    async def leave(self, move: str, to: str) -> None:
        """Say for good that the state is elsewhere: nobody leads or reads here then."""
        left = gateway.put(self._keys.moved, json.encode(Left(move, to)))
        await self._run(self._put([left], None))

    async def drop(self) -> None:
        """Remove all that the cluster has in etcd; the lead goes, too."""
        await self._run(self._drop())

    async def close(self) -> None:
        """Let go of the lead, and of the connections."""
        if self._aside is None:
            return
        await self._run(self._leave())
        await asyncio.to_thread(self._aside.end)
        self._aside = None
        self._turn = asyncio.Lock()  # it belonged to the loop that has ended

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._aside is None:
            self._aside = Aside()
        try:
            return await self._aside.do(work)
        except (UnicodeError, ValueError) as error:
            raise StoreError(f"{self.settings.label}: {error}") from error

    # -- on the store's own loop ---------------------------------------------------

    def _members(self) -> Gateway:
        if self._etcd is None:
            self._etcd = Gateway(self.settings)
        return self._etcd

    async def _take(self) -> int:
        async with self._turn:
            if self._lead is None:
                until = now() + PATIENCE
                self._lead = await taken(
                    self._members(), self._keys, until, new=self._new
                )
                self._keeping = asyncio.create_task(self._lead.keep(self._ended))
            self._known = None
            await self._settle()
            before = self._mod
            place = Place.of(self.head._replace(term=self.head.term + 1))
            # What an earlier leader had begun to write, and nobody was told of.
            await self._put([gateway.drop_all(self._keys.parts)], place)
            self._since, self._kept_from = 0, self._mod
            if before and self._aside:
                self._aside.later(self._members().compact(before, now() + PATIENCE))
            return self.head.term

    async def _settle(self) -> None:
        """Learn the head, and write out what a large commit has left to be written."""
        etcd, until = self._members(), now() + PATIENCE
        _, found = await etcd.range(self._keys.head, None, until)
        if not found:
            self.head, self._mod = Head(0, 0, 0), 0
            return
        place, self._mod = layout.placed(found[0].value), found[0].mod_revision
        self.head = place.head
        if place.parts:
            _, parts = await self._parts(place.parts, 0)
            await self._spread(layout.unparted(parts), place.head)

    async def _parts(self, number: int, revision: int) -> tuple[int, list[bytes]]:
        keys = self._keys
        revision, found = await self._members().range(
            keys.parts, behind(keys.parts), now() + PATIENCE, revision
        )
        there = {one.key: one.value for one in found}
        wanted = [keys.part(one) for one in range(number)]
        if not all(one in there for one in wanted):
            raise Damaged(f"{self.settings.label} lacks a part of a commit")
        return revision, [there[one] for one in wanted]

    async def _all(self) -> tuple[Head, dict[Key, bytes]]:
        async with self._turn:
            for _ in range(_SCANS):
                try:
                    return await self._scan()
                except Compacted as error:
                    last = error
            raise last

    async def _scan(self) -> tuple[Head, dict[Key, bytes]]:
        """Read all, as of one moment."""
        etcd, keys = self._members(), self._keys
        revision, found = await etcd.range(keys.head, None, now() + PATIENCE)
        _, cluster = await etcd.range(keys.cluster, None, now() + PATIENCE, revision)
        if found or cluster:
            check_ours(etcd.settings, cluster)
        _, left = await etcd.range(keys.moved, None, now() + PATIENCE, revision)
        check_here(etcd.settings, left)
        place = layout.placed(found[0].value) if found else Place.of(Head(0, 0, 0))
        _, there = await etcd.range(
            keys.records, behind(keys.records), now() + PATIENCE, revision
        )
        values = {one.key: one.value for one in there}
        if place.parts:
            _, parts = await self._parts(place.parts, revision)
            for key, value in layout.unparted(parts):
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
        # Not here: this loop has the lead to keep.
        return place.head, await asyncio.to_thread(self._whole, place, values)

    def _whole(self, place: Place, values: Mapping[bytes, bytes]) -> dict[Key, bytes]:
        records, sums = layout.joined(self._keys, values)
        self._believe(checksums.faults(place.head, place.sum, records, sums))
        self._known = {
            key: (sums[key], layout.count(value)) for key, value in records.items()
        }
        return records

    async def _some(self, kind: str, prefix: str) -> dict[str, bytes]:
        async with self._turn:
            first = self._keys.of_kind(kind, prefix)
            etcd = self._members()
            _, found = await etcd.range(first, behind(first), now() + PATIENCE)
            there = {
                one.key: one.value
                for one in found
                if self._keys.key(one.key)[0][1].startswith(prefix)
            }
            records, sums = layout.joined(self._keys, there)
            self._believe(checksums.misfits(records, sums))
            return {name: value for (_, name), value in records.items()}

    def _believe(self, faults: Any) -> None:  # noqa: ANN401
        found = list(faults)
        if found:
            more = f", and {len(found) - 3} more" if len(found) > 3 else ""
            said = "; ".join(found[:3])
            raise Damaged(
                f"{self.settings.label} is damaged: {said}{more}", hint=ADVICE
            )

    async def _commit(self, writes: Sequence[Write], expected: int) -> int:
        if self._known is None:
            await self._all()
        async with self._turn:
            if self.head.version != expected:
                raise Conflict("the store moved on, or another master leads")
            known, puts, total = self._changes(dict(writes))
            new = Head(expected + 1, self.head.term, total)
            if layout.fits(puts):
                await self._put([gateway.done(one) for one in puts], Place.of(new))
            else:
                await self._put_parts(puts, new)
            self._note(known)
            return new.version

    async def _fill(self, head: Head, records: Mapping[Key, bytes]) -> None:
        async with self._turn:
            if self.head.version:
                raise Conflict("there is a state already")
            known, puts, total = self._changes(records)
            if total != head.total:
                raise StoreError("what is to be taken over is not whole")
            term = max(self.head.term, head.term)
            await self._put_parts(puts, Head(head.version, term, total))
            self._known = known

    def _changes(
        self, writes: Mapping[Key, bytes] | Mapping[Key, bytes | None]
    ) -> tuple[dict[Key, tuple[int, int]], list[Put], int]:
        """Return what is to be known, and put, and the new checksum of all."""
        known: dict[Key, tuple[int, int]] = {}
        puts: list[Put] = []
        total = self.head.total
        there = self._known or {}
        for key, value in writes.items():
            old, pieces = there.get(key, (0, 0))
            sum_, number = 0, 0
            if value is not None:
                made = list(layout.pieces(self._keys, key, value))
                puts += made
                sum_, number = checksums.of_record(key, value), len(made)
            rest = range(number, pieces)
            puts += [(self._keys.piece(key, one), None) for one in rest]
            total = checksums.combined((total, old, sum_))
            known[key] = (sum_, number)
        return known, puts, total

    def _note(self, changed: Mapping[Key, tuple[int, int]]) -> None:
        known = self._known if self._known is not None else {}
        for key, one in changed.items():
            if one[1]:
                known[key] = one
            else:
                known.pop(key, None)
        self._since += 1
        if self._since >= KEPT:
            self._since = 0
            before, self._kept_from = self._kept_from, self._mod
            if before and self._aside:
                self._aside.later(self._members().compact(before, now() + PATIENCE))

    async def _put_parts(self, puts: list[Put], new: Head) -> None:
        """Make a commit that no request can carry."""
        keys = self._keys
        parts = layout.parted(puts)
        laid = ((keys.part(number), one) for number, one in enumerate(parts))
        for batch in layout.requests(laid):
            await self._put([gateway.done(one) for one in batch], None)
        await self._put([], Place.of(new, len(parts)))
        await self._spread(puts, new)

    async def _spread(self, puts: list[Put], head: Head) -> None:
        """Write out the records of a large commit, which is made already."""
        for batch in layout.requests(puts):
            await self._put([gateway.done(one) for one in batch], None)
        await self._put([gateway.drop_all(self._keys.parts)], Place.of(head))

    async def _put(self, does: list[dict[str, Any]], place: Place | None) -> None:
        """Do all at the present head, as who leads; put the next head, if there is one.

        Raises
        ------
        Conflict
            If another one leads, or the head is another one; nothing was done.
        StoreError
            If the lead was lost before the answer came; nobody knows what was done.
        """
        held = self._lead
        if held is None:
            raise StoreError("nobody leads on this store")
        if held.ended():
            raise StoreError(held.over or "the lead in etcd was not renewed in time")
        value = place.encoded() if place else b""
        guard = [
            gateway.made_at(self._keys.leader, held.revision),
            gateway.as_of(self._keys.head, self._mod),
        ]
        if place:
            does = [*does, gateway.put(self._keys.head, value)]
        answer = await self._answer(held, guard, does)
        if answer.succeeded:
            revision = answer.header.revision
        else:
            there, leader = answer.found
            if not (place and there and there[0].value == value):
                raise Conflict("the store moved on, or another master leads")
            # Two that take the lead put the same head: it is whose who still leads.
            if not (leader and leader[0].create_revision == held.revision):
                raise StoreError("the lead was lost before etcd had answered")
            revision = there[0].mod_revision  # by a try that nobody heard of
        if place:
            self.head, self._mod = place.head, revision

    async def _answer(
        self, held: Lead, guard: list[dict[str, Any]], does: list[dict[str, Any]]
    ) -> gateway.Txn:
        """Ask until there is an answer, or the lead is lost."""
        while True:
            try:
                looks = [self._keys.head, self._keys.leader]
                return await self._members().txn(guard, does, looks, held.until)
            except Silent:
                if held.ended():
                    raise  # else it was renewed meanwhile

    async def _drop(self) -> None:
        async with self._turn:
            root = self._keys.root
            try:
                await self._put([gateway.drop_all(root)], None)
            except Conflict:  # by a try that nobody heard of, if nothing is left
                until = now() + PATIENCE
                _, there = await self._members().range(root, behind(root), until)
                if there:
                    raise
            self._known, self.head, self._mod = None, Head(0, 0, 0), 0

    async def _leave(self) -> None:
        async with self._turn:
            if self._keeping:
                self._keeping.cancel()
            held, self._lead = self._lead, None
            if held:
                await held.give_back()
            if self._etcd:
                await self._etcd.close()
            self._etcd, self._keeping = None, None


def _told(why: str) -> None:
    _LOG.critical("this store is led no more: %s", why)
