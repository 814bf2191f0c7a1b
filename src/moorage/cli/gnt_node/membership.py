# SPDX-License-Identifier: BSD-2-Clause
"""Nodes come and go, and what they are for."""

from moorage.cli import join_token
from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.operation import changes, performs, tell_changes
from moorage.cli.options import FORCE, JOB, NO_SSH, NODE_PARAMETERS, moot, refused

from .options import CAPABLE, NODE, SECONDARY_IP, STATES, claim


def _add(call: Call) -> None:
    (name,) = call.words
    found = {one: resolved(call, one) for one in ("primary_ip", "secondary_ip")}
    found["token"] = join_token.token(call, name)
    more = {field: value for field, value in found.items() if value}
    perform(call, "OP_NODE_ADD", **call.fields, **more)
    call.terminal.print(f"Added node {name}")


def _modify(call: Call) -> None:
    secondary = resolved(call, "secondary_ip")
    more = {"secondary_ip": secondary} if secondary else {}
    fields = changes(call, "gnt-node modify --help", **more)
    result = perform(call, "OP_NODE_SET_PARAMS", **fields)
    asked = {**call.given, **more}
    tell_changes(call, f"node {call.words[0]}", result or asked.items())


ADD = Command(
    "add",
    _add,
    NODE,
    (
        Option(
            ("-p", "--primary-ip"),
            "where its agent is reached, if not where its token says",
            "ADDRESS",
            local=True,
        ),
        SECONDARY_IP,
        Option(("-g", "--node-group"), "the group it joins", "GROUP", dest="group"),
        *join_token.OPTIONS,
        Option(("--readd",), "take a known node back"),
        *CAPABLE,
        NODE_PARAMETERS,
        *STATES,
        refused("--force-join", "a node that is in a cluster leaves that one first"),
        moot("--no-node-setup", "nothing is set up over ssh"),
        moot("--verbose", "the job's log tells all", short="-v"),
        moot("--no-ssh-key-check", NO_SSH),
        *JOB,
    ),
    examples={"gnt-node add --token-file join-token node2": "node2 joins"},
)
REMOVE = Command(
    "remove",
    performs("OP_NODE_REMOVE", "Removed node {node_name}"),
    NODE,
    JOB,
)
MODIFY = Command(
    "modify",
    _modify,
    NODE,
    (
        claim(("-O", "--offline"), "it is off: nothing of it runs or writes"),
        claim(("-D", "--drained"), "it takes no new instances"),
        claim(("-C", "--master-candidate"), "it may become the master"),
        claim(("--node-powered",), "its power is on", "powered"),
        *CAPABLE,
        SECONDARY_IP,
        Option(("--auto-promote",), "others become candidates in its place"),
        *STATES,
        NODE_PARAMETERS,
        FORCE._replace(local=False),
        *JOB,
    ),
    examples={
        "gnt-node modify --offline yes node1": "node1 lost power",
        "gnt-node modify --drained yes node2": "before node2 is emptied",
    },
)
COMMANDS = (ADD, REMOVE, MODIFY)
