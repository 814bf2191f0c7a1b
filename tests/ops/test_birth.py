# SPDX-License-Identifier: BSD-2-Clause
"""What a request for a disk says: parameters, templates, directories, adoption."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, Failed
from moorage.model import Disk, Instance
from moorage.storage import Command
from moorage.testing.cluster import SimCluster
from moorage.testing.machine import provider
from moorage.testing.scenarios import LUN

MODIFY, CREATE = "OP_INSTANCE_SET_PARAMS", "OP_INSTANCE_CREATE"
SAN = {"disk_template": "ext", "provider": "san", "size": 64}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path / "nodes")
    cluster.nodes.san.devices[LUN] = {"size": 2048, "identity": "wwn-1"}
    for node in cluster.nodes.nodes.values():
        node.machine.installed.append(provider("groups", vg="volume group"))
    yield cluster
    await cluster.stop()


async def instance(cluster: SimCluster, *disks: dict[str, Any], **more: Any) -> None:
    fields = {"instance_name": "web", "disk_template": "ext", "pnode": "node1"} | more
    await cluster.run(CREATE, disks=list(disks), **fields)


def labels(cluster: SimCluster) -> list[str]:
    return [d.label for d in cluster.config.disks_of(cluster.config.instance("web"))]


def log(cluster: SimCluster) -> list[str]:
    """Return what the last job said."""
    job = cluster.engine.job(max(cluster.engine.jobs))
    return [entry[3] for op in job.ops for entry in op.log]


# -- parameters --------------------------------------------------------------------


@pytest.mark.requirement("S0-62")
@pytest.mark.parametrize("name", ["vg", "spindles", "dev_type", "size"])
async def test_no_parameter_of_a_provider_is_swallowed(
    cluster: SimCluster, name: str
) -> None:
    """A word that Ganeti uses for something else is a parameter like any other."""
    new = SAN | {"params": {name: "3"}}
    error = await cluster.refused("OP_DISK_ADD", **new)
    assert str(error) == (
        f"ExtStorage provider 'san' has no parameter '{name}': it takes tier"
    )
    uuid = await cluster.run("OP_DISK_ADD", **new, force_params=True)
    disk = cluster.config.disk(uuid)
    assert (disk.dev_type, disk.size) == ("ext", 64)
    assert disk.params == {"provider": "san", name: "3"}


async def test_a_listed_volume_group_reaches_the_provider(cluster: SimCluster) -> None:
    new = {"dev_type": "ext", "provider": "groups", "size": 64, "vg": "fast"}
    await instance(cluster, new)
    (disk,) = cluster.config.all(Disk)
    assert disk.params["vg"] == "fast"
    ran = cluster.nodes.nodes["node1"].machine.ran
    assert all(
        one.env["EXTP_VG"] == "fast" for one in ran if "EXTP_PROVIDER" in one.env
    )


@pytest.mark.parametrize("name", ["dev_type", "vg", "size", "colour"])
async def test_a_parameter_replaces_no_template(cluster: SimCluster, name: str) -> None:
    new = {"disk_template": "sharedfile", "size": 64, "params": {name: "file"}}
    error = await cluster.refused("OP_DISK_ADD", **new)
    assert str(error) == f"disk template 'sharedfile' has no parameter '{name}'"


async def test_a_provider_given_twice_is_one(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ADD", **SAN, params={"provider": "san"})
    error = await cluster.refused("OP_DISK_ADD", **SAN, params={"provider": "plainsan"})
    assert str(error) == "the disk's provider is given twice: 'san' and 'plainsan'"


async def test_spindles_are_refused(cluster: SimCluster) -> None:
    new = {"size": 64, "provider": "san", "spindles": 2}
    fields = {"instance_name": "web", "disk_template": "ext", "disks": [new]}
    error = await cluster.refused(CREATE, **fields)
    assert "spindles" in str(error)


@pytest.mark.requirement("S0-62")
@pytest.mark.parametrize("attached", [True, False])
async def test_a_change_of_parameters_is_held_to_the_list(
    cluster: SimCluster, attached: bool
) -> None:
    await cluster.run("OP_DISK_ADD", **SAN, name="data")
    await instance(cluster, disk_template="diskless")
    if attached:
        await cluster.run("OP_DISK_ATTACH", disk="data", instance_name="web")
    before = cluster.config
    new = {"disk": "data", "params": {"colour": "red"}}
    error = await cluster.refused("OP_DISK_SET_PARAMS", **new)
    assert isinstance(error, BadInput)
    assert str(error) == (
        "ExtStorage provider 'san' has no parameter 'colour': it takes tier"
    )
    assert cluster.config is before
    await cluster.run("OP_DISK_SET_PARAMS", **new, force_params=True)
    assert cluster.config.disk("data").params["colour"] == "red"
    # What is not listed can go without force.
    gone = {"disk": "data", "params": {"colour": "default", "tier": "ssd"}}
    await cluster.run("OP_DISK_SET_PARAMS", **gone)
    assert cluster.config.disk("data").params == {"provider": "san", "tier": "ssd"}


@pytest.mark.requirement("S0-62")
async def test_an_instances_disks_are_held_to_the_list(cluster: SimCluster) -> None:
    await instance(cluster, {"size": 64, "provider": "san", "name": "root"})
    for mod in (
        ["modify", 0, {"colour": "red"}],
        ["add", -1, {"size": 64, "colour": "red"}],
    ):
        fields = {"instance_name": "web", "disks": [mod]}
        error = await cluster.refused(MODIFY, **fields)
        assert "has no parameter 'colour': it takes tier" in str(error)
        await cluster.run(MODIFY, **fields, force_params=True)
    assert all(disk.params["colour"] == "red" for disk in cluster.config.all(Disk))


# -- a disk like the others --------------------------------------------------------


@pytest.mark.requirement("S3-26")
async def test_a_new_disk_is_like_the_others(cluster: SimCluster) -> None:
    await instance(cluster, {"size": 64, "provider": "plainsan"})
    await cluster.run(MODIFY, instance_name="web", disks=[["add", {"size": 32}]])
    config = cluster.config
    made = config.disks_of(config.instance("web"))[-1]
    assert (made.dev_type, made.size) == ("ext", 32)
    assert made.params == {"provider": "plainsan"}


@pytest.mark.requirement("S3-26")
async def test_a_new_disk_may_be_of_another_kind(cluster: SimCluster) -> None:
    """Only an instance of several templates, or of none, needs the template's name."""
    await instance(cluster, {"size": 64, "provider": "san"})
    other = ["add", {"size": 32, "provider": "plainsan"}]
    await cluster.run(MODIFY, instance_name="web", disks=[other])
    file = ["add", {"size": 32, "dev_type": "sharedfile"}]
    await cluster.run(MODIFY, instance_name="web", disks=[file])
    found = cluster.config.disks_of(cluster.config.instance("web"))
    assert [disk.dev_type for disk in found] == ["ext", "ext", "sharedfile"]
    assert found[1].params["provider"] == "plainsan"
    error = await cluster.refused(
        MODIFY, instance_name="web", disks=[["add", {"size": 32}]]
    )
    assert str(error) == "the disk names no template"
    assert "dev_type=" in error.hint


