# SPDX-License-Identifier: BSD-2-Clause
"""ExtStorage providers, and what else there is: where it is, and what it knows."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from moorage.cli.command import Call, Command, Operand
from moorage.cli.follow import fetch
from moorage.cli.options import DEBUG, JSON, PRIORITY
from moorage.errors import Failed, NotFound

from . import templates

_FIELDS = ("name", "node_status", "nodegroup_status", "parameters")
Provider = Mapping[str, Any]


def _providers(call: Call, places: Sequence[Any], missing: str) -> list[Provider]:
    rows = fetch(call, "OP_EXT_STORAGE_DIAGNOSE", output_fields=list(_FIELDS), names=[])
    if not rows and not places:
        raise Failed(
            missing,
            hint="a provider is a directory of scripts, such as "
            "/usr/share/ganeti/extstorage/NAME on every node",
        )
    found = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    return [one for one in found if not call.words or one["name"] in call.words]


def _diagnose(call: Call) -> None:
    places = templates.places(call)
    found = _providers(call, places, "Can't get the list of ExtStorage providers")
    known = {str(one["name"]) for one in found} | set(map(templates.name_of, places))
    for name in sorted(set(call.words) - known):
        raise NotFound(
            f"no node has an ExtStorage provider '{name}', and it is neither a disk "
            "template nor a storage pool",
            hint="gnt-storage diagnose",
        )
    shown = (*map(diagnosed, found), *map(templates.diagnosed, places))
    call.show([*found, *places], chain.from_iterable(shown))


def diagnosed(provider: Provider) -> Iterator[str]:
    """Yield what diagnose prints of one provider."""
    yield f"Provider: {provider['name']}"
    yield "---"
    good: list[str] = []
    bad: list[str] = []
    for node, entries in sorted(provider["node_status"].items(), key=_nice):
        valid = bool(entries) and bool(entries[0][1])
        (good if valid else bad).append(f"  Node: {node}, status: {_status(entries)}")
    yield from (*good, *bad)
    yield "  --"
    for group, valid in sorted(provider["nodegroup_status"].items(), key=_nice):
        yield f"  For nodegroup: {group} --> {'valid' if valid else 'invalid'}"
    yield ""


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


def _info(call: Call) -> None:
    places = templates.places(call)
    found = _providers(call, places, "Can't get the ExtStorage providers list")
    told = [{k: v for k, v in p.items() if k != "node_status"} for p in found]
    known = {one["name"] for one in found} | set(map(templates.name_of, places))
    missing = (f"{name}: Not Found" for name in call.words if name not in known)
    shown = (*map(described, found), *map(templates.described, places), missing)
    call.show([*told, *places], chain.from_iterable(shown))


def described(provider: Provider) -> Iterator[str]:
    """Yield what info prints of one provider."""
    yield f"{provider['name']}:"
    groups = [group for group, valid in provider["nodegroup_status"].items() if valid]
    if not groups:
        yield "  - Invalid for all nodegroups"
        yield ""
        return
    yield "  - Valid for nodegroups:"
    yield from (f"      {group}" for group in sorted(groups))
    yield "  - Supported parameters:"
    for name, text in provider["parameters"] or ():
        yield f"      {name}: {text}"
    yield ""


_SOME = (Operand("NAME", 0, None),)

COMMANDS = (
    Command(
        "diagnose",
        _diagnose,
        "Say of providers, disk templates and pools where they are, and what is wrong",
        _SOME,
        (PRIORITY, JSON, DEBUG),
        examples={
            "gnt-storage diagnose": "all of them",
            "gnt-storage diagnose sharedfile": "one of them",
        },
    ),
    Command(
        "info",
        _info,
        "Say of providers, disk templates and pools who may use them, and how",
        _SOME,
        (PRIORITY, JSON, DEBUG),
        ("show",),
    ),
)
