# SPDX-License-Identifier: BSD-2-Clause
"""A guest has the ``cpu_type`` that is on record, or its start is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import WrongState
from moorage.model.processors import ProcessorModels
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

NEW = {"Nehalem": (), "Haswell": ()}
OLD = {"Nehalem": (), "Haswell": ("hle", "rtm")}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return a cluster whose second node has an older processor than the others."""
    cluster = await harbour(tmp_path / "nodes")
    for node in cluster.config.online():
        has(cluster, node.name, OLD if node.name == "node2" else NEW)
    yield cluster
    await cluster.stop()


def has(cluster: SimCluster, node: str, lacking: dict[str, tuple[str, ...]]) -> None:
    models = ProcessorModels(accelerator="kvm", lacking=lacking)
    cluster.nodes.nodes[node].hypervisor.models = models


async def modify(cluster: SimCluster, cpu_type: str) -> None:
    given = {"cpu_type": cpu_type}
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", hvparams=given)


async def anew(cluster: SimCluster) -> None:
    await cluster.run("OP_INSTANCE_REBOOT", instance_name="web1", reboot_type="full")


async def migrate(cluster: SimCluster, node: str, **more: Any) -> Any:
    fields = {"instance_name": "web1", "target_node": node, **more}
    return await cluster.run("OP_INSTANCE_MIGRATE", **fields)


async def test_a_guest_does_not_migrate_to_where_it_would_miss_features(
    cluster: SimCluster,
) -> None:
    await modify(cluster, "Haswell")
    await anew(cluster)
    with pytest.raises(WrongState) as caught:
        await migrate(cluster, "node2")
    assert caught.value.message == (
        "instance web1 cannot migrate to node node2: its processor lacks hle, rtm"
    )
    assert "gnt-group cpu-models default" in caught.value.hint
    await migrate(cluster, "node2", ignore_processor=True)
    await migrate(cluster, "node1")
    await migrate(cluster, "node3")


async def test_what_it_has_done_without_it_does_not_miss(cluster: SimCluster) -> None:
    await modify(cluster, "Haswell")
    await anew(cluster)
    has(cluster, "node1", OLD)
    await migrate(cluster, "node2")


async def test_what_a_guest_runs_with_counts_and_not_what_is_for_its_next_start(
    cluster: SimCluster,
) -> None:
    await modify(cluster, "Haswell")
    await migrate(cluster, "node2")


async def test_a_start_is_refused_where_the_node_lacks_features(
    cluster: SimCluster,
) -> None:
    await modify(cluster, "Haswell")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    has(cluster, "node1", OLD)
    with pytest.raises(WrongState) as caught:
        await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert caught.value.message == (
        "instance web1 cannot have cpu_type=Haswell on node node1: its processor "
        "lacks hle, rtm"
    )
    assert caught.value.hint == (
        "to do without: -H 'cpu_type=Haswell\\,hle=off\\,rtm=off'"
    )
    has(cluster, "node1", NEW)
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")


async def test_a_model_that_there_is_not_is_refused_where_it_is_asked_for(
    cluster: SimCluster,
) -> None:
    with pytest.raises(WrongState, match="unable to find CPU model 'Hasswell'"):
        await modify(cluster, "Hasswell")
    assert cluster.config.instance("web1").hvparams == {}


async def test_verify_tells_which_node_lacks_what(cluster: SimCluster) -> None:
    await modify(cluster, "Haswell")
    found = await cluster.run("OP_CLUSTER_VERIFY")
    (told,) = [one for one in found["warnings"] if "cpu_type" in one["message"]]
    assert told["object"] == "node node2"
    assert told["message"] == (
        "1 instance with cpu_type=Haswell of its group cannot start here: its "
        "processor lacks hle, rtm"
    )
    has(cluster, "node1", OLD)
    found = await cluster.run("OP_CLUSTER_VERIFY")
    (told,) = [one for one in found["errors"] if "cpu_type" in one["message"]]
    assert "instance web1 cannot start with cpu_type=Haswell" in told["message"]


async def test_what_all_nodes_of_a_group_have(cluster: SimCluster) -> None:
    told = await cluster.run("OP_GROUP_CPU_MODELS", group_name="default")
    assert told["models"] == {"Haswell": {"node2": "hle, rtm"}, "Nehalem": {}}
    assert told["accelerators"]["node1"] == "kvm"


async def test_a_new_one_goes_where_its_processors_are(cluster: SimCluster) -> None:
    """Nobody named a node; one that is named is refused with what it lacks."""
    for node in ("node1", "node3"):
        has(cluster, node, OLD)
    has(cluster, "node2", NEW)
    new = {
        "disks": [{"size": 64, "dev_type": "sharedfile"}],
        "hvparams": {"cpu_type": "Haswell"},
    }
    await cluster.run("OP_INSTANCE_CREATE", instance_name="new", **new)
    home = cluster.config.home(cluster.config.instance("new"))
    assert home.name == "node2"
    with pytest.raises(WrongState, match="cpu_type=Haswell on node node3: its proc"):
        await cluster.run(
            "OP_INSTANCE_CREATE", instance_name="other", pnode="node3", **new
        )


async def test_an_agent_of_an_earlier_version_is_not_in_the_way(
    cluster: SimCluster,
) -> None:
    for node in cluster.nodes.nodes.values():
        node.hypervisor.models = None
    await modify(cluster, "Haswell")
    await migrate(cluster, "node2")
    found = await cluster.run("OP_CLUSTER_VERIFY")
    assert "cpu_type" not in str(found)
