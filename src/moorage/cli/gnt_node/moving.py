# SPDX-License-Identifier: BSD-2-Clause
"""Emptying a node."""

import json
from collections.abc import Mapping
from typing import Any

from moorage.cli.command import Call, Command, Example, Option
from moorage.cli.follow import ends, failures, fetch
from moorage.cli.options import ASKING, IALLOCATOR, IGNORE_IPOLICY, JOB, TARGET, moot
from moorage.errors import BadInput

from .options import NODE


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
    fields = call.given(
        target_node="target_node", iallocator="iallocator", mode="migration_mode"
    )
    if call.option("non_live"):
        fields["mode"] = "non-live"
    if call.option("ignore_ipolicy"):
        fields["ignore_ipolicy"] = True
    return _jobs_of(call, "OP_NODE_MIGRATE", fields)


def failover(call: Call) -> int:
    """Fail the instances of a node over."""
    call.ask(f"Stop every instance of node {call.words[0]} and start it elsewhere?")
    fields = call.given(target_node="target_node", iallocator="iallocator")
    if call.option("ignore_consistency"):
        fields["ignore_consistency"] = True
    return _jobs_of(call, "OP_NODE_FAILOVER", fields)


def evacuate(call: Call) -> int:
    """Empty a node."""
    primary, secondary = call.option("primary_only"), call.option("secondary_only")
    if primary and secondary:
        raise BadInput("-p and -s do not go together", hint="neither: all instances")
    mode = "primary-only" if primary else "secondary-only" if secondary else "all"
    call.ask(f"Relocate the instances of node {call.words[0]}?")
    fields = call.given(remote_node="target_node", iallocator="iallocator")
    if call.option("early_release"):
        fields["early_release"] = True
    return _jobs_of(call, "OP_NODE_EVACUATE", {"mode": mode, **fields})


COMMANDS = (
    Command(
        "migrate",
        migrate,
        "Migrate every instance of a node, without stopping them",
        NODE,
        (
            TARGET,
            IALLOCATOR,
            Option(("--non-live",), "pause the guests while they move"),
            Option(
                ("--migration-mode",),
                "live or non-live",
                "MODE",
                choices=("live", "non-live"),
            ),
            IGNORE_IPOLICY,
            moot("--no-runtime-changes", "a guest's memory stays what it is"),
            *ASKING,
            *JOB,
        ),
        examples=(Example("gnt-node migrate -f -n node2 node1", "to node2"),),
    ),
    Command(
        "failover",
        failover,
        "Stop every instance of a node and start it elsewhere",
        NODE,
        (
            TARGET,
            IALLOCATOR,
            Option(("--ignore-consistency",), "go on though a mirror is degraded"),
            *ASKING,
            *JOB,
        ),
    ),
    Command(
        "evacuate",
        evacuate,
        "Empty a node, whatever it takes",
        NODE,
        (
            TARGET._replace(flags=("-n", "--new-secondary", "--target-node")),
            IALLOCATOR,
            Option(("-p", "--primary-only"), "only instances that run there"),
            Option(("-s", "--secondary-only"), "only mirrors"),
            Option(("--early-release",), "old copies go before new ones are the same"),
            moot("--ignore-soft-errors", "who cannot leave stays, and keeps no other"),
            *ASKING,
            *JOB,
        ),
    ),
)
