# SPDX-License-Identifier: BSD-2-Clause
"""The master dies, or a command fails, while LVM, Ceph or Gluster do their work."""

from typing import Any

import pytest

from moorage.errors import MoorageError
from moorage.storage import Command
from moorage.testing.scenarios import STORED, Scenario

each_request = pytest.mark.parametrize("scenario", STORED, ids=lambda one: one.name)
UNDOABLE = [one for one in STORED if one.op_id != "OP_INSTANCE_REMOVE"]
STEP = 3


@each_request
async def test_a_crash_leaves_what_was_before_or_after(
    stores: Any, scenario: Scenario
) -> None:
    told = await stores.reference(scenario)
    first = STORED.index(scenario) % STEP
    for point in range(first, len(told.points), STEP):
        cluster = await stores.fresh()
        cluster.crash_at = point
        await stores.crashed(cluster, scenario)
        job = await stores.taken_over(cluster)
        await stores.checked(cluster, job, told)


@pytest.mark.parametrize("scenario", UNDOABLE, ids=lambda one: one.name)
async def test_a_command_that_fails_leaves_what_was_before(
    stores: Any, scenario: Scenario
) -> None:
    told = await stores.reference(scenario)
    for number in range(told.commands["node1"]):  # ends when none is left to fail
        cluster = await stores.fresh()
        left = iter(range(number, -1, -1))

        def refuse(node: str, command: Command, left: Any = left) -> bool:
            changes = node == "node1" and not command.reads and command.check
            return changes and next(left, None) == 0

        cluster.nodes.nodes["node1"].machine.refuse = refuse
        try:
            await cluster.run(scenario.op_id, **scenario.fields)
        except MoorageError:
            job = cluster.engine.job(stores.next_job)
            await stores.checked(cluster, job, told)
        else:
            await cluster.stop()
            if next(left, None) is not None:
                break
