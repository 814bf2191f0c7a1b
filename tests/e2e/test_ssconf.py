# SPDX-License-Identifier: BSD-2-Clause
"""Nodes have ssconf files while the cluster is told so, and what is in them is so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from moorage.api.query import Sources
from moorage.daemons import ssconf_files
from moorage.errors import Forbidden, WrongState
from moorage.model.caller import Caller, Role
from moorage.node.records.ssconf import SsconfFiles
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def sim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SimCluster]:
    monkeypatch.setattr(ssconf_files, "_CALM", 0.0)
    monkeypatch.setattr(ssconf_files, "_AGAIN", 0.05)
    cluster = await SimCluster.start(
        tmp_path / "sim", ClusterBuilder().instance("web1")
    )
    for name, node in cluster.nodes.nodes.items():
        node.machine.ssconf = SsconfFiles(tmp_path / name)
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "ssconf_master_node").write_text("of Ganeti\n")
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    keeping = asyncio.create_task(ssconf_files.keep(at))
    yield cluster
    keeping.cancel()
    await cluster.stop()


async def test_it_is_roots_to_say(sim: SimCluster) -> None:
    ann = Caller("ann", "rapi", role=Role.WRITE)
    opcode = {"OP_ID": "OP_CLUSTER_SET_PARAMS", "ssconf": True}
    with pytest.raises(Forbidden, match="root works in that directory"):
        await sim.engine.submit([opcode], ann)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not so():  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)


def text(path: Path, node: str, name: str) -> str:
    file = path / node / f"ssconf_{name}"
    return file.read_text() if file.exists() else "nothing"


async def test_nodes_have_them_for_as_long_as_the_cluster_is_told_so(
    sim: SimCluster, tmp_path: Path
) -> None:
    names = [*sim.nodes.nodes]
    await sim.run("OP_CLUSTER_SET_PARAMS", ssconf=True)
    for name in names:
        await until(lambda: text(tmp_path, name, "master_node") == "node1\n")  # noqa: B023
        await until(lambda: text(tmp_path, name, "instance_list") == "web1\n")  # noqa: B023
    await sim.run("OP_INSTANCE_RENAME", instance_name="web1", new_name="web2")
    for name in names:
        await until(lambda: text(tmp_path, name, "instance_list") == "web2\n")  # noqa: B023
    written = len([one for one in sim.nodes.calls if one[1] == "ssconf.write"])
    await sim.run("OP_INSTANCE_SET_PARAMS", instance_name="web2", beparams={"vcpus": 2})
    await asyncio.sleep(0.2)
    assert len([1 for one in sim.nodes.calls if one[1] == "ssconf.write"]) == written
    sim.nodes.nodes["node2"].lose_power()
    await sim.run("OP_CLUSTER_SET_PARAMS", ssconf=False)
    await until(lambda: text(tmp_path, "node3", "master_node") == "of Ganeti\n")
    assert text(tmp_path, "node2", "master_node") == "node1\n"
    sim.nodes.nodes["node2"].boot()
    await until(lambda: text(tmp_path, "node2", "master_node") == "of Ganeti\n")
    assert text(tmp_path, "node2", "instance_list") == "nothing"


async def test_a_node_that_leaves_has_ganetis_again(
    sim: SimCluster, tmp_path: Path
) -> None:
    await sim.run("OP_CLUSTER_SET_PARAMS", ssconf=True)
    await until(lambda: text(tmp_path, "node3", "master_node") == "node1\n")
    await sim.run("OP_NODE_SET_PARAMS", node_name="node3", master_candidate=False)
    await asyncio.sleep(0.2)  # what changed by that is written
    await sim.run("OP_NODE_REMOVE", node_name="node3")
    assert text(tmp_path, "node3", "master_node") == "of Ganeti\n"


async def test_verify_names_a_node_whose_files_are_not_written_any_more(
    sim: SimCluster, tmp_path: Path
) -> None:
    await sim.run("OP_CLUSTER_SET_PARAMS", ssconf=True)
    await until(lambda: text(tmp_path, "node2", "master_node") == "node1\n")

    async def told() -> list[str]:
        found = (await sim.run("OP_CLUSTER_VERIFY"))["errors"]
        return [one["object"] for one in found if "ssconf files" in one["message"]]

    assert await told() == []
    (tmp_path / "node2").chmod(0o777)
    assert await told() == ["node node2"]


async def test_a_node_where_others_could_write_is_named_before(
    sim: SimCluster, tmp_path: Path
) -> None:
    (tmp_path / "node2").chmod(0o777)
    with pytest.raises(WrongState, match="node node2 cannot have ssconf files: root"):
        await sim.run("OP_CLUSTER_SET_PARAMS", ssconf=True)
    assert text(tmp_path, "node1", "master_node") == "of Ganeti\n"
    assert not sim.config.cluster.ssconf
