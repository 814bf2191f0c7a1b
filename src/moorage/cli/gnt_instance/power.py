# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance startup, shutdown, reboot, remove."""

from collections.abc import Callable
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform, perform_all
from moorage.cli.options import ASKING, IGNORE_FAILURES, JOB, SHUTDOWN_TIMEOUT, seconds
from moorage.errors import BadInput

_SOME = (Operand("INSTANCE", 0, None),)
_SHOWN = 5
"""Names that a question lists."""
_ALL = Option(("--all",), "every instance of the cluster")


def _chosen(call: Call, what: str) -> list[str]:
    """Return the instances that are named, or all."""
    if not call.option("all"):
        if not call.words:
            raise BadInput("no instance is named", hint="name some, or say --all")
        return list(dict.fromkeys(call.words))
    if call.words:
        raise BadInput("--all and names do not go together")
    _, rows = call.client.query("instance", ["name"])
    found = [str(row[0][1]) for row in rows]
    told = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    call.ask(f"{what} every instance of the cluster ({len(found)}: {told})?")
    return found


def _each(
    call: Call, op_id: str, what: str, fields: Callable[[], dict[str, Any]]
) -> int:
    given = fields()
    chosen = _chosen(call, what)
    ops = {name: {"OP_ID": op_id, "instance_name": name, **given} for name in chosen}
    return perform_all(call, ops) if ops else 0


def startup(call: Call) -> int:
    """Start instances."""
    forced = {"force": True} if call.option("force") else {}
    return _each(call, "OP_INSTANCE_STARTUP", "Start", lambda: forced)


def shutdown(call: Call) -> int:
    """Shut instances down."""
    forced = {"force": True} if call.option("force") else {}
    fields = {**call.given(timeout="timeout"), **forced}
    return _each(call, "OP_INSTANCE_SHUTDOWN", "Shut down", lambda: fields)


def reboot(call: Call) -> int:
    """Reboot instances."""
    fields = {"reboot_type": call.option("type")}
    return _each(call, "OP_INSTANCE_REBOOT", "Reboot", lambda: fields)


def remove(call: Call) -> int:
    """Remove an instance and the disks that are attached to it."""
    (name,) = call.words
    call.ask(
        f"This will remove the volumes of the instance {name}, "
        "thus removing all the data of the instance. Continue?"
    )
    fields = call.given(shutdown_timeout="shutdown_timeout")
    if call.option("ignore_failures"):
        fields["ignore_failures"] = True
    perform(call, "OP_INSTANCE_REMOVE", instance_name=name, **fields)
    return 0


COMMANDS = (
    Command(
        "startup",
        startup,
        "Start instances",
        _SOME,
        (_ALL, *ASKING, *JOB),
        ("start",),
        (Example("gnt-instance startup web1 web2", "two of them"),),
    ),
    Command(
        "shutdown",
        shutdown,
        "Shut instances down",
        _SOME,
        (
            _ALL,
            Option(("--timeout",), "seconds that the guest has", "SECONDS", seconds),
            *ASKING,
            *JOB,
        ),
        ("stop",),
    ),
    Command(
        "reboot",
        reboot,
        "Reboot instances",
        _SOME,
        (
            _ALL,
            Option(
                ("-t", "--type"),
                "soft: the guest itself; hard: its power; full: the disks too",
                "TYPE",
                default="hard",
                choices=("soft", "hard", "full"),
            ),
            *ASKING,
            *JOB,
        ),
    ),
    Command(
        "remove",
        remove,
        "Remove an instance and its attached disks; detached ones stay",
        (Operand("INSTANCE"),),
        (SHUTDOWN_TIMEOUT, IGNORE_FAILURES, *ASKING, *JOB),
        examples=(
            Example(
                "gnt-instance modify --disk 1:detach web1", "first, to keep a disk"
            ),
            Example("gnt-instance remove -f web1", "without a question"),
        ),
    ),
)
