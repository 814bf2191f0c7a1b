# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for disks: at rest, and while the guest runs."""

import pytest
from converted import data, disk, ran, volumes

from moorage.errors import BadInput, NoCapacity, NotSupported, WrongState
from moorage.testing.scenarios import LUN, harbour
from moorage.testing.state_snapshot import picture


@pytest.fixture
async def cluster(tmp_path):
    made = await harbour(tmp_path)
    for node in made.nodes.nodes.values():
        node.machine.ran.clear()
    yield made
    await made.stop()


async def convert(cluster, name, **fields):
    await cluster.run("OP_DISK_CONVERT", disk=name, **fields)
    return disk(cluster, name)


async def test_a_detached_disk_goes_to_a_file_and_stays_the_disk_that_it_is(cluster):
    old = disk(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="sharedfile")
    assert data(cluster, "spare") == f"written to {old.volume}"
    assert (new.uuid, new.name, new.size) == (old.uuid, "spare", 1024)
    assert new.dev_type == "sharedfile"
    assert new.epoch == old.epoch + 1
    assert old.volume not in volumes(cluster)
    assert (
        len(cluster.nodes.nodes["node1"].agent._context.attachments.all()) == 2
    )  # web1's


async def test_a_file_goes_to_a_provider_by_its_uri(cluster):
    before = data(cluster, "spare")
    await convert(cluster, "spare", disk_template="sharedfile")
    new = await convert(
        cluster, "spare", disk_template="ext", provider="usersan", access="userspace"
    )
    assert new.params == {"provider": "usersan", "access": "userspace"}
    assert data(cluster, "spare") == before


async def test_a_provider_is_a_parameter_as_in_a_new_disk(cluster):
    new = await convert(
        cluster, "spare", disk_template="ext", params={"provider": "usersan"}
    )
    assert new.params["provider"] == "usersan"


@pytest.mark.parametrize(
    ("op_id", "disk"),
    [
        ("OP_DISK_CONVERT", {"disk": "spare"}),
        ("OP_DISK_CLONE", {"disk": "spare", "new_name": "copy"}),
        ("OP_DISK_ADOPT", {"volume": "vol-1"}),
    ],
)
async def test_two_providers_are_refused(cluster, op_id, disk):
    two = {"provider": "san", "params": {"provider": "usersan"}}
    told = await cluster.refused(op_id, **disk, disk_template="ext", **two)
    assert told.message == "the disk's provider is given twice: 'san' and 'usersan'"


async def test_a_disk_goes_to_a_node_that_is_named(cluster):
    before = data(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="file", node="node2")
    assert new.nodes == ("node2",)
    assert data(cluster, "spare") == before


@pytest.mark.parametrize("name", ["root1", "data1"])
async def test_a_running_guest_keeps_running(cluster, name):
    slot = cluster.config.instance("web1").disks.index(disk(cluster, name).uuid)
    before = data(cluster, name)
    new = await convert(cluster, name, disk_template="ext", provider="usersan")
    guest = cluster.nodes.san.guests["node1 " + cluster.config.instance("web1").uuid]
    assert guest["state"]["state"] == "running"
    assert guest["drives"][new.uuid].endswith(new.volume)
    assert cluster.config.instance("web1").disks[slot] == new.uuid
    assert data(cluster, name) == before
    await cluster.run("OP_DISK_GROW", disk=name, amount=64)
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2")
    await cluster.run("OP_DISK_DETACH", disk=name)
    assert cluster.nodes.san.broken == []


async def test_a_device_is_overwritten_if_it_is_large_enough(cluster):
    before = data(cluster, "spare")
    new = await convert(cluster, "spare", disk_template="blockdev", adopt=LUN)
    assert (new.volume, new.size, new.identity) == (LUN, 2048, "wwn-1")
    assert data(cluster, "spare") == before
    again = await convert(cluster, "spare", disk_template="ext", provider="san")
    assert again.size == 2048
    assert LUN in cluster.nodes.san.devices


async def test_a_device_that_is_too_small_is_refused(cluster):
    cluster.nodes.san.devices[LUN]["size"] = 512
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="blockdev", adopt=LUN
    )
    assert "would not hold the data" in told.message


