# SPDX-License-Identifier: BSD-2-Clause
"""A disk's name means one disk, and neither a slot nor a uuid."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import Ambiguous, BadInput, Conflict, Exists, NotFound
from moorage.model import Change, Disk, apply, load, successor
from moorage.ops.instance.base import find_disk
from moorage.testing.cluster import ClusterBuilder, SimCluster

UUID = "4f2c1b7e-0000-4000-8000-000000000001"
NEW = {"disk_template": "ext", "provider": "san", "size": 64}
MODIFY = "OP_INSTANCE_SET_PARAMS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder().disk("aa").disk("bb", uuid=UUID).disk("cc")
    builder.instance("web", disks=("cc",))
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    yield cluster
    await cluster.stop()


def ways(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every request that gives a disk a name."""
    add = ["add", "-1", {"size": 64, "name": name, "provider": "san"}]
    new = {"size": 64, "name": name, "provider": "san"}
    return [
        ("OP_DISK_ADD", NEW | {"name": name}),
        ("OP_DISK_RENAME", {"disk": "cc", "new_name": name}),
        ("OP_DISK_SET_PARAMS", {"disk": "cc", "name": name}),
        ("OP_DISK_SNAPSHOT", {"disk": "cc", "new_name": name}),
        (MODIFY, {"instance_name": "web", "disks": [add]}),
        (MODIFY, {"instance_name": "web", "disks": [["modify", 0, {"name": name}]]}),
        (
            "OP_INSTANCE_CREATE",
            {"instance_name": "n", "disk_template": "ext", "disks": [new]},
        ),
    ]


@pytest.mark.requirement("S3-46")
@pytest.mark.parametrize("way", range(len(ways(""))))
async def test_a_name_that_is_taken_is_refused(cluster: SimCluster, way: int) -> None:
    before = cluster.config
    op_id, fields = ways("aa")[way]
    error = await cluster.refused(op_id, **fields)
    assert isinstance(error, Exists)
    assert str(error) == "a disk named 'aa' exists already"
    assert cluster.config is before


@pytest.mark.requirement("S3-46")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("0", "numbers are slots"),
        ("17", "numbers are slots"),
        (UUID, "looks like a uuid"),
        (UUID.upper(), "looks like a uuid"),
        ("f" * 32, "looks like a uuid"),
        ("remove", "the word has a meaning"),
        ("x" * 65, "at most 64 characters, not 65"),
        ("a b", "is not a valid name of a disk"),
        ("a,b", "is not a valid name of a disk"),
    ],
)
async def test_a_name_that_means_something_else_is_refused(
    cluster: SimCluster, name: str, sentence: str
) -> None:
    for op_id, fields in ways(name):
        error = await cluster.refused(op_id, **fields)
        assert isinstance(error, BadInput)
        assert sentence in str(error)


