# SPDX-License-Identifier: BSD-2-Clause
"""What DRBD is told besides places: rates, barriers, buffers, also while it runs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.model import Change, apply, successor
from moorage.ops.asking.disk_presets import as_used
from moorage.testing.cluster import ClusterBuilder, SimCluster

DETACH = {"on-io-error": "detach"}
USUAL_NET = {"connect-int": "10", "ko-count": "7", "max-buffers": "2048"}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=2))
    yield cluster
    await cluster.stop()


async def made(cluster: SimCluster, **disk: Any) -> None:
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web",
        disk_template="drbd",
        disks=[{"size": 1024, "name": "root"} | disk],
        pnode="node1",
        snode="node2",
    )


async def preset(cluster: SimCluster, **params: Any) -> None:
    given = {name.replace("_", "-"): value for name, value in params.items()}
    await cluster.run("OP_CLUSTER_SET_PARAMS", diskparams={"drbd": given})


def told(cluster: SimCluster, node: str, what: str = "disk") -> dict[str, str]:
    """Return what DRBD was told last on a node."""
    found: dict[str, str] = cluster.nodes.san.mirrors[f"{node} 0"]["told"][what]
    return found


async def test_what_nobody_says_is_left_to_drbd(cluster: SimCluster) -> None:
    await made(cluster)
    for node in ("node1", "node2"):
        assert told(cluster, node) == DETACH
        assert told(cluster, node, "net") == {}


@pytest.mark.parametrize(
    ("given", "heard"),
    [
        ({"resync_rate": 61440}, {"c-plan-ahead": "0", "resync-rate": "61440"}),
        (
            {"dynamic_resync": True, "c_plan_ahead": 20, "c_fill_target": 0},
            {"c-plan-ahead": "20", "c-fill-target": "0"},
        ),
        (
            {"dynamic_resync": True, "resync_rate": 5, "c_max_rate": 500},
            {"c-max-rate": "500"},
        ),
        (
            {"dynamic_resync": "no", "resync_rate": "5"},
            {"c-plan-ahead": "0", "resync-rate": "5"},
        ),
        ({"c_delay_target": 3, "c_min_rate": 0, "meta_barriers": "no"}, {}),
        ({"disk_barriers": "n"}, {}),
        ({"disk_barriers": "bf"}, {"disk-barrier": "no", "disk-flushes": "no"}),
        ({"disk_barriers": "d", "meta_barriers": "yes"}, {"disk-drain": "no"}),
        ({"meta_barriers": "yes"}, {"md-flushes": "no"}),
        ({"disk_custom": "--al-extents=3389"}, {"al-extents": "3389"}),
        ({"disk_custom": "--disk-timeout 50"}, {"disk-timeout": "50"}),
    ],
)
async def test_presets_are_told_to_pairs_in_use_and_to_those_to_come(
    cluster: SimCluster, given: dict[str, Any], heard: dict[str, str]
) -> None:
    await made(cluster)
    await preset(cluster, **given)
    for node in ("node1", "node2"):
        assert told(cluster, node).items() >= (DETACH | heard).items()
    now = told(cluster, "node1")
    assert cluster.config.disk("root").params == {}  # it keeps none of them
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    assert told(cluster, "node1") == told(cluster, "node2") == now
    await preset(cluster, **dict.fromkeys(given, "default"))
    assert told(cluster, "node1") == told(cluster, "node2") == DETACH


async def test_a_connection_gets_back_what_drbd_takes_without_a_word(
    cluster: SimCluster,
) -> None:
    await made(cluster)
    await preset(cluster, net_custom="--max-buffers=8000 --sndbuf-size=1024k")
    wanted = {"max-buffers": "8000", "sndbuf-size": "1024k", "ko-count": "7"}
    assert told(cluster, "node2", "net").items() >= wanted.items()
    await preset(cluster, net_custom="default")
    assert told(cluster, "node2", "net").items() >= USUAL_NET.items()
    roles = {key: one["role"] for key, one in cluster.nodes.san.mirrors.items()}
    assert roles == {"node1 0": "Primary", "node2 0": "Secondary"}


async def test_the_disk_is_asked_first_then_the_group_then_the_cluster(
    cluster: SimCluster,
) -> None:
    await made(cluster)
    await preset(cluster, resync_rate=100)
    own = {"drbd": {"resync-rate": 200}}
    await cluster.run("OP_GROUP_SET_PARAMS", group_name="default", diskparams=own)
    assert told(cluster, "node2")["resync-rate"] == "200"
    await preset(cluster, resync_rate=101)
    assert told(cluster, "node2")["resync-rate"] == "200"
    for value, rate in (("300", "300"), ("default", "200")):
        mods = [["modify", 0, {"resync-rate": value}]]
        await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web", disks=mods)
        assert told(cluster, "node1")["resync-rate"] == rate
        assert told(cluster, "node2")["resync-rate"] == rate


async def test_a_disk_is_made_with_its_own_and_over_several_volumes(
    cluster: SimCluster,
) -> None:
    await preset(cluster, data_stripes=2)
    await made(cluster, **{"resync-rate": 7, "meta-stripes": 1})
    assert told(cluster, "node1")["resync-rate"] == "7"
    data, meta = cluster.config.disk("root").children
    assert (data.params, meta.params) == ({"stripes": 2}, {"stripes": 1})


async def test_a_node_that_cannot_be_told_is_a_warning_and_told_at_the_start(
    cluster: SimCluster,
) -> None:
    await made(cluster)
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web")
    await preset(cluster, resync_rate=9)  # nobody uses it
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    cluster.nodes.nodes["node2"].powered = False
    number = await cluster.submit(
        "OP_CLUSTER_SET_PARAMS", diskparams={"drbd": {"resync-rate": 10}}
    )
    (op,) = (await cluster.finished(number)).ops
    said = [str(entry[3]) for entry in op.log]
    assert op.error is None
    assert any("Warning: tune disk root on node2" in line for line in said)
    assert told(cluster, "node1")["resync-rate"] == "10"


async def test_a_preset_that_an_older_version_let_in_stops_no_start(
    cluster: SimCluster,
) -> None:
    await made(cluster)
    group = cluster.config.group("default")
    old = {"drbd": {"protocol": "A", "resync-rate": 7}}
    config = apply(cluster.config, Change((successor(group, 2.0, diskparams=old),)))
    assert as_used(config, config.disk("root")).params == {"resync-rate": 7}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resync-rate": 0}, "'resync-rate' is a number from 1 to 4194304, not '0'"),
        ({"c-max-rate": 100}, "'c-max-rate' is a number from 250 to 4194304"),
        ({"c-plan-ahead": 301}, "'c-plan-ahead' is a number from 1 to 300"),
        ({"dynamic-resync": "maybe"}, "'dynamic-resync' is yes or no"),
        ({"disk-barriers": "x"}, "'disk-barriers' is n, or some of bfd, not 'x'"),
        ({"disk-barriers": ""}, "'disk-barriers' is n, or some of bfd, not ''"),
        ({"protocol": "A"}, "'protocol' is C, not 'A': with another one a node that"),
        ({"net-custom": "--allow-two-primaries=yes"}, "cannot hold '--allow-two-pri"),
        ({"net-custom": "--shared-secret=x"}, "cannot hold '--shared-secret'"),
        ({"net-custom": "max-buffers=1"}, "cannot hold 'max-buffers'"),
        ({"net-custom": "--max-buffers"}, "holds '--max-buffers' without a value"),
        ({"net-custom": "--max-buffers=$(id)"}, "cannot hold '--max-buffers $(id)'"),
        ({"net-custom": "--max-buffers=many"}, "cannot hold '--max-buffers many'"),
        ({"net-custom": "--max-buffers=999k"}, "cannot hold '--max-buffers 999k'"),
        ({"net-custom": "--timeout=--ko-count"}, "cannot hold '--timeout --ko-count'"),
        ({"net-custom": "--tcp-cork=1"}, "cannot hold '--tcp-cork 1'"),
        ({"disk-custom": "--al-extents=7"}, "cannot hold '--al-extents 7'"),
        ({"disk-custom": "--disk-timeout=٣"}, "cannot hold '--disk-timeout ٣'"),
        ({"disk-custom": "--read-balancing=x"}, "cannot hold '--read-balancing x'"),
        ({"disk-custom": "--on-io-error=pass_on"}, "cannot hold '--on-io-error'"),
        ({"disk-custom": "--fencing=x"}, "cannot hold '--fencing'"),
    ],
)
async def test_what_drbd_cannot_be_told_is_refused(
    cluster: SimCluster, given: dict[str, Any], said: str
) -> None:
    refused = await cluster.refused("OP_CLUSTER_SET_PARAMS", diskparams={"drbd": given})
    assert said in refused.message
    assert "drbd" not in cluster.config.cluster.diskparams
