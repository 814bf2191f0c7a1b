# SPDX-License-Identifier: BSD-2-Clause
"""Exports as queries show them: what nodes say that lies in their directories."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from moorage.errors import MoorageError, NotFound
from moorage.model import Node, nice
from moorage.model.export import Export
from moorage.units import mib_for

from .field import Missing, Resource, other, text, timestamp, unit
from .snapshot import Snapshot


class Lying(NamedTuple):
    """An export and the node that it lies on; without one, why nobody knows."""

    node: Node
    export: Export | None


def _order(one: Lying) -> tuple[Any, ...]:
    return nice(one.node.name), nice(one.export.name if one.export else "")


def _every(snapshot: Snapshot) -> Iterator[Lying]:
    for node in snapshot.config.named(Node):
        told = snapshot.exports.get(node.uuid, [])
        if isinstance(told, MoorageError):
            yield Lying(node, None)
            continue
        for one in told:
            yield Lying(node, one)


def _of(get: Callable[[Export], Any]) -> Callable[[Snapshot, Lying], Any]:
    """Return the getter of something that is known of an export."""

    def found(_scene: Snapshot, one: Lying) -> Any:  # noqa: ANN401
        return Missing.NODATA if one.export is None else get(one.export)

    return found


def _named(snapshot: Snapshot, value: object) -> Iterable[Lying]:
    return [one for one in _every(snapshot) if one.export and one.export.name == value]


def _on(snapshot: Snapshot, value: object) -> Iterable[Lying]:
    return [one for one in _every(snapshot) if one.node.name == value]


def _disks(export: Export) -> list[list[Any]]:
    return [[dump.file, dump.form.value, dump.size] for dump in export.dumps]


def _state(export: Export) -> str:
    return export.problem or "complete"


EXPORT = Resource(
    name="export",
    fields=(
        text("node", "Node", "Where it lies", lambda _s, one: one.node.name),
        text("export", "Export", "Its name", _of(lambda one: one.name)),
        text(
            "instance",
            "Instance",
            "The instance that was exported",
            _of(lambda one: one.instance.name if one.instance else None),
        ),
        timestamp(
            "made", "Made", "When it was begun", _of(lambda one: one.made or None)
        ),
        unit("size", "Size", "What its dumps take", _of(lambda one: mib_for(one.size))),
        other("disks", "Disks", "File, format and size of each", _of(_disks)),
        text(
            "moment",
            "Moment",
            "Whether the guest was down or running",
            _of(lambda one: one.moment.value or None),
        ),
        text("state", "State", "Complete, or what is wrong", _of(_state)),
        text("uuid", "UUID", "Identity", _of(lambda one: one.uuid or None)),
    ),
    order=_order,
    every=lambda snapshot: sorted(_every(snapshot), key=_order),
    keys={"export": _named, "node": _on},
    absent=lambda _scene, value: NotFound(f"there is no export '{value}'"),
    fetches=True,
)
