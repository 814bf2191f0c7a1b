# SPDX-License-Identifier: BSD-2-Clause
"""Nodes' power and health, and scripts that they offer."""

import json
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import fetch, perform
from moorage.cli.listing import LOOK, print_table
from moorage.cli.options import ASKING, DEBUG, JOB, JSON, PRIORITY, moot, refused
from moorage.errors import BadInput

_NORMAL, _UNAVAILABLE = 0, 3


def powercycle(call: Call) -> int:
    """Reboot a node at once."""
    (node,) = call.words
    call.ask(f"Reboot node {node} at once, and its guests with it?")
    forced = {"force": True} if call.option("force") else {}
    perform(call, "OP_NODE_POWERCYCLE", node_name=node, **forced)
    call.terminal.print(f"Node {node} reboots")
    return 0


def power(call: Call) -> int:
    """Switch nodes' power, or say whether it is on."""
    command, *nodes = call.words
    words = ("on", "off", "cycle", "status")
    if command not in words:
        raise BadInput(f"power is {', '.join(words)}, not '{command}'")
    if not nodes and command != "status":
        raise BadInput("no node is named", hint=f"gnt-node power {command} NODE")
    if command in ("off", "cycle"):
        call.ask(f"Switch the power of {', '.join(nodes)}: {command}?")
    fields: dict[str, Any] = {"command": f"power-{command}", "node_names": nodes}
    if call.option("ignore_status"):
        fields["ignore_status"] = True
    rows = fetch(call, "OP_OOB_COMMAND", **fields)
    return _said(call, rows, lambda told: "powered" if told["powered"] else "unpowered")


def health(call: Call) -> int:
    """Say how nodes are, as their out-of-band programs tell it."""
    rows = fetch(call, "OP_OOB_COMMAND", command="health", node_names=call.words)
    return _said(call, rows, lambda told: ", ".join(f"{k}={v}" for k, v in told))


def _said(call: Call, rows: list[list[Any]], show: Any) -> int:  # noqa: ANN401
    if call.option("json"):
        call.terminal.print(json.dumps(rows, indent=2))
        return int(not all(row[1] for row in rows))
    columns = [{"title": one, "kind": "text"} for one in ("Node", "Status")]
    cells = [[(_NORMAL, name), _cell(done, told, show)] for name, done, told in rows]
    print_table(call, columns, cells)
    return int(not all(row[1] for row in rows))


def _cell(done: bool, told: Any, show: Any) -> tuple[int, Any]:  # noqa: ANN401
    if not done:
        return _NORMAL, f"failed: {told}"
    try:
        return _NORMAL, "done" if told is None else show(told)
    except (TypeError, KeyError, ValueError):
        return _UNAVAILABLE, None


def restricted_command(call: Call) -> int:
    """Run a script that nodes offer."""
    command, *nodes = call.words
    groups = call.option("node_group") or []
    names = nodes or (_members(call, groups) if groups else [])
    if not names:
        raise BadInput("no node is named", hint=f"gnt-node {call.command.name} --help")
    fields: dict[str, Any] = {"command": command, "nodes": names}
    if call.option("sync"):
        fields["use_locking"] = True
    rows = perform(call, "OP_RESTRICTED_COMMAND", **fields) or []
    for name, _, output in rows:
        for line in str(output).splitlines():
            call.terminal.print(
                f"{name}: {line}" if call.option("show_machine_names") else line
            )
    failed = [name for name, done, _ in rows if not done]
    if failed:
        call.terminal.talk(f"{command} failed on {', '.join(failed)}")
    return int(bool(failed))


def _members(call: Call, groups: list[str]) -> list[str]:
    wanted = ["|", *(["==", "group", group] for group in groups)]
    _, rows = call.client.query("node", ["name"], wanted)
    return [str(row[0][1]) for row in rows]


_OOB = "the program has four minutes"
_TABLE = (*LOOK[:2], JSON, DEBUG)
_NODES = (Operand("NODE", 0, None),)
COMMANDS = (
    Command(
        "powercycle",
        powercycle,
        "Reboot a node at once; its guests die with it",
        (Operand("NODE"),),
        (*ASKING, *JOB),
    ),
    Command(
        "power",
        power,
        "Switch the power of nodes by their out-of-band programs, or ask for it",
        (Operand("on|off|cycle|status"), Operand("NODE", 0, None)),
        (
            Option(("--ignore-status",), "off, although it is not marked offline"),
            refused("--auto-promote", "a node that is off is no candidate before"),
            moot("--oob-timeout", _OOB, "SECONDS"),
            moot("--power-delay", "nodes are switched one after the other", "SECONDS"),
            *LOOK[:2],
            *ASKING,
            *JOB,
        ),
        examples=(Example("gnt-node power status", "of all that have a program"),),
    ),
    Command(
        "health",
        health,
        "Say how nodes are, as their out-of-band programs tell it",
        _NODES,
        (
            PRIORITY,
            moot("--oob-timeout", _OOB, "SECONDS"),
            *_TABLE,
        ),
    ),
    Command(
        "restricted-command",
        restricted_command,
        "Run a script that nodes' administrators put into restricted-commands",
        (Operand("COMMAND"), Operand("NODE", 0, None)),
        (
            Option(("--sync",), "nobody works on the nodes meanwhile"),
            Option(("-M", "--show-machine-names"), "before each line"),
            Option(
                ("-g", "--node-group"), "on the nodes of a group", "GROUP", repeats=True
            ),
            *JOB,
        ),
        examples=(
            Example("gnt-node restricted-command uptime node1", "a script of node1's"),
        ),
    ),
)
