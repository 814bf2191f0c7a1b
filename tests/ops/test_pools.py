# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools: made, used, and told of."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pooling import ADD, CONNECT, MODIFY, REMOVE, disk, env, pooled, town

from moorage.errors import Exists, NotFound
from moorage.testing.cluster import SimCluster
from moorage.testing.machine import provider


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await town(tmp_path)
    yield cluster
    await cluster.stop()


# -- making ----------------------------------------------------------------------------


@pytest.mark.requirement("S0-75", "S0-76", "S0-85")
async def test_a_pool_is_made_and_changed_and_removed(sim: SimCluster) -> None:
    await pooled(sim, params={"tier": "ssd"}, tags=["gold"])
    pool = sim.config.pool("nas1")
    assert (pool.template, pool.provider) == ("ext", "san")
    assert (pool.params, pool.groups) == ({"tier": "ssd"}, ("default",))
    assert (pool.tags, pool.serial_no) == (("gold",), 1)
    assert sim.config.storage_pools() == {"nas1": "san"}
    told = await sim.run(
        MODIFY, pool_name="nas1", params={"tier": "hdd"}, volume_name="{short}"
    )
    assert ["params", {"tier": "hdd"}] in told
    assert sim.config.pool("nas1").volume_name == "{short}"
    await sim.run(MODIFY, pool_name="nas1", params={"tier": "default"})
    assert sim.config.pool("nas1").params == {}
    await sim.run(REMOVE, pool_name="nas1")
    assert sim.config.storage_pools() == {}


@pytest.mark.requirement("S0-77")
async def test_a_name_stands_for_one_pool(sim: SimCluster) -> None:
    await pooled(sim)
    error = await sim.refused(ADD, pool_name="nas1", provider="plainsan")
    assert isinstance(error, Exists)
    assert "there is a storage pool 'nas1' already" in str(error)


@pytest.mark.requirement("S0-78")
async def test_its_provider_must_exist(sim: SimCluster) -> None:
    error = await sim.refused(ADD, pool_name="nas1", provider="nosuch")
    assert isinstance(error, NotFound)
    assert str(error) == "no node has a valid ExtStorage provider 'nosuch'"
    for node in sim.nodes.nodes.values():
        broken = replace(provider("san"), problem="File 'grow' is missing")
        node.machine.installed = [broken]
    error = await sim.refused(ADD, pool_name="nas1", provider="san")
    assert isinstance(error, NotFound)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "is of a disk template or of an ExtStorage provider"),
        ({"provider": "../x"}, "is not a valid name of an ExtStorage provider"),
        ({"disk_template": "punchcards"}, "no disk template is called 'punchcards'"),
        ({"disk_template": "ext"}, "Missing provider for template 'ext'"),
        (
            {"disk_template": "sharedfile", "provider": "san"},
            "The 'provider' option is only valid for the ext disk template",
        ),
        ({"provider": "san", "params": {"colour": "red"}}, "has no parameter 'colour'"),
        (
            {"disk_template": "sharedfile", "params": {"tier": "ssd"}},
            "disk template 'sharedfile' has no parameter 'tier'",
        ),
        (
            {"disk_template": "sharedfile", "params": {"directory": "/etc"}},
            "system directories hold no images",
        ),
        ({"provider": "san", "volume_name": "vol"}, "nothing in it is unique"),
        ({"provider": "san", "volume_name": "{uuid}", "longest": 18}, "18 are allowed"),
        ({"provider": "san", "groups": ["nowhere"]}, "node group 'nowhere' is not"),
        ({"provider": "san", "pool_name": "a,b"}, "is not a valid name of a storage"),
        ({"provider": "san", "tags": ["a b"]}, "is not a tag"),
    ],
)
async def test_what_is_no_pool_is_refused(
    sim: SimCluster, fields: dict[str, Any], said: str
) -> None:
    before = sim.config
    error = await sim.refused(ADD, **({"pool_name": "p"} | fields))
    assert said in str(error)
    assert sim.config.serial_no == before.serial_no


