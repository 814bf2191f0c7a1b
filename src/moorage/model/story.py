# SPDX-License-Identifier: BSD-2-Clause
"""What happened to disks: an event for each commit that changed one.

Events say names where objects say uuids: they outlive the nodes and instances that they
speak of. They follow from the commit itself, so no operation can forget to tell one.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field, to_builtins

from .change import Change
from .config import Config
from .objects import Disk, Entity, Instance
from .pair import shown_id

MADE, CHANGED, REMOVED = "made", "changed", "removed"
"""What an event is: the first, one between, or the last."""
_UNTOLD = frozenset({"uuid", "serial_no", "ctime", "mtime"})
"""Fields of a disk that say nothing of it."""
_REFERENCES = frozenset({"nodes", "group", "last_node", "pool"})
"""Fields that hold uuids of other objects."""
OWNER = "instance"
"""Among the changes: the name of the instance that the disk is attached to."""

Pair = tuple[Any, Any]
"""A value before and after; None where there is none."""


class Occasion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something was committed.

    Attributes
    ----------
    time
        In seconds.
    what
        The step, as the job shows it.
    job
        Number of the job; 0 for none.
    op
        The operation, as job lists show it.
    words
        The reason that a person gave.
    by
        Who asked for it, and by which door.
    """

    time: float = 0.0
    what: str = ""
    job: int = 0
    op: str = ""
    words: str = ""
    by: str = ""


class Event(Occasion, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to a disk.

    Attributes
    ----------
    kind
        ``made``, ``changed`` or ``removed``.
    changed
        What changed, by field: the values before and after.
    """

    kind: str = CHANGED
    changed: dict[str, Pair] = field(default_factory=dict)


NOTHING = Occasion()


def events(
    before: Config, after: Config, change: Change, occasion: Occasion
) -> Iterator[tuple[str, Event]]:
    """Yield the disks that a change is about, by uuid, and what happened to each."""
    for uuid in _touched(before, change):
        old, new = before.objects.get(uuid), after.objects.get(uuid)
        told = _difference(shown(before, old), shown(after, new))
        if told:
            yield uuid, _event(occasion, old, new, told)


def _event(
    occasion: Occasion, old: Entity | None, new: Entity | None, told: dict[str, Pair]
) -> Event:
    kind = MADE if old is None else REMOVED if new is None else CHANGED
    time = occasion.time or (new or old or Entity(uuid="")).mtime
    said = to_builtins(occasion) | {"time": time}
    return Event(**said, kind=kind, changed=told)


def _touched(before: Config, change: Change) -> list[str]:
    """Return the disks that a change puts or drops, gives, takes or renames."""
    found: dict[str, None] = {}
    for one in (*change.put, *change.drop):
        if isinstance(one, Disk):
            found[one.uuid] = None
        elif isinstance(one, Instance):
            has = None if one in change.drop else one
            found |= dict.fromkeys(sorted(_affected(before, one.uuid, has)))
    return list(found)


def _affected(before: Config, uuid: str, after: Instance | None) -> set[str]:
    """Return the disks that an instance gets or loses, or all if its name changes."""
    known = before.objects.get(uuid)
    had = set(known.disks) if isinstance(known, Instance) else set()
    has = set(after.disks) if after else set()
    renamed = isinstance(known, Instance) and after and known.name != after.name
    return had | has if renamed else had ^ has


def shown(config: Config, disk: Entity | None) -> dict[str, Any]:
    """Return the fields of a disk that have a value, as stories tell them."""
    if not isinstance(disk, Disk):
        return {}
    fields = to_builtins(disk) | {"logical_id": shown_id(disk)}
    values = {
        name: _named(config, value) if name in _REFERENCES else value
        for name, value in fields.items()
        if name not in _UNTOLD
    }
    owner = config.owner(disk)
    values[OWNER] = owner.name if owner else None
    return {
        name: value
        for name, value in values.items()
        if value not in _EMPTY and value is not False
    }


_EMPTY: tuple[object, ...] = (None, [], {}, ())


def _named(config: Config, value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return getattr(config.objects.get(value), "name", value)
    return [_named(config, one) for one in value or ()]


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Pair]:
    names = [*new, *(name for name in old if name not in new)]
    pairs = {name: (old.get(name), new.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
