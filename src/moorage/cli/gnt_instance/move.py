# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance migrate and failover."""

from moorage.cli.command import Call, Command, Option
from moorage.cli.follow import perform
from moorage.cli.operation import performs
from moorage.cli.options import (
    ASKING,
    IALLOCATOR,
    IGNORE_CONSISTENCY,
    JOB,
    MIGRATION_MODE,
    NON_LIVE,
    OVERRIDES,
    SHUTDOWN_TIMEOUT,
    TARGET,
    moot,
    refused,
)

from .selecting import INSTANCE


def _migrate(call: Call) -> None:
    if not call.option("cleanup"):
        call.ask(f"Instance {call.words[0]} will be migrated. Continue?")
    perform(call, "OP_INSTANCE_MIGRATE", **call.fields)


COMMANDS = (
    Command(
        "migrate",
        _migrate,
        "Move a running instance to another node, without stopping it",
        INSTANCE,
        (
            TARGET,
            IALLOCATOR,
            NON_LIVE._replace(help="pause the guest while it moves"),
            Option(("--cleanup",), "put right what a broken migration left"),
            Option(("--allow-failover",), "fail over if it cannot migrate"),
            MIGRATION_MODE._replace(help="non-live pauses the guest while it moves"),
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
        examples={"gnt-instance migrate -f -n node3 web1": "to node3, unasked"},
    ),
    Command(
        "failover",
        performs(
            "OP_INSTANCE_FAILOVER",
            asks="Failover will happen to instance {instance_name}. This requires a "
            "shutdown of the instance. Continue?",
        ),
        "Stop an instance and start it on another node",
        INSTANCE,
        (
            TARGET,
            IALLOCATOR,
            IGNORE_CONSISTENCY,
            SHUTDOWN_TIMEOUT,
            refused("--cleanup", "a failover that broke is undone by itself"),
            *OVERRIDES,
            *ASKING,
            *JOB,
        ),
        examples={
            "gnt-node modify --offline yes node1": "first, if node1 lost power",
            "gnt-instance failover -f -n node3 web1": "to node3, unasked",
        },
    ),
)
