# SPDX-License-Identifier: BSD-2-Clause
"""The stories of disks: a small record an event, in the commit that made it happen.

A story has at most :data:`LONGEST` events: the first one, which says where the disk
came from, and the newest. Of disks that are gone, the newest :data:`GONE` stories are
kept. So the store does not grow with time, and jobs can be archived: what they did is
told here.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from msgspec import json

from moorage.errors import Ambiguous, NotFound
from moorage.model import Change, Config, Disk
from moorage.model.commits import Write
from moorage.model.objects import LogicalId, as_text
from moorage.model.story import REMOVED, Event, Occasion, events

KIND = "story"
"""The kind of the records; the name is the disk's uuid and the event's number."""
LONGEST = 1000
"""Events that are kept of one disk."""
GONE = 10_000
"""Disks that are gone, whose stories are kept."""


class Ended(NamedTuple):
    """A disk that is gone: what people and storage scripts called it; when it went."""

    name: str
    known_as: str
    time: float


class Stories:
    """What is told of each disk: how much, and who had which volume.

    The events themselves stay in the store.

    Attributes
    ----------
    ended
        The disks that are gone, by uuid, the first to go first.
    """

    def __init__(self) -> None:
        self.ended: dict[str, Ended] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        self._volumes: dict[LogicalId, str] = {}

    @classmethod
    def load(cls, records: Mapping[str, bytes], config: Config) -> "Stories":
        """Return what there is in a store.

        Raises
        ------
        ValueError
            If a record is no event.
        """
        found, ends = cls(), {}
        held: list[_Holding] = []
        for name in sorted(records):
            uuid, number = parsed(name)
            event = decoded(records[name])
            found._count(uuid, number)
            held += _holdings(uuid, event)
            if event.kind == REMOVED and uuid not in config.objects:
                ends[uuid] = _ended(event)
        order = sorted(ends, key=lambda uuid: ends[uuid].time)
        found.ended = {uuid: ends[uuid] for uuid in order}
        found._hold(held)
        return found

    def writes(
        self, before: Config, after: Config, change: Change, occasion: Occasion
    ) -> "Chapter":
        """Return the events of a change, and the records that tell them."""
        told = []
        writes: list[Write] = []
        for uuid, event in events(before, after, change, occasion):
            first, last = self._spans.get(uuid, (1, 0))
            told.append((uuid, last + 1, event))
            writes.append((_key(uuid, last + 1), json.encode(event)))
            old = last + 2 - LONGEST  # the first one stays
            if old > first:
                writes.append((_key(uuid, old), None))
        ending = {uuid for uuid, _, event in told if event.kind == REMOVED}
        writes += self._surplus(len(ending - self.ended.keys()))
        return Chapter(writes, told)

    def note(self, chapter: "Chapter") -> None:
        """Take note of events that were written."""
        self._hold(
            one for uuid, _, event in chapter.told for one in _holdings(uuid, event)
        )
        for uuid, number, event in chapter.told:
            self._count(uuid, number)
            self.ended.pop(uuid, None)
            if event.kind == REMOVED:
                self.ended[uuid] = _ended(event)
        while len(self.ended) > GONE:
            uuid = next(iter(self.ended))
            del self.ended[uuid], self._spans[uuid]
            self._volumes = {v: u for v, u in self._volumes.items() if u != uuid}

    def _surplus(self, ending: int) -> Iterator[Write]:
        """Yield what drops the oldest stories, when some more disks are gone."""
        surplus = max(0, len(self.ended) + ending - GONE) if ending else 0
        for uuid in islice(self.ended, surplus):
            first, last = self._spans[uuid]
            numbers = {first, *range(max(first, last + 2 - LONGEST), last + 1)}
            yield from ((_key(uuid, number), None) for number in sorted(numbers))

    def _count(self, uuid: str, number: int) -> None:
        first, _ = self._spans.get(uuid, (number, 0))
        self._spans[uuid] = first, number

    def _hold(self, held: Iterable["_Holding"]) -> None:
        self._volumes |= {one.volume: one.uuid for one in sorted(held)}

    def find(self, config: Config, ref: str) -> str:
        """Return the uuid of the disk that `ref` names, were it gone.

        Raises
        ------
        NotFound
            If there is none, and was none.
        Ambiguous
            If several that are gone had the name.
        """
        if ref in self.ended:
            return ref
        if config.knows(Disk, ref):
            return config.disk(ref).uuid
        found = [uuid for uuid, one in self.ended.items() if one.name == ref]
        if len(found) > 1:
            raise Ambiguous(
                f"{len(found)} disks that are gone were named '{ref}'",
                hint="use the uuid: " + " or ".join(found),
                uuids=found,
            )
        if not found:
            raise NotFound(f"disk '{ref}' is not known, and was not", ref=ref)
        return found[0]

    def left_out(self, uuid: str) -> int:
        """Return how many events of a disk are not kept any more."""
        first, last = self._spans.get(uuid, (1, 0))
        return max(0, last - first + 1 - LONGEST)

    def former(self, logical_id: LogicalId) -> str:
        """Return the uuid of the disk that a volume is or was of; empty for none."""
        return self._volumes.get(logical_id, "")

    def name(self, uuid: str) -> str:
        """Return what a disk that is gone was called; its uuid if that is not known."""
        ended = self.ended.get(uuid)
        return ended.name if ended and ended.name else uuid

    def known_as(self, uuid: str) -> str:
        """Return what scripts knew a disk as that is gone; empty for nothing."""
        ended = self.ended.get(uuid)
        return ended.known_as if ended else ""


class _Holding(NamedTuple):
    """A disk that had a volume before an event, or `since` it; the last one counts."""

    time: float
    since: bool
    uuid: str
    volume: LogicalId


def _holdings(uuid: str, event: Event) -> Iterator[_Holding]:
    for since, volume in enumerate(event.changed.get("logical_id", ())):
        if volume:
            yield _Holding(event.time, bool(since), uuid, as_text(volume))
    for since, children in enumerate(event.changed.get("children", ())):
        for child in children or ():
            volume = as_text(child["logical_id"])
            yield _Holding(event.time, bool(since), uuid, volume)


class Chapter(NamedTuple):
    """The events of one commit, and the records that tell them."""

    writes: list[Write]
    told: list[tuple[str, int, Event]]


def prefix(uuid: str) -> str:
    """Return how the names of all records of a disk's story begin."""
    return f"{uuid} "


def _key(uuid: str, number: int) -> tuple[str, str]:
    return KIND, f"{prefix(uuid)}{number:08d}"


def parsed(name: str) -> tuple[str, int]:
    """Return uuid and number of an event; raise `ValueError` for another name."""
    uuid, _, number = name.rpartition(" ")
    return uuid, int(number)


def decoded(value: bytes) -> Event:
    """Return an event; raise `ValueError` if it is none."""
    return json.decode(value, type=Event)


def _ended(event: Event) -> Ended:
    """Return how a disk ended, from its last event."""
    name, cname = (event.changed.get(one, (None,))[0] for one in ("name", "cname"))
    known = name if cname is None else cname
    return Ended(str(name or ""), str(known or ""), event.time)
