# SPDX-License-Identifier: BSD-2-Clause
"""Storage against the configuration: what is told, what is planned, what is done."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from moorage.errors import Exists, WrongState
from moorage.model import Change, successor
from moorage.ops.asking.node_tasks import of_disk
from moorage.protocol import AttachDisk, to_wire
from moorage.storage import naming
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.state_snapshot import picture

RECONCILE = "OP_STORAGE_RECONCILE"
SAN = {"disk_template": "ext", "provider": "san", "size": 64}
SHARED = {"disk_template": "sharedfile", "size": 64}
LOCAL = {"disk_template": "file", "size": 64, "node": "node2"}
OURS = "5d9d4ab9-3a4c-4f1e-8a2b-6f0c3f0e9d11"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder().instance("web1").instance("web2", "node2")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    for name, kind in (("s1", SAN), ("s2", SAN), ("f1", SHARED), ("l1", LOCAL)):
        await cluster.run("OP_DISK_ADD", name=name, **kind)
    yield cluster
    await cluster.stop()


async def looked(cluster: SimCluster, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await cluster.run(RECONCILE, **more)
    return found


async def repaired(cluster: SimCluster) -> list[str]:
    """Carry the plan out; return its steps."""
    plan = (await looked(cluster))["plan"]
    await looked(cluster, repair=plan)
    assert (await looked(cluster))["plan"] == []
    return [one["what"] for one in plan]


def states(found: dict[str, Any]) -> dict[str, str]:
    return {one["volume"]: one["state"] for one in found["volumes"]}


async def hold(cluster: SimCluster, node: str, name: str, later: int = 0) -> None:
    """Attach a disk on a node behind the master's back, some epochs later."""
    disk = cluster.config.disk(name)
    disk = replace(disk, epoch=disk.epoch + later)
    call = AttachDisk(**of_disk(cluster.config, disk))
    verb, args = to_wire(call)
    agent = cluster.nodes.nodes[node].agent
    await agent.handle(
        verb, to_builtins(args), cluster.config_store.term, lambda *_: None
    )


async def test_what_is_in_order_needs_nothing(cluster: SimCluster) -> None:
    found = await looked(cluster)
    assert found["counts"] == {"referenced": 4, "missing": 0}
    assert (found["volumes"], found["plan"], found["doubts"]) == ([], [], [])
    whole = await looked(cluster, everything=True)
    assert {one["name"] for one in whole["volumes"]} == {"s1", "s2", "f1", "l1"}
    local = next(one for one in whole["volumes"] if one["name"] == "l1")
    assert local["nodes"] == ["node2"]


@pytest.mark.parametrize("name", ["s1", "f1", "l1"])
async def test_a_forgotten_volume_comes_back_in_quarantine_and_lives_on(
    cluster: SimCluster, name: str
) -> None:
    old = cluster.config.disk(name)
    await cluster.run("OP_DISK_FORGET", disk=name, why="a slip")
    found = await looked(cluster)
    assert set(states(found).values()) == {"forgotten"}
    (why,) = [one["why"] for one in found["volumes"]]
    assert why == f"it was of disk {name}, which is gone"
    (step,) = await repaired(cluster)
    assert step.startswith("make a disk in quarantine of volume ")
    (new,) = [disk for disk in cluster.config.detached() if disk.quarantine]
    assert new.uuid != old.uuid
    assert (new.logical_id, new.size) == (old.logical_id, 64)
    assert f"it was of disk {name}" in (new.quarantine or "")
    home = "web2" if name == "l1" else "web1"
    refused = await cluster.refused("OP_DISK_ATTACH", disk=new.uuid, instance_name=home)
    assert isinstance(refused, WrongState)
    await cluster.run(
        "OP_DISK_SET_PARAMS", disk=new.uuid, name=name, lift_quarantine=True
    )
    await cluster.run("OP_DISK_ATTACH", disk=name, instance_name=home)
    await cluster.run("OP_DISK_DETACH", disk=name)
    await cluster.run("OP_DISK_REMOVE", disk=name)
    assert (await looked(cluster))["counts"] == {"referenced": 3, "missing": 0}


