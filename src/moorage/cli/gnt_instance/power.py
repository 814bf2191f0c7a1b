# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance startup, shutdown, reboot, remove."""

from collections.abc import Callable

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform, perform_all
from moorage.cli.option_syntax import seconds
from moorage.cli.options import (
    ASKING,
    BACKEND_PARAMETERS,
    IGNORE_CAPACITY,
    INSISTING,
    JOB,
    SHUTDOWN_TIMEOUT,
)

from .modify import hypervisor_keys
from .selecting import INSTANCE, OPERANDS, SELECTORS, chosen

NO_REMEMBER = Option(
    ("--no-remember",), "leave on record whether the instance should run"
)
IGNORE_OFFLINE = Option(
    ("--ignore-offline",),
    "where the node is marked offline, only record the wish",
    dest="ignore_offline_nodes",
)


def _each(op_id: str, what: str) -> Callable[[Call], int]:
    """Return the handler of a command that is one job for each selected instance."""

    def handler(call: Call) -> int:
        names = chosen(call, what)
        each = {name: {"instance_name": name, **call.given} for name in names}
        return perform_all(call, op_id, each)

    return handler


def _remove(call: Call) -> None:
    (name,) = call.words
    call.ask(
        f"This will remove the instance {name}; its disks stay, detached. Continue?"
        if call.option("keep_disks")
        else f"This will remove the volumes of the instance {name}, "
        "thus removing all the data of the instance. Continue?"
    )
    perform(call, "OP_INSTANCE_REMOVE", **call.fields)


COMMANDS = (
    Command(
        "startup",
        _each("OP_INSTANCE_STARTUP", "Start"),
        OPERANDS,
        (
            *SELECTORS,
            BACKEND_PARAMETERS._replace(help="memory=…,vcpus=…: for this run only"),
            Option(
                ("-H", "--hypervisor-parameters"),
                "parameters of the hypervisor: for this run only",
                "KEY=VALUE,...",
                hypervisor_keys,
                dest="hvparams",
            ),
            NO_REMEMBER,
            IGNORE_OFFLINE,
            Option(
                ("--paused",),
                "let it stand still before its first instruction; another startup "
                "lets it go",
                dest="startup_paused",
            ),
            IGNORE_CAPACITY,
            *INSISTING,
            *JOB,
        ),
        {
            "gnt-instance startup web1 web2": "two of them",
            "gnt-instance startup -B memory=2G web1": "larger, this time",
            "gnt-instance startup --primary node1": "all that node1 has",
        },
    ),
    Command(
        "shutdown",
        _each("OP_INSTANCE_SHUTDOWN", "Shut down"),
        OPERANDS,
        (
            *SELECTORS,
            Option(
                ("-m", "--timeout"), "seconds that the guest has", "SECONDS", seconds
            ),
            NO_REMEMBER,
            IGNORE_OFFLINE,
            *INSISTING,
            *JOB,
        ),
    ),
    Command(
        "reboot",
        _each("OP_INSTANCE_REBOOT", "Reboot"),
        OPERANDS,
        (
            *SELECTORS,
            Option(
                ("-t", "--type"),
                "soft: a reset; hard: a stop and a start, as it is on record; "
                "full: its disks, too",
                "TYPE",
                default="hard",
                choices=("soft", "hard", "full"),
                dest="reboot_type",
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
        _remove,
        INSTANCE,
        (
            SHUTDOWN_TIMEOUT,
            Option(("--ignore-failures",), "go on when a node fails"),
            Option(("--keep-disks",), "let all its disks stay, detached"),
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-instance modify --disk 1:detach web1": "first, to keep a disk",
            "gnt-instance remove --keep-disks web1": "to keep all disks",
            "gnt-instance remove -f web1": "without a question",
        },
    ),
)
