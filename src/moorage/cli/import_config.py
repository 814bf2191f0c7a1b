# SPDX-License-Identifier: BSD-2-Clause
"""moorage import-config: a ``config.data`` of Ganeti's becomes the configuration."""

from importlib import import_module
from pathlib import Path

from msgspec import to_builtins

from moorage.errors import BadInput

from .command import Call, Command, Operand, Option
from .daemons_side import daemons
from .state_backup import places


def _import(call: Call) -> int:
    module = daemons("config_import")
    plan_module = import_module("moorage.config_data.importing_plan")
    if call.option("guests_are_down") and call.option("guests_run_on"):
        raise BadInput("--guests-are-down and --guests-run-on do not go together")
    directory = call.option("from_dir")
    found = module.Import(
        places(call),
        Path(call.words[0]),
        Path(directory) if directory else None,
        down=bool(call.option("guests_are_down")),
        run_on=bool(call.option("guests_run_on")),
    )
    plan = found.plan
    call.show(to_builtins(plan), plan_module.lines(plan))
    if plan.errors:
        call.terminal.talk("Nothing was changed")
        return 1
    if call.option("dry_run"):
        return 0
    found.check()
    call.warn(f"Make this the whole configuration of cluster {plan.cluster}?")
    found.do()
    next_one = "gnt-cluster verify"
    if call.option("guests_run_on"):
        next_one = "moorage adopt-guests"
    call.terminal.talk(f"Imported cluster {plan.cluster}. Next: {next_one}")
    return 0


COMMANDS = (
    Command(
        "import-config",
        _import,
        (Operand("FILE"),),
        (
            Option(
                ("--from-dir",),
                "Ganeti's directory, for the number of its last job",
                "DIR",
            ),
            Option(
                ("--guests-are-down",),
                "vouch that Ganeti runs no guest any more, whatever the file says",
            ),
            Option(
                ("--guests-run-on",),
                "let guests come in as Ganeti runs them: see moorage adopt-guests",
            ),
            Option(("--dry-run",), "print the plan only"),
            Option(("--json",), "print the plan as JSON"),
            Option(("--yes",), "ask nothing"),
            Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR"),
        ),
        examples={
            "moorage import-config --dry-run /root/config.data": "the plan alone",
            "moorage import-config --from-dir /var/lib/ganeti "
            "/var/lib/ganeti/config.data": "jobs are counted on",
        },
        here="it writes the master's files",
    ),
)
