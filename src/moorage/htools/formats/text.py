# SPDX-License-Identifier: BSD-2-Clause
"""The text format: five sections of lines, with ``|`` between columns.

Sections (groups, nodes, instances, cluster tags, policies) are separated by one
empty line. Every optional column is read and written. A 16th column of a node
lists its storage units, with ``;`` between units and
``free,total,type,key[,extra...]`` within one; older tools pass it over.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from operator import itemgetter
from typing import Final, NamedTuple, Self, TypeVar

from moorage.errors import BadInput
from moorage.htools.constants import (
    ALLOC_POLICIES,
    LEAST,
    SPELLINGS,
    STATUSES,
)
from moorage.htools.fleet import (
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    Unit,
)
from moorage.htools.formats import sunit
from moorage.htools.formats.excerpt import brief
from moorage.htools.formats.textout import dump, shown
from moorage.htools.policy import DEFAULT, Policy, Spec
from moorage.units import LARGEST, MOST

T = TypeVar("T")

_INTEGER: Final = re.compile(r"-?[0-9]+")
_FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_EMPTY_LINE: Final = re.compile(r"^\n", re.MULTILINE)


class Cell:
    """One column of one line, with its place."""

    __slots__ = ("column", "file", "line", "text")

    def __init__(self, file: str, line: int, column: int, text: str) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.text = text

    def part(self, text: str) -> Self:
        """Return a part of the column, or what it says in other words."""
        return type(self)(self.file, self.line, self.column, text)

    def bad(self, expected: str) -> BadInput:
        """Return the error that says what should stand here."""
        return BadInput(
            f"{self.file}: line {self.line}, column {self.column}: "
            f"{brief(self.text)} is not {expected}"
        )

    def integer(self) -> int:
        """Return a whole number."""
        if not _INTEGER.fullmatch(self.text) or len(self.text) > 18:
            raise self.bad("a whole number")
        value = int(self.text)
        if abs(value) > LARGEST:
            raise self.bad(f"a number up to {LARGEST}")
        return value

    def size(self) -> int:
        """Return a whole number that is not negative."""
        value = self.integer()
        if value < 0:
            raise self.bad("a size (a whole number, not negative)")
        return value

    def count(self) -> int:
        """Return how many there are of something."""
        value = self.size()
        if value > MOST:
            raise self.bad(f"a count up to {MOST}")
        return value

    def number(self, most: float = LARGEST) -> float:
        """Return a number that is not negative."""
        if not _FLOAT.fullmatch(self.text):
            raise self.bad("a number")
        value = float(self.text)
        if value and not LEAST <= value <= most:
            raise self.bad(f"0, or a number from {LEAST} to {most}")
        return value

    def ratio(self) -> float:
        """Return how many of one thing come on one of another."""
        return self.number(MOST)

    def one_of(self, choices: Sequence[str]) -> str:
        """Return one of some words."""
        if self.text not in choices:
            raise self.bad("one of " + ", ".join(choices))
        return self.text

    def flag(self) -> bool:
        """Return what Y or N says."""
        return self.one_of(("Y", "N")) == "Y"

    def words(self) -> tuple[str, ...]:
        """Return a list with commas between."""
        return tuple(self.text.split(",")) if self.text else ()

    def template(self) -> str:
        """Return a disk template."""
        if self.text not in SPELLINGS:
            raise self.bad("a disk template")
        return SPELLINGS[self.text]


class Row(NamedTuple):
    """One line, cut into columns."""

    file: str
    line: int
    columns: tuple[str, ...]

    def cell(self, at: int) -> Cell:
        """Return a column, counted from 0."""
        return Cell(self.file, self.line, at + 1, self.columns[at])

    def get(self, at: int, read: Callable[[Cell], T], default: T) -> T:
        """Return a column read, or a default where the line ends before it."""
        return read(self.cell(at)) if at < len(self.columns) else default

    def bad(self, why: str) -> BadInput:
        """Return an error about the line."""
        return BadInput(f"{self.file}: line {self.line}, column 1: {why}")


def parse(text: str, file: str = "<text>") -> Fleet:
    """Return the fleet that a text file describes.

    Parameters
    ----------
    file
        Its name, for errors.

    Raises
    ------
    BadInput
        One sentence with file, line and column of the first thing that is off.
    """
    _check(text, file)
    lines = enumerate(_lines(text), 1)
    odd: list[str] = []
    known = list(_named("group", _section(lines, file), odd))
    groups = [_group(row) for row in known]
    by_uuid = {group.uuid: at for at, group in enumerate(groups)}
    rows = _named("node", _section(lines, file), odd)
    nodes = [_node(row, by_uuid) for row in rows]
    places = {node.name: at for at, node in enumerate(nodes)}
    rows = _named("instance", _section(lines, file), odd)
    insts = tuple(_instance(row, places) for row in rows)
    tags = tuple(line for _, line in _until_empty(lines))
    policy, groups = _policies(_section(lines, file), groups)
    return Fleet(tuple(groups), tuple(nodes), insts, tags, policy, warnings=tuple(odd))


def _check(text: str, file: str) -> None:
    """Refuse what cannot be lines of this format at all."""
    odd = _CONTROL.search(text)
    if odd:
        at = odd.start()
        line = text.count("\n", 0, at) + 1
        column = text.count("|", text.rfind("\n", 0, at) + 1, at) + 1
        raise BadInput(
            f"{file}: line {line}, column {column}: a control character ({odd[0]!a})"
        )
    found = 1 + sum(1 for _ in islice(_EMPTY_LINE.finditer(text), 4))
    if found < 4:
        last = text.count("\n") + (not text.endswith("\n"))
        raise BadInput(
            f"{file}: line {last}, column 1: Invalid format of the "
            f"input file: {found} sections instead of 4 or more"
        )


def _lines(text: str) -> Iterator[str]:
    """Yield lines one at a time: a large file must not stand in memory twice."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _until_empty(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines up to the next empty one."""
    return takewhile(itemgetter(1), lines)