@pytest.mark.parametrize(
    ("name", "fields", "kind", "said"),
    [
        ("spare", {}, WrongState, "in such storage already"),
        ("spare", {"provider": "nosuch"}, None, "no ExtStorage provider 'nosuch'"),
        ("spare", {"disk_template": "ext"}, BadInput, "Missing provider"),
        ("spare", {"disk_template": "blockdev"}, BadInput, "adopts devices"),
        ("spare", {"disk_template": "file", "node": "node9"}, None, "node9"),
        ("root1", {"disk_template": "file", "node": "node2"}, WrongState, "not on"),
        ("spare", {"provider": "plainsan", "rate": -1}, BadInput, "rate"),
    ],
)
async def test_what_cannot_be_is_refused(cluster, name, fields, kind, said):
    before = volumes(cluster)
    given = fields or {"provider": "san"}
    told = await cluster.refused("OP_DISK_CONVERT", disk=name, **given)
    assert said in told.message
    assert kind is None or isinstance(told, kind)
    assert volumes(cluster) == before


async def test_storage_without_room_is_refused(cluster):
    for node in cluster.nodes.nodes.values():
        node.machine.room = 100
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="sharedfile"
    )
    assert isinstance(told, NoCapacity)


async def test_a_read_only_disk_waits_until_its_guest_is_down(cluster):
    await cluster.run("OP_DISK_SET_PARAMS", disk="root1", mode="ro")
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="root1", disk_template="ext", provider="san"
    )
    assert isinstance(told, NotSupported)


async def test_a_volume_that_cannot_be_removed_is_seen_in_quarantine(cluster):
    old = disk(cluster, "spare")
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _node, one: one.argv[0].endswith("/remove")
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="spare", disk_template="sharedfile"
    )
    assert "the disk has its new volume" in told.hint
    new = disk(cluster, "spare")
    assert new.dev_type == "sharedfile"
    assert new.quarantine is None
    (left,) = [one for one in cluster.config.all(type(old)) if one.quarantine]
    assert left.logical_id == old.logical_id
    assert left.name is None
    assert cluster.config.owner(left) is None


# -- all disks of an instance ----------------------------------------------------------


async def modify(cluster, instance, **fields):
    return await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name=instance, **fields)


@pytest.mark.requirement("S3-29")
@pytest.mark.requirement("S3-03")
@pytest.mark.parametrize("state", ["up", "down"])
async def test_setting_the_template_converts_all_disks_of_a_mixed_instance(
    cluster, state
):
    if state == "down":
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    before = [data(cluster, name) for name in ("root1", "data1")]
    assert {disk(cluster, name).dev_type for name in ("root1", "data1")} == {
        "sharedfile",
        "ext",
    }
    told = await modify(
        cluster, "web1", disk_template="ext", ext_params={"provider": "usersan"}
    )
    assert told == [["disk_template", "ext"]]
    for name, held in zip(("root1", "data1"), before, strict=True):
        assert disk(cluster, name).params == {"provider": "usersan"}
        assert data(cluster, name) == held
    names = {one.name for one in cluster.config.all(type(disk(cluster, "spare")))}
    assert names == {"spare", "user", "root1", "data1", "root3"}


@pytest.mark.requirement("S3-29")
@pytest.mark.requirement("S3-37")
async def test_one_disk_that_cannot_be_converted_stops_all_and_is_named(cluster):
    await cluster.run("OP_DISK_SET_PARAMS", disk="data1", mode="ro")
    before = volumes(cluster)
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web1",
        disk_template="ext",
        ext_params={"provider": "usersan"},
    )
    assert told.message.startswith("disk/1 (data1) of web1 cannot be converted: ")
    assert volumes(cluster) == before


@pytest.mark.requirement("S3-36")
async def test_a_disk_that_is_there_already_is_left_alone(cluster):
    old = disk(cluster, "data1")
    await modify(cluster, "web1", disk_template="ext", ext_params={"provider": "san"})
    assert disk(cluster, "data1") == old
    assert disk(cluster, "root1").params == {"provider": "san"}
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web1",
        disk_template="ext",
        ext_params={"provider": "san"},
    )
    assert "already" in told.message


