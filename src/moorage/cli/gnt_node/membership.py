# SPDX-License-Identifier: BSD-2-Clause
"""Nodes come and go, and what they are for."""

from moorage.cli import join_token
from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command
from moorage.cli.fields import claim, fill, fills
from moorage.cli.follow import perform
from moorage.cli.operation import changes, performs, tell_changes
from moorage.cli.options import FORCE, JOB, NO_SSH, moot, refused

from .options import CAPABLE, NODE, SECONDARY_IP, STATES


def _add(call: Call) -> None:
    (name,) = call.words
    found = {one: resolved(call, one) for one in ("primary_ip", "secondary_ip")}
    found["token"] = join_token.token(call, name)
    more = {field: value for field, value in found.items() if value}
    perform(call, **call.fields, **more)
    call.terminal.print(f"Added node {name}")


def _modify(call: Call) -> None:
    secondary = resolved(call, "secondary_ip")
    more = {"secondary_ip": secondary} if secondary else {}
    fields = changes(call, "gnt-node modify --help", **more)
    result = perform(call, **fields)
    asked = {**call.given, **more}
    tell_changes(call, f"node {call.words[0]}", result or asked.items())


ADD = Command(
    "add",
    _add,
    NODE,
    (
        fill("-p/--primary-ip", metavar="ADDRESS", local=True),
        SECONDARY_IP,
        *fills("-g/--node-group=group --readd --node-parameters=ndparams"),
        *join_token.OPTIONS,
        *CAPABLE,
        *STATES,
        refused("--force-join", "a node that is in a cluster leaves that one first"),
        moot("--no-node-setup", "nothing is set up over ssh"),
        moot("--verbose", "the job's log tells all", short="-v"),
        moot("--no-ssh-key-check", NO_SSH),
        *JOB,
    ),
    examples={"gnt-node add --token-file join-token node2": "node2 joins"},
    operation="OP_NODE_ADD",
)
REMOVE = Command(
    "remove",
    performs("Removed node {node_name}"),
    NODE,
    JOB,
    operation="OP_NODE_REMOVE",
)
MODIFY = Command(
    "modify",
    _modify,
    NODE,
    (
        claim("-O/--offline"),
        claim("-D/--drained"),
        claim("-C/--master-candidate"),
        claim("--node-powered=powered"),
        *CAPABLE,
        SECONDARY_IP,
        *fills("--auto-promote --node-parameters=ndparams"),
        *STATES,
        FORCE._replace(local=False),
        *JOB,
    ),
    examples={
        "gnt-node modify --offline yes node1": "node1 lost power",
        "gnt-node modify --drained yes node2": "before node2 is emptied",
    },
    operation="OP_NODE_SET_PARAMS",
)
COMMANDS = (ADD, REMOVE, MODIFY)
