# SPDX-License-Identifier: BSD-2-Clause
"""gnt-group: groups of nodes that see the same storage."""

from collections.abc import Iterator
from typing import Any

from moorage.cli import policy_options
from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import fetch, follow_many, perform, submitted
from moorage.cli.listing import Listing
from moorage.cli.operation import Performs, changes, tell_changes
from moorage.cli.option_syntax import check_changed
from moorage.cli.options import ASKING, DEBUG, FORCE, JOB, JSON, moot, refused
from moorage.cli.yamlish import defaulted

LISTING = Listing(
    "group", ("name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams")
)
_INFO = [
    *("name", "uuid", "alloc_policy", "node_list", "pinst_list"),
    *("ndparams", "custom_ndparams", "diskparams", "custom_diskparams"),
    *("ipolicy", "custom_ipolicy", "tags", "serial_no"),
]


def _own_policy(call: Call) -> dict[str, Any]:
    """Return what a new group's policy has beside the cluster's."""
    return policy_options.changed(call, call.client.info)


def _show_policy(call: Call) -> None:
    field = "ipolicy" if call.option("include_defaults") else "custom_ipolicy"
    for group in call.look_up("group", ["name", field]):
        words = policy_options.flags(group[field] or {}, standard=False)
        call.terminal.print(" ".join(["gnt-group", "add", *words, group["name"]]))


def _cpu_models(call: Call) -> None:
    found = fetch(call, group_name=call.words[0])
    call.show(found, _models_told(call.words[0], found))


def _models_told(group: str, found: dict[str, Any]) -> Iterator[str]:
    """Yield what all nodes have, then what some lack, then who said nothing."""
    nodes, models = found["accelerators"], found["models"]
    whole = [name for name, lacking in models.items() if not lacking]
    by = ", ".join(f"{name} ({accelerator})" for name, accelerator in nodes.items())
    yield f"CPU models that all nodes of node group {group} have: {by or 'no node'}"
    yield from (f"  {name}" for name in whole)
    yield "CPU models that some lack:"
    for name, lacking in models.items():
        told = "; ".join(f"{node} lacks {what}" for node, what in lacking.items())
        if lacking:
            yield f"  {name}: {told}"
    yield from (
        f"{name} was not counted: {why}" for name, why in found["silent"].items()
    )


def _modify(call: Call) -> None:
    check_changed("-D", call.option("diskparams"))
    policy = policy_options.changed(call, lambda: _policy(call))
    changed = {**call.given, **policy}
    fields = changes(call, "gnt-group modify --help", **policy)
    perform(call, **fields)
    tell_changes(call, f"node group {call.words[0]}", changed.items())


def _policy(call: Call) -> dict[str, Any]:
    """Return the group with its policy as it is."""
    (group,) = call.look_up("group", ["name", "ipolicy"])
    return group


def _evacuate(call: Call) -> int:
    (name,) = call.words
    call.warn(f"Let every instance of node group {name} go to other groups?")
    answers = submitted(fetch(call, **call.fields))
    if not answers:
        call.terminal.print(f"There are no instances in node group {name}")
    return follow_many(call, answers)


def _shown(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "Node group": group["name"],
        "UUID": group["uuid"],
        "Serial number": group["serial_no"],
        "Allocation policy": group["alloc_policy"],
        "Nodes": group["node_list"] or "",
        "Instances": group["pinst_list"] or "",
        "Node parameters": _parameters(group, "ndparams"),
        "Disk parameters": _parameters(group, "diskparams"),
        "Instance policy": policy_options.shown(
            group["ipolicy"], group["custom_ipolicy"] or {}
        ),
        "Tags": ", ".join(group["tags"] or ()),
    }


def _parameters(group: dict[str, Any], name: str) -> dict[str, Any]:
    return defaulted(group[f"custom_{name}"] or {}, group[name] or {})


_GROUP = (Operand("GROUP", field="group_name"),)
_STATE = "nodes say what they have"
_PARAMETERS = (
    *fills("--alloc-policy --node-parameters=ndparams -D/--disk-parameters=diskparams"),
    refused("--hypervisor-state", _STATE, "NAME:KEY=VALUE,..."),
    refused("--disk-state", _STATE, "NAME:KEY=VALUE,..."),
)

COMMANDS = (
    Command(
        "add",
        Performs("Added node group {group_name}", more=_own_policy),
        _GROUP,
        (*policy_options.OPTIONS, *_PARAMETERS, *JOB),
        operation="OP_GROUP_ADD",
    ),
    *LISTING.commands("gnt-group", "node_cnt > 2"),
    LISTING.info(_INFO, _shown),
    Command(
        "modify",
        _modify,
        _GROUP,
        (*policy_options.OPTIONS, *_PARAMETERS, *JOB),
        operation="OP_GROUP_SET_PARAMS",
    ),
    Command(
        "rename",
        Performs("Renamed node group {group_name} to {new_name}"),
        (*_GROUP, Operand("NEW_NAME", field="new_name")),
        JOB,
        operation="OP_GROUP_RENAME",
    ),
    Command(
        "remove",
        Performs("Removed node group {group_name}"),
        _GROUP,
        JOB,
        operation="OP_GROUP_REMOVE",
    ),
    Command(
        "assign-nodes",
        Performs("Assigned {nodes} to node group {group_name}"),
        (*_GROUP, Operand("NODE", 1, None, "nodes")),
        (FORCE._replace(field=True), *JOB),
        examples={"gnt-group assign-nodes rack2 node4 node5": "two nodes"},
        operation="OP_GROUP_ASSIGN_NODES",
    ),
    Command(
        "evacuate",
        _evacuate,
        _GROUP,
        (
            fill("--to=target_groups", repeats=True, metavar="GROUP"),
            *fills("-I/--iallocator --sequential"),
            moot("--early-release", "locks are released as early as can be"),
            refused(
                "--force-failover",
                "what runs migrates; shut it down first, and it fails over",
            ),
            *ASKING,
            *JOB,
        ),
        examples={"gnt-group evacuate --to rack2 rack1": "to rack2"},
        operation="OP_GROUP_EVACUATE",
    ),
    Command(
        "cpu-models",
        _cpu_models,
        _GROUP,
        (JSON, DEBUG),
        examples={"gnt-group cpu-models default": "what -H cpu_type=MODEL can be"},
        operation="OP_GROUP_CPU_MODELS",
    ),
    Command(
        "show-ispecs-cmd",
        _show_policy,
        (Operand("GROUP", 0, None),),
        (Option(("--include-defaults",), "with what the cluster says"), DEBUG),
    ),
)
