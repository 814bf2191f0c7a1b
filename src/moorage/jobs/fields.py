# SPDX-License-Identifier: BSD-2-Clause
"""What a request consists of, as its type declares it: every door tells the same."""

from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NewType,
    Union,
    get_args,
    get_origin,
)

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, structs, to_builtins

from moorage.model.kinds import choices_of, kind_of

from .unread import Idle, Moot, Unread, Unsupported, unread
from .words import attributes

_UNREAD = {
    Moot: "has no effect",
    Idle: "has no effect, and the job's log says so",
    Unsupported: "refused if it asks for something",
}


class Field(NamedTuple):
    """A field of a request.

    Attributes
    ----------
    name
        Its key in an opcode.
    type
        How its type is written, without its range, its choices and its absence.
    words
        What it means: a sentence or more, with code in backticks.
    unit
        Of a quantity: ``MiB``, ``MiB/s``, ``s``; else empty.
    least, most
        The range of a number; None where it has no end.
    choices
        The words that it is one of; any when empty.
    required
        Whether it must be given.
    default
        What it is where it is not given, as JSON; None also where nothing changes.
    """

    name: str
    type: str
    words: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    default: Any = None


def fields(kind: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of an operation, or of another struct with such words.

    >>> class Grow(Struct):
    ...     \"\"\"Make it larger.
    ...
    ...     Attributes
    ...     ----------
    ...     disk
    ...         Its name.
    ...     \"\"\"
    ...
    ...     disk: str
    >>> fields(Grow)[0]._asdict()["words"]
    'Its name.'
    """
    told, idle = attributes(kind), unread(kind)
    return tuple(
        _field(one, told.get(one.name) or _idle(idle.get(one.name)))
        for one in structs.fields(kind)
    )


def _field(one: structs.FieldInfo, words: str) -> Field:
    kind = kind_of(one.type)
    return Field(
        name=one.name,
        type=spelt(kind.type),
        words=words,
        unit=kind.unit,
        least=kind.least,
        most=kind.most,
        choices=kind.choices,
        required=one.required,
        default=_default(one),
    )


def _default(one: structs.FieldInfo) -> Any:  # noqa: ANN401 - any JSON
    made = one.default_factory
    value = one.default if made is NODEFAULT else made()
    return None if value in (NODEFAULT, UNSET) else to_builtins(value)


def _idle(mark: Unread | None) -> str:
    return f"{_UNREAD[type(mark)]}: {mark.why}" if mark else ""


def spelt(kind: Any) -> str:  # noqa: ANN401 - of types there is no type
    """Return how a type is written, without its modules and marks.

    >>> from typing import Literal
    >>> spelt(dict[str, Any] | None), spelt(Literal["rw", "ro"])
    ('dict[str, Any] | None', "'rw' | 'ro'")
    """
    args, origin = get_args(kind), get_origin(kind)
    if origin is Annotated or isinstance(kind, NewType):
        return spelt(args[0] if args else kind.__supertype__)
    if choices := choices_of(kind):
        return " | ".join(map(repr, choices))
    if origin in (Union, UnionType):
        return " | ".join(spelt(one) for one in args if one is not UnsetType)
    name = "None" if kind is NoneType else getattr(origin or kind, "__name__", "...")
    return f"{name}[{', '.join(map(spelt, args))}]" if args else name