async def test_disks_of_several_providers_share_none(cluster: SimCluster) -> None:
    await instance(
        cluster, {"size": 64, "provider": "san"}, {"size": 64, "provider": "plainsan"}
    )
    error = await cluster.refused(
        MODIFY, instance_name="web", disks=[["add", {"size": 32}]]
    )
    assert str(error) == "Missing provider for template 'ext'"


# -- adoption ----------------------------------------------------------------------


def _os_scripts(cluster: SimCluster) -> list[Command]:
    ran = cluster.nodes.nodes["node1"].machine.ran
    return [one for one in ran if one.log.startswith("create-")]


@pytest.mark.requirement("S0-19")
@pytest.mark.parametrize("others", [[], [{"size": 64, "dev_type": "sharedfile"}]])
async def test_no_os_is_installed_over_adopted_data(
    cluster: SimCluster, others: list[dict[str, Any]]
) -> None:
    """Part of the row: adopted data is used as it is."""
    disks = [*others, {"adopt": LUN, "dev_type": "blockdev"}]
    await instance(cluster, *disks, os_type="tiny")
    assert _os_scripts(cluster) == []
    assert cluster.config.instance("web").os == "tiny"
    (said,) = [text for text in log(cluster) if text.startswith("Warning")]
    assert "the scripts of OS tiny do not run" in said
    assert "--install-adopted" in said


