# SPDX-License-Identifier: BSD-2-Clause
"""Bodies and queries, read and written as their declarations say, at a version.

A declaration is a struct whose fields say from which version on they are there. One
is good for reading, for writing, and for the document that describes the API.
"""

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from microversion_parse import Version
from msgspec import UNSET, Meta, Struct
from msgspec.structs import fields

from moorage_cloud.errors import BadRequest

from .versions import marks, version

Query = TypeVar("Query", bound=Struct)
Body = TypeVar("Body", bound=Struct | dict[str, str])


class Field(Struct, frozen=True):
    """A field of a struct: its names, its versions, and the structs within it."""

    name: str
    key: str
    low: Version | None
    high: Version | None
    within: type[Struct] | None

    def there(self, at: Version) -> bool:
        """Whether a version has it."""
        return (self.low is None or self.low <= at) and (
            self.high is None or at <= self.high
        )


@cache
def fields_of(kind: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of a struct, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_field(one, hints[one.name]) for one in fields(kind))


def _field(info: msgspec.structs.FieldInfo, hint: object) -> Field:
    low = high = None
    if get_origin(hint) is Annotated:
        for meta in get_args(hint)[1:]:
            if isinstance(meta, Meta):
                since, until = marks(meta)
                low, high = since or low, until or high
    return Field(info.name, info.encode_name, low, high, _struct(hint))


def _struct(hint: object) -> type[Struct] | None:
    """Return the struct that a type is, or that its items are."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    if get_origin(hint) in {Annotated, Union, UnionType, list, tuple}:
        return next(filter(None, map(_struct, get_args(hint))), None)
    return None


def decoded(raw: bytes) -> object:
    """Return what JSON says; `BadRequest` if it is none, or nothing could keep it."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("Malformed request body: it is not JSON") from None
    if b"\\u0000" in raw:  # unescaped, it is no JSON
        check_storable(found)
    return found


def check_storable(found: object) -> None:
    """Refuse texts, at any depth, that not every database can keep."""
    match found:
        case str() if not _storable(found):
            raise BadRequest("Malformed request: a text has what is no character")
        case dict():
            check_storable([*found.keys(), *found.values()])
        case list() | tuple():
            for one in found:
                check_storable(one)


def _storable(text: str) -> bool:
    """Whether there is no NUL in it, and no half of a character."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def read(found: object, kind: type[Body], at: Version) -> Body:
    """Read a body that is decoded.

    Raises
    ------
    BadRequest
        If it lacks something, or has what that version does not know.
    """
    struct = _struct(kind)
    if struct:
        found = _known(found, struct, at)
    return _converted(found, kind, "Invalid input for field/attribute")


def read_query(
    found: Mapping[str, str], kind: type[Query], at: Version, *, strict: bool
) -> Query:
    """Read a query string; what is not declared is ignored, unless told not to.

    Parameters
    ----------
    strict
        Whether a struct that says ``strict_from`` is held to it.
    """
    known = {one.key for one in _fields_at(kind, at)}
    odd = ",".join(sorted(found.keys() - known))
    begins = getattr(kind, "strict_from", None)
    if strict and odd and begins and version(begins) <= at:
        raise BadRequest(f"Invalid filters {odd} are found in query options.")
    kept = {key: value for key, value in found.items() if key in known}
    return _converted(kept, kind, "Invalid input for query parameters")


def _converted(found: object, kind: type[Body], words: str) -> Body:
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = where.rstrip("`").strip(".")
        raise BadRequest(f"{words} {where or 'body'}. {what}") from None


def _known(found: object, kind: type[Struct], at: Version) -> object:
    """Return a body with what a version knows; refuse what it does not.

    A struct that says ``open_below`` was not strict before that version: what is
    unknown is left out.
    """
    if not isinstance(found, dict):
        return found
    known = {one.key: one for one in _fields_at(kind, at)}
    begins = getattr(kind, "open_below", None)
    lax = begins is not None and at < version(begins)
    odd = next((key for key in found if key not in known), None)
    if odd is not None and kind.__struct_config__.forbid_unknown_fields and not lax:
        raise BadRequest(
            f"Additional properties are not allowed ('{odd}' was unexpected)"
        )
    return {
        key: _within(value, known[key], at)
        for key, value in found.items()
        if key in known
    }


def _within(value: object, one: Field, at: Version) -> object:
    if one.within is None:
        return value
    if isinstance(value, list):
        return [_known(item, one.within, at) for item in value]
    return _known(value, one.within, at)


def written(answer: Struct, at: Version) -> dict[str, Any]:
    """Return an answer as a version has it; what is `UNSET` is left out."""
    found = {}
    for one in _fields_at(type(answer), at):
        value = getattr(answer, one.name)
        if value is UNSET:
            continue
        if one.within and isinstance(value, list):
            value = [written(item, at) for item in value]
        elif one.within and value is not None:
            value = written(value, at)
        found[one.key] = value
    return found


@cache
def _fields_at(kind: type[Struct], at: Version) -> tuple[Field, ...]:
    return tuple(one for one in fields_of(kind) if one.there(at))
