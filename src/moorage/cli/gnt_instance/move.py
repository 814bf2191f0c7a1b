# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance migrate and failover."""

from moorage.cli.command import Call, Command, Example, Operand, Option
from moorage.cli.follow import perform
from moorage.cli.options import (
    ASKING,
    IALLOCATOR,
    JOB,
    OVERRIDES,
    SHUTDOWN_TIMEOUT,
    TARGET,
    moot,
    overridden,
    refused,
)


def migrate(call: Call) -> int:
    """Move a running instance to another node."""
    (name,) = call.words
    if not call.option("cleanup"):
        call.ask(f"Instance {name} will be migrated. Continue?")
    fields = call.given(target_node="target_node", iallocator="iallocator")
    if call.option("non_live") or call.option("migration_mode") == "non-live":
        fields["mode"] = "non-live"
    for switch in ("cleanup", "allow_failover"):
        if call.option(switch):
            fields[switch] = True
    perform(
        call, "OP_INSTANCE_MIGRATE", instance_name=name, **fields, **overridden(call)
    )
    return 0


def failover(call: Call) -> int:
    """Stop an instance and start it on another node."""
    (name,) = call.words
    call.ask(
        f"Failover will happen to instance {name}. This requires a shutdown of the "
        "instance. Continue?"
    )
    fields = call.given(
        target_node="target_node",
        iallocator="iallocator",
        shutdown_timeout="shutdown_timeout",
    )
    if call.option("ignore_consistency"):
        fields["ignore_consistency"] = True
    perform(
        call, "OP_INSTANCE_FAILOVER", instance_name=name, **fields, **overridden(call)
    )
    return 0


COMMANDS = (
    Command(
        "migrate",
        migrate,
        "Move a running instance to another node, without stopping it",
        (Operand("INSTANCE"),),
        (
            TARGET,
            IALLOCATOR,
            Option(("--non-live",), "pause the guest while it moves"),
            Option(("--cleanup",), "put right what a broken migration left"),
            Option(("--allow-failover",), "fail over if it cannot migrate"),
            Option(
                ("--migration-mode",),
                "non-live pauses the guest while it moves",
                "MODE",
                choices=("live", "non-live"),
            ),
            moot("--no-runtime-changes", "a migration changes nobody's memory"),
            moot(
                "--ignore-hvversions",
                "versions are not compared: a target that lacks the machine says so "
                "before the guest leaves",
            ),
            *OVERRIDES,
            *ASKING,
            *JOB,
        ),
        examples=(
            Example("gnt-instance migrate -f -n node3 web1", "to node3, unasked"),
        ),
    ),
    Command(
        "failover",
        failover,
        "Stop an instance and start it on another node",
        (Operand("INSTANCE"),),
        (
            TARGET,
            IALLOCATOR,
            Option(("--ignore-consistency",), "go on though a mirror is degraded"),
            SHUTDOWN_TIMEOUT,
            refused("--cleanup", "a failover that broke is undone by itself"),
            *OVERRIDES,
            *ASKING,
            *JOB,
        ),
        examples=(
            Example(
                "gnt-node modify --offline yes node1", "first, if node1 lost power"
            ),
            Example("gnt-instance failover -f -n node3 web1", "to node3, unasked"),
        ),
    ),
)
