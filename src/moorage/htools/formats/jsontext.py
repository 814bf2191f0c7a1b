# SPDX-License-Identifier: BSD-2-Clause
"""JSON read strictly: every error says what is wrong and where it stands."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from moorage.errors import BadInput
from moorage.htools.constants import LEAST
from moorage.htools.formats.excerpt import brief
from moorage.units import LARGEST, MOST

T = TypeVar("T")
Path = tuple[str | int, ...]

_BLANK: Final = " \t\r\n"
_MOST_PARTS: Final = 2_000_000
"""Lists and objects in one text; each takes many times its bytes in memory."""


@dataclass(frozen=True, slots=True)
class Source:
    """A JSON text and its name; None for the text of what came decoded.

    Attributes
    ----------
    repeated : tuple of str
        Keys that stand twice in one object.
    """

    text: str | None
    file: str
    repeated: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the text, though it can be read."""
        return tuple(
            f"{self.file}: {brief(key)} occurs twice in one object"
            for key in dict.fromkeys(self.repeated)
        )

    def bad(self, path: Path, why: str) -> BadInput:
        """Return the error about the value at a path."""
        where = ".".join(map(_step, path)) or "the message"
        if self.text is None:
            return BadInput(f"{self.file}: {where} {why}")
        try:
            at = _locate(self.text, path)
        except RecursionError:  # nested as deep as the parser just went
            at = 0
        return self.at(at, f"{where} {why}")

    def at(self, place: int, why: str) -> BadInput:
        """Return the error about what starts at a place of the text."""
        line, column = _place(self.text or "", place)
        return BadInput(f"{self.file}: line {line}, column {column}: {why}")


def _step(key: str | int) -> str:
    """Return one step of a path, as it is if that is short and readable."""
    word = str(key)
    return word if word.isprintable() and 0 < len(word) <= 80 else brief(word)


class _Trouble(ValueError):
    """A word stands for a number."""


def parse(text: str, file: str) -> "Value":
    """Return the value that a JSON text holds.

    Raises
    ------
    BadInput
        If it is no JSON, or holds a number that is none.
    """
    source = Source(text, file)
    parts = text.count("[") + text.count("{")
    if parts > _MOST_PARTS:
        raise source.at(0, f"holds more than {_MOST_PARTS} lists and objects")
    repeated: list[str] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        return found if len(found) == len(pairs) else Repeating(pairs, repeated)

    try:
        data = json.loads(text, object_pairs_hook=made, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise source.at(error.pos, error.msg) from None
    except (ValueError, RecursionError):
        # Costs start-up time, and nobody needs it but here.
        from moorage.htools.formats.jsontrouble import (  # noqa: PLC0415
            first_trouble,
        )

        raise source.at(*first_trouble(text)) from None
    return Value(Source(text, file, tuple(repeated)), (), data)


def decoded(data: Any, name: str) -> "Value":  # noqa: ANN401
    """Return the value of JSON that came decoded; errors tell the path."""
    return Value(Source(None, name), (), data)


class Repeating(dict[str, Any]):
    """An object that repeats a key: the first value counts, as for Ganeti's tools.

    Attributes
    ----------
    pairs : list of (str, Any)
        All of them: where keys are names, each is one of that name.
    """

    def __init__(self, pairs: list[tuple[str, Any]], told: list[str]) -> None:
        super().__init__(reversed(pairs))
        self.pairs = pairs
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                told.append(key)
            seen.add(key)


def _constant(word: str) -> NoReturn:
    raise _Trouble(word)


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
        """Yield key and value of each member, in the order of the text.

        A key is the name of something.
        """
        inside = self._dict()
        pairs = inside.pairs if isinstance(inside, Repeating) else inside.items()
        for key, data in pairs:
            value = Value(self.source, (*self.path, key), data)
            _name(value, key)
            yield key, value

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
        if not self.data.isprintable():
            raise self.bad(f"is not readable text: {brief(self.data)}")
        return self.data

    def name(self) -> str:
        """Return the name of something."""
        return _name(self, self.text())

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.data, bool):
            raise self.bad("is neither true nor false")
        return self.data

    def integer(self) -> int:
        """Return a whole number."""
        data = self.data
        if isinstance(data, float) and data.is_integer() and abs(data) <= LARGEST:
            return int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            raise self.bad("is not a whole number")
        if abs(data) > LARGEST:
            raise self.bad(f"is larger than {LARGEST}")
        return data

    def size(self) -> int:
        """Return a whole number that is not negative, such as MiB."""
        value = self.integer()
        if value < 0:
            raise self.bad("is negative")
        return value

    def count(self) -> int:
        """Return how many there are of something."""
        value = self.size()
        if value > MOST:
            raise self.bad(f"is larger than {MOST}")
        return value

    def number(self, most: float = LARGEST) -> float:
        """Return a number that is not negative."""
        data = self.data
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise self.bad("is not a number")
        if not data >= 0:  # nor is NaN
            raise self.bad("is negative or no number")
        if data and not LEAST <= data <= most:
            raise self.bad(f"is neither 0 nor from {LEAST} to {most}")
        return float(data)

    def ratio(self) -> float:
        """Return how many of one thing come on one of another."""
        return self.number(MOST)

    def one_of(self, choices: Sequence[str]) -> str:
        """Return one of some words."""
        word = self.text()
        if word not in choices:
            raise self.bad("is not one of " + ", ".join(choices))
        return word

    def texts(self) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(item.text() for item in self.items())


def _name(value: Value, word: str) -> str:
    """Return a word if it can be a name: the text format has ``|`` between names."""
    if not word:
        raise value.bad("has no name")
    if "|" in word or not word.isprintable():
        raise value.bad(f"has a name that cannot be written: {brief(word)}")
    return word
