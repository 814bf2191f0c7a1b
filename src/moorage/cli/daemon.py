# SPDX-License-Identifier: BSD-2-Clause
"""moorage agent, master: the daemons."""

from pathlib import Path
from typing import Any

from moorage.errors import BadInput

from .command import Call, Command, Operand, Option
from .daemons_side import daemons, to_run
from .log_format import LOG_FORMAT, choose
from .state_backup import places


def _agent(call: Call) -> None:
    choose(call)
    to_run("agent").run(Path(call.words[0]))


def _master(call: Call) -> int:
    at = places(call)
    (what,) = call.words
    choose(call)
    if what == "run" and call.option("restart"):
        return int(to_run("supervisor").run(at))
    if what == "run":
        to_run("master").run(at)
    elif what == "start":
        pid = daemons("master_process").start(at)
        call.terminal.print(f"The master is up, process {pid}")
    elif what == "stop":
        stopped = daemons("master_process").stop(at)
        call.terminal.print("The master is stopped" if stopped else "No master runs")
    elif what == "wait":
        _prepare(call, at)
    elif what == "key":
        daemons("standby").offer(at, daemons("paths").node_places())
    elif what == "check":
        return _checked(call, at)
    else:
        raise BadInput(
            "the master can be run, started, stopped or checked, be one that waits, or "
            f"get its node's key, not '{what}'"
        )
    return 0


def _prepare(call: Call, at: Any) -> None:  # noqa: ANN401 - imported late
    """Let a candidate have a master that waits for the lead, and start it."""
    if not call.option("store"):
        raise BadInput(
            "where the state is, the etcd.json of the cluster's master says",
            hint="moorage master wait --store etcd.json",
        )
    node = daemons("paths").node_places()
    name = daemons("standby").prepare(at, node, str(call.option("store")))
    pid = daemons("master_process").start(at)
    call.terminal.print(f"A master on {name} waits for the lead, process {pid}")


def _checked(call: Call, at: Any) -> int:  # noqa: ANN401 - imported late
    """Say what is wrong with a master's store; return 1 if anything is."""
    check = daemons("store_check").check
    found = daemons("state_directory").as_owner(at.root, check, at)
    for one in found.faults:
        text = " ".join(one.message.split())
        coded = f"{one.code}:{one.kind}:{one.name}:{text}"
        word = coded if call.option("error_codes") else f" {one.message}"
        call.terminal.print(f"ERROR:{word}")
    number = len(found.faults)
    verdict = f"{number} fault{'s' * (number > 1)}" if number else "No problem found"
    call.terminal.print(f"{verdict}: {found.summary}")
    return 1 if found.faults else 0


COMMANDS = (
    Command("agent", _agent, (Operand("DIR"),), (LOG_FORMAT,)),
    Command(
        "master",
        _master,
        (Operand("run|start|stop|check|wait|key"),),
        (
            Option(("--dir",), "its directory (/var/lib/moorage)", "DIR"),
            Option(("--restart",), "run: start it again whenever it dies"),
            Option(("--store",), "wait: the etcd.json of the master", "FILE"),
            Option(("--error-codes",), "check: CODE:KIND:NAME:MESSAGE, for programs"),
            LOG_FORMAT,
        ),
        examples={
            "moorage master start": "in the background, supervised",
            "moorage master stop": "let running jobs end, then stop",
            "moorage master run": "in the foreground, for systemd",
            "moorage master wait --store etcd.json": "on a candidate: lead when it can",
            "moorage master key": "as its unit does: offer it the key of its node",
            "moorage master check": "can its store be believed?",
        },
    ),
)
