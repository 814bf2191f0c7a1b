"""Mirrored disks through the operations, on simulated nodes with simulated DRBD."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import WrongState
from moorage.model import pair_of
from moorage.storage import Command, Output
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=4))
    yield cluster
    await cluster.stop()


async def made(cluster: SimCluster, name: str = "web", **more: Any) -> None:
    fields = {
        "disk_template": "drbd",
        "disks": [{"size": 1024, "name": f"{name}-root"}],
        "pnode": "node1",
        "snode": "node2",
    }
    await cluster.run("OP_INSTANCE_CREATE", instance_name=name, **(fields | more))


def sides(cluster: SimCluster) -> dict[str, tuple[str, str]]:
    """Return role and peer of each device, by node and minor."""
    return {
        key: (one["role"], one["other"])
        for key, one in sorted(cluster.nodes.san.mirrors.items())
    }


def roles(cluster: SimCluster) -> dict[str, str]:
    return {key: role for key, (role, _) in sides(cluster).items()}


def states(cluster: SimCluster, node: str) -> list[str]:
    told = cluster.nodes.san.drbd.status(node).splitlines()
    return [line.split(" C ")[0].strip() for line in told if " cs:" in line]


async def test_an_instance_is_made_on_two_nodes(cluster: SimCluster) -> None:
    await made(cluster)
    disk = cluster.config.disk("web-root")
    pair = pair_of(disk)
    assert pair
    assert disk.nodes == pair.nodes == ("node1", "node2")
    assert pair.port == 11000
    assert pair.minors == (0, 0)
    assert roles(cluster) == {"node1 0": "Primary", "node2 0": "Secondary"}
    assert states(cluster, "node2") == [
        "0: cs:Connected ro:Secondary/Primary ds:UpToDate/UpToDate"
    ]
    volumes = {key: one["size"] for key, one in cluster.nodes.san.logical.items()}
    name = disk.volume.removesuffix("_data")
    assert volumes == {
        f"{node} xenvg/{name}_{part}": size
        for node in ("node1", "node2")
        for part, size in (("data", 1024), ("meta", 128))
    }


@pytest.mark.requirement("S0-07")
async def test_only_mirrored_disks_have_a_secondary_node(cluster: SimCluster) -> None:
    new = {"instance_name": "web", "pnode": "node1", "start": False}
    alone = await cluster.refused(
        "OP_INSTANCE_CREATE", disk_template="drbd", disks=[{"size": 64}], **new
    )
    assert "mirrored disks need a second node" in alone.message
    for template in ("plain", "sharedfile", "file"):
        fields = new | {"disk_template": template, "disks": [{"size": 64}]}
        both = await cluster.refused("OP_INSTANCE_CREATE", snode="node2", **fields)
        assert "has a second copy" in both.message


async def test_both_nodes_let_go_and_take_it_up_again(cluster: SimCluster) -> None:
    await made(cluster)
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    assert roles(cluster) == {}
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    assert roles(cluster) == {"node1 0": "Primary", "node2 0": "Secondary"}
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web")
    assert roles(cluster) == {}
    assert not cluster.nodes.san.logical


async def test_a_guest_migrates_to_its_secondary_and_back(cluster: SimCluster) -> None:
    await made(cluster)
    refused = await cluster.refused(
        "OP_INSTANCE_MIGRATE", instance_name="web", target_node="node3"
    )
    assert "it can go to its secondary node node2, and not to node3" in refused.message
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert cluster.config.instance("web").primary_node == "node2"
    assert roles(cluster) == {"node1 0": "Secondary", "node2 0": "Primary"}
    assert not any(one["two"] for one in cluster.nodes.san.mirrors.values())
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node1")
    assert roles(cluster) == {"node1 0": "Primary", "node2 0": "Secondary"}


async def lost(cluster: SimCluster, node: str) -> None:
    """Let a node lose its power, and say so."""
    cluster.nodes.nodes[node].lose_power()
    await cluster.run("OP_NODE_SET_PARAMS", node_name=node, offline=True)


async def test_what_was_written_is_there_after_a_failover(cluster: SimCluster) -> None:
    await made(cluster, pnode="node2", snode="node3")
    cluster.nodes.san.drbd.write("node2", 0, "letter")
    await lost(cluster, "node2")
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web")
    assert roles(cluster) == {"node3 0": "Primary"}
    volume = cluster.config.disk("web-root").volume
    assert cluster.nodes.san.logical[f"node3 xenvg/{volume}"]["data"] == "letter"


async def lagging(cluster: SimCluster) -> None:
    """Let the copy on node3 stay behind in the middle of its first sync."""
    cluster.nodes.san.slow_sync = 1000
    await made(cluster, wait_for_sync=False, pnode="node2", snode="node3")


async def test_a_copy_that_is_behind_is_not_gone_to(cluster: SimCluster) -> None:
    await lagging(cluster)
    moved = await cluster.refused("OP_INSTANCE_MIGRATE", instance_name="web")
    assert "the copies of disk web-root are not the same" in moved.message
    failed = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "the copy of disk web-root on node node3 is not up to date" in failed.message
    assert "--ignore-consistency" in failed.hint
    assert roles(cluster) == {"node2 0": "Primary", "node3 0": "Secondary"}


async def test_somebody_says_that_it_shall_go_on_with_old_data(
    cluster: SimCluster,
) -> None:
    await lagging(cluster)
    await lost(cluster, "node2")
    refused = await cluster.refused("OP_INSTANCE_FAILOVER", instance_name="web")
    assert "not up to date" in refused.message
    await cluster.run(
        "OP_INSTANCE_FAILOVER", instance_name="web", ignore_consistency=True
    )
    assert roles(cluster) == {"node3 0": "Primary"}


@pytest.mark.requirement("S3-49")
async def test_disks_that_are_made_at_once_share_no_number(cluster: SimCluster) -> None:
    await made(cluster)
    await cluster.run("OP_DISK_DETACH", disk="web-root")
    new = {"OP_ID": "OP_DISK_ADD", "disk_template": "drbd", "size": 64}
    pairs = [("node1", "node2"), ("node2", "node1"), ("node1", "node3")]
    several = [
        new | {"name": f"d{number}", "node": ":".join(pair)}
        for number, pair in enumerate(pairs * 2)
    ]
    assert await cluster.at_once(*several) == []
    found = [pair_of(cluster.config.disk(f"d{n}")) for n in range(6)]
    numbers = [one for pair in found if pair for one in pair.reserved()]
    mine = pair_of(cluster.config.disk("web-root"))
    assert mine
    numbers += mine.reserved()
    assert len(numbers) == len(set(numbers)) == 21
    assert sorted(port for node, port in numbers if not node) == [*range(11000, 11007)]


async def test_the_second_node_of_a_new_disk_may_be_left_open(
    cluster: SimCluster,
) -> None:
    """``-n node1:`` is ``-n node1``, typed by somebody who thought twice."""
    new = {"disk_template": "drbd", "size": 64}
    for name, node in (("a", "node1"), ("b", "node1:")):
        await cluster.run("OP_DISK_ADD", name=name, node=node, **new)
        pair = pair_of(cluster.config.disk(name))
        assert pair
        assert cluster.config.node("node1").uuid in pair.nodes


@pytest.mark.requirement("S3-47")
async def test_a_disk_is_attached_where_both_its_nodes_are_the_instances(
    cluster: SimCluster,
) -> None:
    await made(cluster)
    new = {"disk_template": "drbd", "size": 64}
    for name, node in (("other", "node1:node3"), ("far", "node3:node4")):
        await cluster.run("OP_DISK_ADD", name=name, node=node, **new)
    await cluster.run("OP_DISK_ADD", name="swapped", node="node2:node1", **new)
    other = await cluster.refused("OP_DISK_ATTACH", disk="other", instance_name="web")
    assert "an instance has one secondary node" in other.message
    far = await cluster.refused("OP_DISK_ATTACH", disk="far", instance_name="web")
    assert "node node1 does not reach it" in far.message
    await cluster.run("OP_DISK_ATTACH", disk="swapped", instance_name="web")
    assert roles(cluster)["node1 2"] == "Primary"
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert {key for key, role in roles(cluster).items() if role == "Primary"} == {
        "node2 0",
        "node2 1",
    }


@pytest.mark.requirement("S3-36")
async def test_mirrored_and_shared_disks_move_together(cluster: SimCluster) -> None:
    disks = [
        {"size": 256, "name": "a"},
        {"size": 256, "name": "b", "dev_type": "ext", "provider": "san"},
    ]
    await made(cluster, disks=disks)
    refused = await cluster.refused(
        "OP_INSTANCE_MIGRATE", instance_name="web", target_node="node4"
    )
    assert "secondary node node2" in refused.message
    cluster.nodes.san.mirrors["node2 0"] |= {"mine": "", "other": ""}
    refused = await cluster.refused("OP_INSTANCE_MIGRATE", instance_name="web")
    assert "the copies of disk a are not the same" in refused.message
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="web")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web")
    assert roles(cluster)["node2 0"] == "Primary"
    volume = cluster.config.disk("b").volume
    assert cluster.nodes.san.attached == {f"node2 {volume}": {"open": True}}


async def test_the_planner_chooses_both_nodes(cluster: SimCluster) -> None:
    told = await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 1024}],
    )
    disk = next(iter(cluster.config.disks_of(cluster.config.instance("web"))))
    assert list(disk.nodes) == told
    assert len(set(told)) == 2


async def test_a_mirrored_disk_grows_on_both_nodes(cluster: SimCluster) -> None:
    await made(cluster)
    await cluster.run("OP_INSTANCE_GROW_DISK", instance_name="web", disk=0, amount=512)
    san = cluster.nodes.san
    assert {one["size"] for one in san.mirrors.values()} == {1536}
    data = [one["size"] for key, one in san.logical.items() if key.endswith("_data")]
    assert data == [1536, 1536]
    disk = cluster.config.disk("web-root")
    assert [disk.size, *(one.size for one in disk.children)] == [1536, 1536, 128]
    await cluster.run(
        "OP_INSTANCE_REPLACE_DISKS",
        instance_name="web",
        mode="replace_new_secondary",
        remote_node="node3",
    )
    assert {one["size"] for one in san.mirrors.values()} == {1536}


async def found(cluster: SimCluster) -> list[str]:
    told = await cluster.run("OP_CLUSTER_VERIFY")
    both = [*told["errors"], *told["warnings"]]
    return [f"{one['object']}: {one['message']}" for one in both]


async def test_verify_sees_copies_that_are_not_the_same(cluster: SimCluster) -> None:
    await made(cluster)
    san = cluster.nodes.san
    assert await found(cluster) == []
    kept = dict(san.mirrors)
    san.mirrors["node2 0"] |= {"mine": "", "other": ""}
    (told,) = await found(cluster)
    assert "its copies are not the same: node node1 says WFConnection" in told
    san.mirrors["node3 7"] = dict(san.mirrors.pop("node2 0"))
    assert sorted(await found(cluster))[-1:] == [
        "node node3: it has a mirrored device 7, which is no disk's"
    ]
    san.mirrors.clear()
    san.mirrors.update(kept)
    san.mirrors["node2 0"] |= {"role": "Primary"}
    assert "nodes node1 and node2 both may write to it" in (await found(cluster))[0]


async def test_a_split_brain_is_seen_and_mended(cluster: SimCluster) -> None:
    """Both copies were written to while neither saw the other."""
    await made(cluster, pnode="node2", snode="node3")
    san = cluster.nodes.san
    await lost(cluster, "node2")
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web")
    san.drbd.write("node3", 0, "new")
    volume = cluster.config.disk("web-root").volume
    beside = san.logical[f"node2 xenvg/{volume.replace('_data', '_meta')}"]
    beside["md"] = {"gi": "other", "past": ["first"], "good": True}
    cluster.nodes.nodes["node2"].boot()
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node2", offline=False)
    await cluster.run("OP_INSTANCE_ACTIVATE_DISKS", instance_name="web")
    assert "cs:Connected" not in states(cluster, "node3")[0]
    assert any("its copies are not the same" in one for one in await found(cluster))
    await cluster.run(
        "OP_INSTANCE_REPLACE_DISKS", instance_name="web", mode="replace_on_secondary"
    )
    assert await found(cluster) == []
    assert san.logical[f"node2 xenvg/{volume}"]["data"] == "new"


async def test_a_guest_starts_without_its_second_copy_if_told_to(
    cluster: SimCluster,
) -> None:
    await made(cluster, start=False)
    cluster.nodes.nodes["node2"].lose_power()
    refused = await cluster.refused("OP_INSTANCE_STARTUP", instance_name="web")
    assert "node2" in refused.message
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web", force=True)
    assert roles(cluster) == {"node1 0": "Primary"}


async def test_where_an_instances_disks_are_is_told_of_its_own_node(
    cluster: SimCluster,
) -> None:
    await made(cluster, disks=[{"size": 64}, {"size": 64}])
    told = await cluster.run(
        "OP_INSTANCE_ACTIVATE_DISKS", instance_name="web", wait_for_sync=True
    )
    assert told == [
        ["node1", "disk/0", "/dev/drbd0"],
        ["node1", "disk/1", "/dev/drbd1"],
    ]


async def test_a_node_that_keeps_copies_stays(cluster: SimCluster) -> None:
    await made(cluster, pnode="node2", snode="node3")
    refused = await cluster.refused("OP_NODE_REMOVE", node_name="node3")
    assert "still keeps copies of 1 mirrored disk" in refused.message
    assert "evacuate -s node3" in refused.hint
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    alone = await cluster.refused(
        "OP_DISK_CONVERT", disk="web-root", disk_template="drbd"
    )
    assert alone.message
    await cluster.run("OP_DISK_CONVERT", disk="web-root", disk_template="sharedfile")
    assert not cluster.nodes.san.logical
    await cluster.run("OP_NODE_REMOVE", node_name="node3")


async def test_a_mirrors_secret_is_in_no_error(cluster: SimCluster) -> None:
    """Who knows it and reaches the port could take the place of the other copy."""
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _, command: "connect" in command.argv
    asked = {"instance_name": "web", "disk_template": "drbd", "disks": [{"size": 64}]}
    asked |= {"pnode": "node1", "snode": "node2"}
    job = await cluster.finished(await cluster.submit("OP_INSTANCE_CREATE", **asked))
    (op,) = job.ops
    assert op.error
    assert "--shared-secret=hidden" in op.error["message"]
    ran = [one for node in cluster.nodes.nodes.values() for one in node.machine.ran]
    secrets = {secret for one in ran for secret in one.secrets}
    assert secrets
    told = f"{op.error}{op.log}{op.input}{op.results}"
    assert not [secret for secret in secrets if secret in told]


async def test_new_volumes_are_not_made_of_one_copy(cluster: SimCluster) -> None:
    """Nobody would ever make the other one: the job had said that all is well."""
    await made(cluster)
    stop = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web"}
    assert not await cluster.at_once(stop)
    await lost(cluster, "node2")
    with pytest.raises(WrongState, match="node2 is marked offline: it gets no copy"):
        await cluster.run("OP_INSTANCE_RECREATE_DISKS", instance_name="web")


@pytest.mark.requirement("S2-14", "S4-06")
async def test_without_other_templates_nodes_tell_their_volume_groups(
    cluster: SimCluster,
) -> None:
    """Once for all templates, and so each node runs one command more, not two."""
    await cluster.run("OP_CLUSTER_SET_PARAMS", enabled_disk_templates=["drbd"])
    await made(cluster, pnode=None, snode=None, iallocator="hail")
    assert len(cluster.config.nodes_of(cluster.config.instance("web"))) == 2
    both = ["drbd", "plain"]
    await cluster.run("OP_CLUSTER_SET_PARAMS", enabled_disk_templates=both)
    node = cluster.nodes.nodes["node3"].machine
    before = len(node.ran)
    await cluster.run("OP_CLUSTER_VERIFY")
    ran = [one.argv[0] for one in node.ran[before:]]
    assert ran.count("vgs") == 1


async def test_other_disks_get_no_second_node_of_their_own(cluster: SimCluster) -> None:
    """An instance has one: mirrored disks on two pairs of nodes could not follow it."""
    await made(cluster)
    stop = {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "web"}
    assert not await cluster.at_once(stop)
    await cluster.run(
        "OP_DISK_ADD", size=64, name="more", disk_template="sharedfile", node="node1"
    )
    await cluster.run("OP_DISK_ATTACH", disk="more", instance_name="web")
    change = {"instance_name": "web", "disk_template": "drbd"}
    with pytest.raises(WrongState, match="an instance has one secondary node") as error:
        await cluster.run("OP_INSTANCE_SET_PARAMS", **change, remote_node="node3")
    assert "gnt-instance replace-disks -n node3" in error.value.hint
    await cluster.run("OP_INSTANCE_SET_PARAMS", **change, remote_node="node2")
    pairs = [
        pair_of(one) for one in cluster.config.disks_of(cluster.config.instance("web"))
    ]
    assert len({frozenset(pair.nodes) for pair in pairs if pair}) == 1


@pytest.mark.parametrize("verb", ["wait-connect", "primary", "attach", "resize"])
async def test_what_is_asked_of_no_device_fails(cluster: SimCluster, verb: str) -> None:
    """A node can lose its power, and with it its devices, between two commands."""
    told = cluster.nodes.san.drbd.answer("node1", Command(("drbdsetup", verb, "7")))
    assert told == Output("7: Failure: (127) Device minor not allocated", 10)
