# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup verify and remove."""

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import ASKING, JOB


def verify(call: Call) -> int:
    """Compare an export with the checksums of its manifest; 1 if it differs."""
    (name,) = call.words
    fields = call.given(node="node")
    told = perform(call, "OP_BACKUP_VERIFY", instance_name=name, **fields)
    for node, problems in sorted((told or {}).items()):
        if not problems:
            call.terminal.print(f"Export {name} on {node} is whole")
        for problem in problems:
            call.terminal.print(f"{node}: {problem}")
    return 1 if any((told or {}).values()) else 0


def remove(call: Call) -> int:
    """Delete an export."""
    (name,) = call.words
    fields = call.given(node="node")
    call.warn(f"This will remove the export {name}. Continue?")
    perform(call, "OP_BACKUP_REMOVE", instance_name=name, **fields)
    call.terminal.print(f"Removed export {name}")
    return 0


_NODE = Option(("-n", "--node"), "where it lies; everywhere if not", "NODE")
COMMANDS = (
    Command(
        "verify",
        verify,
        "Compare an export with the checksums of its manifest",
        (Operand("EXPORT"),),
        (_NODE, *JOB),
        examples=(Example("gnt-backup verify web1", "wherever it lies"),),
    ),
    Command(
        "remove",
        remove,
        "Delete an export, and what a half-made one left",
        (Operand("EXPORT"),),
        (_NODE, *ASKING, *JOB),
        examples=(Example("gnt-backup remove web1", "on all nodes"),),
    ),
)