@pytest.mark.requirement("S3-29")
async def test_other_parameters_of_the_same_provider_are_other_storage(cluster):
    old, before = disk(cluster, "data1"), data(cluster, "data1")
    wanted = {"provider": "san", "tier": "hdd"}
    await modify(cluster, "web1", disk_template="ext", ext_params=wanted)
    new = disk(cluster, "data1")
    assert (new.params, new.volume != old.volume) == (wanted, True)
    assert data(cluster, "data1") == before
    assert disk(cluster, "root1").params == wanted


@pytest.mark.parametrize(
    ("instance", "fields", "said"),
    [
        ("web2", {"disk_template": "sharedfile"}, "no disks to convert"),
        ("web1", {"disk_template": "blockdev"}, "makes no volumes"),
        ("web1", {"disk_template": "sharedfile", "remote_node": "node2"}, "second"),
        ("web1", {"ext_params": {"provider": "san"}}, "nothing to change"),
        (
            "web1",
            {"ext_params": {"provider": "san"}, "beparams": {"vcpus": 2}},
            "for disks that are converted",
        ),
        (
            "web1",
            {"disk_template": "sharedfile", "disks": [["detach", 0, {}]]},
            "not both",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused(cluster, instance, fields, said):
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", instance_name=instance, **fields
    )
    assert said in told.message


async def test_a_template_that_is_not_enabled_is_refused(cluster):
    await cluster.run(
        "OP_CLUSTER_SET_PARAMS", enabled_disk_templates=["sharedfile", "ext"]
    )
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", instance_name="web3", disk_template="file"
    )
    assert "not enabled" in told.message


@pytest.mark.parametrize("state", ["up", "down"])
async def test_a_disk_moves_to_a_storage_pool(cluster, state):
    if state == "down":
        await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    await cluster.run(
        "OP_STORAGE_POOL_ADD", pool_name="fast", provider="usersan", groups=["default"]
    )
    before = data(cluster, "root1")
    new = await convert(cluster, "root1", pool="fast")
    assert new.pool == cluster.config.pool("fast").uuid
    assert data(cluster, "root1") == before
    await modify(cluster, "web1", pool="fast")
    assert disk(cluster, "data1").pool == new.pool


async def test_disks_that_are_activated_stay_so(cluster):
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="web3")
    before, orphans = data(cluster, "root3"), (await picture(cluster)).orphans
    new = await convert(cluster, "root3", disk_template="ext", provider="san")
    assert data(cluster, "root3") == before
    assert cluster.nodes.san.attached[f"node3 {new.volume}"] == {"open": True}
    seen = await picture(cluster)
    assert (seen.misplaced, seen.orphans, seen.missing) == ([], orphans, set())
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web3")


@pytest.mark.requirement("S3-28")
@pytest.mark.requirement("S3-37")
async def test_what_one_disk_cannot_is_refused_beforehand_and_names_it(cluster):
    await convert(cluster, "data1", disk_template="file")
    before = dict(cluster.config.objects)
    told = await cluster.refused(
        "OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2"
    )
    assert told.message == (
        "Instance's disk layout 'file' does not allow migrations (disk data1 of web1)"
    )
    told = await cluster.refused("OP_DISK_SNAPSHOT", disk="root3", new_name="s")
    assert "plainsan" in told.message
    assert dict(cluster.config.objects) == before


# -- mirrored disks --------------------------------------------------------------------


@pytest.mark.requirement("S3-36")
@pytest.mark.parametrize("name", ["root1", "data1"])
async def test_a_disk_goes_to_two_nodes_and_back(cluster, name):
    before = data(cluster, name)
    new = await convert(cluster, name, disk_template="drbd", node=":node2")
    assert set(new.nodes) == {"node1", "node2"}
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    await convert(cluster, name, disk_template="sharedfile")
    assert data(cluster, name) == before
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert cluster.nodes.san.broken == []


def holdings(cluster, node):
    return {
        one.disk for one in cluster.nodes.nodes[node].agent._context.attachments.all()
    }