async def test_a_name_may_be_given_again_to_its_own_disk(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_RENAME", disk="aa", new_name="aa")
    await cluster.run("OP_DISK_RENAME", disk="aa", new_name="dd")
    await cluster.run("OP_DISK_RENAME", disk="aa", new_name="ee")
    await cluster.run("OP_DISK_RENAME", disk="bb", new_name="dd")
    assert cluster.config.disk("dd").uuid == UUID


@pytest.mark.requirement("S3-46")
async def test_of_disks_added_at_once_under_one_name_one_is_made(
    cluster: SimCluster,
) -> None:
    requests = [(op, fields) for op, fields in ways("twin") if op != "OP_DISK_RENAME"]
    numbers = [await cluster.submit(op_id, **fields) for op_id, fields in requests]
    jobs = [await cluster.finished(number) for number in numbers]
    assert [job.status for job in jobs].count("success") == 1
    assert len(cluster.config.called(Disk, "twin")) == 1


async def test_two_changes_of_one_request_cannot_share_a_name(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_ATTACH", disk="aa", instance_name="web")
    both = [["modify", 0, {"name": "same"}], ["modify", 1, {"name": "same"}]]
    error = await cluster.refused(MODIFY, instance_name="web", disks=both)
    assert str(error) == "two disks of instance web would be named 'same'"


@pytest.mark.requirement("S3-46", "S3-39")
@pytest.mark.parametrize(
    "words", [{"uuid": "bb"}, {"name": UUID}, {"name": "nobody"}, {"uuid": "nobody"}]
)
async def test_name_and_uuid_mean_what_they_say(
    cluster: SimCluster, words: dict[str, str]
) -> None:
    ((word, value),) = words.items()
    attach = [["attach", -1, words]]
    error = await cluster.refused(MODIFY, instance_name="web", disks=attach)
    assert isinstance(error, NotFound)
    assert str(error) == f"no disk has the {word} '{value}'"
    await cluster.run(
        MODIFY, instance_name="web", disks=[["attach", -1, {"uuid": UUID}]]
    )


async def test_no_commit_can_give_a_name_twice(cluster: SimCluster) -> None:
    twin = successor(cluster.config.disk("bb"), 1.0, name="aa")
    with pytest.raises(Conflict, match="the name 'aa' is taken"):
        apply(cluster.config, Change((twin,)))


@pytest.mark.requirement("S3-46")
async def test_names_that_an_old_configuration_shares_are_told(
    cluster: SimCluster,
) -> None:
    """What stands in the store is read; verify names it, and the uuid still works."""
    objects = [*cluster.config.objects.values()]
    twins = [
        Disk(uuid=uuid, name=name, dev_type="ext", logical_id=("san", uuid), size=64)
        for uuid, name in (("t1", "twin"), ("t2", "twin"), ("t3", "7"))
    ]
    cluster.config_store.config = load(7, [*objects, *twins])
    told = await cluster.run("OP_CLUSTER_VERIFY")
    found = {one["object"]: one["message"] for one in told["warnings"]}
    assert found["disk t1"] == found["disk t2"] == "another disk is named 'twin' too"
    assert "numbers are slots" in found["disk t3"]
    error = await cluster.refused("OP_DISK_ATTACH", disk="twin", instance_name="web")
    assert isinstance(error, Ambiguous)
    attach = [["attach", -1, {"name": "twin"}]]
    error = await cluster.refused(MODIFY, instance_name="web", disks=attach)
    assert isinstance(error, Ambiguous)
    await cluster.run("OP_DISK_RENAME", disk="t1", new_name="single")
    assert cluster.config.disk("twin").uuid == "t2"


@pytest.mark.requirement("S3-46")
async def test_a_shared_name_with_its_instance_means_one_disk(
    cluster: SimCluster,
) -> None:
    """A configuration that comes in may have a disk of one name in each instance."""
    objects = [
        replace(one, name="root") if isinstance(one, Disk) else one
        for one in cluster.config.objects.values()
    ]
    cluster.config_store.config = load(7, objects)
    free, mine = UUID, cluster.config.disk("web/root").uuid
    for op_id in ("OP_DISK_GROW", "OP_DISK_RENAME"):
        words = {"amount": 64} if op_id == "OP_DISK_GROW" else {"new_name": "other"}
        error = await cluster.refused(op_id, disk="root", **words)
        assert isinstance(error, Ambiguous)
        assert "web/root" in error.hint
        assert free in error.hint
    await cluster.run("OP_DISK_RENAME", disk="web/root", new_name="data")
    assert cluster.config.disk("web/data").uuid == mine
    assert cluster.config.disk(free).name == "root"
    await cluster.run("OP_DISK_DETACH", disk="web/data")
    error = await cluster.refused("OP_DISK_REMOVE", disk="web/data")
    assert isinstance(error, NotFound)
    assert cluster.config.disk("data").uuid == mine


@pytest.mark.requirement("S3-46")
def test_a_name_that_two_disks_of_an_instance_have_means_neither() -> None:
    """No command makes them; a configuration that came from elsewhere may have them."""
    built = ClusterBuilder().disk("p").disk("q").instance("web", "node1", ("p", "q"))
    known = built.change().put
    config = load(
        1, [replace(e, name="x") if isinstance(e, Disk) else e for e in known]
    )
    web = config.instance("web")
    with pytest.raises(BadInput, match="several disks named 'x'"):
        find_disk(config, web, "x")
    assert find_disk(config, web, "1").uuid == find_disk(config, web, "q").uuid == "q"


async def test_a_snapshots_volume_has_the_name_that_is_given(cluster):
    await cluster.run("OP_DISK_ADD", **NEW, name="src")
    snapshot = {"disk": "src", "volume": "snap-7"}
    await cluster.run("OP_DISK_SNAPSHOT", **snapshot, new_name="copy")
    copy = cluster.config.disk("copy")
    assert (copy.volume, copy.known_as) == ("snap-7", "snap-7")
    assert "snap-7" in cluster.nodes.san.volumes
    error = await cluster.refused("OP_DISK_SNAPSHOT", **snapshot)
    assert str(error) == "there is a volume 'snap-7' already"
    error = await cluster.refused("OP_DISK_SNAPSHOT", disk="src", volume="a/b")
    assert str(error) == "'a/b' is not a valid name of a volume"
    local = {"disk_template": "plain", "size": 64, "node": "node1"}
    await cluster.run("OP_DISK_ADD", **local, name="lv")
    error = await cluster.refused("OP_DISK_SNAPSHOT", disk="lv", volume="snap-9")
    assert "volumes of template 'plain' are called as the cluster" in str(error)
    for node in cluster.nodes.nodes.values():
        node.machine.installed = tuple(
            replace(one, optional=("snapshot",)) for one in node.machine.installed
        )
    error = await cluster.refused("OP_DISK_SNAPSHOT", disk="src", volume="snap-8")
    assert "nobody can tell whether there is a volume 'snap-8'" in str(error)
