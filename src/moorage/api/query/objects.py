# SPDX-License-Identifier: BSD-2-Clause
"""Keys, order and errors of the resources that are objects of the configuration."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from moorage.errors import MoorageError, NotFound
from moorage.model import KIND_OF, Entity, by_name

from .field import COMMON, Field, Lookup, Resource
from .snapshot import Snapshot


def resource(
    name: str,
    cls: type[Entity],
    fields: tuple[Field, ...],
    **more: Any,  # noqa: ANN401
) -> Resource:
    """Return the resource of a class of objects, with the fields that all have.

    They are sorted by name, those without one first, and found by name and uuid.
    """
    return Resource(
        name=name,
        fields=(*fields, *COMMON),
        order=by_name,
        every=lambda snapshot: snapshot.config.named(cls),
        keys=_keys(cls),
        absent=_absent(cls),
        **more,
    )


def _keys(cls: type[Entity]) -> dict[str, Lookup]:
    """Return how objects of a class are found by name and by uuid."""

    def named(snapshot: Snapshot, value: object) -> Iterable[Any]:
        config = snapshot.config
        if not isinstance(value, str):
            return []
        return config.called(cls, config.full_name(cls, value))

    def identified(snapshot: Snapshot, value: object) -> Iterable[Any]:
        found = snapshot.config.objects.get(value) if isinstance(value, str) else None
        return [found] if isinstance(found, cls) else []

    return {"name": named, "uuid": identified}


def _absent(cls: type[Entity]) -> Callable[[Snapshot, Hashable], MoorageError]:
    """Return the function that makes the error about a name that nothing has."""

    def error(snapshot: Snapshot, value: Hashable) -> MoorageError:
        try:
            snapshot.config.get(cls, str(value))
        except MoorageError as found:
            return found
        # It is a name where a uuid was asked for, or the other way round.
        return NotFound(f"no {KIND_OF[cls]} goes by '{value}' there")

    return error
