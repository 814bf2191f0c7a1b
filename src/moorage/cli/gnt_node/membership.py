# SPDX-License-Identifier: BSD-2-Clause
"""Nodes come and go."""

from moorage.cli import join_token
from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import key_values
from moorage.cli.options import JOB, moot, refused

from .options import NODE, STATES, claim


def add(call: Call) -> int:
    """Add a node whose agent is running, or take one back."""
    (name,) = call.words
    fields = call.given(
        group="node_group",
        master_capable="master_capable",
        vm_capable="vm_capable",
        ndparams="node_parameters",
    )
    for option in ("primary_ip", "secondary_ip"):
        if found := resolved(call, option):
            fields[option] = found
    token = join_token.token(call, name)
    if token:
        fields["token"] = token
    if call.option("readd"):
        fields["readd"] = True
    perform(call, "OP_NODE_ADD", node_name=name, **fields)
    call.terminal.print(f"Added node {name}")
    return 0


def remove(call: Call) -> int:
    """Remove a node from the cluster."""
    (name,) = call.words
    perform(call, "OP_NODE_REMOVE", node_name=name)
    call.terminal.print(f"Removed node {name}")
    return 0


ADD = Command(
    "add",
    add,
    "Add a node whose agent is running",
    NODE,
    (
        Option(
            ("-p", "--primary-ip"),
            "where its agent is reached, if not where its token says",
            "ADDRESS",
        ),
        Option(
            ("-s", "--secondary-ip"),
            "by which disks are mirrored, and guests migrate",
            "ADDRESS",
        ),
        Option(("-g", "--node-group"), "the group it joins", "GROUP"),
        *join_token.OPTIONS,
        Option(("--readd",), "take a known node back"),
        claim(("--master-capable",), "it may ever become the master"),
        claim(("--vm-capable",), "it runs instances"),
        Option(("--node-parameters",), "its parameters", "KEY=VALUE,...", key_values),
        *STATES,
        refused("--force-join", "a node that is in a cluster leaves that one first"),
        moot("--no-node-setup", "nothing is set up over ssh"),
        moot("--verbose", "the job's log tells all", short="-v"),
        moot("--no-ssh-key-check", "nodes are reached over TLS, not by ssh"),
        *JOB,
    ),
    examples=(Example("gnt-node add --token-file join-token node2", "node2 joins"),),
)
REMOVE = Command("remove", remove, "Remove an empty node", NODE, JOB)
