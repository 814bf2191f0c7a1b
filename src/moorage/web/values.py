# SPDX-License-Identifier: BSD-2-Clause
"""How values are written: sizes, times, lists, and the words of states."""

import shlex
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from moorage.client import Field
from moorage.client.told import NORMAL
from moorage.units import format_size

from .kinds import Kind

ROOT = "/ui"
_STATES = {"role": {"M": "master", "C": "candidate", "R": "regular"}}
_STATES["role"] |= {"D": "drained", "O": "offline"}
_SHORT = 8
"""Characters of a uuid that stands for a name."""
_WHOLE, _PART = 1_000, 200
"""Characters of a text that are shown, and of one in a list."""
_LONG = 20
"""Characters from which on a text may stand in several lines."""
ABSENT = "–"  # noqa: RUF001 - a dash is meant
"""Stands where there is nothing."""


class Piece(NamedTuple):
    """A text, and where it leads; empty for nowhere."""

    text: str
    href: str = ""


class Cell(NamedTuple):
    """A value as it is shown.

    Attributes
    ----------
    pieces
        One, or those of a list.
    tone
        Of a state; else empty.
    number
        Whether it is aligned as numbers are.
    """

    pieces: Sequence[Piece]
    tone: str = ""
    number: bool = False

    @property
    def text(self) -> str:
        """All of it."""
        return ", ".join(one.text for one in self.pieces)

    @property
    def look(self) -> str:
        """How it stands in a table: as a number, quiet, or in several lines."""
        if self.number:
            return "number quiet" if self.absent else "number"
        if self.absent:
            return "quiet"
        return "words" if len(self.text) > _LONG else ""

    @property
    def absent(self) -> bool:
        """Whether there is nothing."""
        return self.text == ABSENT


def address(kind: str, key: object) -> str:
    """Return where an object is.

    >>> address("instance", "web1")
    '/ui/instance/web1'
    """
    return f"{ROOT}/{kind}/{quote(str(key), safe='')}"


def cell(
    kind: Kind,
    field: Field,
    status: int,
    value: Any,  # noqa: ANN401
    most: int = 40,
) -> Cell:
    """Return a value of an object as it is shown.

    Parameters
    ----------
    most
        Of a list, so many are shown: a group may have thousands of instances.
    """
    number = field.kind in ("unit", "number")
    if status != NORMAL or value is None or value in ("", [], {}):
        return Cell([Piece(ABSENT)], number=number)
    if field.name == kind.state:
        word = _STATES.get(field.name, {}).get(value, str(value))
        return Cell([Piece(word)], tone=kind.tones.get(value, "bad"))
    many = value if isinstance(value, list) and not is_time(field, value) else [value]
    leads = kind.links.get(field.name)
    longest = _WHOLE if len(many) == 1 else _PART
    pieces = [_piece(field, one, leads, longest) for one in many[:most]]
    left = [Piece(f"and {len(many) - most:,} more")] if len(many) > most else []
    return Cell([*pieces, *left], number=number)


def _piece(field: Field, value: Any, leads: str | None, longest: int) -> Piece:  # noqa: ANN401
    text = short(_text(field, value), longest)
    return Piece(text, address(leads, value)) if leads else Piece(text)


def short(text: str, most: int = _WHOLE) -> str:
    """Return a text, or its beginning: whoever may ask for a job names it at length.

    >>> short("web1"), short("web1", 3)
    ('web1', 'web…')
    """
    return text if len(text) <= most else f"{text[:most]}…"


def is_time(field: Field, value: object) -> bool:
    """Whether a value is a time of a job: seconds and microseconds."""
    return field.name.endswith("_ts") and isinstance(value, list) and len(value) == 2


def _text(field: Field, value: Any) -> str:  # noqa: ANN401
    if field.kind == "unit":
        return format_size(value)
    if field.kind == "timestamp":
        return moment(value)
    if is_time(field, value):
        return moment(value[0])
    return plain(value)


def plain(value: Any) -> str:  # noqa: ANN401
    """Return a value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={one}" for key, one in sorted(value.items()))
    if isinstance(value, list):
        return ", ".join(str(one) for one in value if one not in ("", None))
    return str(value)


def moment(seconds: float) -> str:
    """Return a time of UTC.

    >>> moment(0)
    '1970-01-01 00:00:00'
    """
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def in_shell(words: Iterable[str]) -> str:
    r"""Return words as a shell reads them, in one line that a terminal does not obey.

    >>> in_shell(["web1", "a b", "a\x1b'b"])
    "web1 'a b' $'a\\x1b\\'b'"
    """
    return " ".join(map(_word, words))


def _word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    told = "".join(
        f"\\{one}" if one in "\\'" else one if one.isprintable() else _hex(one)
        for one in word
    )
    return f"$'{told}'"


def _hex(one: str) -> str:
    return f"\\x{ord(one):02x}" if ord(one) < 0x80 else f"\\U{ord(one):08x}"


def called(kind: Kind, name: object, key: object) -> str:
    """Return what an object is called; without a name, by its uuid's beginning."""
    return str(name) if name not in (None, "") else f"{kind.name} {str(key)[:_SHORT]}"
