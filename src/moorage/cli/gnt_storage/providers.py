# SPDX-License-Identifier: BSD-2-Clause
"""Providers, disk templates and storage pools: where they are, and what they know."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.follow import fetch
from moorage.cli.options import DEBUG, JSON, PRIORITY
from moorage.errors import Failed, NotFound
from moorage.units import format_size

_FIELDS = ("name", "node_status", "nodegroup_status", "parameters")
_PLACE = ("template", "pool", "driver", *_FIELDS[1:])
Row = Mapping[str, Any]
"""A provider; or a place, which is a disk template or a storage pool."""


def _asked(call: Call, missing: str) -> tuple[list[Row], list[Row]]:
    """Return the providers and the places that are named, or all.

    Raises
    ------
    Failed
        If there is nothing at all.
    """
    places = fetch(
        call, "OP_STORAGE_DIAGNOSE", output_fields=list(_PLACE), names=call.words
    )
    rows = fetch(call, "OP_EXT_STORAGE_DIAGNOSE", output_fields=list(_FIELDS), names=[])
    found = _wanted(call, _PLACE, places or ())
    if not rows and not found:
        raise Failed(
            missing,
            hint="a provider is a directory of scripts, such as "
            "/usr/share/ganeti/extstorage/NAME on every node",
        )
    return _wanted(call, _FIELDS, rows), found


def _wanted(
    call: Call, fields: Sequence[str], rows: Iterable[Sequence[Any]]
) -> list[Row]:
    found = [dict(zip(fields, row, strict=True)) for row in rows]
    return [one for one in found if not call.words or _name(one) in call.words]


def _name(one: Row) -> str:
    """Return what a provider or place goes by: a pool's name, or its template's."""
    return str(one.get("name") or one["pool"] or one["template"])


def _diagnose(call: Call) -> None:
    found, places = _asked(call, "Can't get the list of ExtStorage providers")
    for name in sorted(set(call.words) - set(map(_name, (*found, *places)))):
        raise NotFound(
            f"no node has an ExtStorage provider '{name}', and it is neither a disk "
            "template nor a storage pool",
            hint="gnt-storage diagnose",
        )
    shown = (*map(_provider, found), *map(_place, places))
    call.show([*found, *places], chain.from_iterable(shown))


def _provider(one: Row) -> Iterator[str]:
    """Yield what diagnose prints of one provider."""
    nodes = sorted(one["node_status"].items(), key=_nice)
    good = [node for node, entries in nodes if entries and entries[0][1]]
    told = {node: f"  Node: {node}, status: {_status(e)}" for node, e in nodes}
    yield f"Provider: {one['name']}"
    yield "---"
    yield from (told[node] for node in good)
    yield from (line for node, line in told.items() if node not in good)
    yield "  --"
    yield from _groups(sorted(one["nodegroup_status"].items(), key=_nice))
    yield ""


def _groups(groups: Iterable[tuple[str, bool]]) -> Iterator[str]:
    for group, valid in groups:
        yield f"  For nodegroup: {group} --> {'valid' if valid else 'invalid'}"


def _status(entries: Sequence[Sequence[Any]]) -> str:
    if not entries:
        return "ExtStorage provider not found"
    path, valid, message, parameters = entries[0]
    words = "valid" if valid else f"invalid - {message}"
    names = ", ".join(sorted(str(parameter[0]) for parameter in parameters or ()))
    known = f"[parameters: {names}]" if names else "[no parameters]"
    return f"{words} (path: {path}) {known}"


def _nice(item: tuple[str, Any]) -> tuple[Any, ...]:
    """Return a sorting key that puts node2 before node10."""
    from re import split  # noqa: PLC0415 - one use

    parts = split("([0-9]+)", item[0])
    return tuple((len(p.lstrip("0")), p) if p.isdecimal() else p for p in parts)


def _place(one: Row) -> Iterator[str]:
    """Yield what diagnose prints of one template or pool."""
    if one["pool"]:
        yield f"Storage pool: {one['pool']} ({one['driver']})"
    else:
        yield f"Disk template: {one['template']}"
    yield "---"
    nodes = sorted(one["node_status"].items(), key=lambda item: not item[1][1])
    for node, (where, valid, message, total, free) in nodes:
        words = "valid" if valid else f"invalid - {message}"
        at = f" ({where})" if where else ""
        yield f"  Node: {node}, status: {words}{at}{_room(total, free)}"
    yield "  --"
    yield from _groups(one["nodegroup_status"].items())
    if not one["nodegroup_status"]:
        yield "  Connected to no nodegroup"
    yield ""


def _room(total: int | None, free: int | None) -> str:
    if total is None or free is None:
        return ""
    return f" [{format_size(free)} free of {format_size(total)}]"


def _info(call: Call) -> None:
    found, places = _asked(call, "Can't get the ExtStorage providers list")
    told = [{k: v for k, v in p.items() if k != "node_status"} for p in found]
    known = set(map(_name, (*found, *places)))
    missing = (f"{name}: Not Found" for name in call.words if name not in known)
    shown = (*map(_described, found), *map(_described, places), missing)
    call.show([*told, *places], chain.from_iterable(shown))


def _described(one: Row) -> Iterator[str]:
    """Yield what info prints of a provider, which is of use in a group, or a place."""
    yield f"{_name(one)}:"
    is_place = "pool" in one
    groups = [group for group, valid in one["nodegroup_status"].items() if valid]
    if groups:
        yield "  - Valid for nodegroups:"
        order = groups if is_place else sorted(groups)
        yield from (f"      {group}" for group in order)
    else:
        yield "  - Invalid for all nodegroups"
    if is_place:
        yield from _units(one["node_status"])
    if groups or is_place:
        yield "  - Supported parameters:"
        for name, text in one["parameters"] or ():
            yield f"      {name}: {text.replace('``', '') if is_place else text}"
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


_SOME = (Operand("NAME", 0, None),)

COMMANDS = (
    Command(
        "diagnose",
        _diagnose,
        _SOME,
        (PRIORITY, JSON, DEBUG),
        examples={
            "gnt-storage diagnose": "all of them",
            "gnt-storage diagnose sharedfile": "one of them",
        },
    ),
    Command("info", _info, _SOME, (PRIORITY, JSON, DEBUG)),
)
