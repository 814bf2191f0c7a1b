# SPDX-License-Identifier: BSD-2-Clause
"""JSON read strictly: every error says what is wrong and where it stands."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, NoReturn, TypeVar

from moorage.errors import BadInput

T = TypeVar("T")
Path = tuple[str | int, ...]

_BLANK: Final = " \t\r\n"
_LARGEST: Final = 2**53


@dataclass(frozen=True, slots=True)
class Source:
    """A JSON text and its name."""

    text: str
    file: str

    def bad(self, path: Path, why: str) -> BadInput:
        """Return the error about the value at a path."""
        line, column = _place(self.text, _locate(self.text, path))
        where = ".".join(map(str, path)) or "the message"
        return BadInput(f"{self.file}: line {line}, column {column}: {where} {why}")


class _Twice(ValueError):
    """A key stands twice in one object."""


def parse(text: str, file: str) -> "Value":
    """Return the value that a JSON text holds.

    Raises
    ------
    BadInput
        If it is no JSON, repeats a key, or holds a number that is none.
    """
    source = Source(text, file)
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{file}: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (_Twice, ValueError, RecursionError) as error:
        word = error.args[0] if isinstance(error, _Twice) else None
        at = _second(text, word) if word else 0
        line, column = _place(text, at)
        why = f"'{word}' occurs twice" if word else "nested too deep or no number"
        raise BadInput(f"{file}: line {line}, column {column}: {why}") from None
    return Value(source, (), data)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)
    return made


def _constant(word: str) -> NoReturn:
    raise ValueError(word)


def _second(text: str, word: str) -> int:
    """Return where a repeated key probably stands."""
    quoted = json.dumps(word, ensure_ascii=False)
    return max(0, text.find(quoted, text.find(quoted) + 1))


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def _locate(text: str, path: Path) -> int:
    """Return where the value at a path starts, or its nearest parent."""
    at = _skip(text, 0)
    for key in path:
        inner = next((pos for k, pos in _children(text, at) if k == key), None)
        if inner is None:
            return at
        at = inner
    return at


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _children(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Yield key and start of each value in the object or list at a place."""
    opener, count = text[at : at + 1], 0
    if opener not in ("{", "["):
        return
    decoder = json.JSONDecoder()
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        key: str | int = count
        if opener == "{":
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield key, at
        _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
        count += 1


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value that knows where it came from."""

    source: Source
    path: Path
    data: Any

    def bad(self, why: str) -> BadInput:
        """Return an error about this value."""
        return self.source.bad(self.path, why)

    def has(self, key: str) -> bool:
        """Return whether an object has a key whose value is not null."""
        return self._dict().get(key) is not None

    def get(self, key: str, read: "Callable[[Value], T]", default: T) -> T:
        """Return a member read, or a default when it is missing or null."""
        return read(self[key]) if self.has(key) else default

    def __getitem__(self, key: str) -> "Value":
        """Return a member of an object that must be there."""
        data = self._dict()
        if key not in data:
            raise self.bad(f"lacks '{key}'")
        return Value(self.source, (*self.path, key), data[key])

    def _dict(self) -> dict[str, Any]:
        if not isinstance(self.data, dict):
            raise self.bad("is not an object")
        return self.data

    def members(self) -> "Iterator[tuple[str, Value]]":
        """Yield key and value of each member, in the order of the text."""
        for key, data in self._dict().items():
            yield key, Value(self.source, (*self.path, key), data)

    def items(self) -> "list[Value]":
        """Return the elements of a list."""
        if not isinstance(self.data, list):
            raise self.bad("is not a list")
        return [
            Value(self.source, (*self.path, at), data)
            for at, data in enumerate(self.data)
        ]

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.data, str):
            raise self.bad("is not a string")
        return self.data

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.data, bool):
            raise self.bad("is neither true nor false")
        return self.data

    def integer(self) -> int:
        """Return a whole number."""
        data = self.data
        if isinstance(data, float) and data.is_integer() and abs(data) <= _LARGEST:
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int) or abs(data) > _LARGEST:
            raise self.bad("is not a whole number")
        return data

    def size(self) -> int:
        """Return a whole number that is not negative."""
        value = self.integer()
        if value < 0:
            raise self.bad("is negative")
        return value

    def number(self) -> float:
        """Return a number that is not negative."""
        data = self.data
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise self.bad("is not a number")
        if not isfinite(data) or not 0 <= data <= _LARGEST:
            raise self.bad("is negative or too large")
        return float(data)

    def one_of(self, choices: Sequence[str]) -> str:
        """Return one of some words."""
        word = self.text()
        if word not in choices:
            raise self.bad("is not one of " + ", ".join(choices))
        return word

    def texts(self) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(item.text() for item in self.items())
