# SPDX-License-Identifier: BSD-2-Clause
"""A change set: the objects that a commit puts and drops, as data.

An object is replaced only by its successor (the serial number one higher), which makes
every commit a compare-and-set on exactly the objects that it touches.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from .objects import (
    Cluster,
    Disk,
    Entity,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
)

KINDS: dict[str, type[Entity]] = {
    "cluster": Cluster,
    "network": Network,
    "node": Node,
    "nodegroup": NodeGroup,
    "pool": StoragePool,
    "instance": Instance,
    "disk": Disk,
}
"""Every kind of object, by the name that stores and tags use."""

KIND_OF = {cls: kind for kind, cls in KINDS.items()}


class Change(Struct, frozen=True):
    """Objects to put, and objects to drop.

    Attributes
    ----------
    put
        The new versions.
    drop
        The last versions of what goes.
    """

    put: tuple[Entity, ...] = ()
    drop: tuple[Entity, ...] = ()

    def back(self, before: dict[str, Entity]) -> "Change":
        """Return the change that takes this one back.

        Parameters
        ----------
        before
            The objects as they were, by uuid; what is missing was made by this
            change.

        An epoch never falls, not even when its change is taken back: a step that is
        still under way with the epoch of this change must not meet its equal.
        """
        made = tuple(new for new in self.put if new.uuid not in before)
        kept = tuple(
            _restored(before[new.uuid], new)
            for new in reversed(self.put)
            if new.uuid in before
        )
        return Change(kept + self.drop, made)

    def onto(self, current: Mapping[str, Entity]) -> "Change":
        """Return this change with the versions that follow what is stored now.

        For a change that was made before others of the same writer touched the same
        objects; nobody else did, for the writer holds their locks.
        """
        put = tuple(
            _restored(new, current[new.uuid]) if new.uuid in current else new
            for new in self.put
        )
        drop = tuple(current.get(old.uuid, old) for old in self.drop)
        return Change(put, drop)


def _restored(old: Entity, new: Entity) -> Entity:
    restored = replace(old, serial_no=new.serial_no + 1)
    if isinstance(restored, Disk) and isinstance(new, Disk):
        return replace(restored, epoch=max(restored.epoch, new.epoch))
    return restored


def encode(entity: Entity) -> dict[str, Any]:
    """Return `entity` as Ganeti's JSON values: fields that are None are absent."""
    values: dict[str, Any] = to_builtins(entity)
    return _without_none(values)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if value is not None}
    for parts in ("nics", "children"):
        if parts in kept:
            kept[parts] = [_without_none(part) for part in kept[parts]]
    return kept


def decode(kind: str, values: dict[str, Any]) -> Entity:
    """Return the object of `kind` that `values` describe."""
    return convert(values, KINDS[kind])


def to_json(change: Change) -> dict[str, Any]:
    """Return `change` as JSON values, for a journal."""

    def pairs(entities: tuple[Entity, ...]) -> list[list[Any]]:
        return [[KIND_OF[type(entity)], encode(entity)] for entity in entities]

    return {"put": pairs(change.put), "drop": pairs(change.drop)}


def from_json(values: dict[str, Any]) -> Change:
    """Return the change that :func:`to_json` wrote."""

    def entities(pairs: list[list[Any]]) -> tuple[Entity, ...]:
        return tuple(decode(kind, fields) for kind, fields in pairs)

    return Change(entities(values["put"]), entities(values["drop"]))