def _section(lines: Iterator[tuple[int, str]], file: str) -> Iterator[Row]:
    """Yield the rows up to the next empty line."""
    for number, line in _until_empty(lines):
        yield Row(file, number, tuple(line.split("|")))


def _named(what: str, rows: Iterable[Row], odd: list[str]) -> Iterator[Row]:
    """Yield rows with a name; note those whose name was there before.

    Ganeti's tools read both, and take the last one for what is called by that name.
    """
    seen: dict[str, int] = {}
    for row in rows:
        name = row.columns[0]
        if not name:
            raise row.bad(f"a {what} without a name")
        if name in seen:
            twice = f"{what} {brief(name)} occurs twice (first on line {seen[name]})"
            odd.append(row.bad(twice).message)
        seen.setdefault(name, row.line)
        yield row


def _group(row: Row) -> Group:
    if len(row.columns) < 4:
        raise row.bad(f"a group has 4 columns or more, not {len(row.columns)}")
    return Group(
        name=row.columns[0],
        uuid=row.columns[1],
        alloc_policy=row.cell(2).one_of(ALLOC_POLICIES),
        tags=row.cell(3).words(),
        networks=row.get(4, Cell.words, ()),
    )


def _node(row: Row, groups: dict[str, int]) -> NodeRow:
    if len(row.columns) < 9:
        raise row.bad(f"a node has 9 columns or more, not {len(row.columns)}")
    uuid = row.cell(8)
    if uuid.text not in groups:
        raise uuid.bad("the uuid of a group of this file")
    group = groups[uuid.text]
    if "?" in row.columns[1:7]:
        # Nobody knows what it has, so nobody may use it.
        return NodeRow(row.columns[0], group, offline=True, cpus_own=0, spindles=0)
    units = row.get(15, _units, None)
    exclusive = row.get(11, Cell.flag, default=False)
    return NodeRow(
        name=row.columns[0],
        group=group,
        mem_total=row.cell(1).number(),
        mem_own=row.cell(2).size(),
        mem_free=row.cell(3).integer(),
        disk_total=row.cell(4).number(),
        disk_free=row.cell(5).integer(),
        cpus=row.cell(6).ratio(),
        offline=row.columns[7] == "Y",
        master=row.columns[7] == "M",
        spindles=row.get(9, Cell.count, 1),
        tags=row.get(10, Cell.words, ()),
        exclusive=exclusive or any(unit.exclusive for unit in units or ()),
        spindles_free=row.get(12, Cell.integer, 0),
        cpus_own=row.get(13, Cell.count, 1),
        cpu_speed=row.get(14, Cell.ratio, 1.0),
        units=units,
    )


