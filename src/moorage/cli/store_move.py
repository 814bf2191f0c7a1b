# SPDX-License-Identifier: BSD-2-Clause
"""moorage store move: the state from SQLite to etcd, or back."""

from .command import Call, Command, Operand, Option
from .daemons_side import daemons
from .state_backup import places


def _move(call: Call) -> None:
    module = daemons("store_move")
    at = places(call)
    (word,) = call.words
    plan = module.plan(at, word)
    for line in plan.told:
        call.terminal.print(line)
    if call.option("dry_run"):
        call.terminal.talk("Nothing was changed")
        return
    module.do(at, plan)
    call.terminal.print("Done. Next: gnt-cluster verify")


COMMANDS = (
    Command(
        "store move",
        _move,
        (Operand("WHERE"),),
        (
            Option(("--dry-run",), "say what would happen only"),
            Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR"),
        ),
        examples={
            "moorage store move /root/etcd-settings.json": "to etcd, as its file says",
            "moorage store move etcd://127.0.0.1:2379/demo": "of this machine",
            "moorage store move sqlite": "back into a file of the master's machine",
        },
        here="it stops the master, and writes its files",
    ),
)
