# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools: made, used, connected, and refused to go while they are in use."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, Exists, MoorageError, NotFound, WrongState
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import provider

ADD, CONNECT = "OP_STORAGE_POOL_ADD", "OP_STORAGE_POOL_CONNECT"
REMOVE, DISCONNECT = "OP_STORAGE_POOL_REMOVE", "OP_STORAGE_POOL_DISCONNECT"
MODIFY = "OP_STORAGE_POOL_SET_PARAMS"


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Two nodes in group default, two in group far; web runs, its disks are none."""
    builder = ClusterBuilder(nodes=2).node("far1", "far").node("far2", "far")
    cluster = await SimCluster.start(tmp_path, builder.instance("web", "node1"))
    yield cluster
    await cluster.stop()


async def pooled(sim: SimCluster, name: str = "nas1", **fields: Any) -> None:
    asked = {"provider": "san", "groups": ["default"]} | fields
    await sim.run(ADD, pool_name=name, **asked)


async def disk(sim: SimCluster, name: str = "d", **fields: Any) -> Any:
    asked = {"name": name, "pool": "nas1", "size": 64} | fields
    await sim.run("OP_DISK_ADD", **asked)
    return sim.config.disk(name)


def env(sim: SimCluster, script: str, node: str = "node1") -> dict[str, str]:
    """Return the variables of the last call of a provider's script."""
    ran = sim.nodes.nodes[node].machine.ran
    found = [one for one in ran if one.argv[0].endswith(f"/{script}")]
    return dict(found[-1].env)


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


# -- mobility domains ------------------------------------------------------------------


@pytest.mark.requirement("S0-82")
async def test_a_pool_that_is_connected_nowhere_holds_no_disk(sim: SimCluster) -> None:
    await pooled(sim, groups=[])
    error = await sim.refused("OP_DISK_ADD", pool="nas1", size=64, group="default")
    assert "storage pool 'nas1' is not connected to node group default" in str(error)
    assert error.hint == "gnt-storage pool connect nas1 default"
    await sim.run(CONNECT, pool_name="nas1", groups=["default"])
    await disk(sim)


