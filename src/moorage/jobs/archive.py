# SPDX-License-Identifier: BSD-2-Clause
"""The archive: jobs that were put away, kept for a while in records of their own.

In memory is no more than their numbers and when each was put away, so that a job costs
the same however many are kept; the jobs themselves stay in the store, packed.
"""

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice, takewhile

from moorage.model.commits import Write
from moorage.store import ConfigStore, believed

from .job import Job, decode, encode

KIND = "archived"
"""The kind of the records; the name is the job's number, and the second in which it was
put away."""
KEPT = 10_000
"""Jobs that are kept at most; the newest of them."""
_MANY = 100
"""Jobs that are looked up one by one; of more, all records are read at once."""
_DIGITS = 15
_LARGEST = 1 << 26
"""Bytes that a job can have when it is unpacked."""


class Archive:
    """Which jobs there are in the archive.

    Attributes
    ----------
    times
        When each was put away, in seconds, by number; the first to go first.
    """

    def __init__(self, config_store: ConfigStore) -> None:
        self.times: dict[int, int] = {}
        self._config_store = config_store

    def load(self, records: Mapping[str, bytes]) -> None:
        """Take over what a store holds.

        Raises
        ------
        Damaged
            If a record's name is none of ours.
        """
        found = [
            believed(f"archived job {name}", partial(parsed, name)) for name in records
        ]
        self.times = dict(sorted(found, key=lambda pair: (pair[1], pair[0])))

    @property
    def patience(self) -> float:
        """For how many seconds jobs are kept, as the cluster is set."""
        return self._config_store.config.cluster.job_retention

    def writes(self, job: Job, now: float) -> list[Write]:
        """Return the records that put a job away, and drop those that are too many."""
        if self.patience <= 0:
            return []
        surplus = islice(self.times, max(0, len(self.times) + 1 - KEPT))
        dropped: list[Write] = [(self._key(number), None) for number in surplus]
        return [((KIND, _name(job.id, int(now))), packed(job)), *dropped]

    def note(self, writes: Iterable[Write]) -> None:
        """Take note of records that were written."""
        for (_, name), value in writes:
            number, time = parsed(name)
            if value is None:
                self.times.pop(number, None)
            else:
                self.times[number] = time

    async def expire(self, now: float) -> None:
        """Forget the jobs that were put away longer ago than they are to be kept."""
        limit = now - self.patience
        old = takewhile(lambda number: self.times[number] < limit, self.times)
        dropped: list[Write] = [(self._key(number), None) for number in old]
        if dropped:
            await self._config_store.note(dropped)
        self.note(dropped)

    async def jobs(self, numbers: Iterable[int] | None = None) -> dict[int, Job]:
        """Return jobs of the archive by their numbers: some of them, or all.

        Raises
        ------
        StoreError
            If the store cannot be read, or a record is none of ours.
        """
        if self.patience <= 0:  # what is still there goes with the next look at it
            return {}
        wanted = None if numbers is None else self.times.keys() & set(numbers)
        if wanted is not None and len(wanted) <= _MANY:
            prefixes = [_prefix(number) for number in wanted]
        else:
            prefixes = [""]
        found: dict[int, Job] = {}
        for prefix in prefixes:
            records = await self._config_store.records(KIND, prefix)
            # They may be thousands, and nobody else is to wait for that.
            found |= await asyncio.to_thread(_unpacked, records, wanted)
        return found

    def _key(self, number: int) -> tuple[str, str]:
        return KIND, _name(number, self.times[number])


def parsed(name: str) -> tuple[int, int]:
    """Return a job's number and when it was put away, from its record's name.

    Raises
    ------
    ValueError
        If it is no such name.
    """
    number, _, time = name.partition(" ")
    return int(number), int(time)


def packed(job: Job) -> bytes:
    """Return a job as the archive keeps it."""
    return zlib.compress(encode(job))


def unpacked(value: bytes) -> Job:
    """Return the job that :func:`packed` made a record of.

    Raises
    ------
    ValueError
        If it is none.
    """
    opened = zlib.decompressobj()
    try:
        data = opened.decompress(value, _LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not opened.eof:
        raise ValueError("it does not end")
    return decode(data)


def _unpacked(
    records: Mapping[str, bytes], wanted: AbstractSet[int] | None
) -> dict[int, Job]:
    named = ((parsed(name)[0], value) for name, value in records.items())
    return {
        number: believed(f"archived job {number}", partial(unpacked, value))
        for number, value in named
        if wanted is None or number in wanted
    }


def _name(number: int, time: int) -> str:
    return f"{_prefix(number)}{time}"


def _prefix(number: int) -> str:
    """Return how a record's name begins: names sort as numbers do."""
    return f"{number:0{_DIGITS}d} "
