# SPDX-License-Identifier: BSD-2-Clause
"""gnt-os: what can be installed on an instance."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import fetch, perform
from moorage.cli.option_syntax import (
    check_changed,
    ident_key_values,
    key_values,
    reset,
    truth,
)
from moorage.cli.options import DEBUG, JOB, JSON, PRIORITY
from moorage.cli.yamlish import Flow, lines
from moorage.errors import BadInput, Failed, NotFound

_FIELDS = (
    *("name", "valid", "variants", "parameters", "node_status"),
    *("api_versions", "hidden", "blacklisted"),
)


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


def _list_systems(call: Call) -> None:
    found = [
        system
        for system in _systems(call)
        if system["valid"] and not (system["hidden"] or system["blacklisted"])
    ]
    title = [] if call.option("no_headers") else ["Name"]
    names = (name for system in found for name in installable(system))
    call.show(list(map(_public, found)), (*title, *names))


def _public(system: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told to programs of an OS, wherever it is."""
    return {key: value for key, value in system.items() if key != "node_status"}


def installable(system: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names that ``-o`` takes."""
    if not system["variants"]:
        yield str(system["name"])
    for variant in system["variants"] or ():
        yield f"{system['name']}+{variant}"


def _diagnose(call: Call) -> int:
    found = _systems(call)
    call.show(found, (line for system in found for line in diagnosed(system)))
    return int(not all(system["valid"] for system in found))


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


def _info(call: Call) -> None:
    found = _systems(call)
    told = {one["name"]: _told(one) for one in found}
    call.show(list(map(_public, found)), lines(told))


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "valid": one["valid"],
        "hidden": one["hidden"],
        "blacklisted": one["blacklisted"],
        "API versions": Flow(one["api_versions"] or ()),
        "variants": Flow(one["variants"] or ()),
        "parameters": dict(one["parameters"] or ()),
    }


def _modify(call: Call) -> None:
    (name,) = call.words
    check_changed("-H", call.option("os_hvp"))
    fields: dict[str, Any] = {}
    for field, value in call.given.items():
        if field == "force":
            continue
        switched = [["add" if value else "remove", name]]
        fields[field] = switched if field in _LISTS else {name: value}
    if not fields:
        raise BadInput("nothing to modify", hint="gnt-os modify --help")
    if call.option("force"):
        fields["force"] = True
    perform(call, **fields)
    call.terminal.print(f"Modified OS {name}")


_LISTS = ("hidden_os", "blacklisted_os")
"""Fields that say which OSes join a list, or leave it."""


def _changes(text: str) -> dict[str, str]:
    """Return OS parameters as text; none drops one."""
    return {key: str(value) for key, value in reset(key_values(text)).items()}


_SYSTEMS = (Operand("OS", 0, None),)

COMMANDS = (
    Command(
        "list",
        _list_systems,
        _SYSTEMS,
        (Option(("--no-headers",), "leave the title out"), PRIORITY, JSON, DEBUG),
    ),
    Command(
        "info",
        _info,
        _SYSTEMS,
        (PRIORITY, JSON, DEBUG),
        examples={"gnt-os info debian": "one of them"},
    ),
    Command(
        "modify",
        _modify,
        (Operand("OS"),),
        (
            fill(
                "-H/--hypervisor-parameters=os_hvp",
                metavar="NAME:KEY=VALUE,...",
                convert=ident_key_values,
                repeats=True,
                join=dict,
            ),
            fill(
                "-O/--os-parameters=osparams",
                help="for its scripts; -KEY drops one",
                metavar="KEY=VALUE,...",
                convert=_changes,
            ),
            fill(
                "--os-parameters-private=osparams_private_cluster",
                help="likewise; shown to nobody",
                metavar="KEY=VALUE,...",
                convert=_changes,
            ),
            fill(
                "--hidden=hidden_os",
                help="whether it is listed: yes or no",
                metavar="YES",
                convert=truth,
            ),
            fill(
                "--blacklisted=blacklisted_os",
                help="whether new instances cannot have it: yes or no",
                metavar="YES",
                convert=truth,
            ),
            *fills("-f/--force"),
            *JOB,
        ),
        examples={
            "gnt-os modify --hidden yes old": "no longer listed",
            "gnt-os modify -O mirror=local debian": "for all instances",
        },
        operation="OP_CLUSTER_SET_PARAMS",
    ),
    Command("diagnose", _diagnose, _SYSTEMS, (PRIORITY, JSON, DEBUG)),
)
