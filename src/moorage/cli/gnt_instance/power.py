# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance startup, shutdown, reboot, remove."""

from collections.abc import Callable
from typing import Any

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform, perform_all
from moorage.cli.option_syntax import backend_parameters
from moorage.cli.options import (
    ASKING,
    IGNORE_CAPACITY,
    IGNORE_FAILURES,
    JOB,
    SHUTDOWN_TIMEOUT,
    seconds,
)

from .modify import hypervisor_keys
from .selecting import OPERANDS, SELECTORS, chosen

NO_REMEMBER = Option(
    ("--no-remember",), "leave on record whether the instance should run"
)
IGNORE_OFFLINE = Option(
    ("--ignore-offline",), "where the node is marked offline, only record the wish"
)


def _each(
    call: Call, op_id: str, what: str, fields: Callable[[], dict[str, Any]]
) -> int:
    given = fields()
    found = chosen(call, what)
    ops = {name: {"OP_ID": op_id, "instance_name": name, **given} for name in found}
    return perform_all(call, ops) if ops else 0


def _said(call: Call, *options: str) -> dict[str, Any]:
    """Return the switches that were given, as fields of an opcode."""
    return {name: True for name in options if call.option(name)}


def _ignoring(call: Call) -> dict[str, Any]:
    return {"ignore_offline_nodes": True} if call.option("ignore_offline") else {}


def startup(call: Call) -> int:
    """Start instances."""
    fields = _said(call, "force", "no_remember", "ignore_capacity") | _ignoring(call)
    if call.option("paused"):
        fields["startup_paused"] = True
    if call.option("backend_parameters"):
        fields["beparams"] = call.option("backend_parameters")
    if call.option("hypervisor_parameters"):
        fields["hvparams"] = call.option("hypervisor_parameters")
    return _each(call, "OP_INSTANCE_STARTUP", "Start", lambda: fields)


def shutdown(call: Call) -> int:
    """Shut instances down."""
    fields = call.given(timeout="timeout") | _said(call, "force", "no_remember")
    fields |= _ignoring(call)
    return _each(call, "OP_INSTANCE_SHUTDOWN", "Shut down", lambda: fields)


def reboot(call: Call) -> int:
    """Reboot instances."""
    fields = {"reboot_type": call.option("type")}
    fields |= call.given(shutdown_timeout="shutdown_timeout")
    fields |= _said(call, "ignore_capacity", "ignore_secondaries")
    return _each(call, "OP_INSTANCE_REBOOT", "Reboot", lambda: fields)


def remove(call: Call) -> int:
    """Remove an instance and the disks that are attached to it."""
    (name,) = call.words
    keep = bool(call.option("keep_disks"))
    call.ask(
        f"This will remove the instance {name}; its disks stay, detached. Continue?"
        if keep
        else f"This will remove the volumes of the instance {name}, "
        "thus removing all the data of the instance. Continue?"
    )
    fields = call.given(shutdown_timeout="shutdown_timeout")
    fields |= {"keep_disks": True} if keep else {}
    if call.option("ignore_failures"):
        fields["ignore_failures"] = True
    perform(call, "OP_INSTANCE_REMOVE", instance_name=name, **fields)
    return 0


COMMANDS = (
    Command(
        "startup",
        startup,
        "Start instances",
        OPERANDS,
        (
            *SELECTORS,
            Option(
                ("-B", "--backend-parameters"),
                "memory=…,vcpus=…: for this run only",
                "KEY=VALUE,...",
                backend_parameters,
            ),
            Option(
                ("-H", "--hypervisor-parameters"),
                "parameters of the hypervisor: for this run only",
                "KEY=VALUE,...",
                hypervisor_keys,
            ),
            NO_REMEMBER,
            IGNORE_OFFLINE,
            Option(
                ("--paused",),
                "let it stand still before its first instruction; another startup "
                "lets it go",
            ),
            IGNORE_CAPACITY,
            *ASKING,
            *JOB,
        ),
        ("start",),
        (
            Example("gnt-instance startup web1 web2", "two of them"),
            Example("gnt-instance startup -B memory=2G web1", "larger, this time"),
            Example("gnt-instance startup --primary node1", "all that node1 has"),
        ),
    ),
    Command(
        "shutdown",
        shutdown,
        "Shut instances down",
        OPERANDS,
        (
            *SELECTORS,
            Option(
                ("-m", "--timeout"), "seconds that the guest has", "SECONDS", seconds
            ),
            NO_REMEMBER,
            IGNORE_OFFLINE,
            *ASKING,
            *JOB,
        ),
        ("stop",),
    ),
    Command(
        "reboot",
        reboot,
        "Reboot instances",
        OPERANDS,
        (
            *SELECTORS,
            Option(
                ("-t", "--type"),
                "soft: the guest itself; hard: its power; full: the disks too",
                "TYPE",
                default="hard",
                choices=("soft", "hard", "full"),
            ),
            Option(
                ("--ignore-secondaries",),
                "although second copies of its disks cannot follow",
            ),
            SHUTDOWN_TIMEOUT,
            IGNORE_CAPACITY,
            *ASKING,
            *JOB,
        ),
    ),
    Command(
        "remove",
        remove,
        "Remove an instance and its attached disks; detached ones stay",
        (Operand("INSTANCE"),),
        (
            SHUTDOWN_TIMEOUT,
            IGNORE_FAILURES,
            Option(("--keep-disks",), "let all its disks stay, detached"),
            *ASKING,
            *JOB,
        ),
        examples=(
            Example(
                "gnt-instance modify --disk 1:detach web1", "first, to keep a disk"
            ),
            Example("gnt-instance remove --keep-disks web1", "to keep all disks"),
            Example("gnt-instance remove -f web1", "without a question"),
        ),
    ),
)
