# SPDX-License-Identifier: BSD-2-Clause
"""The queue of jobs as a whole."""

from moorage.cli.command import Call, Command, Operand
from moorage.cli.options import DEBUG
from moorage.errors import BadInput


def _queue(call: Call) -> None:
    (word,) = call.words
    if word in ("drain", "undrain"):
        call.client.call("SetDrainFlag", word == "drain")
    elif word == "info":
        (drained,) = call.client.call("QueryConfigValues", ["drain_flag"])
        call.terminal.print(f"The drain flag is {'set' if drained else 'unset'}")
    else:
        raise BadInput(
            f"the queue takes drain, undrain or info, not '{word}'",
            hint="gnt-cluster queue info",
        )


COMMAND = Command(
    "queue",
    _queue,
    "Close the queue for new jobs, open it, or show which it is",
    (Operand("drain|undrain|info"),),
    (DEBUG,),
    examples={"gnt-cluster queue drain": "before an upgrade"},
)
