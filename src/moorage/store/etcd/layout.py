# SPDX-License-Identifier: BSD-2-Clause
"""How records lie in etcd: keys, values, and what goes into one request.

Below the cluster's prefix there are::

    cluster                    which cluster's state this is
    moved                      where the state is now, if it is here no more
    leader                     who leads; it goes with the leader's lease
    head                       version, term, checksum of all, and how many parts
    record/KIND/NAME<0>NNNN    a record, in pieces that a request can carry
    part/NNNNNN                a large commit, until its records are written

A commit that one request cannot carry is written as parts first, which nobody looks at.
The request that puts the new head, with their number, makes all of it so. From then on
the records are those that are there, with the parts laid over them; whoever leads
writes them out, as often as it takes, and puts the head without parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import DecodeError, Struct, ValidationError, json, msgpack

from moorage.model.commits import Head, Key
from moorage.store import checksums
from moorage.store.base import Damaged
from moorage.store.migrations import FORMAT

PIECE = 256 * 1024
"""Bytes of a value; etcd takes requests of 1.5 MiB."""
MOST, LARGEST = 100, 512 * 1024
"""Operations and bytes of a request; etcd takes 128 operations."""
_FIRST = 2
"""The first format that was written to etcd; what came since is read as it is."""
_SUM = 8
_NUMBER = 5
"""Length of the end of a record's key: a zero byte, and four digits."""
_PIECES = 10_000

Put = tuple[bytes, bytes | None]
"""A key of etcd's with its new value, or (None) to drop."""


class Place(Struct, frozen=True):
    """The value of the head's key."""

    format: int
    version: int
    term: int
    total: int
    sum: int
    parts: int = 0

    @classmethod
    def of(cls, head: Head, parts: int = 0) -> "Place":
        """Return a head with its checksum."""
        return cls(FORMAT, *head, checksums.of_head(head), parts)

    @property
    def head(self) -> Head:
        """Where the store stands."""
        return Head(self.version, self.term, self.total)

    def encoded(self) -> bytes:
        """Return the value."""
        return json.encode(self)


def placed(value: bytes) -> Place:
    """Return what a head's value says.

    Raises
    ------
    Damaged
        If it is none, or a later Moorage's.
    """
    try:
        found = json.decode(value, type=Place)
    except (DecodeError, ValidationError, UnicodeError) as error:
        raise Damaged(f"the head in etcd cannot be read: {error}") from None
    if not _FIRST <= found.format <= FORMAT:
        raise Damaged(
            f"the state in etcd is of a later Moorage: its format {found.format} is "
            f"unknown to this one, which reads {_FIRST} to {FORMAT}",
            hint="install the later one here, too",
        )
    if checksums.of_head(found.head) != found.sum:
        raise Damaged("the head in etcd is not what was written")
    return found


class Keys:
    """The keys below a prefix."""

    def __init__(self, prefix: str) -> None:
        self.root = f"{prefix}/".encode()
        self.cluster = self.root + b"cluster"
        self.leader = self.root + b"leader"
        self.moved = self.root + b"moved"
        self.wish = self.root + b"wish"
        self.head = self.root + b"head"
        self.records = self.root + b"record/"
        self.parts = self.root + b"part/"

    def of_kind(self, kind: str, prefix: str = "") -> bytes:
        """Return how the keys of a kind's records begin whose names begin so."""
        if "/" in kind:
            raise ValueError(f"'{kind}' is no kind of a record")
        return self.records + f"{kind}/{prefix}".encode()

    def piece(self, key: Key, number: int) -> bytes:
        """Return the key of a piece of a record."""
        return self.of_kind(*key) + b"\0%04d" % number

    def part(self, number: int) -> bytes:
        """Return the key of a part of a large commit."""
        return self.parts + b"%06d" % number

    def key(self, piece: bytes) -> tuple[Key, int]:
        """Return which record's piece lies at a key, and its number.

        Raises
        ------
        Damaged
            If it is none of ours.
        """
        body = piece.removeprefix(self.records)
        zero, digits = body[-_NUMBER : 1 - _NUMBER], body[1 - _NUMBER :]
        try:
            kind, slash, name = body[:-_NUMBER].decode().partition("/")
        except UnicodeError:
            slash = ""
        if zero != b"\0" or not digits.isdigit() or not slash:
            raise Damaged(f"etcd has {piece!r}, which is no record")
        return (kind, name), int(digits)


def behind(prefix: bytes) -> bytes:
    """Return the first key that does not begin with `prefix` any more."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))


def pieces(keys: Keys, key: Key, value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield a record as etcd keeps it: the first piece begins with the checksum.

    Raises
    ------
    ValueError
        If it is too large.
    """
    sum_ = checksums.of_record(key, value)
    data = sum_.to_bytes(_SUM, "big", signed=True) + value
    number = count(value)
    if number > _PIECES:
        raise ValueError(f"the record of {' '.join(key)} is larger than etcd keeps")
    for one in range(number):
        yield keys.piece(key, one), data[one * PIECE : (one + 1) * PIECE]


def count(value: bytes) -> int:
    """Return how many pieces a record has."""
    return -(-(len(value) + _SUM) // PIECE)


def joined(
    keys: Keys, found: Mapping[bytes, bytes]
) -> tuple[dict[Key, bytes], dict[Key, int]]:
    """Return records, and the checksums that stand beside them.

    Raises
    ------
    Damaged
        If a piece is missing, or none of ours.
    """
    data: dict[Key, list[bytes]] = {}
    for piece in sorted(found):
        key, number = keys.key(piece)
        there = data.setdefault(key, [])
        if number != len(there):
            raise Damaged(f"the record of {' '.join(key)} in etcd lacks a piece")
        there.append(found[piece])
    whole = {key: b"".join(there) for key, there in data.items()}
    records = {key: one[_SUM:] for key, one in whole.items()}
    sums = {
        key: int.from_bytes(one[:_SUM], "big", signed=True)
        for key, one in whole.items()
    }
    return records, sums


def parted(puts: Sequence[Put]) -> list[bytes]:
    """Return the parts of a large commit."""
    data = msgpack.encode(puts)
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def unparted(parts: Iterable[bytes]) -> list[Put]:
    """Return the commit that parts hold; raise `Damaged` if they hold none."""
    try:
        return msgpack.decode(b"".join(parts), type=list[Put])
    except (DecodeError, ValidationError) as error:
        raise Damaged(f"a commit's parts in etcd cannot be read: {error}") from None


def requests(puts: Iterable[Put]) -> Iterator[list[Put]]:
    """Yield what goes into one request each."""
    batch: list[Put] = []
    size = 0
    for key, value in puts:
        weight = len(key) + len(value or b"")
        if batch and (len(batch) == MOST or size + weight > LARGEST):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += weight
    if batch:
        yield batch


def fits(puts: Sequence[Put]) -> bool:
    """Whether one request can carry all of it."""
    return len(list(requests(puts))) <= 1
