# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup verify and remove."""

from moorage.cli.command import Call, Command, Operand
from moorage.cli.fields import fills
from moorage.cli.follow import perform
from moorage.cli.operation import Performs
from moorage.cli.options import ASKING, JOB


def _verify(call: Call) -> int:
    (name,) = call.words
    told = perform(call, **call.fields) or {}
    for node, problems in sorted(told.items()):
        if not problems:
            call.terminal.print(f"Export {name} on {node} is whole")
        for problem in problems:
            call.terminal.print(f"{node}: {problem}")
    return int(any(told.values()))


_EXPORT = (Operand("EXPORT", field="instance_name"),)
COMMANDS = (
    Command(
        "verify",
        _verify,
        _EXPORT,
        (*fills("-n/--node"), *JOB),
        examples={"gnt-backup verify web1": "wherever it lies"},
        operation="OP_BACKUP_VERIFY",
    ),
    Command(
        "remove",
        Performs(
            "Removed export {instance_name}",
            warns="This will remove the export {instance_name}. Continue?",
        ),
        _EXPORT,
        (*fills("-n/--node"), *ASKING, *JOB),
        examples={"gnt-backup remove web1": "on all nodes"},
        operation="OP_BACKUP_REMOVE",
    ),
)
