# SPDX-License-Identifier: BSD-2-Clause
"""Nodes' power and health, and scripts that they offer."""

from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fills
from moorage.cli.follow import fetch, perform
from moorage.cli.listing import LOOK, print_table
from moorage.cli.operation import Performs
from moorage.cli.options import (
    ASKING,
    DEBUG,
    INSISTING,
    JOB,
    JSON,
    PRIORITY,
    moot,
    refused,
)
from moorage.cli.table import NORMAL, UNAVAILABLE
from moorage.errors import BadInput

from .options import NODE, NODES


def _power(call: Call) -> int:
    command, *nodes = call.words
    words = ("on", "off", "cycle", "status")
    if command not in words:
        raise BadInput(f"power is {', '.join(words)}, not '{command}'")
    if not nodes and command != "status":
        raise BadInput("no node is named", hint=f"gnt-node power {command} NODE")
    if command in ("off", "cycle"):
        call.ask(f"Switch the power of {', '.join(nodes)}: {command}?")
    fields = {"command": f"power-{command}", "node_names": nodes, **call.given}
    rows = fetch(call, **fields)
    return _said(call, rows, lambda told: "powered" if told["powered"] else "unpowered")


def _health(call: Call) -> int:
    rows = fetch(call, command="health", node_names=call.words)
    return _said(call, rows, lambda told: ", ".join(f"{k}={v}" for k, v in told))


def _said(call: Call, found: list[Any], show: Any) -> int:  # noqa: ANN401
    rows = [[name, status == NORMAL, told] for (_, name), (status, told) in found]
    if call.option("json"):
        call.show(rows, ())
    else:
        columns = [{"title": one, "kind": "text"} for one in ("Node", "Status")]
        cells = [[(NORMAL, name), _cell(done, told, show)] for name, done, told in rows]
        print_table(call, columns, cells)
    return int(not all(row[1] for row in rows))


def _cell(done: bool, told: Any, show: Any) -> tuple[int, Any]:  # noqa: ANN401
    if not done:
        return NORMAL, f"failed: {told}"
    try:
        return NORMAL, "done" if told is None else show(told)
    except (TypeError, KeyError, ValueError):
        return UNAVAILABLE, None


def _restricted_command(call: Call) -> int:
    command, *nodes = call.words
    groups = call.option("node_group") or []
    names = nodes or (_members(call, groups) if groups else [])
    if not names:
        raise BadInput("no node is named", hint=f"gnt-node {call.command.name} --help")
    fields = {"command": command, "nodes": names, **call.given}
    rows = perform(call, **fields) or []
    for name, (_, output) in zip(names, rows, strict=True):
        for line in str(output).splitlines():
            call.terminal.print(
                f"{name}: {line}" if call.option("show_machine_names") else line
            )
    failed = [name for name, (done, _) in zip(names, rows, strict=True) if not done]
    if failed:
        call.terminal.talk(f"{command} failed on {', '.join(failed)}")
    return int(bool(failed))


def _members(call: Call, groups: list[str]) -> list[str]:
    wanted = ["|", *(["==", "group", group] for group in groups)]
    return [row["name"] for row in call.rows("node", ["name"], wanted)]


_OOB = "the program has four minutes"
_TABLE = (*LOOK[:2], JSON, DEBUG)
COMMANDS = (
    Command(
        "powercycle",
        Performs(
            "Node {node_name} reboots",
            asks="Reboot node {node_name} at once, and its guests with it?",
        ),
        NODE,
        (*INSISTING, *JOB),
        operation="OP_NODE_POWERCYCLE",
    ),
    Command(
        "shutdown-orphan",
        Performs(
            "Guest {guest} of node {node_name} is ended",
            asks="Power down guest {guest} of node {node_name}, which is no instance?",
        ),
        (*NODE, Operand("GUEST", field="guest")),
        (*fills("-m/--timeout"), *ASKING, *JOB),
        examples={
            "gnt-node shutdown-orphan node3 web9": "one that a restored backup lacks"
        },
        operation="OP_NODE_SHUTDOWN_ORPHAN",
    ),
    Command(
        "power",
        _power,
        (Operand("on|off|cycle|status"), *NODES),
        (
            *fills("--ignore-status"),
            refused("--auto-promote", "a node that is off is no candidate before"),
            moot("--oob-timeout", _OOB, "SECONDS"),
            moot("--power-delay", "nodes are switched one after the other", "SECONDS"),
            *LOOK[:2],
            *ASKING,
            *JOB,
        ),
        examples={"gnt-node power status": "of all that have a program"},
        operation="OP_OOB_COMMAND",
    ),
    Command(
        "health",
        _health,
        NODES,
        (PRIORITY, moot("--oob-timeout", _OOB, "SECONDS"), *_TABLE),
        operation="OP_OOB_COMMAND",
    ),
    Command(
        "restricted-command",
        _restricted_command,
        (Operand("COMMAND"), *NODES),
        (
            *fills("--sync=use_locking"),
            Option(("-M", "--show-machine-names"), "before each line"),
            Option(
                ("-g", "--node-group"), "on the nodes of a group", "GROUP", repeats=True
            ),
            *JOB,
        ),
        examples={"gnt-node restricted-command uptime node1": "a script of node1's"},
        operation="OP_RESTRICTED_COMMAND",
    ),
)
