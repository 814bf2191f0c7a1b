# SPDX-License-Identifier: BSD-2-Clause
"""What a node is for."""

from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.operation import changes, tell_changes
from moorage.cli.options import FORCE, JOB, NODE_PARAMETERS

from .options import CAPABLE, NODE, SECONDARY_IP, STATES, claim


def _modify(call: Call) -> None:
    secondary = resolved(call, "secondary_ip")
    more = {"secondary_ip": secondary} if secondary else {}
    fields = changes(call, "gnt-node modify --help", **more)
    result = perform(call, "OP_NODE_SET_PARAMS", **fields)
    tell_changes(call, f"node {call.words[0]}", result or fields.items())


COMMAND = Command(
    "modify",
    _modify,
    "Change what a node is for",
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