@pytest.mark.requirement("S0-82", "S0-86")
async def test_disks_are_made_where_the_pool_is_connected(sim: SimCluster) -> None:
    await pooled(sim, groups=["far"])
    made = await disk(sim)  # there is one group alone that it can be in
    assert made.group == "far"
    await sim.run(
        "OP_INSTANCE_CREATE",
        instance_name="new",
        disks=[{"size": 64, "pool": "nas1"}],
    )
    assert sim.config.instance("new").primary_node.startswith("far")
    fields = {"instance_name": "x", "disks": [{"size": 64, "pool": "nas1"}]}
    error = await sim.refused("OP_INSTANCE_CREATE", pnode="node1", **fields)
    assert "is not connected to node group default, only to far" in str(error)
    error = await sim.refused("OP_INSTANCE_CREATE", group_name="default", **fields)
    assert "is not connected to node group default, only to far" in str(error)


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_INSTANCE_MIGRATE", {"instance_name": "new", "target_node": "far1"}),
        ("OP_INSTANCE_FAILOVER", {"instance_name": "new", "target_node": "far1"}),
        ("OP_DISK_ATTACH", {"disk": "d", "instance_name": "away"}),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"instance_name": "away", "disks": [["attach", "-1", {"name": "d"}]]},
        ),
        (
            "OP_INSTANCE_SET_PARAMS",
            {"instance_name": "away", "disks": [["add", "-1", {"pool": "nas1"}]]},
        ),
        ("OP_GROUP_ASSIGN_NODES", {"group_name": "far", "nodes": ["node1"]}),
        (
            "OP_GROUP_ASSIGN_NODES",
            {"group_name": "far", "nodes": ["node1"], "force": True},
        ),
    ],
)
async def test_no_disk_leaves_the_groups_of_its_pool(
    sim: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    """Part of the row: named targets. Where nobody names one, the group stays."""
    await pooled(sim)
    await disk(sim)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    other = {"pnode": "far1", "disk_template": "diskless"}
    await sim.run("OP_INSTANCE_CREATE", instance_name="away", **other)
    before = sim.config.serial_no
    error = await sim.refused(op_id, **fields)
    assert "is not connected to node group far" in str(error) or "which is reached" in (
        str(error)
    )
    assert sim.config.serial_no == before
    if fields.get("force") is not None or "nodes" not in fields:
        await sim.run(CONNECT, pool_name="nas1", groups=["far"])
        if "disks" in fields and "pool" in str(fields):
            fields["disks"][0][2]["size"] = 64
        await sim.run(op_id, **fields)


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize("connected", [["default"], ["default", "far"]])
async def test_the_planner_leaves_nobody_out_of_reach_of_a_pool(
    sim: SimCluster, connected: list[str]
) -> None:
    """The rest of the row: who names no target stays where the pool is."""
    await pooled(sim, groups=connected)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    for op_id in ("OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"):
        before = sim.config.instance("new").primary_node
        await sim.run(op_id, instance_name="new")
        assert sim.config.instance("new").primary_node in {"node1", "node2"} - {before}
    told = await sim.run("OP_NODE_EVACUATE", node_name="node1", mode="primary-only")
    assert told["stayed"] == {}
    fields = {"instance_name": "x", "disks": [{"size": 64, "pool": "nas1"}]}
    for number in range(4):
        await sim.run("OP_INSTANCE_CREATE", **fields | {"instance_name": f"x{number}"})
        home = sim.config.node(sim.config.instance(f"x{number}").primary_node)
        assert home.group in sim.config.pool("nas1").groups


@pytest.mark.requirement("S0-82")
async def test_an_emptied_node_keeps_whom_its_pools_hold(sim: SimCluster) -> None:
    await pooled(sim)
    made = {"pnode": "node1", "disks": [{"size": 64, "pool": "nas1"}]}
    await sim.run("OP_INSTANCE_CREATE", instance_name="new", **made)
    fields = {"node_name": "node1", "target_node": "far1"}
    error = await sim.refused("OP_NODE_MIGRATE", **fields)
    assert "is not connected to node group far" in str(error)
    fields = {"node_name": "node1", "remote_node": "far1", "mode": "primary-only"}
    told = await sim.run("OP_NODE_EVACUATE", **fields)
    assert told["names"] == ["web"]
    assert "is not connected to node group far" in told["stayed"]["new"]


@pytest.mark.requirement("S0-82", "S0-86")
async def test_a_group_where_the_pool_does_not_work_is_not_connected(
    sim: SimCluster,
) -> None:
    machine = sim.nodes.nodes["far2"].machine
    machine.installed = [one for one in machine.installed if one.name != "san"]
    await pooled(sim)
    error = await sim.refused(CONNECT, pool_name="nas1", groups=["far"])
    assert str(error) == (
        "storage pool 'nas1' does not work on node far2 of node group far: "
        "there is no ExtStorage provider 'san'"
    )
    error = await sim.refused(ADD, pool_name="q", provider="san", groups=["far"])
    assert "does not work on node far2" in str(error)
    sim.nodes.nodes["far1"].lose_power()
    error = await sim.refused(CONNECT, pool_name="nas1", groups=["far"])
    assert isinstance(error, MoorageError)
    assert sim.config.pool("nas1").groups == ("default",)


async def test_a_directory_must_be_there_on_every_node(sim: SimCluster) -> None:
    sim.nodes.nodes["far1"].machine.missing.add("/shared/ssd")
    files = {"disk_template": "sharedfile", "params": {"directory": "/shared/ssd"}}
    await sim.run(ADD, pool_name="ssd", groups=["default"], **files)
    error = await sim.refused(CONNECT, pool_name="ssd", groups=["far"])
    assert "on node far1 of node group far: there is no directory /shared/ssd" in (
        str(error)
    )
    sim.nodes.nodes["node2"].machine.missing.add("/shared/hdd")
    error = await sim.refused(
        MODIFY, pool_name="ssd", params={"directory": "/shared/hdd"}
    )
    assert "on node node2 of node group default: there is no directory" in str(error)


@pytest.mark.requirement("S0-81", "S0-86")
@pytest.mark.parametrize("attached", [True, False])
async def test_a_pool_in_use_stays_and_says_who_uses_it(
    sim: SimCluster, attached: bool
) -> None:
    await pooled(sim)
    await sim.run(CONNECT, pool_name="nas1", groups=["far"])
    made = await disk(sim, group="default")
    if attached:
        await sim.run("OP_DISK_ATTACH", disk="d", instance_name="web")
    whose = "web" if attached else "detached"
    for op_id, more in ((REMOVE, {}), (DISCONNECT, {"groups": ["default"]})):
        error = await sim.refused(op_id, pool_name="nas1", **more)
        assert isinstance(error, WrongState)
        assert f"a disk uses it: d ({whose})" in str(error)
        assert error.facts["disks"] == [made.uuid]
        assert error.hint == "gnt-disk list 'pool == \"nas1\"'"
    await sim.run(DISCONNECT, pool_name="nas1", groups=["far"])
    assert sim.config.pool("nas1").groups == ("default",)
    if attached:
        await sim.run("OP_DISK_DETACH", disk="d")
    await sim.run("OP_DISK_REMOVE", disk="d")
    await sim.run(DISCONNECT, pool_name="nas1", groups=["default"])
    await sim.run(REMOVE, pool_name="nas1")


async def test_a_connected_group_stays(sim: SimCluster) -> None:
    await sim.run("OP_GROUP_ADD", group_name="new")
    error = await sim.refused(ADD, pool_name="p", provider="san", groups=["new"])
    assert "no node of node group new is online" in str(error)
    await pooled(sim, groups=["far"])
    nodes = {"nodes": ["far1", "far2"], "force": True}
    await sim.run("OP_GROUP_ASSIGN_NODES", group_name="default", **nodes)
    error = await sim.refused("OP_GROUP_REMOVE", group_name="far")
    assert error.hint == "gnt-storage pool disconnect nas1 far"
    await sim.run(DISCONNECT, pool_name="nas1", groups=["far"])
    await sim.run("OP_GROUP_REMOVE", group_name="far")


@pytest.mark.parametrize("op_id", [CONNECT, DISCONNECT])
async def test_a_group_must_be_named(sim: SimCluster, op_id: str) -> None:
    await pooled(sim)
    error = await sim.refused(op_id, pool_name="nas1", groups=[])
    assert isinstance(error, BadInput)
    await sim.run(CONNECT, pool_name="nas1", groups=["default"])  # it is already
    assert sim.config.pool("nas1").serial_no == 1
    error = await sim.refused(DISCONNECT, pool_name="nas1", groups=["far"])
    assert "is not connected to node group far" in str(error)


# -- two at a time ---------------------------------------------------------------------


@pytest.mark.requirement("S0-81")
async def test_a_pool_does_not_go_while_a_disk_comes(sim: SimCluster) -> None:
    await pooled(sim)
    found = await sim.at_once(
        {"OP_ID": "OP_DISK_ADD", "pool": "nas1", "size": 64},
        {"OP_ID": REMOVE, "pool_name": "nas1"},
    )
    assert str(found[0]).startswith(
        "storage pool 'nas1' cannot be removed: a disk uses it"
    )
    assert len(sim.nodes.san.volumes) == 1


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


# -- other templates -------------------------------------------------------------------


@pytest.mark.requirement("S0-82", "S0-87")
@pytest.mark.parametrize(
    ("template", "params"), [("plain", {"vg": "nosuch"}), ("rbd", {"pool": "nosuch"})]
)
async def test_a_place_that_no_node_has_is_not_connected(
    sim: SimCluster, template: str, params: dict[str, str]
) -> None:
    fields = {"disk_template": template, "params": params, "groups": ["default"]}
    error = await sim.refused(ADD, pool_name="p", **fields)
    assert "does not work on node node1 of node group default: " in str(error)
    assert "nosuch" in str(error)


async def test_a_pool_may_be_a_volume_group(sim: SimCluster) -> None:
    fields = {"disk_template": "plain", "provider": None, "params": {"vg": "xenvg"}}
    await pooled(sim, "lvm", volume_name="{pool}-{short}", **fields)
    made = await disk(sim, pool="lvm", node="node1")
    assert made.logical_id[0] == "xenvg"
    assert made.volume.startswith("lvm-")
    assert made.nodes == ("node1",)
    error = await sim.refused("OP_DISK_ADD", pool="lvm", size=64, node="far1")
    assert "is not connected to node group far" in str(error)


async def test_a_pool_may_be_a_pool_of_ceph(sim: SimCluster) -> None:
    fields = {"disk_template": "rbd", "provider": None, "params": {"pool": "rbd"}}
    await pooled(sim, "ceph", **fields)
    made = await disk(sim, pool="ceph")
    assert (made.dev_type, made.params["pool"]) == ("rbd", "rbd")
    assert sim.config.pool_of(made) == sim.config.pool("ceph")
