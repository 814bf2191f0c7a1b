# SPDX-License-Identifier: BSD-2-Clause
"""What can be asked for: fields with getters, resources with fields, cells of answers.

A getter is a pure function of a :class:`Snapshot` and one object. It returns the value,
None for "not applicable", or a :class:`Missing` that says why there is no value.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from moorage.errors import MoorageError, NotFound
from moorage.model import Config

from .snapshot import Snapshot

NORMAL = 0
"""Status of a cell that has a value."""


class Missing(IntEnum):
    """Why a cell has no value; Ganeti's numbers."""

    UNKNOWN = 1
    """There is no such field."""
    NODATA = 2
    """A node gave no answer."""
    UNAVAILABLE = 3
    """The object has no such thing."""
    OFFLINE = 4
    """The node is marked offline."""


Cell = tuple[int, Any]
"""Status and value."""
Getter = Callable[[Snapshot, Any], Any]


def cell(value: object) -> Cell:
    """Return the cell of what a getter returned."""
    if value is None:
        return Missing.UNAVAILABLE, None
    if isinstance(value, Missing):
        return value, None
    return NORMAL, value


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Attributes
    ----------
    name, title
        What is asked for, and what stands above the column.
    kind
        ``text``, ``bool``, ``number``, ``float``, ``unit`` (MiB), ``timestamp`` or
        ``other``.
    live
        Whether nodes must be asked for it.
    room
        Whether they must measure their storage units for it.
    """

    name: str
    title: str
    kind: str
    doc: str
    get: Getter
    live: bool = False
    room: bool = False

    def to_json(self) -> dict[str, str]:
        """Return the definition as clients get it."""
        return {
            "name": self.name,
            "title": self.title,
            "kind": self.kind,
            "doc": self.doc,
        }


def _field(
    kind: str,
    name: str,
    title: str,
    doc: str,
    get: Getter | str = "",
    **asked: bool,
) -> Field:
    """Return a field that shows what a getter returns, or an attribute as it is."""
    if isinstance(get, str):
        wanted = get or name
        return Field(name, title, kind, doc, lambda _s, one: getattr(one, wanted))
    return Field(name, title, kind, doc, get, **asked)


text = partial(_field, "text")
flag = partial(_field, "bool")
number = partial(_field, "number")
unit = partial(_field, "unit")
timestamp = partial(_field, "timestamp")
other = partial(_field, "other")


def unknown(name: str) -> Field:
    """Return the stand-in of a field that there is not."""
    doc = "There is no such field"
    return Field(name, name, "unknown", doc, lambda _scene, _one: Missing.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Family:
    """Fields that share the word before a slash, as ``be/vcpus`` does.

    Attributes
    ----------
    tails
        The words behind the slash that lists of fields show.
    make
        Returns the field of a tail; None if there is none.
    """

    head: str
    tails: tuple[str, ...]
    make: Callable[[str], Field | None]


def numbered(
    head: str,
    shown: tuple[str, str, str],
    get: Callable[[Snapshot, Any, int], Any],
    most: int = 8,
) -> Family:
    """Return the family ``head/0``, ``head/1`` and so on.

    Parameters
    ----------
    shown
        Title, kind and doc; the number is added to title and doc.
    get
        Takes the number too; an `IndexError` means that the object has no such one.
    most
        How many there can be: lists of fields show them all.
    """
    title, kind, doc = shown

    def make(tail: str) -> Field | None:
        if not tail.isdecimal() or len(tail) > 3:
            return None
        name, found = f"{head}/{tail}", nth(get, int(tail))
        return Field(name, f"{title}/{tail}", kind, f"{doc} {tail}", found)

    return Family(head, tuple(map(str, range(most))), make)


def nth(get: Callable[[Snapshot, Any, int], Any], number: int) -> Getter:
    """Return the getter of one of several; None where the object has fewer."""

    def found(snapshot: Snapshot, one: Any) -> Any:  # noqa: ANN401
        try:
            return get(snapshot, one, number)
        except IndexError:
            return None

    return found


class Column(NamedTuple):
    """Title and kind of a field."""

    title: str
    kind: str


def parameters(
    head: str,
    columns: Mapping[str, Column],
    what: str,
    of: Callable[[Snapshot, Any], Mapping[str, Any]],
) -> Family:
    """Return the family of the values in a mapping that have these names."""

    def make(tail: str) -> Field | None:
        if tail not in columns:
            return None
        name, doc = f"{head}/{tail}", f"{what} {tail}"
        title, kind = columns[tail]
        return Field(
            name, title, kind, doc, lambda scene, one: of(scene, one).get(tail)
        )

    return Family(head, tuple(columns), make)


Lookup = Callable[[Snapshot, Any], Iterable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind of thing that can be queried.

    Attributes
    ----------
    order
        Key that sorts the objects.
    every
        Returns all of them, in that order.
    keys
        By the name of a field that stands for the object: finds those that have a
        value there without looking at the others.
    nodes
        Returns the uuids of the nodes that live fields of some objects need; gets
        also whether these are all objects that there are.
    brief
        Whether its live fields look at neither guests nor held disks: there may be
        thousands.
    absent
        Returns the error about a key's value that nothing has.
    fetches
        Whether the objects themselves are what nodes say: exports.
    """

    name: str
    fields: tuple[Field, ...]
    order: Callable[[Any], Any]
    every: Callable[[Snapshot], Iterable[Any]]
    keys: Mapping[str, Lookup] = field(default_factory=dict)
    families: tuple[Family, ...] = ()
    nodes: Callable[[Config, Iterable[Any], bool], Iterable[str]] = (
        lambda _config, _found, _all: ()
    )
    brief: bool = False
    absent: Callable[[Snapshot, Hashable], MoorageError] = lambda _scene, value: (
        NotFound(f"'{value}' is not known")
    )
    fetches: bool = False

    def find(self, name: str) -> Field:
        """Return a field; one of kind ``unknown`` if there is none."""
        for known in self.fields:
            if known.name == name:
                return known
        head, slash, tail = name.partition("/")
        for family in self.families if slash else ():
            if family.head == head:
                return family.make(tail) or unknown(name)
        return unknown(name)

    def all_fields(self) -> list[Field]:
        """Return every field, those of families by example."""
        made = [one.make(tail) for one in self.families for tail in one.tails]
        return [*self.fields, *(one for one in made if one)]


COMMON = (
    text("uuid", "UUID", "Identity; never reused"),
    number("serial_no", "SerialNo", "Number of changes"),
    timestamp("ctime", "CTime", "When it was made"),
    timestamp("mtime", "MTime", "When it was last changed"),
    other("tags", "Tags", "Tags"),
)
"""Fields of every object of the configuration."""
