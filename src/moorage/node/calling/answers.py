# SPDX-License-Identifier: BSD-2-Clause
"""What an agent answers, read with care: its node may be anybody's by now.

Lines are bounded in length and notes in number, texts are cleaned of what a terminal
would obey, and a result must have the shape that its verb has.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from msgspec import (
    UNSET,
    DecodeError,
    Struct,
    UnsetType,
    ValidationError,
    convert,
    field,
    json,
)

from moorage.errors import MoorageError, Unreachable, from_json
from moorage.node.text import clean_all
from moorage.protocol import Report, Verb, fitting
from moorage.protocol.sender import Sender

R = TypeVar("R")

_OPENED = 1024 * 1024
"""Bytes of what a node says before it carries a line."""
_MOST = 32 * 1024 * 1024
"""Bytes of a whole answer: progress, twenty times a second for an hour, is a tenth."""
_MESSAGE, _HINT, _FACTS = 20_000, 500, 64 * 1024
"""Characters of an error's texts; bytes of its facts, which are dropped beyond."""
_NOTES, _NOTE = 1000, 2000
"""Notes that one verb may leave in the log of its job, and characters of each."""


class Unfit(Exception):
    """What came is no answer of an agent; the argument says why."""


class _Error(Struct, frozen=True):
    code: str
    message: str
    hint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class _Line(Struct, frozen=True):
    """One line; one of the fields is there."""

    progress: tuple[int, int, str, str] | None = None
    error: _Error | None = None
    result: Any | UnsetType = UNSET
    alive: bool = False


def speaker(told: str) -> Sender:
    """Return who answers; an agent from before that was told speaks version 1."""
    try:
        return json.decode(told, type=Sender)
    except DecodeError:
        return Sender()


async def result(call: Verb[R], texts: AsyncIterator[bytes], report: Report) -> R:
    """Return the result that the answer to a call ends with.

    Parameters
    ----------
    texts
        The lines of the answer (:func:`lines`); those behind the result are left.

    Raises
    ------
    Unfit
        If it does not end with one, or with one of another shape.
    MoorageError
        The error that it ends with.
    """
    notes = 0
    async for text in texts:
        if len(text) > call.most:
            raise _too_long(call.most)
        line = _decoded(text)
        if line.progress:
            done, total, unit, note = line.progress
            notes += unit == "log"
            if notes <= _NOTES:
                report(done, total, unit, note[:_NOTE])
        elif line.error:
            raise _error(line.error)
        elif line.result is not UNSET:
            return _fitting(call, line.result)
        elif not line.alive:
            raise Unfit(f"a line says nothing: {text[:60]!r}")
    raise Unfit("it ends without a result")


def check_opened(text: bytes) -> None:
    """Raise the error that a node answered when it was asked for a line to a guest.

    Raises
    ------
    Unfit
        If it is no answer at all.
    """
    line = _decoded(text[:_OPENED])
    if line.error:
        raise _error(line.error)
    if line.result is UNSET:
        raise Unfit(f"a line says nothing: {text[:60]!r}")


async def lines(
    calls: Sequence[Verb[object]], chunks: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Yield the whole lines of an answer; they may be longer than aiohttp's own limit.

    Raises
    ------
    Unfit
        If a line, or all of them, are longer than what was asked for may be.
    """
    longest = max(call.most for call in calls)
    pending: list[bytes] = []
    size = total = 0
    async for chunk in chunks:
        total += len(chunk)
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield b"".join([*pending, end])
            pending, size = [], 0
        pending.append(rest)
        size += len(rest)
        if size > longest:
            raise _too_long(longest)
        if total > _MOST * len(calls):
            raise Unfit(f"it is longer than {_MOST >> 20} MiB")


def _too_long(most: int) -> Unfit:
    return Unfit(f"a line is longer than {most >> 20} MiB")


def _decoded(text: bytes) -> _Line:
    try:
        value = json.decode(text)
        if b"\\" in text or not text.isascii():
            value = clean_all(value)
        return convert(value, _Line)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"{error} in {text[:60]!r}") from None


def _fitting(call: Verb[R], value: object) -> R:
    try:
        return fitting(call, value)
    except ValidationError as error:
        raise Unfit(f"its result of '{call.verb}' does not fit: {error}") from None


def _error(told: _Error) -> MoorageError:
    """Return the error that a node told; that nobody is there, it cannot tell."""
    code = told.code if told.code not in (Unreachable.code, MoorageError.code) else ""
    return from_json(
        {
            "code": code,
            "message": told.message[:_MESSAGE],
            "hint": told.hint[:_HINT],
            "facts": told.facts if len(json.encode(told.facts)) <= _FACTS else {},
        }
    )
