# SPDX-License-Identifier: BSD-2-Clause
"""Disks are called root and data in every instance, and mean what they hold."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.luxi_messages import error_from_wire
from moorage.cli.errors import lines
from moorage.errors import Ambiguous, Conflict, Exists
from moorage.model import Change, Disk, apply, load, successor
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import NAMED

UUIDS = {"disk_template": "ext", "provider": "usersan"}
"""Of a provider that says that it knows volumes by uuid."""
SILENT = {"disk_template": "ext", "provider": "san"}
"""Of one that says nothing, and may know them by the names of disks."""
NAMES = {"disk_template": "ext", "provider": "named"}
"""Of one that does."""
LOCAL = {"disk_template": "plain"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder())
    for node in cluster.nodes.nodes.values():
        node.machine.installed += NAMED
    yield cluster
    await cluster.stop()


def request(name: str, kind: dict[str, Any], *disks: str) -> dict[str, Any]:
    template, more = kind["disk_template"], kind.keys() - {"disk_template"}
    given = {one: kind[one] for one in more}
    return {
        "instance_name": name,
        "disk_template": template,
        "disks": [{"size": 64, "name": disk, **given} for disk in disks],
        "pnode": "node1",
        "nics": [],
        "no_install": True,
        "start": False,
    }


async def made(
    cluster: SimCluster, name: str, kind: dict[str, Any], *disks: str
) -> list[Disk]:
    """Make an instance, and write to each of its disks whose it is."""
    await cluster.run("OP_INSTANCE_CREATE", **request(name, kind, *disks))
    found = cluster.config.disks_of(cluster.config.instance(name))
    for disk in found:
        held(cluster, disk)["data"] = f"{name}/{disk.name}"
    return found


def held(cluster: SimCluster, disk: Disk) -> dict[str, Any]:
    """Return the volume of a disk of those providers."""
    volumes: dict[str, Any] = cluster.nodes.san.volumes
    known = disk.known_as if disk.params.get("provider") == "named" else disk.volume
    return volumes[known]


@pytest.mark.requirement("S3-46")
async def test_two_instances_have_a_disk_root(cluster: SimCluster) -> None:
    """Each by its own storage: what is done to one never touches the other's bytes."""
    (first,) = await made(cluster, "web1", UUIDS, "root")
    (second,) = await made(cluster, "web2", UUIDS, "root")
    await cluster.run("OP_INSTANCE_CREATE", **request("web3", LOCAL, "root", "swap"))
    error = await cluster.refused("OP_DISK_GROW", disk="root", amount=64)
    assert isinstance(error, Ambiguous)
    assert error.hint == "say which: web1/root or web2/root or web3/root"
    await cluster.run("OP_DISK_GROW", disk="web1/root", amount=64)
    await cluster.run("OP_DISK_SNAPSHOT", disk="web2/root", new_name="copy")
    await cluster.run("OP_DISK_DETACH", disk="web1/root")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web2")
    assert cluster.config.disk(first.uuid).size == 128
    assert not cluster.config.knows(Disk, second.uuid)
    assert held(cluster, first)["data"] == "web1/root"
    assert held(cluster, cluster.config.disk("copy"))["data"] == "web2/root"