async def test_an_os_is_installed_over_adopted_data_on_purpose(
    cluster: SimCluster,
) -> None:
    lun = {"adopt": LUN, "dev_type": "blockdev"}
    await instance(cluster, lun, os_type="tiny", install_adopted=True)
    made = [one for one in _os_scripts(cluster) if one.argv[0].endswith("/create")]
    assert len(made) == 1
    assert log(cluster) == []


# -- image files -------------------------------------------------------------------


async def test_image_files_lie_where_they_were_asked_for(cluster: SimCluster) -> None:
    await instance(
        cluster,
        {"size": 64},
        disk_template="sharedfile",
        file_storage_dir="gold/fast",
        file_driver="loop",
    )
    (disk,) = cluster.config.all(Disk)
    assert disk.volume.startswith("/shared/gold/fast/web/")
    assert [*cluster.nodes.san.files] == [disk.volume]
    assert log(cluster) == []
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert not cluster.nodes.san.files


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"file_storage_dir": "/srv"}, "lies outside of /shared"),
        ({"file_storage_dir": "../.."}, "lies outside of /shared"),
    ],
)
async def test_where_no_image_file_can_lie(
    cluster: SimCluster, words: dict[str, str], sentence: str
) -> None:
    fields = {"instance_name": "web", "disk_template": "sharedfile", **words}
    error = await cluster.refused(CREATE, **fields, disks=[{"size": 64}])
    assert sentence in str(error)
    assert not cluster.config.knows(Instance, "web")


async def test_words_for_image_files_without_effect_are_told(
    cluster: SimCluster,
) -> None:
    new = {"size": 64, "provider": "san"}
    await instance(cluster, new, file_storage_dir="gold")
    assert "Warning: no disk is an image file" in " ".join(log(cluster))


async def test_a_template_without_disks_is_refused(cluster: SimCluster) -> None:
    error = await cluster.refused(
        CREATE, instance_name="web", disk_template="sharedfile"
    )
    assert str(error) == "no disk was described"
    assert "-t diskless" in error.hint


# -- what is made is looked at -----------------------------------------------------


async def test_a_provider_that_makes_nothing_is_found_out(cluster: SimCluster) -> None:
    """Its `create` says yes; nothing is there to attach."""
    san, answer = cluster.nodes.san, cluster.nodes.san.answer

    def idle(node: str, command: Command) -> Any:
        if command.argv[0].endswith("/create"):
            return type(answer(node, Command(("mkdir", "x"))))("")
        return answer(node, command)

    san.answer = idle  # type: ignore[method-assign]
    error = await cluster.refused("OP_DISK_ADD", **SAN, name="ghost")
    assert isinstance(error, Failed)
    assert "there is no volume" in str(error)
    assert not cluster.config.knows(Disk, "ghost")


async def test_a_new_disk_stays_active_nowhere(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ADD", **SAN, name="data")
    await cluster.run("OP_DISK_ADD", disk_template="blockdev", adopt=LUN, name="lun")
    san = cluster.nodes.san
    assert (len(san.volumes), san.attached) == (1, {})
    verified = await cluster.run("OP_CLUSTER_VERIFY")
    assert verified["errors"] == []
    (volume,) = san.volumes.values()
    assert volume["note"] == "disk+data"


async def test_a_device_that_is_not_there_is_said_to_be_missing(
    cluster: SimCluster,
) -> None:
    """Its size is not known: the instance policy has nothing to say of it."""
    lun = {"adopt": "/dev/disk/by-id/nobody", "dev_type": "blockdev"}
    fields = {"instance_name": "new", "pnode": "node1", "disks": [lun]}
    refused = await cluster.refused(
        "OP_INSTANCE_CREATE", disk_template="blockdev", **fields
    )
    assert "has no block device /dev/disk/by-id/nobody" in refused.message
