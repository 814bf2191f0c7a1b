# SPDX-License-Identifier: BSD-2-Clause
"""Rows that are kept from plan to plan are those that would be made anew."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.jobs import Kept, View
from moorage.model import Claim, Node, NodeFacts, NodeGroup
from moorage.ops.planning import fleet
from moorage.ops.planning.placement import room_on
from moorage.protocol import silent
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import (
    MIRRORS,
    SCENARIOS,
    STORED,
    Scenario,
    cellar,
    harbour,
    pier,
)

Made = Callable[[Path], Awaitable[SimCluster]]


async def facts(cluster: SimCluster) -> dict[str, NodeFacts]:
    """Return what the nodes say, but for those that are off."""
    config, call, term = cluster.config, cluster.nodes.call, cluster.config_store.term
    return {
        node.uuid: await call(node, room_on(config, node).call, term, silent)
        for node in config.online()
        if cluster.nodes.nodes[node.name].powered
    }


def readings(
    cluster: SimCluster, said: dict[str, NodeFacts]
) -> list[tuple[View, fleet.Reading]]:
    """Return views of the cluster, with and without claims, and readings of groups."""
    config = cluster.config
    groups = [group.uuid for group in config.all(NodeGroup)]
    node = config.named(Node)[-1].uuid
    claims = Claim(node=node, instance="web1", memory=77), Claim(node=node)
    views = View(config), View(config, claims=claims)
    parts = [groups, *([one] for one in groups)]
    hows = [fleet.Reading(fleet.of_groups(config, part), said) for part in parts]
    # What if a node is silent, and the others lack what they offer?
    fewer = {
        uuid: NodeFacts(version=one.version, units=one.units[:1])
        for uuid, one in said.items()
        if uuid != node
    }
    hows += [fleet.Reading(how.nodes, fewer, any_size=True) for how in hows[:1]]
    return [(view, how) for view in views for how in hows]


def check(cluster: SimCluster, said: dict[str, NodeFacts], kept: Kept) -> None:
    for view, how in readings(cluster, said):
        anew = fleet.fleet(replace(view, kept=Kept()), how)
        for _ in range(2):
            assert fleet.fleet(replace(view, kept=kept), how) == anew


@pytest.mark.parametrize(
    ("made", "requests"),
    [(harbour, SCENARIOS), (pier, MIRRORS), (cellar, STORED)],
    ids=["harbour", "pier", "cellar"],
)
async def test_they_are_those_that_would_be_made_anew(
    tmp_path: Path, made: Made, requests: Sequence[Scenario]
) -> None:
    cluster, kept = await made(tmp_path), Kept()
    check(cluster, await facts(cluster), kept)
    done = 0
    order = random.Random(1)  # noqa: S311
    for one in order.sample(requests, len(requests)):
        job = await cluster.finished(await cluster.submit(one.op_id, **one.fields))
        done += job.status == "success"
        check(cluster, await facts(cluster), kept)
    assert done > len(requests) / 4
    await cluster.stop()


async def test_a_second_plan_makes_no_row_anew(tmp_path: Path) -> None:
    cluster, kept = await harbour(tmp_path), Kept()
    said = await facts(cluster)
    view, how = readings(cluster, said)[0]
    first, second = (
        fleet.fleet(replace(view, kept=kept), how).instances for _ in range(2)
    )
    assert [id(row) for row in first] == [id(row) for row in second]
    await cluster.run("OP_DISK_GROW", disk="root1", amount=8)
    third = fleet.fleet(View(cluster.config, kept=kept), how).instances
    assert [a is b for a, b in zip(first, third, strict=True)] == [False, True, True]
    await cluster.stop()


async def test_a_row_follows_what_else_it_depends_on(tmp_path: Path) -> None:
    """Back-end defaults, presets of a pool, a node's place, and who measures room."""
    cluster, kept = await harbour(tmp_path), Kept()
    pooled = {"size": 8, "pool": "nas"}
    await cluster.run(
        "OP_INSTANCE_SET_PARAMS", instance_name="web2", disks=[["add", pooled]]
    )
    said = await facts(cluster)
    nodes = tuple(cluster.config.named(Node))

    def rows(*read: Node, said: dict[str, NodeFacts] = said) -> dict[str, Any]:
        how = fleet.Reading(read or nodes, said)
        seen = fleet.fleet(View(cluster.config, kept=kept), how)
        assert seen == fleet.fleet(View(cluster.config), how)
        return {row.name: row for row in seen.instances}

    assert rows()["web2"].mem != 77
    await cluster.run("OP_CLUSTER_SET_PARAMS", beparams={"maxmem": 77, "minmem": 77})
    assert rows()["web2"].mem == 77
    assert rows(*nodes[:2])["web2"].primary == 1
    assert rows(*nodes[1:])["web2"].primary == 0
    measured = dict(said)
    for uuid, one in said.items():
        units = [structs.replace(u, free=64, total=64) for u in one.units]
        measured[uuid] = structs.replace(one, units=tuple(units))
    assert rows()["web2"].disks[0].unit is None
    assert rows(said=measured)["web2"].disks[0].unit == ("ext", "san")
    change = {"pool_name": "nas", "params": {"tier": "x"}, "force_params": True}
    await cluster.run("OP_STORAGE_POOL_SET_PARAMS", **change)
    assert rows(said=measured)["web2"].disks[0].unit is None  # its room is another now
    await cluster.stop()
