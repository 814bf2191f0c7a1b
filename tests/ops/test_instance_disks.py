# SPDX-License-Identifier: BSD-2-Clause
"""Disks in and out of instances, in every way that a request can say it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import NotSupported, Refused
from moorage.model import Disk
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.scenarios import LUN, harbour
from moorage.testing.state_snapshot import picture

MODIFY = "OP_INSTANCE_SET_PARAMS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    assert cluster.nodes.san.broken == []
    await cluster.stop()


def labels(cluster: SimCluster, name: str = "web1") -> list[str]:
    return [d.label for d in cluster.config.disks_of(cluster.config.instance(name))]


def plugged(cluster: SimCluster, name: str = "web1") -> list[str]:
    """Return the disks that the guest has."""
    instance = cluster.config.instance(name)
    found = cluster.nodes.san.guests[f"{instance.primary_node} {instance.uuid}"]
    return [cluster.config.disk(uuid).label for uuid in found["state"]["disks"]]


async def modify(cluster: SimCluster, *mods: list[Any], **more: Any) -> Any:
    name = more.pop("instance_name", "web1")
    return await cluster.run(MODIFY, instance_name=name, disks=list(mods), **more)


# -- disks that belong to nobody ---------------------------------------------------


@pytest.mark.requirement("S3-01", "S3-20", "S3-53")
async def test_data_goes_from_one_instance_to_another(cluster: SimCluster) -> None:
    san, disk = cluster.nodes.san, cluster.config.disk("data1")
    san.volumes[disk.volume] |= {"data": "checksum"}
    await cluster.run("OP_DISK_DETACH", disk="data1")
    assert labels(cluster) == plugged(cluster) == ["root1"]
    assert [one.label for one in cluster.config.detached()] == [
        *("data1", "spare", "user")
    ]
    await cluster.run("OP_DISK_ATTACH", disk="data1", instance_name="web2")
    assert plugged(cluster, "web2") == ["data1"]
    assert san.volumes[disk.volume]["data"] == "checksum"
    assert cluster.config.disk("data1").volume == disk.volume


@pytest.mark.requirement("S3-24")
async def test_of_two_attaches_at_once_one_wins(cluster: SimCluster) -> None:
    numbers = [
        await cluster.submit("OP_DISK_ATTACH", disk="spare", instance_name=name)
        for name in ("web1", "web2", "web3")
    ]
    jobs = [await cluster.finished(number) for number in numbers]
    assert sorted(job.status for job in jobs) == ["error", "error", "success"]
    owner = cluster.config.owner(cluster.config.disk("spare"))
    assert owner
    lost = [job.ops[0].error["message"] for job in jobs if job.status == "error"]
    assert all(f"is attached to instance {owner.name}" in text for text in lost)


@pytest.mark.requirement("S3-54")
async def test_a_detached_disk_grows_is_renamed_and_changed(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_GROW", disk="spare", amount=1024)
    await cluster.run("OP_DISK_RENAME", disk="spare", new_name="archive")
    await cluster.run(
        "OP_DISK_SET_PARAMS", disk="archive", mode="ro", params={"tier": "hdd"}
    )
    disk = cluster.config.disk("archive")
    assert (disk.size, disk.mode, disk.params["tier"]) == (2048, "ro", "hdd")
    assert cluster.nodes.san.volumes[disk.volume]["size"] == 2048
    assert cluster.nodes.san.attached.keys() == {
        f"node1 {cluster.config.disk('data1').volume}"
    }


@pytest.mark.requirement("S3-52")
async def test_a_detached_disk_is_removed(cluster: SimCluster) -> None:
    volume = cluster.config.disk("spare").volume
    await cluster.run("OP_DISK_REMOVE", disk="spare")
    assert volume not in cluster.nodes.san.volumes
    assert not cluster.config.knows(Disk, "spare")


@pytest.mark.requirement("S3-52")
async def test_a_detached_disk_is_removed_by_a_node_of_its_group(
    tmp_path: Path,
) -> None:
    """Storage may be in reach of one group only: the disk says which that is.

    The nodes of the other group come first, by name as well.
    """
    builder = ClusterBuilder(nodes=2).node("yonder1", "far").node("yonder2", "far")
    builder.disk("spare", group="far", last_node=None)
    cluster = await SimCluster.start(tmp_path, builder)
    cluster.nodes.san.volumes["vol-spare"] = {"size": 1, "provider": "san", "data": ""}
    await cluster.run("OP_DISK_REMOVE", disk="spare")
    ran = {
        name
        for name, node in cluster.nodes.nodes.items()
        if any(one.argv[0].endswith("/remove") for one in node.machine.ran)
    }
    assert ran
    assert ran <= {"yonder1", "yonder2"}
    await cluster.stop()


@pytest.mark.requirement("S3-55")
async def test_attaching_again_asks_for_no_provider(cluster: SimCluster) -> None:
    await modify(cluster, ["detach", "1", {}])
    await modify(cluster, ["attach", "-1", {"name": "data1"}])
    await modify(cluster, ["detach", "data1", {}])
    uuid = cluster.config.disk("data1").uuid
    await modify(cluster, ["attach", "-1", {"uuid": uuid}])
    assert labels(cluster) == plugged(cluster) == ["root1", "data1"]


@pytest.mark.requirement("S3-47", "S0-16")
async def test_a_disk_of_one_node_is_not_attached_on_another(
    cluster: SimCluster,
) -> None:
    new = {"name": "local", "disk_template": "file", "size": 64}
    await cluster.run("OP_DISK_ADD", **new, node="node2")
    config = cluster.config
    error = await cluster.refused("OP_DISK_ATTACH", disk="local", instance_name="web1")
    assert str(error) == "disk local is on node2: node node1 does not reach it"
    assert cluster.config is config
    await cluster.run("OP_DISK_ATTACH", disk="local", instance_name="web2")
    assert plugged(cluster, "web2") == ["local"]


# -- gnt-instance modify -----------------------------------------------------------


@pytest.mark.requirement("S3-39", "S3-40", "S3-41", "S3-26")
async def test_the_old_forms_of_a_request(cluster: SimCluster) -> None:
    told = await modify(cluster, ["attach", {"name": "spare"}])
    assert told == [["disk/2", "attach:size=1024,mode=rw"]]
    assert labels(cluster) == ["root1", "data1", "spare"]
    assert await modify(cluster, ["detach", {}]) == [["disk/2", "detach"]]
    assert labels(cluster) == ["root1", "data1"]
    await modify(cluster, [0, {"mode": "ro"}])
    assert cluster.config.disk("root1").mode == "ro"


@pytest.mark.requirement("S3-09", "S3-42")
async def test_an_attach_in_front_moves_the_others_back(cluster: SimCluster) -> None:
    await modify(cluster, ["attach", "0", {"name": "spare"}])
    assert labels(cluster) == ["spare", "root1", "data1"]
    slots = [
        cluster.config.iv_name(d) for d in map(cluster.config.disk, labels(cluster))
    ]
    assert slots == ["disk/0", "disk/1", "disk/2"]


@pytest.mark.requirement("S3-22")
@pytest.mark.parametrize("door", ["disk", "instance"])
async def test_attach_and_detach_of_a_guest_that_is_down_change_the_record_alone(
    cluster: SimCluster, door: str
) -> None:
    """One commit each, the same through both doors; no node is asked for work."""
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    done: list[str] = []

    async def note(point: str) -> None:
        done.extend([point] if point.startswith("before ") else [])

    for verb, slots in (("detach", ["root1"]), ("attach", ["root1", "data1"])):
        before, cluster.extra_point = cluster.config, note
        if door == "instance":
            params = {"name": "data1"} if verb == "attach" else {}
            where = "-1" if verb == "attach" else "data1"
            await modify(cluster, [verb, where, params])
        else:
            more = {"instance_name": "web1"} if verb == "attach" else {}
            await cluster.run(f"OP_DISK_{verb.upper()}", disk="data1", **more)
        word = {"attach": "give", "detach": "take"}[verb]
        assert [one.split()[1] for one in done] == [word]
        done.clear()
        assert labels(cluster) == slots
        now = cluster.config
        changed = {u for u, one in now.objects.items() if one != before.objects[u]}
        assert changed == {now.disk("data1").uuid, now.instance("web1").uuid}
        assert now.disk("data1").logical_id == before.disk("data1").logical_id


@pytest.mark.requirement("S3-44", "S3-45")
@pytest.mark.parametrize(
    ("mod", "said"),
    [
        (["attach", "-1", {}], "exactly one"),
        (["attach", "-1", {"name": "spare", "uuid": "x"}], "exactly one"),
        (["attach", "-1", {"size": 8}], "exactly one"),
        (["attach", "-1", {"name": "spare", "mode": "ro"}], "exactly one"),
        (["detach", "0", {"mode": "ro"}], "takes no parameters"),
        (["remove", "0", {"name": "root1"}], "takes no parameters"),
        (["attach", "root1", {"name": "spare"}], "a number, not 'root1'"),
        (["add", "root1", {"size": 8}], "a number, not 'root1'"),
        (["modify", "0", {}], "nothing to modify in disk 0"),
    ],
)
async def test_what_a_change_of_disks_cannot_mean(
    cluster: SimCluster, mod: list[Any], said: str
) -> None:
    before = cluster.config
    refused = await cluster.refused(MODIFY, instance_name="web1", disks=[mod])
    assert said in refused.message
    assert cluster.config is before


@pytest.mark.requirement("S3-43")
@pytest.mark.parametrize("form", ["slot", "name", "uuid"])
async def test_three_ways_to_name_a_disk(cluster: SimCluster, form: str) -> None:
    uuid = cluster.config.disk("root1").uuid
    ident = {"slot": "0", "name": "root1", "uuid": uuid}[form]
    assert await modify(cluster, ["detach", ident, {}]) == [["disk/0", "detach"]]
    assert labels(cluster) == plugged(cluster) == ["data1"]


@pytest.mark.parametrize("names", [("root1", "data1"), ("0", "1"), ("1", "0")])
async def test_two_removed_in_one_request_are_those_two(
    cluster: SimCluster, names: tuple[str, str]
) -> None:
    await modify(cluster, ["attach", "-1", {"name": "spare"}])
    kept = cluster.config.disk("spare").volume
    await modify(cluster, *(["remove", name, {}] for name in names))
    assert labels(cluster) == plugged(cluster) == ["spare"]
    assert kept in cluster.nodes.san.volumes
    assert not cluster.config.knows(Disk, "root1")
    assert not cluster.config.knows(Disk, "data1")
    assert (await picture(cluster)).orphans == set()


@pytest.mark.requirement("S3-21")
async def test_a_disk_is_unplugged_before_it_is_removed(cluster: SimCluster) -> None:
    order: list[str] = []

    async def note(name: str) -> None:
        if name.startswith("after "):
            order.append(name.split()[1])

    cluster.extra_point = note
    await modify(cluster, ["remove", "1", {}])
    assert order == ["unplug", "detach", "take", "remove", "forget"]
    assert plugged(cluster) == ["root1"]


async def test_a_guest_that_keeps_its_disk_keeps_its_data(cluster: SimCluster) -> None:
    before = await picture(cluster)
    hypervisor = cluster.nodes.nodes["node1"].agent._context.hypervisors["kvm"]

    async def stubborn(uuid: str, disk: str) -> None:
        raise NotSupported(f"guest {uuid} keeps disk {disk}")

    hypervisor.unplug = stubborn
    error = await cluster.refused(
        MODIFY, instance_name="web1", disks=[["remove", "1", {}]]
    )
    assert "keeps disk" in str(error)
    assert (await picture(cluster)).differences(before) == []


@pytest.mark.requirement("S3-38", "S0-59")
async def test_a_diskless_instance_gets_a_disk_of_any_template(
    cluster: SimCluster,
) -> None:
    config = cluster.config
    assert config.template_of(config.instance("web2")) == "diskless"
    await modify(
        cluster,
        ["add", "-1", {"size": 64, "dev_type": "ext", "provider": "san"}],
        ["add", "-1", {"size": 64, "dev_type": "sharedfile"}],
        instance_name="web2",
    )
    assert cluster.config.template_of(cluster.config.instance("web2")) == "mixed"
    assert len(plugged(cluster, "web2")) == 2


@pytest.mark.parametrize("name", ["web1", "web2"])
async def test_who_names_a_provider_need_name_no_template(
    cluster: SimCluster, name: str
) -> None:
    """Neither a diskless instance nor one with mixed disks lends it one."""
    mods = [["add", "-1", {"size": 64, "provider": "san"}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name=name, disks=mods)
    last = cluster.config.disks_of(cluster.config.instance(name))[-1]
    assert (last.dev_type, last.params["provider"]) == ("ext", "san")


@pytest.mark.requirement("S3-38")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": 64}, "the disk names no template"),
        ({"size": 64, "dev_type": "ext"}, "Missing provider for template 'ext'"),
    ],
)
async def test_a_disk_of_no_known_template_must_say_which(
    cluster: SimCluster, given: dict[str, Any], said: str
) -> None:
    """Neither a diskless instance nor one with mixed disks has a template to lend."""
    before = cluster.config
    for instance in ("web1", "web2"):
        mods = [["add", "-1", given]]
        fields = {"instance_name": instance, "disks": mods}
        assert said in str(await cluster.refused("OP_INSTANCE_SET_PARAMS", **fields))
    assert cluster.config is before


@pytest.mark.requirement("S3-38")
async def test_of_two_providers_none_is_the_one_that_is_meant(
    cluster: SimCluster,
) -> None:
    disks = [{"size": 8, "provider": one} for one in ("san", "plainsan")]
    new = {"disk_template": "ext", "disks": disks, "pnode": "node1", "start": False}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="two", **new)
    add = {"instance_name": "two", "disks": [["add", "-1", {"size": 8}]]}
    refused = await cluster.refused(MODIFY, **add)
    assert "Missing provider for template 'ext'" in refused.message


async def test_removed_disks_can_be_kept(cluster: SimCluster) -> None:
    disk = cluster.config.disk("data1")
    await modify(cluster, ["remove", "1", {}], keep_disks=True)
    assert disk.volume in cluster.nodes.san.volumes
    assert not cluster.config.knows(Disk, "data1")


@pytest.mark.requirement("S3-07")
async def test_versions_rise_with_every_change(cluster: SimCluster) -> None:
    disk, web = cluster.config.disk("spare"), cluster.config.instance("web1")
    await modify(cluster, ["attach", "-1", {"name": "spare"}])
    after = cluster.config.disk("spare")
    assert after.serial_no == disk.serial_no + 1
    assert after.epoch == disk.epoch + 1
    assert cluster.config.instance("web1").serial_no == web.serial_no + 1


# -- templates that only adopt -----------------------------------------------------


@pytest.mark.requirement("S0-02", "S0-19", "S0-20")
async def test_an_adopted_device_is_never_destroyed(cluster: SimCluster) -> None:
    san = cluster.nodes.san
    new = [["add", "-1", {"size": 1024, "dev_type": "blockdev"}]]
    made = await cluster.refused(MODIFY, instance_name="web1", disks=new)
    assert "disk template 'blockdev' makes no volumes" in made.message
    adopt = {"adopt": LUN, "dev_type": "blockdev", "name": "lun"}
    told = await modify(cluster, ["add", "-1", adopt])
    assert told == [["disk/2", "add:size=2048,mode=rw"]]
    assert cluster.config.disk("lun").logical_id == ("manual", LUN)
    config = cluster.config
    error = await cluster.refused("OP_DISK_GROW", disk="lun", amount=8)
    assert isinstance(error, NotSupported)
    assert cluster.config is config
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web1")
    assert san.devices[LUN] == {"size": 2048, "identity": "wwn-1"}
    assert not cluster.config.knows(Disk, "lun")


async def test_a_refused_part_refuses_the_whole_request(cluster: SimCluster) -> None:
    config = cluster.config
    error = await cluster.refused(
        MODIFY,
        instance_name="web1",
        disks=[["remove", "0", {}], ["attach", "-1", {"name": "root3"}]],
    )
    assert isinstance(error, Refused)
    assert cluster.config is config
    assert plugged(cluster) == ["root1", "data1"]