async def test_a_parameter_that_is_not_listed_can_be_forced(sim: SimCluster) -> None:
    await pooled(sim, params={"colour": "red"}, force_params=True)
    assert (await disk(sim)).params == {"provider": "san", "colour": "red"}


# -- using -----------------------------------------------------------------------------


@pytest.mark.requirement("S0-83", "S0-84")
async def test_a_disk_of_a_pool_is_made_by_the_pools_provider(sim: SimCluster) -> None:
    await pooled(sim, params={"tier": "ssd"})
    made = await disk(sim)
    assert (made.dev_type, made.logical_id[0]) == ("ext", "san")
    assert made.params == {"provider": "san", "tier": "ssd"}
    assert sim.config.pool_of(made) == sim.config.pool("nas1")
    told = env(sim, "create")
    assert (told["VOL_POOL"], told["EXTP_POOL"]) == ("nas1", "nas1")
    assert told["EXTP_TIER"] == "ssd"
    await sim.run("OP_DISK_REMOVE", disk="d")
    assert env(sim, "remove")["VOL_POOL"] == "nas1"


@pytest.mark.requirement("S0-84")
async def test_every_script_of_a_disks_life_is_told_the_pool(sim: SimCluster) -> None:
    await pooled(sim)
    fields = {"instance_name": "new", "pnode": "node1", "disk_template": "ext"}
    disks = [{"size": 64, "pool": "nas1", "name": "d"}]
    await sim.run("OP_INSTANCE_CREATE", disks=disks, **fields)
    await sim.run("OP_DISK_GROW", disk="d", amount=64)
    await sim.run("OP_DISK_SNAPSHOT", disk="d", new_name="s")
    await sim.run("OP_INSTANCE_MIGRATE", instance_name="new", target_node="node2")
    await sim.run("OP_DISK_SET_PARAMS", disk="d", params={"tier": "hdd"})
    await sim.run("OP_INSTANCE_REMOVE", instance_name="new")
    await sim.run("OP_DISK_REMOVE", disk="s")
    told = {
        (one.argv[0].rpartition("/")[2], one.env["VOL_POOL"], one.env["EXTP_POOL"])
        for node in ("node1", "node2")
        for one in sim.nodes.nodes[node].machine.ran
        if "VOL_NAME" in one.env
    }
    scripts = "verify create attach open setinfo grow snapshot close detach remove"
    assert told == {(script, "nas1", "nas1") for script in scripts.split()}


async def test_a_providers_own_parameter_pool_is_its_own(sim: SimCluster) -> None:
    for node in sim.nodes.nodes.values():
        node.machine.installed.append(provider("rbd", pool="Ceph's pool"))
    await pooled(sim, provider="rbd", params={"pool": "images"})
    await disk(sim)
    told = env(sim, "create")
    assert (told["VOL_POOL"], told["EXTP_POOL"]) == ("nas1", "images")


async def test_without_a_pool_nothing_is_said_of_one(sim: SimCluster) -> None:
    await disk(sim, pool=None, disk_template="ext", provider="san", group="far")
    assert not env(sim, "create", "far1").keys() & {"VOL_POOL", "EXTP_POOL"}


@pytest.mark.requirement("S0-83")
async def test_an_instance_gets_disks_in_pools(sim: SimCluster) -> None:
    await pooled(sim)
    await pooled(sim, "ssd", provider="plainsan")
    disks = [
        {"size": 64, "pool": "nas1", "name": "a"},
        {"size": 64, "pool": "ssd", "name": "b"},
        {"size": 64, "dev_type": "ext", "provider": "san", "name": "c"},
        {"size": 64, "name": "s"},
    ]
    await sim.run(
        "OP_INSTANCE_CREATE",
        instance_name="new",
        disk_template="sharedfile",
        disks=disks,
    )
    found = sim.config.disks_of(sim.config.instance("new"))
    pools = [sim.config.pool_of(one) for one in found]
    assert [one and one.name for one in pools] == ["nas1", "ssd", None, None]
    assert [one.dev_type for one in found] == ["ext", "ext", "ext", "sharedfile"]
    assert [one.params.get("provider") for one in found][:3] == [
        "san",
        "plainsan",
        "san",
    ]


