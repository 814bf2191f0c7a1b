# SPDX-License-Identifier: BSD-2-Clause
"""gnt-group: groups of nodes that see the same storage."""

from typing import Any

from moorage.errors import BadInput

from . import details, policy_options, tags
from .command import Call, Command, Example, Operand, Option, Program
from .follow import fetch, follow_many, perform
from .listing import Listing
from .main import run
from .option_syntax import check_changed, key_values, nested
from .options import (
    ASKING,
    DEBUG,
    DISK_PARAMETERS,
    FORCE,
    IALLOCATOR,
    JOB,
    JSON,
    moot,
    refused,
)
from .show_policy import flags as show_policy_flags

LISTING = Listing(
    "group", ("name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams")
)
_INFO = [
    *("name", "uuid", "alloc_policy", "node_list", "pinst_list"),
    *("ndparams", "diskparams", "ipolicy", "tags", "serial_no"),
]


def add(call: Call) -> int:
    """Make a group."""
    (name,) = call.words
    fields = call.given(alloc_policy="alloc_policy")
    if policy_options.given(call):
        now = call.client.call("QueryClusterInfo")["ipolicy"]
        fields["ipolicy"] = policy_options.policy(call, now)
    fields |= _parameters(call)
    perform(call, "OP_GROUP_ADD", group_name=name, **fields)
    call.terminal.print(f"Added node group {name}")
    return 0


def _parameters(call: Call) -> dict[str, Any]:
    """Return the parameters of nodes and disks that were given."""
    found = call.given(ndparams="node_parameters")
    if call.option("disk_parameters"):
        found["diskparams"] = nested(call.option("disk_parameters"))
    return found


def show_policy(call: Call) -> int:
    """Print the commands that would make groups' policies as they are."""
    field = "ipolicy" if call.option("include_defaults") else "custom_ipolicy"
    for group in details.look_up(call, "group", ["name", field]):
        words = show_policy_flags(group[field] or {}, standard=False)
        call.terminal.print(" ".join(["gnt-group", "add", *words, group["name"]]))
    return 0


def modify(call: Call) -> int:
    """Change a group."""
    (name,) = call.words
    check_changed("-D", call.option("disk_parameters"))
    fields = call.given(alloc_policy="alloc_policy") | _parameters(call)
    if policy_options.given(call):
        (group,) = details.look_up(call, "group", ["name", "ipolicy"])
        fields["ipolicy"] = policy_options.policy(call, group["ipolicy"])
    if not fields:
        raise BadInput("nothing to change", hint="gnt-group modify --help")
    perform(call, "OP_GROUP_SET_PARAMS", group_name=name, **fields)
    call.terminal.print(f"Modified node group {name}")
    for what, value in fields.items():
        call.terminal.print(f" - {what:<5} -> {value}")
    return 0


def rename(call: Call) -> int:
    """Give a group another name."""
    old, new = call.words
    perform(call, "OP_GROUP_RENAME", group_name=old, new_name=new)
    call.terminal.print(f"Renamed node group {old} to {new}")
    return 0


def remove(call: Call) -> int:
    """Remove an empty group."""
    (name,) = call.words
    perform(call, "OP_GROUP_REMOVE", group_name=name)
    call.terminal.print(f"Removed node group {name}")
    return 0


def assign(call: Call) -> int:
    """Put nodes into a group."""
    group, *nodes = call.words
    forced = {"force": True} if call.option("force") else {}
    perform(call, "OP_GROUP_ASSIGN_NODES", group_name=group, nodes=nodes, **forced)
    call.terminal.print(f"Assigned {', '.join(nodes)} to node group {group}")
    return 0