@pytest.mark.requirement("S3-46")
@pytest.mark.parametrize("kind", [NAMES, SILENT], ids=["by name", "silent"])
async def test_where_one_name_is_one_volume_a_second_disk_is_refused(
    cluster: SimCluster, kind: dict[str, Any]
) -> None:
    (first,) = await made(cluster, "web1", kind, "root")
    (other,) = await made(cluster, "web2", kind, "data")
    await cluster.run("OP_INSTANCE_CREATE", **request("web3", LOCAL, "root"))
    spec = {key: kind[key] for key in kind if key != "disk_template"}
    add = [["add", -1, {"size": 64, "name": "root", **spec}]]
    modify = "OP_INSTANCE_SET_PARAMS"
    plain = cluster.config.disk("web3/root").uuid
    for op_id, fields in (
        ("OP_INSTANCE_CREATE", request("web4", kind, "root")),
        ("OP_DISK_ADD", {"name": "root", "size": 64, **kind}),
        (modify, {"instance_name": "web2", "disks": add}),
        (modify, {"instance_name": "web2", "disks": [["modify", 0, {"name": "root"}]]}),
        ("OP_DISK_RENAME", {"disk": "data", "new_name": "root"}),
        ("OP_DISK_CONVERT", {"disk": plain, **kind}),
        ("OP_DISK_CLONE", {"disk": plain, "new_name": "root", **kind}),
    ):
        error = await cluster.refused(op_id, **fields)
        assert isinstance(error, Exists), op_id
        assert "a disk named 'root' exists already" in error.message
    # The name at birth, too, is the volume's: it stays taken while the volume is there.
    await cluster.run("OP_DISK_RENAME", disk=first.uuid, new_name="old")
    error = await cluster.refused("OP_DISK_ADD", name="root", size=64, **kind)
    assert "the volume of disk old was made as 'root'" in error.message
    assert held(cluster, first)["data"] == "web1/root"
    assert held(cluster, other)["data"] == "web2/data"


LONG = "a" * 60
"""Two names that begin so are cut to the same one."""


async def crowded(cluster: SimCluster) -> None:
    """Make web1 whose disks' names are those of two free disks."""
    for name in (f"{LONG}bbbb", f"{LONG}cccc"):
        await cluster.run("OP_DISK_ADD", name=name, size=64, **UUIDS)
    await made(cluster, "web1", UUIDS, f"{LONG}bbbb", f"{LONG}cccc")


@pytest.mark.requirement("S3-46")
async def test_each_of_several_disks_that_leave_is_told_its_own_name(
    cluster: SimCluster,
) -> None:
    await crowded(cluster)
    uuids = cluster.config.instance("web1").disks
    leave = [["detach", "0", {}], ["detach", "1", {}]]
    number = await cluster.submit(
        "OP_INSTANCE_SET_PARAMS", instance_name="web1", disks=leave
    )
    job = await cluster.finished(number)
    assert job.status == "success"
    names = [str(cluster.config.disk(uuid).name) for uuid in uuids]
    assert len({*names}) == 2
    said = [word.partition("name=")[2] for _, word in job.ops[0].result]
    assert said == names
    log = str(job.ops[0].log)
    for uuid, name in zip(uuids, names, strict=True):
        assert f"disk {uuid} is named '{name}' from now on" in log


@pytest.mark.requirement("S3-46")
async def test_an_instance_leaves_several_disks_each_with_a_name_of_its_own(
    cluster: SimCluster,
) -> None:
    await crowded(cluster)
    uuids = cluster.config.instance("web1").disks
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web1", keep_disks=True)
    names = {cluster.config.disk(uuid).name for uuid in uuids}
    assert len(names) == 2
    assert not {f"{LONG}bbbb", f"{LONG}cccc"} & names


async def test_a_refusal_past_the_point_of_no_return_says_that_work_was_done(
    cluster: SimCluster,
) -> None:
    """What nobody could foresee: another record took the name under way."""
    await made(cluster, "web1", UUIDS, "root")
    await cluster.run("OP_DISK_ADD", name="other", size=64, **UUIDS)

    async def take(name: str) -> None:
        if name == "before forget web1":
            other = cluster.config.disk("other")
            twin = successor(other, 1.0, name="root")
            await cluster.config_store.commit(Change((twin,)))

    cluster.extra_point = take
    number = await cluster.submit(
        "OP_INSTANCE_REMOVE", instance_name="web1", keep_disks=True
    )
    job = await cluster.finished(number)
    assert job.status == "error"
    assert job.ops[0].error["facts"]["done_before"]
    told = error_from_wire(job.ops[0].error)
    assert "nothing was changed" not in "\n".join(lines(told))


