# SPDX-License-Identifier: BSD-2-Clause
"""Checksums: what a disk or a cable changed in silence is not taken for the truth.

Each record has one over its key and its bytes. The head has one of its own, and the
combination of all others: a page that went back to what it held before, or a record
that is missing, does not fit either.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from hashlib import blake2b
from operator import xor
from typing import Any

from moorage.model.commits import Head, Key

_BYTES = 8


def of_head(head: Head) -> int:
    """Return the checksum of a head."""
    return _digest(f"{head.version} {head.term} {head.total}".encode())


def of_record(key: Key, value: bytes) -> int:
    """Return the checksum of a record: 64 bits with a sign, as SQLite keeps them."""
    kind, name = (word.encode() for word in key)
    return _digest(b"%d %d %b%b%b" % (len(kind), len(name), kind, name, value))


def combined(sums: Iterable[int]) -> int:
    """Return the combination of checksums; one that comes twice takes itself out."""
    return reduce(xor, sums, 0)


def faults(
    head: Head, head_sum: object, records: Mapping[Any, Any], sums: Mapping[Any, Any]
) -> Iterator[str]:
    """Yield what does not fit, in words; the values may be of any type."""
    if of_head(head) != head_sum:
        yield "its version and term are not those that were written"
    yield from misfits(records, sums)
    if all(isinstance(one, int) for one in sums.values()) and (
        combined(sums.values()) != head.total
    ):
        yield "a record is missing, or is an old one, or one too many"


def misfits(records: Mapping[Any, Any], sums: Mapping[Any, Any]) -> Iterator[str]:
    """Yield which records do not fit their checksums; the values may be of any type."""
    for key, value in records.items():
        if not _fits(key, value, sums[key]):
            yield f"the record of {' '.join(map(str, key))} is not what was written"


def _fits(key: Any, value: Any, sum_: Any) -> bool:  # noqa: ANN401
    words = all(isinstance(word, str) for word in key)
    return words and isinstance(value, bytes) and of_record(key, value) == sum_


def _digest(data: bytes) -> int:
    found = blake2b(data, digest_size=_BYTES).digest()
    return int.from_bytes(found, "big", signed=True)