async def test_what_scripts_knew_a_forgotten_volume_as_is_no_other_disks_name(
    cluster: SimCluster,
) -> None:
    """Its provider may go by the name; an older state has a person say it."""
    await cluster.run("OP_DISK_RENAME", disk="s1", new_name="other")
    await cluster.run("OP_DISK_FORGET", disk="other", why="a slip")
    await repaired(cluster)
    said = await cluster.refused("OP_DISK_ADD", name="s1", **SAN)
    assert "was made as 's1', and storage scripts still know it" in said.message
    name = f"{OURS}.ext.disk0"
    cluster.nodes.san.volumes[name] = {"size": 64, "provider": "san"}
    await repaired(cluster)
    (found,) = [one for one in cluster.config.detached() if one.volume == name]
    assert "give it that name again" in (found.quarantine or "")
    await cluster.run("OP_DISK_RENAME", disk=found.uuid, new_name="lost")
    assert isinstance(await cluster.refused("OP_DISK_ADD", name="lost", **SAN), Exists)


async def test_names_tell_ours_from_those_of_others_which_nobody_touches(
    cluster: SimCluster,
) -> None:
    san = cluster.nodes.san
    for name in ("db-of-another-cluster", f"{OURS}.ext.disk0"):
        san.volumes[name] = {"size": 7, "provider": "san", "note": "hers", "data": ""}
    san.files["/shared/iso/debian.iso"] = {"size": 1, "data": ""}
    before = dict(san.volumes), dict(san.files)
    assert states(await looked(cluster)) == {
        "/shared/iso/debian.iso": "unknown",
        f"san/{OURS}.ext.disk0": "forgotten",
        "san/db-of-another-cluster": "unknown",
    }
    await repaired(cluster)
    assert (dict(san.volumes), dict(san.files)) == before
    assert states(await looked(cluster)) == {
        "/shared/iso/debian.iso": "unknown",
        "san/db-of-another-cluster": "unknown",
    }
    (new,) = [disk for disk in cluster.config.detached() if disk.quarantine]
    assert "its name is of our kind, and no disk is known to be in it" in new.quarantine


async def test_a_volume_by_the_name_of_a_disks_on_another_node_is_not_ours_to_touch(
    cluster: SimCluster,
) -> None:
    """The directory of a node may be that of another one, mounted."""
    disk, files = cluster.config.disk("l1"), cluster.nodes.san.files
    files[f"node3:{disk.volume}"] = dict(files[f"node2:{disk.volume}"])
    found = await looked(cluster)
    (told,) = found["volumes"]
    assert (told["state"], told["nodes"]) == ("unknown", ["node3"])
    assert told["why"] == "disk l1 has its volume by that name elsewhere"
    assert found["plan"] == []


async def test_a_storage_in_the_directory_of_another_one(cluster: SimCluster) -> None:
    """A provider keeps its volumes below the directory of shared files."""
    cluster.nodes.san.files |= {
        f"/shared/san/{cluster.config.disk('s1').volume}": {"size": 9, "data": ""},
        f"/shared/san/{OURS}.ext.disk0": {"size": 9, "data": ""},
    }
    found = await looked(cluster)
    assert set(states(found).values()) == {"unknown"}
    assert found["plan"] == []


async def test_a_disk_without_its_volume_is_quarantined(cluster: SimCluster) -> None:
    san = cluster.nodes.san
    disk = cluster.config.disk("s1")
    del san.volumes[disk.volume]
    (told,) = (await looked(cluster))["missing"]
    assert (told["name"], told["nodes"]) == ("s1", ["node1", "node2", "node3"])
    (step,) = await repaired(cluster)
    assert step.startswith(
        f"quarantine disk s1: there is no volume san/{disk.volume} on "
    )
    why = step.removeprefix("quarantine disk s1: ")
    assert cluster.config.disk("s1").quarantine == f"job 7: {why}"
    again = await looked(cluster)
    assert [one["quarantine"] is not None for one in again["missing"]] == [True]


async def test_storage_that_shows_nothing_at_all_proves_nothing(
    cluster: SimCluster,
) -> None:
    for name in ("s1", "s2"):
        del cluster.nodes.san.volumes[cluster.config.disk(name).volume]
    found = await looked(cluster)
    assert (found["missing"], found["plan"]) == ([], [])
    (doubt,) = found["doubts"]
    assert doubt == (
        "ext san on node node1 shows nothing at all, and 2 disks should be there: is "
        "that storage there?"
    )


async def test_a_list_that_fails_proves_nothing(cluster: SimCluster) -> None:
    del cluster.nodes.san.volumes[cluster.config.disk("s1").volume]
    machine = cluster.nodes.nodes["node1"].machine
    machine.refuse = lambda _node, command: command.argv[0].endswith("/list")
    found = await looked(cluster)
    assert found["missing"] == []  # node1 had it last, and may be the one that keeps it
    (told,) = [one for one in found["storages"] if one["problem"]]
    assert (told["node"], told["unit"]) == ("node1", "san")
    assert "External storage's list script failed" in told["problem"]


