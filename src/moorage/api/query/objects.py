# SPDX-License-Identifier: BSD-2-Clause
"""Keys, order and errors of the resources that are objects of the configuration."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from moorage.errors import MoorageError, NotFound
from moorage.model import KIND_OF, Entity, nice

from .field import Lookup
from .snapshot import Snapshot


def every(cls: type[Entity]) -> Callable[[Snapshot], Iterable[Any]]:
    """Return the function that yields all objects of a class."""
    return lambda scene: scene.config.all(cls)


def by_name(one: Any) -> Any:  # noqa: ANN401
    """Return the key that sorts objects by name, or else by uuid."""
    return nice(one.name or one.uuid)


def keys(cls: type[Entity]) -> dict[str, Lookup]:
    """Return how objects of a class are found by name and by uuid."""
    kind = KIND_OF[cls]

    def named(scene: Snapshot, value: object) -> Iterable[Any]:
        config = scene.config
        if not isinstance(value, str):
            return []
        found = config.names.get((kind, config.full_name(cls, value)), ())
        return [config.objects[uuid] for uuid in found]

    def identified(scene: Snapshot, value: object) -> Iterable[Any]:
        found = scene.config.objects.get(value) if isinstance(value, str) else None
        return [found] if isinstance(found, cls) else []

    return {"name": named, "uuid": identified}


def absent(cls: type[Entity]) -> Callable[[Snapshot, Hashable], MoorageError]:
    """Return the function that makes the error about a name that nothing has."""

    def error(scene: Snapshot, value: Hashable) -> MoorageError:
        try:
            scene.config.get(cls, str(value))
        except MoorageError as found:
            return found
        # It is a name where a uuid was asked for, or the other way round.
        return NotFound(f"no {KIND_OF[cls]} goes by '{value}' there")

    return error
