# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance startup, shutdown, reboot, remove."""

from collections.abc import Callable

from moorage.cli.command import Call, Command
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform, perform_all
from moorage.cli.options import ASKING, BACKEND_PARAMETERS, INSISTING, JOB

from .modify import hypervisor_keys
from .selecting import INSTANCE, OPERANDS, SELECTORS, chosen


def _each(what: str) -> Callable[[Call], int]:
    """Return the handler of a command that is one job for each selected instance."""

    def handler(call: Call) -> int:
        names = chosen(call, what)
        each = {name: {"instance_name": name, **call.given} for name in names}
        return perform_all(call, each)

    return handler


def _remove(call: Call) -> None:
    (name,) = call.words
    call.ask(
        f"This will remove the instance {name}; its disks stay, detached. Continue?"
        if call.option("keep_disks")
        else f"This will remove the volumes of the instance {name}, "
        "thus removing all the data of the instance. Continue?"
    )
    perform(call, **call.fields)


COMMANDS = (
    Command(
        "startup",
        _each("Start"),
        OPERANDS,
        (
            *SELECTORS,
            BACKEND_PARAMETERS,
            fill("-H/--hypervisor-parameters=hvparams", convert=hypervisor_keys),
            *fills(
                "--no-remember --ignore-offline=ignore_offline_nodes",
                "--paused=startup_paused --ignore-capacity",
            ),
            *INSISTING,
            *JOB,
        ),
        {
            "gnt-instance startup web1 web2": "two of them",
            "gnt-instance startup -B memory=2G web1": "larger, this time",
            "gnt-instance startup --primary node1": "all that node1 has",
        },
        operation="OP_INSTANCE_STARTUP",
    ),
    Command(
        "shutdown",
        _each("Shut down"),
        OPERANDS,
        (
            *SELECTORS,
            *fills("-m/--timeout --no-remember --ignore-offline=ignore_offline_nodes"),
            *INSISTING,
            *JOB,
        ),
        operation="OP_INSTANCE_SHUTDOWN",
    ),
    Command(
        "reboot",
        _each("Reboot"),
        OPERANDS,
        (
            *SELECTORS,
            fill("-t/--type=reboot_type", default="hard"),
            *fills("--ignore-secondaries --shutdown-timeout --ignore-capacity"),
            *ASKING,
            *JOB,
        ),
        operation="OP_INSTANCE_REBOOT",
    ),
    Command(
        "remove",
        _remove,
        INSTANCE,
        (*fills("--shutdown-timeout --ignore-failures --keep-disks"), *ASKING, *JOB),
        examples={
            "gnt-instance modify --disk 1:detach web1": "first, to keep a disk",
            "gnt-instance remove --keep-disks web1": "to keep all disks",
            "gnt-instance remove -f web1": "without a question",
        },
        operation="OP_INSTANCE_REMOVE",
    ),
)