@pytest.mark.requirement("S3-46")
@pytest.mark.parametrize("free", [LOCAL, UUIDS], ids=["local", "by uuid"])
async def test_a_free_disk_of_other_storage_keeps_no_name_from_an_instance(
    cluster: SimCluster, free: dict[str, Any]
) -> None:
    node = {"node": "node1"} if free is LOCAL else {}
    await cluster.run("OP_DISK_ADD", name="root", size=64, **free, **node)
    (mine,) = await made(cluster, "web1", NAMES, "root")
    assert held(cluster, mine)["data"] == "web1/root"
    await cluster.run("OP_INSTANCE_CREATE", **request("web2", LOCAL, "root"))
    (other,) = cluster.config.disks_of(cluster.config.instance("web2"))
    error = await cluster.refused("OP_DISK_CONVERT", disk=other.uuid, **NAMES)
    assert isinstance(error, Exists)
    # Where both would belong to nobody, the name is one disk's.
    error = await cluster.refused("OP_DISK_ADD", name="root", size=64, **NAMES)
    assert isinstance(error, Exists)


@pytest.mark.requirement("S3-46")
async def test_within_an_instance_and_among_free_disks_a_name_is_one_disk(
    cluster: SimCluster,
) -> None:
    await made(cluster, "web1", UUIDS, "root", "data")
    error = await cluster.refused("OP_DISK_RENAME", disk="data", new_name="root")
    assert error.message == "instance web1 has a disk named 'root' already"
    await cluster.run("OP_DISK_ADD", name="root", size=64, **UUIDS)
    error = await cluster.refused("OP_DISK_ADD", name="root", size=64, **UUIDS)
    assert error.message == "a disk named 'root' exists already"
    error = await cluster.refused("OP_DISK_ATTACH", disk="root", instance_name="web1")
    assert error.message == "instance web1 has a disk named 'root' already"
    await made(cluster, "web2", UUIDS, "data")
    await cluster.run("OP_DISK_ATTACH", disk="root", instance_name="web2")
    assert cluster.config.disk("web2/root") != cluster.config.disk("web1/root")


@pytest.mark.requirement("S3-46")
async def test_a_detached_disk_takes_a_new_name_where_its_own_is_taken(
    cluster: SimCluster,
) -> None:
    """It is told, and the name is one that leads to it."""
    disks = [(await made(cluster, f"web{n}", UUIDS, "root"))[0] for n in (1, 2, 3, 4)]
    told = await cluster.run("OP_DISK_DETACH", disk="web1/root")
    assert told == [["disk/0", "detach"]]
    number = await cluster.submit("OP_DISK_DETACH", disk="web2/root")
    (op,) = (await cluster.finished(number)).ops
    assert op.result == [["disk/0", "detach:name=root-2"]]
    assert "is named 'root-2' from now on: another detached disk is named" in str(
        op.log
    )
    await cluster.run(
        "OP_INSTANCE_SET_PARAMS", instance_name="web3", disks=[["detach", 0, {}]]
    )
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web4", keep_disks=True)
    names = [cluster.config.disk(one.uuid).name for one in disks]
    assert names == ["root", "root-2", "root-3", "root-4"]
    for number, disk in enumerate(disks, 1):
        assert held(cluster, disk)["data"] == f"web{number}/root"
        assert cluster.config.disk(disk.uuid).known_as == "root"


async def test_names_alone_make_nobody_wait(cluster: SimCluster) -> None:
    """A hundred guests with a disk root are made side by side, and go so."""
    new = [request(f"web{number}", UUIDS, "root") for number in range(4)]
    await cluster.run("OP_INSTANCE_CREATE", **new[0])
    for op_id, fields in (
        ("OP_INSTANCE_CREATE", new[1:]),
        (
            "OP_INSTANCE_REMOVE",
            [{"instance_name": one["instance_name"]} for one in new],
        ),
    ):
        at_once: list[str] = []
        full = asyncio.Event()

        async def meet(name: str, wanted: int = len(fields)) -> None:
            step = "before create disk", "before remove disk"
            if name.startswith(step) and not full.is_set():  # noqa: B023
                at_once.append(name)  # noqa: B023
                if len(at_once) == wanted:  # noqa: B023
                    full.set()  # noqa: B023
                await asyncio.wait_for(full.wait(), 20)  # noqa: B023

        cluster.extra_point = meet
        numbers = [await cluster.submit(op_id, **one) for one in fields]
        jobs = [await cluster.finished(number) for number in numbers]
        assert [job.status for job in jobs] == ["success"] * len(fields)
    assert not list(cluster.config.all(Disk))


