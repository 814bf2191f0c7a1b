# SPDX-License-Identifier: BSD-2-Clause
"""What diagnose and info print of disk templates and storage pools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.cli.command import Call
from moorage.cli.follow import fetch
from moorage.units import format_size

FIELDS = ("template", "pool", "driver", "node_status", "nodegroup_status", "parameters")
Place = Mapping[str, Any]


def places(call: Call) -> list[Place]:
    """Return the templates and pools that are named, or all."""
    rows = fetch(
        call, "OP_STORAGE_DIAGNOSE", output_fields=list(FIELDS), names=call.words
    )
    found = [dict(zip(FIELDS, row, strict=True)) for row in rows or ()]
    return [one for one in found if not call.words or name_of(one) in call.words]


def name_of(place: Place) -> str:
    """Return what it goes by: the pool's name, or else the template's."""
    return str(place["pool"] or place["template"])


def diagnosed(place: Place) -> Iterator[str]:
    """Yield what diagnose prints of one template or pool."""
    if place["pool"]:
        yield f"Storage pool: {place['pool']} ({place['driver']})"
    else:
        yield f"Disk template: {place['template']}"
    yield "---"
    nodes = sorted(place["node_status"].items(), key=lambda item: not item[1][1])
    for node, (where, valid, message, total, free) in nodes:
        words = "valid" if valid else f"invalid - {message}"
        at = f" ({where})" if where else ""
        yield f"  Node: {node}, status: {words}{at}{_room(total, free)}"
    yield "  --"
    groups = place["nodegroup_status"]
    for group, valid in groups.items():
        yield f"  For nodegroup: {group} --> {'valid' if valid else 'invalid'}"
    if not groups:
        yield "  Connected to no nodegroup"
    yield ""


def _room(total: int | None, free: int | None) -> str:
    if total is None or free is None:
        return ""
    return f" [{format_size(free)} free of {format_size(total)}]"


def described(place: Place) -> Iterator[str]:
    """Yield what info prints of one template or pool."""
    yield f"{name_of(place)}:"
    groups = [group for group, valid in place["nodegroup_status"].items() if valid]
    if groups:
        yield "  - Valid for nodegroups:"
        yield from (f"      {group}" for group in groups)
    else:
        yield "  - Invalid for all nodegroups"
    yield from _units(place["node_status"])
    yield "  - Supported parameters:"
    for name, text in place["parameters"]:
        yield f"      {name}: {text.replace('``', '')}"
    yield ""


def _units(nodes: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    lines = [
        f"      {node}: {where}{_room(total, free)}"
        for node, (where, valid, _, total, free) in nodes.items()
        if valid and where
    ]
    if lines:
        yield "  - Storage units:"
        yield from lines