async def test_a_new_disk_of_an_instance_is_in_the_pool_of_the_others(
    sim: SimCluster,
) -> None:
    await pooled(sim)
    change = "OP_INSTANCE_SET_PARAMS"
    mods: list[Any] = [["add", "-1", {"size": 64, "pool": "nas1", "name": "one"}]]
    await sim.run(change, instance_name="web", disks=mods)
    mods = [["add", "-1", {"size": 64, "name": "two"}]]
    await sim.run(change, instance_name="web", disks=mods)
    mods = [["add", "-1", {"size": 64, "name": "three", "provider": "plainsan"}]]
    await sim.run(change, instance_name="web", disks=mods)
    pools = [sim.config.disk(name).pool is not None for name in ("one", "two", "three")]
    assert pools == [True, True, False]


@pytest.mark.requirement("S0-83")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pool": "nas1", "provider": "plainsan"}, "is of ExtStorage provider 'san'"),
        ({"pool": "nas1", "dev_type": "sharedfile"}, "is of disk template 'ext'"),
        ({"pool": "nosuch"}, "storage pool 'nosuch' is not known"),
    ],
)
async def test_a_pool_and_something_else_are_refused(
    sim: SimCluster, given: dict[str, Any], said: str
) -> None:
    await pooled(sim)
    before = sim.config.serial_no
    make = {"instance_name": "new", "disks": [{"size": 64, **given}]}
    assert said in str(await sim.refused("OP_INSTANCE_CREATE", **make))
    mods = [["add", "-1", {"size": 64, **given}]]
    fields = {"instance_name": "web", "disks": mods}
    assert said in str(await sim.refused("OP_INSTANCE_SET_PARAMS", **fields))
    flat = {"size": 64, **given}
    flat["disk_template"] = flat.pop("dev_type", None)
    assert said in str(await sim.refused("OP_DISK_ADD", **flat))
    assert sim.config.serial_no == before


async def test_the_same_provider_may_be_named_too(sim: SimCluster) -> None:
    await pooled(sim)
    made = await disk(sim, provider="san", disk_template="ext")
    assert made.pool


@pytest.mark.requirement("S0-76")
async def test_a_later_change_of_a_pool_is_for_disks_to_come(sim: SimCluster) -> None:
    await pooled(sim, params={"tier": "ssd"}, volume_name="{pool}-{uuid}")
    old = await disk(sim)
    await sim.run(MODIFY, pool_name="nas1", params={"tier": "hdd"}, volume_name="")
    new = await disk(sim, "e")
    assert (old.params["tier"], new.params["tier"]) == ("ssd", "hdd")
    assert sim.config.disk("d").params["tier"] == "ssd"
    assert old.volume.startswith("nas1-")
    assert new.volume.endswith(".ext.disk0")
    own = await disk(sim, "f", params={"tier": "tape"})
    assert own.params["tier"] == "tape"


async def test_names_of_volumes_are_short_and_readable(sim: SimCluster) -> None:
    await pooled(sim, volume_name="{instance}-{index}-{short}", longest=24)
    disks = [{"size": 64, "pool": "nas1", "name": f"d{at}"} for at in range(2)]
    name = "a-very-long-name.example.com"
    await sim.run("OP_INSTANCE_CREATE", instance_name=name, disks=disks)
    volumes = [sim.config.disk(f"d{at}").volume for at in range(2)]
    assert all(len(one) <= 24 for one in volumes)
    assert volumes[0].startswith("a-very")
    assert "-1-" in volumes[1]
    assert set(sim.nodes.san.volumes) == set(volumes)


async def test_a_snapshot_is_in_the_pool_of_its_disk(sim: SimCluster) -> None:
    await pooled(sim)
    await disk(sim)
    await sim.run("OP_DISK_SNAPSHOT", disk="d", new_name="s")
    assert sim.config.disk("s").pool == sim.config.disk("d").pool
    error = await sim.refused(REMOVE, pool_name="nas1")
    assert "2 disks use it: d (detached), s (detached)" in str(error)


