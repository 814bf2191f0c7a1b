# SPDX-License-Identifier: BSD-2-Clause

"""Markdown from declarations: tables, docstrings, the fields of a struct."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from moorage.jobs.fields import Field, spelt
from moorage.jobs.fields import fields as declared_fields
from moorage.jobs.results import Changed
from moorage.jobs.words import plain
from moorage.model.values import Value
from moorage.ops.storage.diagnosis import Rows

Lines = Iterator[str]


def write(texts: Mapping[str, str], directory: str) -> None:
    """Write texts, by the names of their files, into a directory."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (place / name).write_text(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Yield a table; a bar in a cell is escaped."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def code(text: str) -> str:
    """Return text as code."""
    return f"`{text}`" if text else ""


def rest(thing: object) -> str:
    """Return what a docstring says between its first paragraph and its sections."""
    body = re.split(r"\n\n?\w+\n---+", inspect.getdoc(thing) or "")[0]
    return plain(" ".join(body.split("\n\n")[1:]))


def fields(kind: type[msgspec.Struct]) -> Lines:
    """Yield a table of the fields of a struct."""
    rows = field_rows(kind)
    if rows:
        yield from table(("field", "type", "default", "meaning"), rows)
    else:
        yield from ("No fields.", "")


def field_rows(kind: type[msgspec.Struct]) -> list[tuple[str, ...]]:
    """Return name, type, default and meaning of the fields of a struct."""
    types = {one.name: one for one in msgspec.structs.fields(kind)}
    return [
        (
            code(one.name),
            code(type_name(types[one.name].type)) + _bounds(one),
            _default(one, types[one.name]),
            one.words,
        )
        for one in declared_fields(kind)
    ]


def _bounds(one: Field) -> str:
    """Return the unit of a quantity, and which values it has."""
    ends = [f"{int(end)}" for end in (one.least, one.most) if end is not None]
    told = " ".join(filter(None, (" to ".join(ends), one.unit)))
    return f", {told}" if told else ""


ALIASES: dict[str, object] = {"Rows": Rows, "Changed": Changed, "Value": Value}
"""Types that are long to read: those that others are part of come last."""


def records(kind: object) -> Iterator[type[msgspec.Struct]]:
    """Yield the structs that a type consists of, and those of their fields."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        for one in msgspec.structs.fields(kind):
            yield from records(one.type)
    for one in getattr(kind, "__args__", ()):
        yield from records(one)


def type_name(kind: object) -> str:
    """Return how a type is written, without its modules."""
    text = spelt(kind)
    for name, alias in ALIASES.items():
        text = text.replace(spelt(alias), name)
    return text


def _default(one: Field, declared: msgspec.structs.FieldInfo) -> str:
    if declared.default is msgspec.UNSET:
        return "unchanged"
    return "required" if one.required else code(repr(one.default))
