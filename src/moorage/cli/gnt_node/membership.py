# SPDX-License-Identifier: BSD-2-Clause
"""Nodes come and go, and what they are for."""

from moorage.cli import join_token
from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command
from moorage.cli.fields import claim, fill, fills
from moorage.cli.operation import Performs
from moorage.cli.options import FORCE, JOB, NO_SSH, moot, refused

from .options import CAPABLE, NODE, SECONDARY_IP, STATES


def _addresses(call: Call) -> dict[str, str]:
    """Return the addresses that were given; names are resolved here."""
    found = {one: resolved(call, one) for one in ("primary_ip", "secondary_ip")}
    return {field: value for field, value in found.items() if value}


def _joining(call: Call) -> dict[str, str]:
    """Return the addresses of a new node, and its token."""
    token = join_token.token(call, call.words[0])
    return _addresses(call) | ({"token": token} if token else {})


ADD = Command(
    "add",
    Performs("Added node {node_name}", more=_joining),
    NODE,
    (
        fill("-p/--primary-ip", metavar="ADDRESS", field=False),
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
    Performs("Removed node {node_name}"),
    NODE,
    JOB,
    operation="OP_NODE_REMOVE",
)
MODIFY = Command(
    "modify",
    Performs(lacks="gnt-node modify --help", more=_addresses, tells="node {node_name}"),
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
        FORCE._replace(field=True),
        *JOB,
    ),
    examples={
        "gnt-node modify --offline yes node1": "node1 lost power",
        "gnt-node modify --drained yes node2": "before node2 is emptied",
    },
    operation="OP_NODE_SET_PARAMS",
)
COMMANDS = (ADD, REMOVE, MODIFY)
