# SPDX-License-Identifier: BSD-2-Clause
"""A guest gives memory back while it runs, and gets it again."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.query import Sources, query
from moorage.cli.gnt_instance.info import instance as info
from moorage.errors import BadInput, Failed, WrongState
from moorage.model import GuestState
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster where web1 runs with 512 MiB, and may have 256."""
    cluster = await harbour(tmp_path / "nodes")
    given = {"minmem": 256, "maxmem": 512}
    await modify(cluster, beparams=given)
    await cluster.run("OP_INSTANCE_REBOOT", instance_name="web1", reboot_type="full")
    yield cluster
    await cluster.stop()


async def modify(cluster: SimCluster, **fields: Any) -> Any:
    return await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", **fields)


async def shown(cluster: SimCluster) -> Any:
    sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    fields = ["oper_ram", "be/memory", "be/minmem"]
    answer = await query("instance", fields, ["==", "name", "web1"], sources)
    return [value for _, value in answer["data"][0]]


async def test_it_has_what_was_asked_for_until_it_starts_anew(
    cluster: SimCluster,
) -> None:
    """The list shows what it has; plans go on counting what it may have."""
    assert await modify(cluster, runtime_mem=300) == [["runtime_memory", 300]]
    assert await shown(cluster) == [300, 512, 256]
    (told,) = (await cluster.run("OP_INSTANCE_QUERY_DATA", instances=["web1"])).values()
    assert info(told)["Memory now"] == "300 of 512 MiB"
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2")
    assert (await shown(cluster))[0] == 300
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert await shown(cluster) == [512, 512, 256]


@pytest.mark.parametrize("wanted", [255, 513])
async def test_less_than_its_least_or_more_than_its_most_is_refused(
    cluster: SimCluster, wanted: int
) -> None:
    with pytest.raises(BadInput, match="can have 256 to 512 MiB while it runs"):
        await modify(cluster, runtime_mem=wanted)
    assert (await shown(cluster))[0] == 512


async def test_who_insists_gets_less_and_never_more(cluster: SimCluster) -> None:
    await modify(cluster, runtime_mem=100, force=True)
    assert (await shown(cluster))[0] == 100
    await modify(cluster, beparams={"maxmem": 1024})
    with pytest.raises(BadInput, match="can have 1 to 512 MiB"):
        await modify(cluster, runtime_mem=600, force=True)


async def test_one_that_does_not_run_is_told_so(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    with pytest.raises(WrongState, match="web1 is not running: it has the memory on"):
        await modify(cluster, runtime_mem=300)


async def test_one_without_a_balloon_is_told_so(cluster: SimCluster) -> None:
    await modify(cluster, hvparams={"balloon": False})
    await cluster.run("OP_INSTANCE_REBOOT", instance_name="web1", reboot_type="full")
    with pytest.raises(WrongState, match="web1 has no balloon: its memory stays"):
        await modify(cluster, runtime_mem=300)


async def test_a_guest_that_gives_nothing_back_fails_the_job_and_nothing_is_recorded(
    cluster: SimCluster,
) -> None:
    cluster.nodes.nodes["node1"].hypervisor.keeps_memory = True
    with pytest.raises(Failed, match="web1 has 512 MiB, and not 300"):
        await modify(cluster, runtime_mem=300, beparams={"vcpus": 2})
    assert cluster.config.instance("web1").beparams["maxmem"] == 512
    assert "vcpus" not in cluster.config.instance("web1").beparams


async def test_its_node_must_have_free_what_it_gets_again(cluster: SimCluster) -> None:
    await modify(cluster, runtime_mem=300)
    uuid = cluster.config.instance("web1").uuid
    found = await cluster.nodes.nodes["node1"].hypervisor.find(uuid)
    assert isinstance(found, GuestState)
    assert (found.memory, found.now, found.holds) == (512, 300, 300)
    await modify(cluster, runtime_mem=512)
    assert (await shown(cluster))[0] == 512
