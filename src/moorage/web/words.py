# SPDX-License-Identifier: BSD-2-Clause
"""Words that complete a filter: fields, what compares them, and values they may have.

The reading is lenient: half of a filter is no filter yet, and what cannot be understood
is completed by nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import json

from moorage.client import Field

from .kinds import KINDS, TITLES, Kind
from .tables import natural
from .values import called
from .visit import Visit

MOST: Final = 20
"""Words that are offered."""
_LONGEST: Final = 1000
"""Characters of a filter that is completed."""
_TOKEN: Final = re.compile(
    r"""\s*( "(?:[^"\\]|\\.)*"? | '(?:[^'\\]|\\.)*'? | [A-Za-z_][\w./-]*
           | m/(?:[^/])*/? | [0-9.]+ | [=!<>~*]+ | [()] | \S )""",
    re.VERBOSE,
)
_ORDER: Final = ("==", "!=", "<", "<=", ">", ">=")
_TEXT: Final = ("==", "!=", "=~", "!~", "=*")
_OPERATORS: Final = frozenset((*_ORDER, *_TEXT, "=", "!*"))
_QUOTES: Final = ("'", '"')
_WORDS: Final = {
    "(": "open",
    ")": "close",
    "not": "not",
    "in": "in",
    **dict.fromkeys(("and", "or"), "joint"),
}
_NEXT: Final = {
    ("field", "open"): "field",
    ("field", "not"): "field",
    ("field", "text"): "in",
    ("field", "word"): "operator",
    ("operator", "operator"): "value",
    ("operator", "joint"): "field",
    ("operator", "close"): "joint",
    ("in", "not"): "in",
    ("in", "in"): "list",
    ("value", "text"): "joint",
    ("value", "word"): "joint",
    ("list", "word"): "joint",
    ("joint", "joint"): "field",
    ("joint", "close"): "joint",
}
"""What is wanted behind a word, by what was wanted and what kind of word came."""
_FIXED: Final = {
    "field": ("not ", "("),
    "operator": ("and ", "or "),
    "joint": ("and ", "or "),
    "in": ("in ", "not in "),
}
_STATES: Final[Mapping[str, tuple[str, ...]]] = {
    "admin_state": ("up", "down", "offline"),
    "alloc_policy": ("preferred", "last_resort", "unallocable"),
    "mode": ("rw", "ro"),
}
"""Values of fields that have few, and that nobody else declares."""


class Place(NamedTuple):
    """Where a filter goes on.

    Attributes
    ----------
    before
        What stands before the word that is being typed.
    begun
        That word's beginning, without its quote.
    wants
        ``field``, ``operator``, ``value``, ``list`` or ``joint``.
    field
        The field that a value is of.
    """

    before: str
    begun: str
    wants: str
    field: str = ""


def place(text: str) -> Place:
    """Return where a filter goes on.

    >>> place('role == "M" and na')
    Place(before='role == "M" and ', begun='na', wants='field', field='')
    >>> place("role ==")
    Place(before='role ==', begun='', wants='value', field='role')
    """
    found = list(_TOKEN.finditer(text))
    last = found[-1] if found else None
    whole = last is None or last.end() < len(text) or _is_closed(last[1])
    wants, field = "field", ""
    for match in found if whole else found[:-1]:
        met = _class(match[1])
        if (wants, met) == ("field", "word"):
            field = match[1]
        wants = _NEXT.get((wants, met), "nothing")
    field = field if wants in ("operator", "value") else ""
    if whole or last is None:
        return Place(text, "", wants, field)
    return Place(text[: last.start(1)], last[1].lstrip("".join(_QUOTES)), wants, field)


def _is_closed(word: str) -> bool:
    """Whether nothing that is typed behind a word belongs to it."""
    if word[0] in _QUOTES:
        return len(word) > 1 and word[-1] == word[0]
    return word in ("(", ")") or word in _OPERATORS


def _class(word: str) -> str:
    """Return what kind of word it is."""
    if word in _OPERATORS:
        return "operator"
    if word[0] in _QUOTES or word[0].isdigit():
        return "text"
    return _WORDS.get(word, "word")


async def offered(visit: Visit) -> list[dict[str, str]]:
    """Return how a filter may go on: whole texts, and what they mean."""
    kind, text = KINDS[visit.path["kind"]], visit.asked("text")[:_LONGEST]
    at = place(text)
    fields = {one.name: one for one in await visit.client.query_fields(kind.name)}
    words = dict(_words(kind, fields, at))
    if at.wants == "value" and (linked := _linked(kind, at.field)):
        words |= await _names(visit, linked, at.begun, quoted=True)
    elif at.wants == "field" and at.begun and not at.before.strip():
        words |= await _names(visit, kind, at.begun, quoted=False)
    space = " " if at.before and at.before[-1] not in " (" else ""
    fits = (one for one in words if one.lstrip('"').startswith(at.begun))
    return [
        {"value": f"{at.before}{space}{one}", "label": words[one]}
        for one, _ in zip(fits, range(MOST), strict=False)
    ]


def _words(
    kind: Kind, fields: Mapping[str, Field], at: Place
) -> Iterator[tuple[str, str]]:
    """Yield words that fit a place, with what they mean."""
    if at.wants in ("field", "list"):
        first = [one for one in (*kind.columns, *kind.fields) if one in fields]
        for name in dict.fromkeys((*first, *sorted(fields))):
            yield name, TITLES.get(name, fields[name].title)
    elif at.wants == "operator" and at.field in fields:
        ordered = fields[at.field].kind in ("unit", "number", "timestamp")
        yield from ((f"{one} ", "") for one in (_ORDER if ordered else _TEXT))
    elif at.wants == "value":
        yield from _values(kind, fields, at.field)
    yield from ((one, "") for one in _FIXED.get(at.wants, ()))


def _values(
    kind: Kind, fields: Mapping[str, Field], name: str
) -> Iterator[tuple[str, str]]:
    """Yield the values of a field that has few."""
    if name == kind.state:
        for one, tone in kind.tones.items():
            yield _quoted(one), {"M": "master", "C": "candidate"}.get(one, tone)
    for one in _STATES.get(name, ()):
        yield _quoted(one), ""
    if name in fields and fields[name].kind == "bool":
        yield from (("1", "yes"), ("0", "no"))


def _linked(kind: Kind, field: str) -> Kind | None:
    """Return of which kind the objects are that a field names; None for none."""
    if field == "name" and kind.columns[0] == "name":
        return kind
    return KINDS.get(kind.links.get(field, ""))


async def _names(
    visit: Visit, kind: Kind, begun: str, *, quoted: bool
) -> dict[str, str]:
    """Return names of objects that begin so."""
    if kind.columns[0] != "name":
        return {}
    chosen = ["=~", "name", f"^{re.escape(begun)}"] if begun else None
    found = await visit.client.query(kind.name, ("name",), chosen)
    names: Sequence[Any] = sorted({row[0][1] or "" for row in found.rows}, key=natural)
    plain = [one for one in names if one and (quoted or re.fullmatch(r"[\w.+-]+", one))]
    return {
        _quoted(one) if quoted else one: called(kind, kind.name, one)
        for one in plain[:MOST]
    }


def _quoted(word: str) -> str:
    return json.encode(word).decode()
