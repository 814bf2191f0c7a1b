# SPDX-License-Identifier: BSD-2-Clause

"""Markdown from declarations: tables, docstrings, the fields of a struct."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from moorage.api.rapi.words import attributes, plain
from moorage.jobs.results import Changed
from moorage.jobs.unread import Idle, Moot, Unread, Unsupported
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
    told = attributes(kind)
    return [
        (
            code(one.name),
            code(type_name(one.type)),
            _default(one),
            told.get(one.name, "") or _unread(one),
        )
        for one in msgspec.structs.fields(kind)
    ]


_UNREAD = {
    Moot: "has no effect",
    Idle: "has no effect, and the job's log says so",
    Unsupported: "refused if it asks for something",
}


def _unread(one: msgspec.structs.FieldInfo) -> str:
    marks = getattr(one.type, "__metadata__", ())
    found = (mark for mark in marks if isinstance(mark, Unread))
    return "; ".join(f"{_UNREAD[type(mark)]}: {mark.why}" for mark in found)


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
    text = _spelt(kind)
    for name, alias in ALIASES.items():
        text = text.replace(_spelt(alias), name)
    return text


def _spelt(kind: object) -> str:
    kind = getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind
    text = kind.__name__ if isinstance(kind, type) and not _args(kind) else str(kind)
    text = re.sub(r"\b(?:[a-z_]+\.)+(\w+)", r"\1", text)
    return text.replace("NoneType", "None").replace(" | UnsetType", "")


def _args(kind: object) -> bool:
    return bool(getattr(kind, "__args__", ()))


def _default(one: msgspec.structs.FieldInfo) -> str:
    if one.default is msgspec.UNSET:
        return "unchanged"
    if one.default_factory is not msgspec.NODEFAULT:
        return code(repr(one.default_factory()))
    if one.default is not msgspec.NODEFAULT:
        return code(repr(one.default))
    return "required"
