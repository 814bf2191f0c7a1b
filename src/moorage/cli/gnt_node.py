# SPDX-License-Identifier: BSD-2-Clause
"""gnt-node: the machines of the cluster, and emptying them."""

import json
from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput

from . import details, join_token, tags
from .command import Call, Command, Example, Operand, Option, Program
from .follow import ends, failures, fetch, perform
from .listing import Listing
from .main import run
from .option_syntax import key_values
from .options import ASKING, DEBUG, FORCE, IALLOCATOR, JOB, JSON, TARGET, moot, truth
from .table import moment

LISTING = Listing(
    "node",
    ("name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"),
)
_INFO = [
    *("name", "uuid", "pip", "sip", "group", "role", "master_candidate"),
    *("drained", "offline", "powered", "master_capable", "vm_capable"),
    *("silence", "certificate_ends", "accelerator", "accelerator.reason", "storage"),
    *("pinst_list", "sinst_list", "ndparams", "tags", "serial_no", "ctime", "mtime"),
]


def add(call: Call) -> int:
    """Add a node whose agent is running, or take one back."""
    (name,) = call.words
    fields = call.given(
        primary_ip="primary_ip", secondary_ip="secondary_ip", group="node_group"
    )
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


def modify(call: Call) -> int:
    """Change what a node is for."""
    (name,) = call.words
    fields = call.given(
        offline="offline",
        drained="drained",
        master_candidate="master_candidate",
        powered="node_powered",
        ndparams="node_parameters",
    )
    if not fields:
        raise BadInput("nothing to change", hint="gnt-node modify --help")
    if call.option("force"):
        fields["force"] = True
    result = perform(call, "OP_NODE_SET_PARAMS", node_name=name, **fields)
    call.terminal.print(f"Modified node {name}")
    for what, value in result or fields.items():
        call.terminal.print(f" - {what:<5} -> {value}")
    return 0


def _jobs_of(call: Call, op_id: str, fields: Mapping[str, Any]) -> int:
    """Carry out an operation that answers with jobs, follow them, say who stayed."""
    (name,) = call.words
    result = fetch(call, op_id, node_name=name, **fields) or {}
    jobs, stayed = result.get("jobs") or [], dict(result.get("stayed") or {})
    if not jobs and not stayed and not call.option("json"):
        call.terminal.print(f"There is nothing to move away from node {name}")
        return 0
    names = result.get("names") or [f"number {n}" for n, _ in enumerate(jobs, 1)]
    answers = {
        instance: (bool(taken), what)
        for instance, (taken, what) in zip(names, jobs, strict=True)
    }
    failed = failures(call, answers)
    if call.option("json"):
        told = {"jobs": ends(answers, failed), "stayed": stayed}
        call.terminal.print(json.dumps(told, indent=2))
        return int(bool(stayed or failed))
    stayed |= {instance: failed[instance].message for instance in failed}
    if stayed:
        what = "instance" if len(stayed) == 1 else "instances"
        call.terminal.print(f"{len(stayed)} {what} stayed on node {name}:")
    for instance, why in stayed.items():
        below = why.replace("\n", "\n    ")
        call.terminal.print(f"  - {instance}: {below}")
    return int(bool(stayed))


def migrate(call: Call) -> int:
    """Migrate the instances of a node."""
    call.ask(f"Migrate every instance of node {call.words[0]}?")
    fields = call.given(target_node="target_node", iallocator="iallocator")
    return _jobs_of(call, "OP_NODE_MIGRATE", fields)


def failover(call: Call) -> int:
    """Fail the instances of a node over."""
    call.ask(f"Stop every instance of node {call.words[0]} and start it elsewhere?")
    fields = call.given(target_node="target_node", iallocator="iallocator")
    return _jobs_of(call, "OP_NODE_FAILOVER", fields)


def evacuate(call: Call) -> int:
    """Empty a node."""
    primary, secondary = call.option("primary_only"), call.option("secondary_only")
    if primary and secondary:
        raise BadInput("-p and -s do not go together", hint="neither: all instances")
    mode = "primary-only" if primary else "secondary-only" if secondary else "all"
    call.ask(f"Relocate the instances of node {call.words[0]}?")
    fields = call.given(remote_node="target_node", iallocator="iallocator")
    return _jobs_of(call, "OP_NODE_EVACUATE", {"mode": mode, **fields})


# -- info ------------------------------------------------------------------------------


def info(call: Call) -> int:
    """Print all that is known of some nodes."""
    return details.show(call, details.look_up(call, "node", _INFO), _shown)


def _shown(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "Node name": node["name"],
        "UUID": node["uuid"],
        "primary ip": node["pip"],
        "secondary ip": node["sip"],
        "node group": node["group"],
        "role": node["role"],
        "master candidate": node["master_candidate"],
        "drained": node["drained"],
        "offline": node["offline"],
        "powered": node["powered"],
        "master_capable": node["master_capable"],
        "vm_capable": node["vm_capable"],
        **({"no answer": node["silence"]} if node["silence"] else {}),
        "certificate until": _until(node["certificate_ends"]),
        "accelerator": _accelerator(node),
        "storage units": [_unit(unit) for unit in node["storage"] or ()] or "",
        "primary for instances": node["pinst_list"] or "",
        "secondary for instances": node["sinst_list"] or "",
        "node parameters": node["ndparams"] or "",
        "tags": ", ".join(node["tags"] or ()),
        "Serial number": node["serial_no"],
        "Creation time": moment(node["ctime"]),
        "Modification time": moment(node["mtime"]),
    }


