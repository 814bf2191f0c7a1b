# SPDX-License-Identifier: BSD-2-Clause
"""What a node is for."""

from moorage.cli.addresses import resolved
from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import perform
from moorage.cli.option_syntax import key_values
from moorage.cli.options import FORCE, JOB
from moorage.errors import BadInput

from .options import NODE, STATES, claim


def modify(call: Call) -> int:
    """Change what a node is for."""
    (name,) = call.words
    fields = call.given(
        offline="offline",
        drained="drained",
        master_candidate="master_candidate",
        powered="node_powered",
        ndparams="node_parameters",
        master_capable="master_capable",
        vm_capable="vm_capable",
    )
    if secondary := resolved(call, "secondary_ip"):
        fields["secondary_ip"] = secondary
    if not fields:
        raise BadInput("nothing to change", hint="gnt-node modify --help")
    for switch in ("force", "auto_promote"):
        if call.option(switch):
            fields[switch] = True
    result = perform(call, "OP_NODE_SET_PARAMS", node_name=name, **fields)
    call.terminal.print(f"Modified node {name}")
    for what, value in result or fields.items():
        call.terminal.print(f" - {what:<5} -> {value}")
    return 0


COMMAND = Command(
    "modify",
    modify,
    "Change what a node is for",
    NODE,
    (
        claim(("-O", "--offline"), "it is off: nothing of it runs or writes"),
        claim(("-D", "--drained"), "it takes no new instances"),
        claim(("-C", "--master-candidate"), "it may become the master"),
        claim(("--node-powered",), "its power is on"),
        claim(("--master-capable",), "it may ever become the master"),
        claim(("--vm-capable",), "it runs instances"),
        Option(
            ("-s", "--secondary-ip"),
            "by which disks are mirrored, and guests migrate",
            "ADDRESS",
        ),
        Option(("--auto-promote",), "others become candidates in its place"),
        *STATES,
        Option(("--node-parameters",), "its parameters", "KEY=VALUE,...", key_values),
        FORCE,
        *JOB,
    ),
    examples=(
        Example("gnt-node modify --offline yes node1", "node1 lost power"),
        Example("gnt-node modify --drained yes node2", "before node2 is emptied"),
    ),
)
