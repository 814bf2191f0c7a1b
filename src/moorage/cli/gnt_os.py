# SPDX-License-Identifier: BSD-2-Clause
"""gnt-os: what can be installed on an instance."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.errors import BadInput, Failed, NotFound

from .command import Call, Command, Example, Operand, Option, Program
from .follow import fetch, perform
from .main import run
from .option_syntax import check_changed, hypervisor, key_values
from .options import DEBUG, JOB, JSON, PRIORITY, truth
from .yamlish import Flow, lines

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


def list_systems(call: Call) -> int:
    """List what can be installed: each OS with its variants."""
    found = [
        system
        for system in _systems(call)
        if system["valid"] and not (system["hidden"] or system["blacklisted"])
    ]
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


def info(call: Call) -> int:
    """Print what is known of OS definitions."""
    found = {str(one["name"]): dict(one) for one in _systems(call)}
    for one in found.values():
        del one["node_status"]
    if call.option("json"):
        call.terminal.print(json.dumps(list(found.values()), indent=2))
        return 0
    for line in lines({name: _told(one) for name, one in found.items()}):
        call.terminal.print(line)
    return 0


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "valid": one["valid"],
        "hidden": one["hidden"],
        "blacklisted": one["blacklisted"],
        "API versions": Flow(one["api_versions"] or ()),
        "variants": Flow(one["variants"] or ()),
        "parameters": dict(one["parameters"] or ()),
    }


def modify(call: Call) -> int:
    """Change what instances of an OS get, and whether it is offered."""
    (name,) = call.words
    fields: dict[str, Any] = {}
    if call.option("hypervisor_parameters"):
        check_changed("-H", call.option("hypervisor_parameters"))
        fields["os_hvp"] = {name: dict(call.option("hypervisor_parameters"))}
    if call.option("os_parameters"):
        fields["osparams"] = {name: _changes(call.option("os_parameters"))}
    if call.option("os_parameters_private"):
        private = _changes(call.option("os_parameters_private"))
        fields["osparams_private_cluster"] = {name: private}
    for field, option in (("hidden_os", "hidden"), ("blacklisted_os", "blacklisted")):
        wanted = call.option(option)
        if wanted is not None:
            fields[field] = [["add" if wanted else "remove", name]]
    if not fields:
        raise BadInput("nothing to modify", hint="gnt-os modify --help")
    if call.option("force"):
        fields["force"] = True
    perform(call, "OP_CLUSTER_SET_PARAMS", **fields)
    call.terminal.print(f"Modified OS {name}")
    return 0


def _changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return OS parameters as text; none drops one."""
    return {key: "default" if v is None else str(v) for key, v in given.items()}


PROGRAM = Program(
    "gnt-os",
    "look at the operating systems that can be installed",
    (
        Command(
            "list",
            list_systems,
            "List what can be installed: each OS with its variants",
            (Operand("OS", 0, None),),
            (Option(("--no-headers",), "leave the title out"), PRIORITY, JSON, DEBUG),
        ),
        Command(
            "info",
            info,
            "Show variants and parameters of each OS, and whether it is offered",
            (Operand("OS", 0, None),),
            (PRIORITY, JSON, DEBUG),
            examples=(Example("gnt-os info debian", "one of them"),),
        ),
        Command(
            "modify",
            modify,
            "Change what instances of an OS get, and whether it is offered",
            (Operand("OS"),),
            (
                Option(
                    ("-H", "--hypervisor-parameters"),
                    "parameters of the hypervisor, for its instances",
                    "NAME:KEY=VALUE,...",
                    hypervisor,
                    repeats=True,
                ),
                Option(
                    ("-O", "--os-parameters"),
                    "for its scripts; -KEY drops one",
                    "KEY=VALUE,...",
                    key_values,
                ),
                Option(
                    ("--os-parameters-private",),
                    "likewise; shown to nobody",
                    "KEY=VALUE,...",
                    key_values,
                ),
                Option(("--hidden",), "whether it is listed: yes or no", "YES", truth),
                Option(
                    ("--blacklisted",),
                    "whether new instances cannot have it: yes or no",
                    "YES",
                    truth,
                ),
                Option(
                    ("-f", "--force"), "take an OS and parameters that no node knows"
                ),
                *JOB,
            ),
            examples=(
                Example("gnt-os modify --hidden yes old", "no longer listed"),
                Example("gnt-os modify -O mirror=local debian", "for all instances"),
            ),
        ),
        Command(
            "diagnose",
            diagnose,
            "Say of each OS where it is, and what is wrong with it",
            (Operand("OS", 0, None),),
            (PRIORITY, JSON, DEBUG),
        ),
    ),
)


def main() -> int:
    """Run gnt-os."""
    return run(PROGRAM)