def evacuate(call: Call) -> int:
    """Let every instance of a group go to other groups."""
    (name,) = call.words
    call.warn(f"Let every instance of node group {name} go to other groups?")
    fields: dict[str, Any] = call.given(iallocator="iallocator")
    if call.option("to"):
        fields["target_groups"] = call.option("to")
    if call.option("sequential"):
        fields["sequential"] = True
    found = fetch(call, "OP_GROUP_EVACUATE", group_name=name, **fields)
    jobs = zip(found["names"], found["jobs"], strict=True)
    answers = {one: (bool(taken), what) for one, (taken, what) in jobs}
    if not answers:
        call.terminal.print(f"There are no instances in node group {name}")
    return follow_many(call, answers)


def info(call: Call) -> int:
    """Print all that is known of some groups."""
    return details.show(call, details.look_up(call, "group", _INFO), _shown)


def _shown(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "Node group": group["name"],
        "UUID": group["uuid"],
        "Serial number": group["serial_no"],
        "Allocation policy": group["alloc_policy"],
        "Nodes": group["node_list"] or "",
        "Instances": group["pinst_list"] or "",
        "Node parameters": group["ndparams"] or "",
        "Disk parameters": group["diskparams"] or "",
        "Instance policy": policy_options.shown(group["ipolicy"]),
        "Tags": ", ".join(group["tags"] or ()),
    }


_GROUP = (Operand("GROUP"),)
_POLICY = Option(
    ("--alloc-policy",),
    "preferred, last_resort or unallocable",
    "POLICY",
    choices=("preferred", "last_resort", "unallocable"),
)

_STATE = "nodes say what they have"
_PARAMETERS = (
    Option(
        ("--node-parameters",),
        "its nodes' parameters",
        "KEY=VALUE,...",
        key_values,
    ),
    DISK_PARAMETERS,
    refused("--hypervisor-state", _STATE, "NAME:KEY=VALUE,..."),
    refused("--disk-state", _STATE, "NAME:KEY=VALUE,..."),
)

PROGRAM = Program(
    "gnt-group",
    "group nodes that see the same storage",
    (
        Command(
            "add",
            add,
            "Make a group",
            _GROUP,
            (_POLICY, *policy_options.OPTIONS, *_PARAMETERS, *JOB),
        ),
        *LISTING.commands("gnt-group", "node_cnt > 2"),
        Command(
            "info",
            info,
            "Show all about groups",
            (Operand("GROUP", 0, None),),
            (JSON, DEBUG),
            ("show",),
        ),
        Command(
            "modify",
            modify,
            "Change a group",
            _GROUP,
            (
                _POLICY,
                *policy_options.OPTIONS,
                *_PARAMETERS,
                *JOB,
            ),
        ),
        Command(
            "rename",
            rename,
            "Give a group another name",
            (*_GROUP, Operand("NEW_NAME")),
            JOB,
        ),
        Command("remove", remove, "Remove an empty group", _GROUP, JOB),
        Command(
            "assign-nodes",
            assign,
            "Put nodes into a group",
            (*_GROUP, Operand("NODE", 1, None)),
            (FORCE, *JOB),
            examples=(
                Example("gnt-group assign-nodes rack2 node4 node5", "two nodes"),
            ),
        ),
        Command(
            "evacuate",
            evacuate,
            "Let every instance of a group go to other groups",
            _GROUP,
            (
                Option(("--to",), "to this group alone", "GROUP", repeats=True),
                IALLOCATOR,
                Option(("--sequential",), "one after the other, in one job"),
                moot("--early-release", "locks are released as early as can be"),
                refused(
                    "--force-failover",
                    "what runs migrates; shut it down first, and it fails over",
                ),
                *ASKING,
                *JOB,
            ),
            examples=(Example("gnt-group evacuate --to rack2 rack1", "to rack2"),),
        ),
        Command(
            "show-ispecs-cmd",
            show_policy,
            "Print the commands that would make groups' policies as they are",
            (Operand("GROUP", 0, None),),
            (
                Option(("--include-defaults",), "with what the cluster says"),
                DEBUG,
            ),
        ),
        *tags.commands("gnt-group"),
    ),
)


def main() -> int:
    """Run gnt-group."""
    return run(PROGRAM)
