# SPDX-License-Identifier: BSD-2-Clause
"""gnt-os: what can be installed on an instance."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.errors import Failed, NotFound

from .command import Call, Command, Operand, Option, Program
from .follow import fetch
from .main import run
from .options import DEBUG, JSON

_FIELDS = ("name", "valid", "variants", "parameters", "node_status")


def _systems(call: Call) -> list[dict[str, Any]]:
    rows = fetch(call, "OP_OS_DIAGNOSE", output_fields=list(_FIELDS), names=[])
    if rows is None:
        raise Failed("Can't get the OS list")
    found = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    known = [str(one["name"]) for one in found]
    for name in call.words:
        if name not in known:
            raise NotFound(
                f"no node has an OS '{name}': there is {', '.join(known) or 'none'}",
                hint="gnt-os list",
            )
    return [one for one in found if not call.words or one["name"] in call.words]


def list_systems(call: Call) -> int:
    """List what can be installed: each OS with its variants."""
    found = [system for system in _systems(call) if system["valid"]]
    if call.option("json"):
        told = [{k: v for k, v in s.items() if k != "node_status"} for s in found]
        call.terminal.print(json.dumps(told, indent=2))
        return 0
    if not call.option("no_headers"):
        call.terminal.print("Name")
    for system in found:
        for name in installable(system):
            call.terminal.print(name)
    return 0


def installable(system: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names that ``-o`` takes."""
    if not system["variants"]:
        yield str(system["name"])
    for variant in system["variants"] or ():
        yield f"{system['name']}+{variant}"


def diagnose(call: Call) -> int:
    """Say of each OS where it is and whether it is valid; 1 if one is not."""
    found = _systems(call)
    status = 0 if all(system["valid"] for system in found) else 1
    if call.option("json"):
        call.terminal.print(json.dumps(found, indent=2))
        return status
    for system in found:
        for line in diagnosed(system):
            call.terminal.print(line)
    return status


def diagnosed(system: Mapping[str, Any]) -> Iterator[str]:
    """Yield what diagnose prints of one OS."""
    word = "valid" if system["valid"] else "invalid"
    yield f"OS: {system['name']} [global status: {word}]"
    if system["variants"]:
        yield f"  Variants: [{', '.join(system['variants'])}]"
    for node, entries in sorted((system["node_status"] or {}).items()):
        yield f"  Node: {node}, status: {_status(entries)}"
    yield ""


def _status(entries: Any) -> str:  # noqa: ANN401
    if not entries:
        return "OS not found"
    path, valid, message, *_ = entries[0]
    return f"VALID (path: {path})" if valid else f"INVALID - {message} (path: {path})"


PROGRAM = Program(
    "gnt-os",
    "look at the operating systems that can be installed",
    (
        Command(
            "list",
            list_systems,
            "List what can be installed: each OS with its variants",
            (Operand("OS", 0, None),),
            (Option(("--no-headers",), "leave the title out"), JSON, DEBUG),
        ),
        Command(
            "diagnose",
            diagnose,
            "Say of each OS where it is, and what is wrong with it",
            (Operand("OS", 0, None),),
            (JSON, DEBUG),
        ),
    ),
)


def main() -> int:
    """Run gnt-os."""
    return run(PROGRAM)