def _unit(unit: dict[str, Any]) -> str:
    """Return a storage unit with its room; what nobody knows is unknown, not 0."""
    kind, key, _ = unit["sunit"]
    sizes = (unit["free"], unit["total"])
    free, total = ("unknown" if one is None else f"{one} MiB" for one in sizes)
    told = f"free {free} of {total}" if sizes != (None, None) else "room unknown"
    return f"{kind} {key}: {told}"


def _until(ends: float | None) -> str:
    return moment(ends) if ends else ""


def _accelerator(node: dict[str, Any]) -> str:
    """Return what executes guests and how that is known; empty if it is not."""
    name, reason = node["accelerator"], node["accelerator.reason"]
    return f"{name} ({reason})" if name and reason else ""


def try_accelerator(call: Call) -> int:
    """Look again what executes guests."""
    rows = fetch(call, "OP_NODE_TRY_ACCELERATOR", node_names=list(call.words))
    if call.option("json"):
        call.terminal.print(json.dumps(rows or [], indent=2))
        return 0
    for name, accelerator, reason in rows or []:
        call.terminal.print(f"{name}: {accelerator} ({reason})")
    return 0


# -- the program -----------------------------------------------------------------------

_NODE = (Operand("NODE"),)


def _claim(flags: tuple[str, ...], text: str) -> Option:
    """Return an option that takes yes or no; yes when it is given alone."""
    return Option(flags, text, "yes|no", truth, choices=("yes", "no"), bare="yes")


_COMMANDS = (
    Command(
        "info", info, "Show all about nodes", (Operand("NODE", 0, None),), (JSON, DEBUG)
    )._replace(aliases=("show",)),
    Command(
        "modify",
        modify,
        "Change what a node is for",
        _NODE,
        (
            _claim(("-O", "--offline"), "it is off: nothing of it runs or writes"),
            _claim(("-D", "--drained"), "it takes no new instances"),
            _claim(("-C", "--master-candidate"), "it may become the master"),
            _claim(("--node-powered",), "its power is on"),
            Option(
                ("--node-parameters",), "its parameters", "KEY=VALUE,...", key_values
            ),
            FORCE,
            *JOB,
        ),
        examples=(
            Example("gnt-node modify --offline yes node1", "node1 lost power"),
            Example("gnt-node modify --drained yes node2", "before node2 is emptied"),
        ),
    ),
    Command(
        "try-accelerator",
        try_accelerator,
        "Look again whether KVM works, by booting a kernel; all nodes if none is named",
        (Operand("NODE", 0, None),),
        (JSON, DEBUG),
        examples=(
            Example("gnt-node try-accelerator node1", "KVM was mended on node1"),
        ),
    ),
    Command("remove", remove, "Remove an empty node", _NODE, JOB),
    Command(
        "migrate",
        migrate,
        "Migrate every instance of a node, without stopping them",
        _NODE,
        (TARGET, IALLOCATOR, *ASKING, *JOB),
        examples=(Example("gnt-node migrate -f -n node2 node1", "to node2"),),
    ),
    Command(
        "failover",
        failover,
        "Stop every instance of a node and start it elsewhere",
        _NODE,
        (TARGET, IALLOCATOR, *ASKING, *JOB),
    ),
    Command(
        "evacuate",
        evacuate,
        "Empty a node, whatever it takes",
        _NODE,
        (
            TARGET._replace(flags=("-n", "--new-secondary", "--target-node")),
            IALLOCATOR,
            Option(("-p", "--primary-only"), "only instances that run there"),
            Option(("-s", "--secondary-only"), "only mirrors"),
            *ASKING,
            *JOB,
        ),
    ),
)

PROGRAM = Program(
    "gnt-node",
    "add, list, empty and remove nodes",
    (
        Command(
            "add",
            add,
            "Add a node whose agent is running",
            _NODE,
            (
                Option(("-p", "--primary-ip"), "where its agent listens", "IP[:PORT]"),
                Option(("-s", "--secondary-ip"), "for mirrors' traffic", "IP"),
                Option(("-g", "--node-group"), "the group it joins", "GROUP"),
                *join_token.OPTIONS,
                Option(("--readd",), "take a known node back"),
                moot("--no-ssh-key-check", "nodes are reached over TLS, not by ssh"),
                *JOB,
            ),
            examples=(
                Example("gnt-node add --token-file join-token node2", "node2 joins"),
            ),
        ),
        *LISTING.commands("gnt-node", "offline or drained"),
        *_COMMANDS,
        *tags.commands("gnt-node"),
    ),
)


def main() -> int:
    """Run gnt-node."""
    return run(PROGRAM)
