# SPDX-License-Identifier: BSD-2-Clause
"""Replies get lost, commands fail, nodes lose power: in the middle of every request."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import product
from operator import ge
from typing import Any

import pytest

from moorage.jobs import Job
from moorage.model import Change, Instance, Node, successor
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import SCENARIOS, STORED, Scenario
from moorage.testing.state_snapshot import Picture, picture, renumbered
from support.sampling import EVERY_OTHER, ONE_IN, one_in, sampled

each_request = pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[one.name.replace(" ", "-") for one in SCENARIOS]
)
HALF = "what was half made"
GROWS = ("OP_DISK_GROW", "OP_INSTANCE_GROW_DISK")
"""What they enlarged stays so: no volume shrinks, and the job says what corrects it."""
FORMER = "_replaced"
"""In the log of a job whose storage said no: nothing was removed unseen."""
PATIENCE = 400
"""Turns of the loop after which a job that has not ended waits for a node."""


@one_in(8)
async def test_a_lost_reply_changes_nothing_in_the_end(
    port: Any, scenario: Scenario, step: int
) -> None:
    told = await port.reference(scenario)
    for number in sampled(range(len(told.calls)), step, scenario.name):
        cluster = await port.fresh()
        cluster.nodes.lose_reply = {number}
        job = await cluster.finished(
            await cluster.submit(scenario.op_id, **scenario.fields)
        )
        await port.checked(cluster, job, told)


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


@one_in(10, EVERY_OTHER)
async def test_a_command_that_fails_once(
    port: Any, scenario: Scenario, step: int
) -> None:
    await _failing_everywhere(port, scenario, step, again=False)


@one_in(8)
@each_request
async def test_a_command_that_fails_from_then_on(
    quay: Any, scenario: Scenario, step: int
) -> None:
    await _failing_everywhere(quay, scenario, step, again=True)


@one_in(8)
@pytest.mark.parametrize("scenario", STORED, ids=[one.name for one in STORED])
async def test_storage_that_fails_from_then_on(
    stores: Any, scenario: Scenario, step: int
) -> None:
    await _failing_everywhere(stores, scenario, step, again=True)


async def _failing_everywhere(
    port: Any, scenario: Scenario, step: int, *, again: bool
) -> None:
    """Let one command in `step` of a request fail, one a trial."""
    told = await port.reference(scenario)
    commands = [(name, n) for name, ran in told.commands.items() for n in range(ran)]
    for name, number in sampled(commands, step, scenario.name):
        cluster = await port.fresh()
        machine = cluster.nodes.nodes[name].machine
        machine.refuse = _failing(name, number, again=again)
        job = await cluster.finished(
            await cluster.submit(scenario.op_id, **scenario.fields)
        )
        await _excused(port, cluster, job, told)


async def _excused(port: Any, cluster: SimCluster, job: Job, told: Any) -> None:
    """Fail unless it is as before or as after, or what is not so is seen and told."""
    seen = await picture(cluster)
    grown = told.scenario.op_id in GROWS and job.status == "error"
    half = any(HALF in line for line in _lines(job))
    if not (seen.quarantined - told.after.quarantined or grown or half):
        await port.checked(cluster, job, told)
        return
    check_visible(cluster, seen, told, half=half)
    if grown:
        _check_sizes(seen, told.before)
    forgiven = told.scenario.fields.get("ignore_failures", False)
    assert job.status == ("success" if forgiven else "error")
    await cluster.stop()


def _lines(job: Job) -> list[str]:
    return [str(entry[-1]) for op in job.ops for entry in op.log]


def check_visible(
    cluster: SimCluster, seen: Picture, told: Any, *, half: bool = False
) -> None:
    """Fail unless all that is left is known, and nothing was written to twice.

    What a certification made on a node that lost its power is known by its name, and so
    is the former copy of a mirrored disk: it is kept while the disk is quarantined.
    """
    left = _but_certified(seen.orphans)
    if seen.quarantined:
        left = {one for one in left if not one.endswith(FORMER)}
    assert half or left <= told.before.orphans | told.after.orphans
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
    known = {node.name: node for node in cluster.config.all(Node)}
    node = known.get(name)  # it may have been removed
    if node and node.offline != offline:
        new = successor(node, 1000.0, offline=offline)
        await cluster.config_store.commit(Change((new,)))


@one_in(24, ONE_IN)
async def test_a_node_that_loses_power(
    port: Any, scenario: Scenario, step: int
) -> None:
    told = await port.reference(scenario)
    cases = list(product(range(len(told.calls)), told.commands))
    for number, name in sampled(cases, step, scenario.name):
        cluster = await port.fresh()
        cluster.nodes.cut = {number: name}
        job = await cluster.submit(scenario.op_id, **scenario.fields)
        await _settled(cluster, job)
        await _marked(cluster, name, offline=True)
        ended = await cluster.finished(job)
        seen = await picture(cluster)
        if _but_certified(seen.orphans) != set(seen.orphans):
            undone = "Warning: undoing 'check "
            assert any(line.startswith(undone) for line in _lines(ended))
        half = _left_where(seen, name) and any(
            "Warning" in one for one in _lines(ended)
        )
        check_visible(cluster, seen, told, half=half)
        if not seen.quarantined - told.after.quarantined:
            side = told.after if ended.status == "success" else told.before
            if _recorded(seen, name) != _recorded(side, name):
                seen, side = renumbered(seen), renumbered(side)
            assert _recorded(seen, name) == _recorded(side, name)
            _check_sizes(seen, side, half=half)
        await _carried_on(cluster, name)
        check_visible(cluster, await picture(cluster), told, half=half)
        await cluster.stop()


def _left_where(seen: Picture, dead: str) -> bool:
    """Whether all that nobody knows of is on the node that was off."""
    left = (seen.volumes[name] for name in _but_certified(seen.orphans))
    return all(isinstance(one, dict) and one.keys() == {dead} for one in left)


def _recorded(seen: Picture, dead: str) -> dict[str, object]:
    """Return what a power loss cannot take, but for a copy that missed writes by it."""
    lags = ("behind", dead)
    return {
        uuid: {name: had for name, had in one.items() if (name, had) != lags}
        for uuid, one in seen.objects.items()
        if uuid != dead
    }


def _check_sizes(seen: Picture, side: Picture, *, half: bool = False) -> None:
    """Fail unless each volume is there, and at least as large as it is recorded.

    Whether a node grew one just before it died, nobody can tell; it does no harm.
    """
    forgiven = seen.orphans if half else set()
    assert _but_certified(seen.volumes) - forgiven == _but_certified(side.volumes)
    for name, size in side.volumes.items():
        assert all(map(ge, _sizes(seen.volumes[name]), _sizes(size)))


def _sizes(of: Any) -> list[int]:
    """Return the size of a volume, or of the copies that nodes have."""
    return [size for _, size in sorted(of.items())] if isinstance(of, dict) else [of]


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