# -- files in a directory of the pool's ------------------------------------------------


async def test_a_pool_of_files_has_a_directory_of_its_own(sim: SimCluster) -> None:
    params = {"directory": "/shared/ssd"}
    await pooled(sim, "ssd", provider=None, disk_template="sharedfile", params=params)
    made = await disk(sim, pool="ssd")
    assert made.volume.startswith("/shared/ssd/detached/")
    assert made.volume in sim.nodes.san.files
    await sim.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    await sim.run("OP_DISK_GROW", disk="d", amount=64)
    assert sim.nodes.san.files[made.volume]["size"] == 128 * 1024 * 1024
    error = await sim.refused(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web",
        disks=[["modify", "0", {"directory": "/shared/hdd"}]],
    )
    assert "a disk's 'directory' cannot be changed" in str(error)
    # The cluster's own directory is nothing to it.
    change = "OP_CLUSTER_SET_PARAMS"
    await sim.run(change, shared_file_storage_dir="/shared/other")
    for node in sim.nodes.nodes.values():
        node.machine.missing.add("/shared/other")
    assert (await sim.run("OP_CLUSTER_VERIFY"))["errors"] == []
    await sim.run("OP_DISK_DETACH", disk="d")
    await sim.run("OP_DISK_REMOVE", disk="d")
    assert not sim.nodes.san.files


async def test_room_is_that_of_the_pools_directory(sim: SimCluster) -> None:
    params = {"directory": "/shared/ssd"}
    await pooled(sim, "ssd", provider=None, disk_template="sharedfile", params=params)
    for node in sim.nodes.nodes.values():
        node.machine.rooms["/shared/ssd"] = 100
    error = await sim.refused("OP_DISK_ADD", pool="ssd", size=101)
    assert "unit sharedfile//shared/ssd (asked 101 MiB, free 100 MiB)" in str(error)
    disks = [{"size": 60, "pool": "ssd"}, {"size": 60, "pool": "ssd"}]
    make = {"instance_name": "new", "disks": disks, "ignore_ipolicy": True}
    error = await sim.refused("OP_INSTANCE_CREATE", **make)
    assert "/shared/ssd" in str(error)
    await disk(sim, pool=None, disk_template="sharedfile", size=1000, group="far")
    asked = [{"OP_ID": "OP_DISK_ADD", "pool": "ssd", "size": 60} for _ in range(2)]
    (only,) = await sim.at_once(*asked)
    assert "unit sharedfile//shared/ssd" in str(only)


# -- gnt-cluster modify ----------------------------------------------------------------


@pytest.mark.requirement("S0-77", "S0-78", "S0-79", "S0-80", "S0-81")
async def test_the_cluster_gets_and_loses_pools(sim: SimCluster) -> None:
    op_id = "OP_CLUSTER_SET_PARAMS"
    await sim.run(op_id, add_pools=[["nas1", "san"], ["nas2", "plainsan"]])
    assert sim.config.storage_pools() == {"nas1": "san", "nas2": "plainsan"}
    error = await sim.refused(op_id, add_pools=[["nas1", "san"]])
    assert isinstance(error, Exists)
    error = await sim.refused(op_id, add_pools=[["nas3", "nosuch"]])
    assert isinstance(error, NotFound)
    error = await sim.refused(op_id, add_pools=[["p", "san"]], remove_pools=["p"])
    assert "storage pool 'p' is named twice" in str(error)
    await sim.run(CONNECT, pool_name="nas1", groups=["default"])
    await disk(sim)
    fields = {"remove_pools": ["nas2", "nas1"], "default_iallocator": "hail"}
    error = await sim.refused(op_id, **fields)
    assert "a disk uses it: d (detached)" in str(error)
    assert sim.config.storage_pools().keys() == {"nas1", "nas2"}
    assert sim.config.cluster.default_iallocator == ""
    await sim.run(op_id, remove_pools=["nas2"], default_iallocator="hail")
    assert sim.config.storage_pools() == {"nas1": "san"}
    assert sim.config.cluster.default_iallocator == "hail"
