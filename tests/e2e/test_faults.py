# SPDX-License-Identifier: BSD-2-Clause
"""Replies get lost, commands fail, nodes lose power: in the middle of every request."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from moorage.model import Change, Instance, successor
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import SCENARIOS, Scenario
from moorage.testing.state_snapshot import Picture, picture

each_request = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[one.name.replace(" ", "-") for one in SCENARIOS]
)
PATIENCE = 400
"""Turns of the loop after which a job that has not ended waits for a node."""


@each_request
async def test_a_lost_reply_changes_nothing_in_the_end(
    quay: Any, scenario: Scenario
) -> None:
    told = await quay.reference(scenario)
    for number in range(len(told.calls)):
        cluster = await quay.fresh()
        cluster.nodes.lose_reply = {number}
        job = await cluster.finished(
            await cluster.submit(scenario.op_id, **scenario.fields)
        )
        await quay.checked(cluster, job, told)


def _failing(nodes: str, at: int, *, again: bool) -> Callable[[str, Command], bool]:
    """Return a machine's rule: one command fails; if `again`, all like it do."""
    left, script = at, ""

    def refuse(node: str, command: Command) -> bool:
        nonlocal left, script
        if node != nodes:
            return False
        left -= 1
        if left == -1:
            script = command.argv[0]
        return left == -1 or (again and command.argv[0] == script)

    return refuse


@pytest.mark.parametrize("again", [False, True], ids=["once", "from-then-on"])
@each_request
async def test_a_command_that_fails(quay: Any, scenario: Scenario, again: bool) -> None:
    told = await quay.reference(scenario)
    for name, commands in told.commands.items():
        for number in range(commands):
            cluster = await quay.fresh()
            machine = cluster.nodes.nodes[name].machine
            machine.refuse = _failing(name, number, again=again)
            job = await cluster.finished(
                await cluster.submit(scenario.op_id, **scenario.fields)
            )
            seen = await picture(cluster)
            if seen.quarantined - told.after.quarantined:
                check_visible(cluster, seen, told)
                forgiven = scenario.fields.get("ignore_failures", False)
                assert job.status == ("success" if forgiven else "error")
                await cluster.stop()
            else:
                await quay.checked(cluster, job, told)


def check_visible(cluster: SimCluster, seen: Picture, told: Any) -> None:
    """Fail unless all that is left is known, and nothing was written to twice.

    What a certification made on a node that lost its power is known by its name.
    """
    left = _but_certified(seen.orphans)
    assert left <= told.before.orphans | told.after.orphans
    assert cluster.nodes.san.broken == []
    assert cluster.engine.locks.rows() == []


async def _settled(cluster: SimCluster, number: int) -> bool:
    """Wait for a job; False if it waits for a node."""
    for _ in range(PATIENCE):
        if cluster.engine.job(number).finished:
            return True
        await asyncio.sleep(0)
    return False


async def _marked(cluster: SimCluster, name: str, *, offline: bool) -> None:
    node = cluster.config.node(name)
    if node.offline != offline:
        new = successor(node, 1000.0, offline=offline)
        await cluster.truth.commit(Change((new,)))


@pytest.mark.parametrize(
    "step",
    [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)],
)
@each_request
async def test_a_node_that_loses_power(
    quay: Any, scenario: Scenario, step: int
) -> None:
    told = await quay.reference(scenario)
    cases = list(product(range(len(told.calls)), told.commands))
    for number, name in cases[::step]:
        cluster = await quay.fresh()
        cluster.nodes.cut = {number: name}
        job = await cluster.submit(scenario.op_id, **scenario.fields)
        await _settled(cluster, job)
        await _marked(cluster, name, offline=True)
        ended = await cluster.finished(job)
        seen = await picture(cluster)
        if _but_certified(seen.orphans) != set(seen.orphans):
            log = [str(entry[-1]) for op in ended.ops for entry in op.log]
            assert any(line.startswith("Warning: undoing 'check ") for line in log)
        check_visible(cluster, seen, told)
        if not seen.quarantined - told.after.quarantined:
            side = told.after if ended.status == "success" else told.before
            assert _recorded(seen, name) == _recorded(side, name)
            _check_sizes(seen, side)
        await _carried_on(cluster, name)
        check_visible(cluster, await picture(cluster), told)
        await cluster.stop()


def _recorded(seen: Picture, dead: str) -> dict[str, object]:
    """Return what a power loss cannot take."""
    return {uuid: one for uuid, one in seen.objects.items() if uuid != dead}


def _check_sizes(seen: Picture, side: Picture) -> None:
    """Fail unless each volume is there, and at least as large as it is recorded.

    Whether a node grew one just before it died, nobody can tell; it does no harm.
    """
    assert _but_certified(seen.volumes) == _but_certified(side.volumes)
    assert all(seen.volumes[name] >= size for name, size in side.volumes.items())


def _but_certified(volumes: Iterable[str]) -> set[str]:
    return {name for name in volumes if not name.startswith("certify-")}


async def _carried_on(cluster: SimCluster, name: str) -> None:
    """Do what people do then: instances move, the node comes back, guests start."""
    others = [node for node in cluster.nodes.nodes if node != name]
    for instance in cluster.config.named(Instance):
        if instance.primary_node == name:
            for target in reversed(others):
                fields = {"instance_name": instance.name, "target_node": target}
                await cluster.finished(
                    await cluster.submit("OP_INSTANCE_FAILOVER", **fields)
                )
    cluster.nodes.nodes[name].boot()
    await _marked(cluster, name, offline=False)
    for instance in cluster.config.named(Instance):
        fields = {"instance_name": instance.name}
        await cluster.finished(await cluster.submit("OP_INSTANCE_STARTUP", **fields))
