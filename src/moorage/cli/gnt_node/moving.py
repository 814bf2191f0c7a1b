# SPDX-License-Identifier: BSD-2-Clause
"""Emptying a node."""

import json

from moorage.cli.command import Call, Command, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import ends, failures, fetch, submitted
from moorage.cli.operation import migration_mode
from moorage.cli.options import ASKING, JOB, NON_LIVE, moot
from moorage.errors import BadInput
from moorage.units import counted

from .options import NODE


def _jobs_of(call: Call, **more: str) -> int:
    """Carry out the operation, which answers with jobs, follow them, say who stayed."""
    (name,) = call.words
    result = fetch(call, **call.fields, **more) or {}
    answers = submitted(result) if result.get("jobs") else {}
    stayed = dict(result.get("stayed") or {})
    if not answers and not stayed and not call.option("json"):
        call.terminal.print(f"There is nothing to move away from node {name}")
        return 0
    failed = failures(call, answers)
    if call.option("json"):
        told = {"jobs": ends(answers, failed), "stayed": stayed}
        call.terminal.print(json.dumps(told, indent=2))
        return int(bool(stayed or failed))
    stayed |= {instance: failed[instance].message for instance in failed}
    if stayed:
        many = counted(len(stayed), "instance")
        call.terminal.print(f"{many} stayed on node {name}:")
    for instance, why in stayed.items():
        below = why.replace("\n", "\n    ")
        call.terminal.print(f"  - {instance}: {below}")
    return int(bool(stayed))


def _migrate(call: Call) -> int:
    mode = migration_mode(call)
    call.ask(f"Migrate every instance of node {call.words[0]}?")
    return _jobs_of(call, **mode)


def _failover(call: Call) -> int:
    call.ask(f"Stop every instance of node {call.words[0]} and start it elsewhere?")
    return _jobs_of(call)


def _evacuate(call: Call) -> int:
    primary, secondary = call.option("primary_only"), call.option("secondary_only")
    if primary and secondary:
        raise BadInput("-p and -s do not go together", hint="neither: all instances")
    mode = "primary-only" if primary else "secondary-only" if secondary else "all"
    call.ask(f"Relocate the instances of node {call.words[0]}?")
    return _jobs_of(call, mode=mode)


COMMANDS = (
    Command(
        "migrate",
        _migrate,
        NODE,
        (
            *fills(
                "-n/--target-node -I/--iallocator --migration-mode=mode",
                "--ignore-ipolicy",
            ),
            NON_LIVE,
            moot("--no-runtime-changes", "a guest's memory stays what it is"),
            *ASKING,
            *JOB,
        ),
        examples={"gnt-node migrate -f -n node2 node1": "to node2"},
        operation="OP_NODE_MIGRATE",
    ),
    Command(
        "failover",
        _failover,
        NODE,
        (
            *fills("-n/--target-node -I/--iallocator --ignore-consistency"),
            *ASKING,
            *JOB,
        ),
        operation="OP_NODE_FAILOVER",
    ),
    Command(
        "evacuate",
        _evacuate,
        NODE,
        (
            fill("-n/--new-secondary/--target-node=remote_node"),
            *fills("-I/--iallocator --early-release"),
            Option(("-p", "--primary-only"), "only instances that run there"),
            Option(("-s", "--secondary-only"), "only mirrors"),
            moot("--ignore-soft-errors", "who cannot leave stays, and keeps no other"),
            *ASKING,
            *JOB,
        ),
        operation="OP_NODE_EVACUATE",
    ),
)
