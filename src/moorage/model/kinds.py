# SPDX-License-Identifier: BSD-2-Clause
"""What a field may hold: units, ranges, words to choose from.

A type says it where a machine reads it: msgspec refuses what is out of range, and the
reference, the command line and its completion tell the rest.
"""

from collections.abc import Iterator
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType
from msgspec.structs import fields

from moorage.units import LARGEST, MOST, Mib

YEAR = 366 * 86400

Mebibytes = Annotated[Mib, Meta(ge=0, le=LARGEST, extra_json_schema={"x-unit": "MiB"})]
"""A size."""
Rate = Annotated[int, Meta(ge=0, le=LARGEST, extra_json_schema={"x-unit": "MiB/s"})]
"""How much is copied in a second at most; 0 for no limit."""
Seconds = Annotated[float, Meta(ge=0, le=YEAR, extra_json_schema={"x-unit": "s"})]
"""How long something may take."""
Moment = Annotated[float, Meta(extra_json_schema={"x-unit": "s since 1970"})]
"""A time."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
"""How many of something."""
FileMode = Annotated[int, Meta(ge=0, le=0o777)]
"""Who may read, write and run a file: nine bits."""
Epoch = Annotated[int, Meta(ge=0, le=1 << 62)]
"""How often a disk was attached."""

DiskMode = Literal["rw", "ro"]
"""Whether a guest may write to a disk."""
Access = Literal["kernelspace", "userspace"]
"""How QEMU reaches a disk: by a device of the kernel, or by itself."""
AllocPolicy = Literal["preferred", "last_resort", "unallocable"]
"""Whether new instances go to a node group."""
MigrationMode = Literal["live", "non-live"]
"""Whether a guest runs while it moves."""
EvacuationMode = Literal["all", "primary-only", "secondary-only"]
"""Who leaves a node: its instances, the second copies on it, or both."""
NicMode = Literal["bridged", "routed", "openvswitch"]
"""How a network card is connected."""
PowerCommand = Literal["health", "power-on", "power-off", "power-cycle", "power-status"]
"""What a node's out-of-band program is asked for."""


class Kind(NamedTuple):
    """What is declared of a type.

    Attributes
    ----------
    type
        The type without its marks, None and what stands for "unchanged".
    unit
        Of a quantity: ``MiB``, ``MiB/s``, ``s``; else empty.
    least, most
        The range of a number; None where it has no end.
    choices
        The words that it is one of; any when empty.
    """

    type: Any
    unit: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def kind_of(declared: Any) -> Kind:  # noqa: ANN401 - of types there is no type
    """Return what a type declares.

    >>> kind_of(Rate | None).unit, kind_of(DiskMode).choices
    ('MiB/s', ('rw', 'ro'))
    """
    bare, marks = _without_marks(declared)
    told = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
    choices = choices_of(bare)
    return Kind(
        type=str if choices else bare,
        unit=(told.extra_json_schema or {}).get("x-unit", ""),
        least=told.ge,
        most=told.le,
        choices=choices,
    )


def kinds_of(struct: type[Struct]) -> dict[str, Kind]:
    """Return what the type of each field of a struct declares."""
    return {one.name: kind_of(one.type) for one in fields(struct)}


def choices_of(kind: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the words that a type consists of; none for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return tuple(one.value for one in kind)
    return ()


def _without_marks(declared: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401
    """Return a type without marks and absence, and its marks, the outer ones last."""
    if get_origin(declared) is Annotated:
        bare, marks = _without_marks(declared.__origin__)
        return bare, [*marks, *declared.__metadata__]
    if get_origin(declared) in (Union, UnionType):
        parts = tuple(_present(declared))
        if len(parts) == 1:
            return _without_marks(parts[0])
        return Union[parts], []  # noqa: UP007 - of parts that are found here
    return getattr(declared, "__supertype__", declared), []


def _present(union: Any) -> Iterator[Any]:  # noqa: ANN401
    return (one for one in get_args(union) if one not in (NoneType, UnsetType))