@pytest.mark.parametrize("name", ["root1", "data1"])
async def test_the_second_node_holds_what_the_running_disk_has_and_no_more(
    cluster, name
):
    mine = disk(cluster, name).uuid
    await convert(cluster, name, disk_template="drbd", node=":node2")
    assert holdings(cluster, "node2") == {mine}
    told = await cluster.run("OP_CLUSTER_VERIFY")
    assert told["errors"] == []
    await convert(
        cluster, name, disk_template="drbd", node=":node3", params={"vg": "xenvg"}
    )
    assert (holdings(cluster, "node2"), holdings(cluster, "node3")) == (set(), {mine})
    await convert(cluster, name, disk_template="sharedfile")
    assert holdings(cluster, "node3") == set()
    assert cluster.nodes.san.mirrors == {}
    told = await cluster.run("OP_CLUSTER_VERIFY")
    assert told["errors"] == []
    assert cluster.nodes.san.broken == []


async def test_a_mirrored_disk_needs_a_second_node(cluster):
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS", instance_name="web1", disk_template="drbd"
    )
    assert "no second node" in told.message
    assert told.hint == "name one: -n NODE"


# -- what providers and storage pools have to say --------------------------------------


@pytest.mark.requirement("S0-31")
@pytest.mark.parametrize("name", ["spare", "root1"])
async def test_a_provider_looks_at_parameters_before_a_disk_comes_to_it(cluster, name):
    before, objects = volumes(cluster), dict(cluster.config.objects)
    bad = {"provider": "san", "params": {"tier": "paper"}, "disk_template": "ext"}
    told = await cluster.refused("OP_DISK_CONVERT", disk=name, **bad)
    assert isinstance(told, BadInput)
    assert f"does not take the parameters of disk {name}: " in told.message
    assert "there is no tier 'paper'" in told.message
    told = await cluster.refused("OP_DISK_CLONE", disk=name, new_name="copy", **bad)
    assert "does not take the parameters of disk copy: " in told.message
    assert volumes(cluster) == before
    assert dict(cluster.config.objects) == objects
    assert ran(cluster, "create") is False


@pytest.mark.requirement("S0-31")
async def test_nothing_is_copied_before_all_disks_were_looked_at(cluster):
    before = volumes(cluster)
    told = await cluster.refused(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web1",
        disk_template="ext",
        ext_params={"provider": "san", "tier": "paper"},
    )
    assert isinstance(told, BadInput)
    assert "there is no tier 'paper'" in told.message
    assert volumes(cluster) == before


@pytest.mark.requirement("S0-83")
@pytest.mark.parametrize("name", ["spare", "data1"])
async def test_a_disk_moves_to_a_pool_of_the_provider_that_it_has(cluster, name):
    """It is somewhere else: the pool says what it is called and where it is used."""
    old, before = disk(cluster, name), data(cluster, name)
    new = await convert(cluster, name, pool="nas")
    assert new.pool == cluster.config.pool("nas").uuid
    assert (new.logical_id[0], new.volume != old.volume) == ("san", True)
    assert data(cluster, name) == before
    told = await cluster.refused("OP_DISK_CONVERT", disk=name, pool="nas")
    assert "in such storage already" in told.message


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize("name", ["spare", "root1"])
async def test_no_disk_comes_to_a_pool_that_is_not_connected_where_it_is(cluster, name):
    before, said = volumes(cluster), "'idle' is not connected to node group default"
    told = await cluster.refused("OP_DISK_CONVERT", disk=name, pool="idle")
    assert said in told.message
    told = await cluster.refused("OP_DISK_CLONE", disk=name, new_name="c", pool="idle")
    assert said in told.message
    assert volumes(cluster) == before


async def test_storage_that_a_mirrored_disk_is_in_already_is_refused_with_a_hint(
    cluster,
):
    await convert(cluster, "data1", disk_template="drbd", node=":node2")
    told = await cluster.refused(
        "OP_DISK_CONVERT", disk="data1", disk_template="drbd", node="node1:node3"
    )
    assert "in such storage already" in told.message
    assert told.hint.endswith("gnt-instance replace-disks -n NODE INSTANCE")