async def test_a_node_that_is_silent_is_told(cluster: SimCluster) -> None:
    cluster.nodes.nodes["node2"].lose_power()
    await cluster.run("OP_DISK_FORGET", disk="s1", why="a slip")
    found = await looked(cluster)
    assert found["counts"] == {"referenced": 2, "forgotten": 1, "missing": 0}
    silent = {one["node"] for one in found["storages"] if one["problem"]}
    assert silent == {"node2"}


async def test_a_provider_without_the_script_is_told_and_left_alone(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_ADD", name="p1", **SAN | {"provider": "plainsan"})
    found = await looked(cluster)
    (problem,) = {one["problem"] for one in found["storages"] if one["problem"]}
    assert problem == (
        "ExtStorage provider 'plainsan' does not tell which volumes there are: it has "
        "no script 'list'"
    )
    assert found["missing"] == []


async def test_a_stray_attach_is_ended_and_one_in_use_never(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_ATTACH", disk="s1", instance_name="web1")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    await hold(cluster, "node3", "s2")
    await hold(cluster, "node3", "s1")
    found = await looked(cluster)
    assert {(one["name"], one["node"], one["why"]) for one in found["attached"]} == {
        ("s1", "node3", "its instance web1 is on node node1"),
        ("s2", "node3", "it is attached to no instance"),
    }
    steps = await repaired(cluster)
    assert len(steps) == 2
    san = cluster.nodes.san
    assert [key for key in san.attached if key.startswith("node3 ")] == []
    volume = cluster.config.disk("s1").volume
    assert f"node1 {volume}" in san.attached


async def test_a_stray_of_a_later_epoch_is_ended_and_can_be_attached_again(
    cluster: SimCluster,
) -> None:
    """As when the store was put back from a backup that is older."""
    await hold(cluster, "node1", "s1", later=3)
    assert len(await repaired(cluster)) == 1
    assert cluster.nodes.san.attached == {}
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    await cluster.run("OP_DISK_ATTACH", disk="s1", instance_name="web1")
    assert cluster.config.disk("s1").epoch == 4


async def test_what_a_guest_uses_is_no_step_of_a_plan(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ATTACH", disk="s1", instance_name="web1")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    web1, config = cluster.config.instance("web1"), cluster.config
    moved = successor(web1, 1.0, primary_node="node2")
    await cluster.config_store.commit(Change((moved,)))
    found = await looked(cluster)
    assert [(one["node"], one["used"]) for one in found["attached"]] == [
        ("node1", True)
    ]
    assert found["plan"] == []
    step = {"do": "detach", "disk": config.disk("s1").uuid, "node": "node1"}
    await looked(cluster, repair=[step])
    assert f"node1 {config.disk('s1').volume}" in cluster.nodes.san.attached


async def test_a_volume_that_a_job_makes_is_not_forgotten(cluster: SimCluster) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()

    async def wait(name: str) -> None:
        if name.startswith("after create disk new"):
            reached.set()
            await gate.wait()

    cluster.extra_point = wait
    job = await cluster.submit("OP_DISK_ADD", name="new", **SAN)
    await reached.wait()
    found = await looked(cluster)
    assert list(states(found).values()) == ["busy"]
    assert found["plan"] == []
    gate.set()
    await cluster.finished(job)
    assert (await looked(cluster))["counts"] == {"referenced": 5, "missing": 0}


async def test_what_changes_while_nodes_are_asked_is_no_finding(
    cluster: SimCluster,
) -> None:
    """A disk is made and another is removed between the answers and the decision."""
    cluster.nodes.hold = asyncio.Event()
    held = cluster.nodes.hold
    job = await cluster.submit(RECONCILE)
    for _ in range(100):
        await asyncio.sleep(0)
    assert cluster.nodes.under_way
    cluster.nodes.hold = None
    await cluster.run("OP_DISK_ADD", name="new", **SAN)
    await cluster.run("OP_DISK_REMOVE", disk="s1")
    held.set()
    found = (await cluster.finished(job)).ops[0].result
    assert (found["plan"], found["missing"]) == ([], [])


async def test_a_step_that_is_not_due_any_more_is_left_out(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_FORGET", disk="s1", why="a slip")
    plan = (await looked(cluster))["plan"]
    cluster.nodes.san.volumes.pop(plan[0]["volume"][-1])
    before = cluster.config
    job = await cluster.finished(await cluster.submit(RECONCILE, repair=plan))
    assert cluster.config is before
    log = [str(entry[3]) for entry in job.ops[0].log]
    assert any("left out, for it is not due any more: make a disk" in x for x in log)


async def test_two_plans_at_once_make_one_disk(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_FORGET", disk="s1", why="a slip")
    plan = (await looked(cluster))["plan"]
    steps = {"OP_ID": RECONCILE, "repair": plan}
    assert await cluster.at_once(steps, dict(steps)) == []
    assert len([disk for disk in cluster.config.detached() if disk.quarantine]) == 1


async def test_a_name_goes_to_a_forgotten_volume_or_to_a_new_disk_never_to_both(
    cluster: SimCluster,
) -> None:
    """Scripts that go by the name would take one volume for the other."""
    await cluster.run("OP_DISK_FORGET", disk="s1", why="a slip")
    plan = (await looked(cluster))["plan"]
    steps: list[int] = []

    async def meanwhile(name: str) -> None:
        if name.startswith("before create disk s1"):
            steps.append(await cluster.submit(RECONCILE, repair=plan))
            for _ in range(1000):
                await asyncio.sleep(0)

    cluster.extra_point = meanwhile
    await cluster.run("OP_DISK_ADD", name="s1", **SAN)
    assert (await cluster.finished(*steps)).status == "success"
    called = [disk for disk in cluster.config.detached() if disk.known_as == "s1"]
    assert len(called) == 1


@pytest.mark.parametrize(
    ("pattern", "name", "ours"),
    [
        ("{pool}-{uuid}", f"fast-{OURS}", True),
        ("{pool}-{uuid}", f"slow-{OURS}", False),
        ("vm.{instance}.{index}.{short}", "vm.web1.example.0.0a1b2c3d4e5f", True),
        ("vm.{instance}.{index}.{short}", "vmXweb1.0.0a1b2c3d4e5f", False),
        ("", "whatever", False),
    ],
)
def test_a_pool_knows_its_names(pattern: str, name: str, ours: bool) -> None:
    assert naming.could_be(pattern, "fast", name) is ours


# -- adopting --------------------------------------------------------------------------

HERS = {"size": 7, "provider": "san", "data": "hers"}


async def test_a_strangers_volume_is_adopted_by_a_persons_word(
    cluster: SimCluster,
) -> None:
    cluster.nodes.san.volumes["hers"] = dict(HERS)
    asked = {"volume": "hers", "disk_template": "ext", "provider": "san"}
    uuid = await cluster.run("OP_DISK_ADOPT", name="mine", **asked)
    disk = cluster.config.disk("mine")
    assert (disk.uuid, disk.logical_id, disk.size) == (uuid, ("san", "hers"), 7)
    await cluster.run("OP_DISK_ATTACH", disk="mine", instance_name="web1")
    assert cluster.nodes.san.volumes["hers"]["data"] == "hers"
    taken = await cluster.refused("OP_DISK_ADOPT", **asked)
    assert str(taken) == "volume 'hers' is that of disk mine"
    (told,) = [
        one for one in await cluster.config_store.story(uuid) if one.kind == "made"
    ]
    assert told.op == "DISK_ADOPT(hers)"


@pytest.mark.requirement("S0-81", "S0-82")
async def test_what_is_adopted_into_a_pool_keeps_the_pool(cluster: SimCluster) -> None:
    cluster.nodes.san.volumes["hers"] = dict(HERS)
    for name, groups in (("idle", []), ("fast", ["default"])):
        pool: dict[str, Any] = {"pool_name": name, "groups": groups}
        await cluster.run("OP_STORAGE_POOL_ADD", provider="san", **pool)
    asked = {"volume": "hers", "name": "mine"}
    told = await cluster.refused("OP_DISK_ADOPT", pool="idle", **asked)
    assert "'idle', which is not connected to node group default" in str(told)
    (only,) = await cluster.at_once(
        {"OP_ID": "OP_DISK_ADOPT", "pool": "fast", **asked},
        {"OP_ID": "OP_STORAGE_POOL_REMOVE", "pool_name": "fast"},
    )
    assert "cannot be removed: a disk uses it: mine (detached)" in str(only)
    assert cluster.config.disk("mine").pool == cluster.config.pool("fast").uuid


async def test_a_file_is_adopted_by_its_path_on_its_node(cluster: SimCluster) -> None:
    cluster.nodes.san.files["node2:/local/old.img"] = {"size": 5 << 20, "data": "x"}
    asked = {"volume": "/local/old.img", "disk_template": "file"}
    unnamed = await cluster.refused("OP_DISK_ADOPT", **asked)
    assert unnamed.hint == "say which: -n NODE"
    elsewhere = await cluster.refused("OP_DISK_ADOPT", node="node1", **asked)
    assert str(elsewhere) == "node node1 sees no volume '/local/old.img'"
    await cluster.run("OP_DISK_ADOPT", node="node2", name="old", **asked)
    disk = cluster.config.disk("old")
    assert (disk.size, disk.nodes) == (5, ("node2",))


async def test_a_quarantined_volume_is_not_adopted_twice(cluster: SimCluster) -> None:
    volume = f"{OURS}.ext.disk0"
    cluster.nodes.san.volumes[volume] = dict(HERS)
    await repaired(cluster)
    asked = {"volume": volume, "disk_template": "ext", "provider": "san"}
    error = await cluster.refused("OP_DISK_ADOPT", **asked)
    (disk,) = [one for one in cluster.config.detached() if one.quarantine]
    assert error.hint == f"gnt-disk modify --lift-quarantine {disk.uuid}"


async def test_what_cannot_be_adopted_says_why(cluster: SimCluster) -> None:
    for fields, words in (
        ({"disk_template": "blockdev"}, "does not tell which volumes there are"),
        ({"disk_template": "ext", "provider": "plainsan"}, "has no script 'list'"),
        ({"disk_template": "ext", "provider": "san"}, "sees no volume 'x'"),
        ({"disk_template": "ext", "provider": "san", "name": "s1"}, "exists already"),
    ):
        error = await cluster.refused("OP_DISK_ADOPT", volume="x", **fields)
        assert words in str(error)


# -- disks that an instance leaves -----------------------------------------------------


@pytest.mark.requirement("S3-27")
async def test_disks_stay_when_their_instance_goes(cluster: SimCluster) -> None:
    for name in ("s1", "f1"):
        await cluster.run("OP_DISK_ATTACH", disk=name, instance_name="web1")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web1", keep_disks=True)
    assert {disk.name for disk in cluster.config.detached()} == {"s1", "s2", "f1", "l1"}
    assert cluster.nodes.san.attached == {}
    assert (await looked(cluster))["plan"] == []
    await cluster.run("OP_DISK_ATTACH", disk="s1", instance_name="web2")
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web2")
    assert {disk.name for disk in cluster.config.detached()} == {"s2", "f1", "l1"}


async def test_a_detached_disks_new_name_is_noted_beside_its_volume(
    cluster: SimCluster,
) -> None:
    volume = cluster.config.disk("s1").volume
    assert cluster.nodes.san.volumes[volume]["note"] == "disk+s1"
    await cluster.run("OP_DISK_RENAME", disk="s1", new_name="s3")
    assert cluster.nodes.san.volumes[volume]["note"] == "disk+s3"
    await cluster.run("OP_DISK_SET_PARAMS", disk="s3", name="s4")
    assert cluster.nodes.san.volumes[volume]["note"] == "disk+s4"


# -- crashes ---------------------------------------------------------------------------


async def test_a_crash_anywhere_in_a_plan_leaves_it_done_or_not_begun(
    cluster: SimCluster, tmp_path: Path
) -> None:
    """A node lets go, a volume comes back, and a disk is quarantined, or none is."""
    await cluster.run("OP_DISK_FORGET", disk="f1", why="a slip")
    del cluster.nodes.san.volumes[cluster.config.disk("s1").volume]
    await hold(cluster, "node3", "s2", later=2)
    plan = (await looked(cluster))["plan"]
    assert sorted(one["do"] for one in plan) == ["detach", "quarantine", "suspend"]
    await cluster.stop()
    before = await picture(cluster)
    whole = await cluster.twin(tmp_path / "whole")
    await looked(whole, repair=plan)
    after = await picture(whole)
    await whole.stop()
    assert after.differences(before) != []
    for point in range(len(whole.points)):
        twin = await cluster.twin(tmp_path / f"{point}")
        twin.crash_at = point
        number = await twin.submit(RECONCILE, repair=plan)
        with pytest.raises(Crash):
            await twin.finished(number)
        await twin.crash()
        twin.crash_at = None
        await twin.boot()
        job = await twin.finished(number)
        seen = await picture(twin)
        side = after if job.status == "success" else before
        assert seen.differences(side) == [], whole.points[point]
        assert twin.engine.locks.rows() == []
        await twin.stop()
