# SPDX-License-Identifier: BSD-2-Clause
"""Fields that an operation takes and does not read, each with the reason.

Ganeti's clients send fields that mean nothing here. None of them is dropped in
silence: each is declared beside its type, in one of three ways, ::

    ip_check: Annotated[bool, Moot("no address is pinged")] = True

and a test fails for a field that is neither read nor declared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from moorage.errors import NotSupported


@dataclass(frozen=True, slots=True)
class Unread:
    """A field that is not read.

    Attributes
    ----------
    why
        The end of the sentence "it has no effect: ...".
    fine
        Values that ask for nothing, besides the default.
    """

    why: str
    fine: tuple[object, ...] = ()


class Moot(Unread):
    """Whatever its value, what it asks for is always or never so here."""


class Idle(Unread):
    """A value that asks for something is taken, and the job's log says it is idle."""


class Unsupported(Unread):
    """A value that asks for something is refused."""


@cache
def unread(kind: type[Struct]) -> dict[str, Unread]:
    """Return the fields of a request that are not read, by name."""
    return {
        one.name: mark
        for one in fields(kind)
        for mark in getattr(one.type, "__metadata__", ())
        if isinstance(mark, Unread)
    }


def check_unread(request: Struct) -> None:
    """Raise `NotSupported` if a field asks for what there is not."""
    for name, mark in _asking(request, Unsupported):
        raise NotSupported(f"{name} is not supported: {mark.why}", field=name)


def idle(request: Struct) -> Iterator[str]:
    """Yield a sentence for each field that asks for something in vain."""
    for name, mark in _asking(request, Idle):
        yield f"{name} has no effect: {mark.why}"


def _asking(request: Struct, mark: type[Unread]) -> Iterator[tuple[str, Unread]]:
    marks = unread(type(request))
    for one in fields(request) if marks else ():
        found = marks.get(one.name)
        if isinstance(found, mark):
            value = getattr(request, one.name)
            if value != _default(one) and value not in found.fine:
                yield one.name, found


def _default(one: FieldInfo) -> Any:  # noqa: ANN401
    made = one.default_factory
    return one.default if made is NODEFAULT else made()
