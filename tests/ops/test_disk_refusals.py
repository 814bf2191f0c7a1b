# SPDX-License-Identifier: BSD-2-Clause
"""What disks refuse: one sentence with the facts, and nothing changed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import Refused
from moorage.model import Change, successor
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import LUN, harbour
from moorage.testing.state_snapshot import picture

EXT = {"disk_template": "ext", "size": 64}
WEB1 = {"instance_name": "web1"}
MODIFY = "OP_INSTANCE_SET_PARAMS"


def _new(**params: Any) -> dict[str, Any]:
    return {"disks": [["add", "-1", params]], "instance_name": "web1"}


def _mods(*mods: list[Any]) -> dict[str, Any]:
    return {"disks": list(mods), "instance_name": "web1"}


REFUSALS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "S0-19",
        "disk template 'blockdev' makes no volumes: it adopts devices",
        "OP_DISK_ADD",
        {"disk_template": "blockdev", "size": 64},
    ),
    (
        "S0-20",
        "Device node(s) /dev/sda lie outside /dev/disk/ and cannot be adopted",
        "OP_DISK_ADD",
        {"disk_template": "blockdev", "adopt": "/dev/sda"},
    ),
    (
        "S0-21",
        "node node1 of group default has no block device /dev/disk/by-id/none",
        "OP_DISK_ADD",
        {"disk_template": "blockdev", "adopt": "/dev/disk/by-id/none"},
    ),
    ("S0-58", "Missing provider for template 'ext'", "OP_DISK_ADD", EXT),
    (
        "S0-58",
        "The 'provider' option is only valid for the ext disk template, not sharedfile",
        "OP_DISK_ADD",
        {"disk_template": "sharedfile", "size": 64, "provider": "san"},
    ),
    (
        "S0-62",
        "ExtStorage provider 'san' has no parameter 'colour': it takes tier",
        "OP_DISK_ADD",
        EXT | {"provider": "san", "params": {"colour": "red"}},
    ),
    (
        "S0-16",
        "node node1 has no ExtStorage provider 'nowhere'",
        "OP_DISK_ADD",
        EXT | {"provider": "nowhere"},
    ),
    (
        "S3-24",
        "disk data1 is attached to instance web1 on node node1: it cannot be attached",
        "OP_DISK_ATTACH",
        {"disk": "data1", "instance_name": "web3"},
    ),
    (
        "S3-52",
        "Cannot remove disk data1. Disk is attached to instance web1",
        "OP_DISK_REMOVE",
        {"disk": "data1"},
    ),
    (
        "S3-43",
        "disk spare is not attached to any instance",
        "OP_DISK_DETACH",
        {"disk": "spare"},
    ),
    (
        "S0-32",
        "ExtStorage provider 'plainsan' takes no snapshots",
        "OP_DISK_SNAPSHOT",
        {"disk": "root3"},
    ),
    (
        "S3-54",
        "disk spare has 1024 MiB: it can grow, not shrink to 512",
        "OP_DISK_GROW",
        {"disk": "spare", "amount": 512, "absolute": True},
    ),
    (
        "S3-54",
        "'../etc' is not a valid name of a disk",
        "OP_DISK_RENAME",
        {"disk": "spare", "new_name": "../etc"},
    ),
    (
        "S3-54",
        "a disk's 'provider' cannot be changed",
        "OP_DISK_SET_PARAMS",
        {"disk": "spare", "params": {"provider": "usersan"}},
    ),
    ("S3-44", "by name=… or uuid=…, exactly one", MODIFY, _mods(["attach", "-1", {}])),
    (
        "S3-44",
        "by name=… or uuid=…, exactly one",
        MODIFY,
        _mods(["attach", "-1", {"name": "spare", "uuid": "x"}]),
    ),
    (
        "S3-44",
        "by name=… or uuid=…, exactly one",
        MODIFY,
        _mods(["attach", "-1", {"size": 5}]),
    ),
    (
        "S3-45",
        "'detach' of a disk takes no parameters: 'size'",
        MODIFY,
        _mods(["detach", "0", {"size": 5}]),
    ),
    (
        "S3-45",
        "'remove' of a disk takes no parameters: 'name'",
        MODIFY,
        _mods(["remove", "0", {"name": "x"}]),
    ),
    (
        "S3-43",
        "instance web1 has no disk '7': it has 0 (root1), 1 (data1)",
        MODIFY,
        _mods(["detach", "7", {}]),
    ),
    (
        "S3-43",
        "disk root1 is taken from web1 twice",
        MODIFY,
        _mods(["detach", "0", {}], ["remove", "root1", {}]),
    ),
    (
        "S3-24",
        "the changes do not fit together: disk",
        MODIFY,
        _mods(["attach", "-1", {"name": "spare"}], ["attach", "0", {"name": "spare"}]),
    ),
    (
        "S3-42",
        "instance web1 has 2 disks: a new one goes to slot 0 to 2, not 9",
        MODIFY,
        _mods(["attach", "9", {"name": "spare"}]),
    ),
    (
        "S0-58",
        "the disk names no template",
        MODIFY,
        _new(size=64),
    ),
    (
        "S0-58",
        "Missing provider for template 'ext'",
        MODIFY,
        _new(size=64, dev_type="ext"),
    ),
    (
        "S3-39",
        "Disk size change not possible, use grow-disk",
        MODIFY,
        _mods(["modify", "0", {"size": 64}]),
    ),
    (
        "S0-72",
        "access is kernelspace or userspace, not 'outer'",
        "OP_DISK_ADD",
        EXT | {"provider": "san", "access": "outer"},
    ),
)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


def changing(cluster: SimCluster) -> dict[str, int]:
    """Return how many commands ran on each node that may change something."""
    nodes = cluster.nodes.nodes.items()
    return {
        name: sum(not one.reads for one in node.machine.ran) for name, node in nodes
    }


async def refused(
    cluster: SimCluster, sentence: str, op_id: str, **fields: Any
) -> Refused:
    """Run what must be refused; fail unless it says why and nothing has changed."""
    before, config = await picture(cluster), cluster.config
    ran = changing(cluster)
    error = await cluster.refused(op_id, **fields)
    assert sentence in str(error)
    assert isinstance(error, Refused)
    assert cluster.config is config
    assert (await picture(cluster)).differences(before) == []
    assert changing(cluster) == ran
    return error


@pytest.mark.parametrize(
    ("sentence", "op_id", "fields"),
    [
        pytest.param(
            *rest,
            marks=pytest.mark.requirement(number),
            id=f"{number}-{position}",
        )
        for position, (number, *rest) in enumerate(REFUSALS)
    ],
)
async def test_a_refusal_says_why_and_changes_nothing(
    cluster: SimCluster, sentence: str, op_id: str, fields: dict[str, Any]
) -> None:
    await refused(cluster, sentence, op_id, **fields)


async def test_a_disk_in_quarantine_is_left_alone(cluster: SimCluster) -> None:
    spare = cluster.config.disk("spare")
    marked = successor(spare, 1.0, quarantine="job 9: nobody knows")
    await cluster.config_store.commit(Change((marked,)))
    sentence = "disk spare is quarantined: job 9: nobody knows"
    for op_id, fields in (
        ("OP_DISK_ATTACH", WEB1),
        ("OP_DISK_GROW", {"amount": 8}),
        ("OP_DISK_SNAPSHOT", {}),
    ):
        await refused(cluster, sentence, op_id, disk="spare", **fields)


@pytest.mark.parametrize(
    ("op_id", "fields"),
    [
        ("OP_DISK_ADD", {"disk_template": "file", "size": 64, "node": "node2"}),
        (
            "OP_DISK_ADOPT",
            {"disk_template": "file", "volume": "/x/y", "node": "node2"},
        ),
        ("OP_RESTRICTED_COMMAND", {"nodes": ("node2",), "command": "uptime"}),
    ],
)
async def test_a_node_that_is_offline_is_let_back_in_first(
    cluster: SimCluster, op_id: str, fields: dict[str, Any]
) -> None:
    off = successor(cluster.config.node("node2"), 1.0, offline=True)
    await cluster.config_store.commit(Change((off,)))
    error = await refused(cluster, "node node2 is marked offline", op_id, **fields)
    assert error.hint == "when it is back: gnt-node modify --offline=no node2"


@pytest.mark.requirement("S0-21")
async def test_a_device_is_adopted_once(cluster: SimCluster) -> None:
    adopt = {"disk_template": "blockdev", "adopt": LUN}
    await cluster.run("OP_DISK_ADD", name="lun", **adopt)
    error = await refused(
        cluster, f"device {LUN} is disk lun already", "OP_DISK_ADD", **adopt
    )
    assert error.hint.startswith("gnt-disk info ")
    disks = [{"adopt": LUN, "dev_type": "blockdev"}]
    await refused(
        cluster,
        f"device {LUN} is disk lun already",
        MODIFY,
        instance_name="web3",
        disks=[["add", "-1", disks[0]]],
    )


async def test_a_device_is_adopted_once_by_requests_at_the_same_time(
    cluster: SimCluster,
) -> None:
    adopt = {"adopt": LUN, "dev_type": "blockdev"}
    numbers = [
        await cluster.submit("OP_DISK_ADD", disk_template="blockdev", adopt=LUN),
        await cluster.submit("OP_DISK_ADD", disk_template="blockdev", adopt=LUN),
        await cluster.submit(MODIFY, **_new(**adopt)),
        await cluster.submit(
            "OP_INSTANCE_CREATE", instance_name="w", pnode="node2", disks=[adopt]
        ),
    ]
    jobs = [await cluster.finished(number) for number in numbers]
    assert sorted(job.status for job in jobs) == ["error"] * 3 + ["success"]


async def test_a_device_is_not_named_twice_in_one_request(cluster: SimCluster) -> None:
    adopt = {"adopt": LUN, "dev_type": "blockdev"}
    await refused(
        cluster,
        f"device {LUN} is named twice",
        "OP_INSTANCE_CREATE",
        instance_name="w",
        pnode="node2",
        disks=[adopt, adopt],
    )
    await refused(
        cluster,
        f"device {LUN} is named twice",
        MODIFY,
        **_mods(["add", "-1", adopt], ["add", "-1", adopt]),
    )


@pytest.mark.requirement("S0-21")
async def test_a_device_must_be_the_same_on_every_node(
    cluster: SimCluster,
) -> None:
    other = {"size": 4096, "identity": "wwn-2"}
    cluster.nodes.san.devices[f"node3:{LUN}"] = other
    await refused(
        cluster,
        f"{LUN} is not the same device on every node: 2048 MiB (wwn-1) on "
        "node1, 4096 MiB (wwn-2) on node3",
        "OP_DISK_ADD",
        disk_template="blockdev",
        adopt=LUN,
    )


@pytest.mark.requirement("S0-16", "S0-24")
async def test_a_provider_must_be_valid_where_a_disk_goes(
    cluster: SimCluster,
) -> None:
    machine = cluster.nodes.nodes["node2"].machine
    machine.installed = [one for one in machine.installed if one.name != "san"]
    for op_id in ("OP_INSTANCE_MIGRATE", "OP_INSTANCE_FAILOVER"):
        await refused(
            cluster,
            "node node2 has no ExtStorage provider 'san'",
            op_id,
            instance_name="web1",
            target_node="node2",
        )
    await refused(
        cluster,
        "node node2 has no ExtStorage provider 'san'",
        "OP_DISK_ATTACH",
        disk="spare",
        instance_name="web2",
    )


async def test_no_disk_is_given_away_while_nobody_knows_who_writes(
    cluster: SimCluster,
) -> None:
    cluster.nodes.nodes["node1"].lose_power()
    config = cluster.config
    for op_id, fields in (
        ("OP_DISK_DETACH", {"disk": "data1"}),
        ("OP_DISK_GROW", {"disk": "data1", "amount": 8}),
        ("OP_INSTANCE_FAILOVER", WEB1 | {"target_node": "node2"}),
        ("OP_INSTANCE_SHUTDOWN", WEB1),
    ):
        error = await cluster.refused(op_id, **fields)
        assert "node node1 gives no answer" in str(error)
        assert "may still run there and write to its disks" in str(error)
        assert "gnt-node modify --offline=yes node1" in error.hint
    assert cluster.config is config
