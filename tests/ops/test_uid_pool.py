# SPDX-License-Identifier: BSD-2-Clause
"""The user-ids that guests run as: changed as in Ganeti, and told to the nodes."""

from pathlib import Path

import pytest

from moorage.errors import BadInput, NotFound
from moorage.model import uidpool
from moorage.ops.asking.node_tasks import of_whole
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


async def modified(cluster: SimCluster, **given: list[list[int]]):
    await cluster.run("OP_CLUSTER_SET_PARAMS", **given)
    return cluster.config.cluster.uid_pool


async def test_a_new_cluster_has_users_for_its_guests(cluster) -> None:
    assert cluster.config.cluster.uid_pool == uidpool.STANDARD
    assert uidpool.checked(uidpool.STANDARD) == uidpool.STANDARD


async def test_ranges_are_set_added_and_removed(cluster) -> None:
    assert await modified(cluster, uid_pool=[[30000, 30099]]) == ((30000, 30099),)
    more = await modified(cluster, add_uids=[[20000, 20009], [30000, 30099]])
    assert more == ((20000, 20009), (30000, 30099))
    less = await modified(cluster, remove_uids=[[30000, 30099]])
    assert less == ((20000, 20009),)
    assert await modified(cluster, uid_pool=[]) == ()


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"uid_pool": [[0, 10]]}, BadInput, "0-10 is no range"),
        ({"uid_pool": [[10, 5]]}, BadInput, "10-5 is no range"),
        ({"add_uids": [[2_100_009_999, 2_100_010_005]]}, BadInput, "already"),
        ({"remove_uids": [[5, 6]]}, NotFound, "no range 5-6"),
        ({"uid_pool": [[1]]}, BadInput, "uid_pool"),
    ],
)
async def test_a_pool_that_cannot_be_is_refused(cluster, given, kind, words) -> None:
    before = cluster.config
    error = await cluster.refused("OP_CLUSTER_SET_PARAMS", **given)
    assert type(error) is kind
    assert words in error.message
    assert cluster.config is before


async def test_nodes_are_told_the_pool_with_each_guest(cluster) -> None:
    pool = await modified(cluster, uid_pool=[[30000, 30099]])
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web1",
        disk_template="diskless",
        pnode="node1",
        nics=[],
    )
    web1 = cluster.config.instance("web1")
    assert of_whole(cluster.config, web1)["uid_pool"] == pool
