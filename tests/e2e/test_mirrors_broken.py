# SPDX-License-Identifier: BSD-2-Clause
"""The master dies, replies get lost, commands fail: in each request on mirrored disks.

As in the harbour: before the request or after it, never between, and no copy is left.
"""

from typing import Any

import pytest

from moorage.storage import Command
from moorage.testing.scenarios import MIRRORS, Scenario

each_request = pytest.mark.parametrize(
    "scenario", MIRRORS, ids=[one.name.replace(" ", "-") for one in MIRRORS]
)
some = pytest.mark.parametrize(
    "step",
    [
        pytest.param(8, id="some"),
        pytest.param(1, id="all", marks=pytest.mark.slow),
    ],
)


@some
@each_request
async def test_a_crash_at_every_point(
    mirrored: Any, scenario: Scenario, step: int
) -> None:
    told = await mirrored.reference(scenario)
    for point in range(len(scenario.name) % step, len(told.points), step):
        cluster = await mirrored.fresh()
        cluster.crash_at = point
        await mirrored.crashed(cluster, scenario)
        job = await mirrored.taken_over(cluster)
        await mirrored.checked(cluster, job, told)


@some
@each_request
async def test_a_lost_reply_changes_nothing_in_the_end(
    mirrored: Any, scenario: Scenario, step: int
) -> None:
    told = await mirrored.reference(scenario)
    for number in range(len(scenario.name) % step, len(told.calls), step):
        cluster = await mirrored.fresh()
        cluster.nodes.lose_reply = {number}
        asked = await cluster.submit(scenario.op_id, **scenario.fields)
        job = await cluster.finished(asked)
        await mirrored.checked(cluster, job, told)


NEVER_HALF = [one for one in MIRRORS if not one.op_id.endswith(("GROW", "REMOVE"))]
"""What grew cannot shrink, and what was removed in part is quarantined."""


@some
@pytest.mark.parametrize("scenario", NEVER_HALF, ids=[one.name for one in NEVER_HALF])
async def test_a_command_that_fails_once(
    mirrored: Any, scenario: Scenario, step: int
) -> None:
    told = await mirrored.reference(scenario)
    every = [
        (name, number)
        for name, commands in told.commands.items()
        for number in range(commands)
    ]
    for name, number in every[len(scenario.name) % step :: step * 2]:
        cluster = await mirrored.fresh()
        left = number

        def refuse(node: str, _command: Command, name: str = name) -> bool:
            nonlocal left
            left -= node == name
            return node == name and left == -1

        for node in cluster.nodes.nodes.values():
            node.machine.refuse = refuse
        asked = await cluster.submit(scenario.op_id, **scenario.fields)
        job = await cluster.finished(asked)
        await mirrored.checked(cluster, job, told)