@pytest.mark.requirement("S3-46")
async def test_of_free_disks_that_come_at_once_each_has_its_name(
    cluster: SimCluster,
) -> None:
    for number in range(4):
        await made(cluster, f"web{number}", UUIDS, "root")
    detach = [
        {"OP_ID": "OP_DISK_DETACH", "disk": f"web{number}/root"} for number in range(3)
    ]
    gone = {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web3", "keep_disks": True}
    assert await cluster.at_once(*detach, gone) == []
    names = sorted(f"{disk.name}" for disk in cluster.config.all(Disk))
    assert names == ["root", "root-2", "root-3", "root-4"]


@pytest.mark.requirement("S3-46")
def test_no_commit_gives_a_name_twice_where_it_is_one_disk() -> None:
    builder = ClusterBuilder().instance("web", disks=("a", "b"))
    for uuid, by_uuid in (("a", True), ("b", True), ("c", True), ("d", False)):
        builder.disk(uuid, by_uuid=by_uuid)
    config = load(1, builder.change().put)
    for uuid, name in (("a", "b"), ("c", "d")):  # in an instance, and nobody's
        change = Change((successor(config.disk(uuid), 1.0, name=name),))
        with pytest.raises(Conflict, match=f"the name '{name}' is taken"):
            apply(config, change)
    same = apply(config, Change((successor(config.disk("c"), 1.0, name="a"),)))
    web = same.instance("web")
    with pytest.raises(Conflict, match="the name 'a' is taken"):
        apply(same, Change((successor(web, 2.0, disks=("a", "b", "c")),)))
    new = replace(config.disk("d"), uuid="e")
    with pytest.raises(Conflict, match="the name 'd' is taken"):
        apply(config, Change((new, successor(web, 2.0, disks=("a", "b", "e")))))


@pytest.mark.requirement("S3-46")
async def test_a_freed_disk_gets_no_name_by_which_a_volume_is_known(
    cluster: SimCluster,
) -> None:
    """Its new name is no other volume's, not even one that was made as that."""
    (sole,) = await made(cluster, "web1", NAMES, "root-2")
    await cluster.run("OP_DISK_RENAME", disk=sole.uuid, new_name="old")
    await made(cluster, "web2", UUIDS, "root")
    await cluster.run("OP_DISK_ADD", name="root", size=64, **UUIDS)
    await cluster.run("OP_DISK_DETACH", disk="web2/root")
    assert {disk.name for disk in cluster.config.all(Disk)} == {"old", "root", "root-3"}


@pytest.mark.requirement("S3-46")
async def test_a_freed_disks_new_name_is_nobody_elses_at_the_same_moment(
    cluster: SimCluster,
) -> None:
    """Whoever asks for it meanwhile waits, and is refused by what is so then."""
    await made(cluster, "web1", UUIDS, "root")
    await cluster.run("OP_DISK_ADD", name="root", size=64, **UUIDS)
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait(name: str) -> None:
        if name.startswith("before") and not begun.is_set():
            begun.set()
            await asyncio.wait_for(go.wait(), 60)

    cluster.extra_point = wait
    first = await cluster.submit("OP_DISK_DETACH", disk="web1/root")
    await begun.wait()
    second = await cluster.submit("OP_DISK_ADD", name="root-2", size=64, **UUIDS)
    await asyncio.sleep(0.3)  # in which it could be done, if nothing held it
    go.set()
    assert (await cluster.finished(first)).status == "success"
    job = await cluster.finished(second)
    assert job.status == "error"
    assert "a disk named 'root-2' exists already" in str(job.ops[0].error)
