"""``replace-disks``: one of the two copies of mirrored disks is made anew."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.model import pair_of
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=4))
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 64, "name": "a"}, {"size": 64, "name": "b"}],
        pnode="node2",
        snode="node3",
    )
    for minor in (0, 1):
        cluster.nodes.san.drbd.write("node2", minor, f"letter{minor}")
    yield cluster
    await cluster.stop()


async def replace(cluster: SimCluster, mode: str, **more: Any) -> None:
    await cluster.run(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", mode=mode, **more
    )


def written(cluster: SimCluster) -> dict[str, list[str]]:
    """Return what is on the data volumes of each node."""
    found: dict[str, list[str]] = {}
    for key, one in sorted(cluster.nodes.san.logical.items()):
        if key.endswith("_data"):
            found.setdefault(key.split(" ")[0], []).append(one["data"])
    return {node: sorted(words) for node, words in found.items()}


LETTERS = ["letter0", "letter1"]


@pytest.mark.parametrize("running", [True, False], ids=["running", "down"])
async def test_a_new_secondary_node(cluster: SimCluster, running: bool) -> None:
    if not running:
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await replace(cluster, "replace_new_secondary", remote_node="node4")
    assert written(cluster) == {"node2": LETTERS, "node4": LETTERS}
    found = [pair_of(cluster.config.disk(name)) for name in ("a", "b")]
    assert [pair.nodes for pair in found if pair] == [("node2", "node4")] * 2
    assert len(cluster.nodes.san.logical) == 8
    keys = sorted(cluster.nodes.san.mirrors)
    assert keys == (["node2 0", "node2 1", "node4 0", "node4 1"] if running else [])
    if not running:
        await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert cluster.config.instance("web").primary_node == "node4"


@pytest.mark.parametrize("running", [True, False], ids=["running", "down"])
@pytest.mark.parametrize(
    ("mode", "node"),
    [("replace_on_primary", "node2"), ("replace_on_secondary", "node3")],
)
async def test_new_volumes_on_a_node(
    cluster: SimCluster, mode: str, node: str, running: bool
) -> None:
    if not running:
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    before = len(cluster.nodes.nodes[node].machine.ran)
    await replace(cluster, mode)
    assert written(cluster) == {"node2": LETTERS, "node3": LETTERS}
    assert len(cluster.nodes.san.logical) == 8
    ran = cluster.nodes.nodes[node].machine.ran[before:]
    assert sum(command.argv[0] == "lvcreate" for command in ran) == 4
    assert bool(cluster.nodes.san.mirrors) is running


async def test_the_bad_copy_is_found(cluster: SimCluster) -> None:
    good = await cluster.refused(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", mode="replace_auto"
    )
    assert "the copies of all disks of instance web are good" in good.message
    cluster.nodes.san.mirrors["node3 1"] |= {"data": "", "meta": ""}
    await replace(cluster, "replace_auto")
    assert written(cluster) == {"node2": LETTERS, "node3": LETTERS}
    assert all(one["data"] for one in cluster.nodes.san.mirrors.values())


async def test_the_planner_chooses_a_secondary_node(cluster: SimCluster) -> None:
    await replace(cluster, "replace_new_secondary", iallocator="hail")
    pair = pair_of(cluster.config.disk("a"))
    assert pair
    assert pair.nodes[0] == "node2"
    assert pair.nodes[1] in ("node1", "node4")


async def test_a_secondary_node_that_died_is_replaced(cluster: SimCluster) -> None:
    cluster.nodes.nodes["node3"].lose_power()
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    await replace(cluster, "replace_new_secondary", remote_node="node4")
    assert written(cluster)["node4"] == LETTERS


async def test_second_copies_leave_a_node(cluster: SimCluster) -> None:
    job = await cluster.finished(
        await cluster.submit(
            "OP_NODE_EVACUATE", node_name="node3", mode="secondary-only"
        )
    )
    assert job.status == "success"
    for number in range(job.id + 1, job.id + 2):
        assert (await cluster.finished(number)).status == "success"
    assert "node3" not in written(cluster)
    assert cluster.config.instance("web").primary_node == "node2"


@pytest.mark.requirement("S3-28")
async def test_evacuation_names_the_mirrored_disks_beside_others(
    cluster: SimCluster,
) -> None:
    new = {"size": 64, "dev_type": "ext", "provider": "san", "name": "c"}
    change = {"instance_name": "web", "disks": [["add", "0", new]]}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
    before = cluster.config.disk("c")
    job = await cluster.finished(
        await cluster.submit(
            "OP_NODE_EVACUATE", node_name="node3", mode="secondary-only"
        )
    )
    follower = await cluster.finished(job.id + 1)
    assert (job.status, follower.status) == ("success", "success")
    assert follower.ops[0].input["disks"] == [1, 2]
    assert "node3" not in written(cluster)
    assert cluster.config.disk("c") == before


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"remote_node": "node2"}, "keeps a copy of instance web's disks already"),
        ({}, "a new secondary node is named, or chosen by the allocator"),
        ({"remote_node": "node4", "disks": [0]}, "the copies of all mirrored disks"),
    ],
)
async def test_what_makes_no_sense(
    cluster: SimCluster, fields: dict[str, Any], told: str
) -> None:
    refused = await cluster.refused(
        "OP_INSTANCE_REPLACE_DISKS",
        instance_name="web",
        mode="replace_new_secondary",
        **fields,
    )
    assert told in refused.message


async def test_second_copies_come_and_go_where_the_data_is(
    cluster: SimCluster,
) -> None:
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="one",
        disk_template="plain",
        disks=[{"size": 64, "name": "c"}],
        pnode="node1",
        start=False,
    )
    san, name = cluster.nodes.san, cluster.config.disk("c").volume
    san.logical[f"node1 xenvg/{name}"] |= {"data": "kept"}
    await cluster.run(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="one",
        disk_template="drbd",
        remote_node="node4",
    )
    disk = cluster.config.disk("c")
    assert (disk.dev_type, disk.nodes) == ("drbd", ("node1", "node4"))
    assert san.logical[f"node4 xenvg/{name}"]["data"] == "kept"
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="one")
    busy = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", instance_name="one", disk_template="plain"
    )
    assert "while it is down" in busy.message
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="one")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="one")
    await cluster.run(
        "OP_INSTANCE_SET_PARAMS", instance_name="one", disk_template="plain"
    )
    disk = cluster.config.disk("c")
    assert (disk.dev_type, disk.nodes, disk.children) == ("plain", ("node4",), ())
    left = [key for key in san.logical if name in key]
    assert left == [f"node4 xenvg/{name}"]
    assert san.logical[left[0]]["data"] == "kept"
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="one")


@pytest.mark.requirement("S3-28", "S3-36", "S3-37")
async def test_of_mixed_disks_the_mirrored_ones_must_be_named(
    cluster: SimCluster,
) -> None:
    """A disk that has no second copy is refused; the others are told by their slots."""
    new = {"size": 64, "dev_type": "ext", "provider": "san", "name": "c"}
    change = {"instance_name": "web", "disks": [["add", "-1", new]]}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
    shared, before = cluster.config.disk("c"), cluster.config
    for slot in ("c", 2):
        error = await cluster.refused(
            "OP_INSTANCE_REPLACE_DISKS",
            instance_name="web",
            mode="replace_on_secondary",
            disks=["a", slot],
        )
        assert "disk c " in error.message
    new = {"mode": "replace_new_secondary", "remote_node": "node4"}
    for mode in ({"mode": "replace_on_secondary"}, {"mode": "replace_auto"}, new):
        error = await cluster.refused(
            "OP_INSTANCE_REPLACE_DISKS", instance_name="web", **mode
        )
        assert "disk c of instance web is not mirrored" in error.message
        assert "--disks=0,1" in str(error.hint)
    error = await cluster.refused(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", disks=["a"], **new
    )
    assert "all mirrored disks" in error.message
    assert cluster.config is before
    await replace(
        cluster, "replace_new_secondary", remote_node="node4", disks=["0", "1"]
    )
    assert written(cluster) == {"node2": LETTERS, "node4": LETTERS}
    assert cluster.config.disk("c") == shared
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert cluster.nodes.san.attached.keys() == {f"node4 {shared.volume}"}


ANEW = [
    ("replace_on_secondary", {}, "node3", "remove the old copy of disk"),
    ("replace_new_secondary", {"remote_node": "node4"}, "node4", "remove the old copy"),
]


@pytest.mark.parametrize(("mode", "more", "to", "end"), ANEW, ids=["anew", "moved"])
async def test_the_old_copy_stays_until_the_new_one_is_complete(
    cluster: SimCluster, mode: str, more: dict[str, Any], to: str, end: str
) -> None:
    """Who does not wait removes the only other copy in the middle of the sync."""
    san, seen = cluster.nodes.san, list[float]()
    san.slow_sync = 4

    async def look(name: str) -> None:
        if name.startswith(f"before {end}"):
            seen.extend(one["left"] for one in san.mirrors.values())

    cluster.extra_point = look
    await replace(cluster, mode, **more)
    assert seen
    assert set(seen) == {0}
    assert written(cluster) == {"node2": LETTERS, to: LETTERS}


@pytest.mark.parametrize(("mode", "more", "to", "end"), ANEW, ids=["anew", "moved"])
async def test_a_sync_that_breaks_puts_the_old_copy_back(
    cluster: SimCluster, mode: str, more: dict[str, Any], to: str, end: str
) -> None:
    """The line is cut while the job waits: it fails, and both old copies are good."""
    del end
    san = cluster.nodes.san
    san.slow_sync = 4

    async def cut(name: str) -> None:
        if san.slow_sync and name.startswith("before wait until both copies of disk a"):
            first = min(key for key in san.mirrors if key.startswith(to))
            san.mirrors[first] |= {"mine": "", "other": "", "left": 0}

    cluster.extra_point = cut
    fields = {"instance_name": "web", "mode": mode} | more
    error = await cluster.refused("OP_INSTANCE_REPLACE_DISKS", **fields)
    assert "the copies of disk a do not become the same" in error.message
    san.slow_sync = 0
    await cluster.run(
        "OP_INSTANCE_ACTIVATE_DISKS", instance_name="web", wait_for_sync=True
    )
    assert written(cluster) == {"node2": LETTERS, "node3": LETTERS}
    assert len(san.logical) == 8
    assert not any("_replaced" in key for key in san.logical)
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")


@pytest.mark.parametrize("mode", ["replace_on_primary", "replace_on_secondary"])
async def test_no_copy_is_dropped_that_a_guest_elsewhere_may_use(
    cluster: SimCluster, mode: str
) -> None:
    """A state that was restored, and is older, may say that it is down here."""
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    uuid = cluster.config.instance("web").uuid
    stray = {"uuid": uuid, "name": "web", "state": "running", "memory": 128, "vcpus": 1}
    cluster.nodes.san.guests[f"node3 {uuid}"] = {"state": stray | {"disks": []}}
    error = await cluster.refused(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", mode=mode
    )
    assert "runs on node node3" in error.message
    assert written(cluster) == {"node2": LETTERS, "node3": LETTERS}