def _units(cell: Cell) -> tuple[Unit, ...]:
    """Return the storage units in a column; an end with ``;`` is fine."""
    entries = cell.text.split(";")
    if entries[-1] == "":
        entries.pop()
    units = tuple(_unit(cell.part(entry)) for entry in entries)
    names = [unit.name for unit in units]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise cell.part("/".join(name)).bad("listed once only")
    return units


def _unit(cell: Cell) -> Unit:
    parts = cell.text.split(",")
    if len(parts) < 4 or not parts[2]:
        raise cell.bad("a storage unit (free,total,type,key)")
    free, total = (
        None if part == "?" else cell.part(part).size() for part in parts[:2]
    )
    return sunit.unit(parts[2:], free, total)


def _instance(row: Row, places: dict[str, int]) -> InstanceRow:
    if len(row.columns) < 10:
        raise row.bad(f"an instance has 10 columns or more, not {len(row.columns)}")
    disk = row.cell(2).size()
    template = row.cell(8).template()
    primary = _place(row.cell(6), places)
    secondary = _place(row.cell(7), places) if row.columns[7] else -1
    if primary == secondary:
        raise row.cell(7).bad("another node than the primary")
    return InstanceRow(
        name=row.columns[0],
        mem=row.cell(1).size(),
        disk=disk,
        vcpus=row.cell(3).count(),
        status=row.cell(4).one_of(STATUSES),
        auto_balance=row.cell(5).flag(),
        primary=primary,
        secondary=secondary,
        template=template,
        tags=row.cell(9).words(),
        spindle_use=row.get(10, Cell.count, 1),
        disks=row.get(13, _disks, ())
        or (Disk(disk, row.get(11, _spindles, None), whole=True),),
        forthcoming=row.get(12, Cell.flag, default=False),
    )


def _disks(cell: Cell) -> tuple[Disk, ...]:
    """Return the disks of an instance that says where they are."""
    entries = cell.text.split(";") if cell.text else []
    return tuple(_disk(cell.part(one)) for one in entries)


def _disk(cell: Cell) -> Disk:
    size, *more = cell.text.split(",")
    if len(more) not in (1, *range(3, 10)) or "" in more:
        raise cell.bad("a disk (size,spindles,type,key)")
    spindles = _spindles(cell.part(more[0]))
    unit = sunit.unit_name(more[1:]) if len(more) > 1 else None
    return Disk(cell.part(size).size(), spindles, unit)


def _place(cell: Cell, places: dict[str, int]) -> int:
    if cell.text not in places:
        raise cell.bad("a node of this file")
    return places[cell.text]


def _spindles(cell: Cell) -> int | None:
    return None if cell.text == "-" else cell.count()


def _policies(rows: Iterable[Row], groups: list[Group]) -> tuple[Policy, list[Group]]:
    """Return the cluster's policy, and the groups with theirs."""
    cluster, groups = DEFAULT, list(groups)
    places = {group.name: at for at, group in enumerate(groups)}
    for row in rows:
        if len(row.columns) < 6:
            raise row.bad(f"a policy has 6 columns, not {len(row.columns)}")
        policy = _policy(row)
        owner = row.cell(0)
        if not owner.text:
            cluster = policy
        elif owner.text not in places:
            raise owner.bad("a group of this file")
        else:
            at = places[owner.text]
            groups[at] = groups[at]._replace(policy=policy)
    return cluster, groups


def _policy(row: Row) -> Policy:
    bounds = row.cell(2)
    specs = [_spec(bounds.part(text)) for text in bounds.text.split(";")]
    if len(specs) % 2:
        raise bounds.bad("pairs of smallest and largest specs")
    return Policy(
        ranges=tuple(zip(specs[::2], specs[1::2], strict=True)),
        standard=_spec(row.cell(1)),
        templates=tuple(
            row.cell(3).part(word).template() for word in row.cell(3).words()
        ),
        vcpu_ratio=row.cell(4).ratio(),
        spindle_ratio=row.cell(5).ratio(),
    )


def _spec(cell: Cell) -> Spec:
    parts = cell.text.split(",")
    if len(parts) != len(Spec._fields):
        raise cell.bad(f"a spec ({','.join(Spec._fields)})")
    return Spec(*(cell.part(part).size() for part in parts))


__all__ = ["dump", "parse", "shown"]
