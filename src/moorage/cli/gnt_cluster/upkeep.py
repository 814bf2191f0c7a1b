# SPDX-License-Identifier: BSD-2-Clause
"""What is typed now and then: the queue, the watcher's pause, the name, a power cut."""

import time
from typing import Any

from moorage.cli import policy_options
from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import follow_many, perform
from moorage.cli.operation import Performs
from moorage.cli.option_syntax import seconds, span
from moorage.cli.options import ASKING, DEBUG, JOB, moot
from moorage.cli.table import moment
from moorage.errors import BadInput, WrongState


def _queue(call: Call) -> None:
    (word,) = call.words
    if word in ("drain", "undrain"):
        call.client.drain(drained=word == "drain")
    elif word == "info":
        drained = call.client.drained()
        call.terminal.print(f"The drain flag is {'set' if drained else 'unset'}")
    else:
        raise BadInput(
            f"the queue takes drain, undrain or info, not '{word}'",
            hint="gnt-cluster queue info",
        )


def _watcher(call: Call) -> None:
    word, *spans = call.words
    if word == "pause" and len(spans) == 1:
        until = call.client.pause_watcher(time.time() + span(spans[0]))
        call.terminal.print(f"The watcher is paused until {moment(until)}")
    elif word == "continue" and not spans:
        call.client.pause_watcher(None)
        call.terminal.print("The watcher is no longer paused")
    elif word == "info" and not spans:
        until = call.client.watcher_pause()
        paused = until is not None and until > time.time()
        told = f"paused until {moment(until)}" if paused else "not paused"
        call.terminal.print(f"The watcher is {told}")
    else:
        raise BadInput(
            "the watcher takes pause with a time, continue or info",
            hint="gnt-cluster watcher pause 2h",
        )


def _show_policy(call: Call) -> None:
    policy = call.client.info()["ipolicy"]
    words = policy_options.flags(policy, standard=True)
    call.terminal.print(" ".join(["gnt-cluster", "init", *words, "NAME"]))


_PROGRAM = "ndp/oob_program"


def _epo(call: Call) -> int:
    nodes = _chosen(call)
    names = ", ".join(node["name"] for node in nodes)
    leaving = [one for one in nodes if not one["master"]]
    if call.option("on"):
        call.ask(f"Switch on {names}?")
        _switch(call, leaving, "power-on")
        call.terminal.print("The watcher starts what should run")
        return 0
    call.ask(f"Shut down every instance of {names}, then switch them off?")
    running = [name for node in nodes for name in node["pinst_list"] or ()]
    timeout = call.option("shutdown_timeout")
    more: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    opcode = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "no_remember": True} | more
    jobs = [[opcode | {"instance_name": name}] for name in running]
    answers = call.client.submit_many(jobs)
    status = follow_many(call, dict(zip(running, answers, strict=True)))
    if status:
        call.terminal.talk("not every instance is down: no node is switched off")
        return status
    _switch(call, leaving, "power-off")
    return 0


def _switch(call: Call, nodes: list[dict[str, Any]], command: str) -> None:
    """Switch nodes, and tell of those whose power nobody knows how to switch."""
    for node in nodes:
        if not node[_PROGRAM]:
            told = f"node {node['name']} has no oob_program: switch it by hand"
            call.terminal.print(told)
    names = [node["name"] for node in nodes if node[_PROGRAM]]
    fields = {"command": command, "node_names": names, "ignore_status": True}
    if names:
        perform(call, "OP_OOB_COMMAND", **fields)


def _chosen(call: Call) -> list[dict[str, Any]]:
    if bool(call.words) == bool(call.option("all")):
        raise BadInput("name nodes, or --all", hint="gnt-cluster epo --all")
    fields = ["name", "group", "pinst_list", "master", _PROGRAM]
    if not call.option("groups"):
        return call.look_up("node", fields)
    groups = {one["name"] for one in call.look_up("group", ["name"])}
    told, call.words = ", ".join(call.words), []
    found = [one for one in call.look_up("node", fields) if one["group"] in groups]
    if not found:
        raise WrongState(f"no node is in {told}", hint="gnt-group list -o name,nodes")
    return found


COMMANDS = (
    Command(
        "queue",
        _queue,
        (Operand("drain|undrain|info"),),
        (DEBUG,),
        examples={"gnt-cluster queue drain": "before an upgrade"},
    ),
    Command(
        "watcher",
        _watcher,
        (Operand("pause|continue|info"), Operand("TIME", 0)),
        (DEBUG,),
        examples={"gnt-cluster watcher pause 2h": "while disks are moved"},
    ),
    Command(
        "rename",
        Performs(
            "The cluster is called {name} now", asks="Rename the cluster to {name}?"
        ),
        (Operand("NAME", field="name"),),
        (*ASKING, *JOB),
        operation="OP_CLUSTER_RENAME",
    ),
    Command(
        "activate-master-ip",
        Performs("The master's address is up"),
        (),
        JOB,
        operation="OP_CLUSTER_ACTIVATE_MASTER_IP",
    ),
    Command(
        "deactivate-master-ip",
        Performs(
            "The master's address is down",
            asks="Take the master's address away, and cut off whoever came by it?",
        ),
        (),
        (*ASKING, *JOB),
        operation="OP_CLUSTER_DEACTIVATE_MASTER_IP",
    ),
    Command(
        "redist-conf",
        Performs("Master candidates get each change when it is made"),
        (),
        (moot("--yes-do-it", "nothing is asked"), *JOB),
        operation="OP_CLUSTER_REDIST_CONF",
    ),
    Command("show-ispecs-cmd", _show_policy, (), (DEBUG,)),
    Command(
        "epo",
        _epo,
        (Operand("NODE", 0, None),),
        (
            Option(("--on",), "switch on"),
            Option(("--groups",), "the words are node groups"),
            Option(("--all",), "every node; the master's own stays on"),
            moot("--oob-timeout", "the program has four minutes", "SECONDS"),
            moot("--power-delay", "nodes are switched one after the other", "SECONDS"),
            Option(
                ("--shutdown-timeout",),
                "seconds that a guest has to shut down",
                "SECONDS",
                seconds,
            ),
            *ASKING,
            DEBUG,
        ),
        examples={"gnt-cluster epo --groups rack2": "rack2 loses power"},
    ),
)
