# SPDX-License-Identifier: BSD-2-Clause
"""Node parameters and marks: checked, kept as numbers, or said to be without effect."""

from pathlib import Path

import pytest

from moorage.testing.cluster import SimCluster


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


REQUESTS = [
    ("OP_NODE_SET_PARAMS", {"node_name": "node1"}),
    ("OP_GROUP_SET_PARAMS", {"group_name": "default"}),
    ("OP_GROUP_ADD", {"group_name": "rack2"}),
]


@pytest.mark.parametrize(("op_id", "fields"), REQUESTS)
@pytest.mark.parametrize(
    ("ndparams", "word"),
    [
        ({"bogus": "1"}, "bogus"),
        ({"x": True}, "x"),
        ({"spindle_count": "many"}, "spindle_count"),
        ({"spindle_count": -1}, "spindle_count"),
        ({"cpu_speed": "0"}, "cpu_speed"),
        ({"oob_program": "/bin/true"}, "names a program in /etc/ganeti/oob"),
        ({"ssh_port": 22}, "TLS"),
    ],
)
async def test_what_nobody_reads_is_refused(cluster, op_id, fields, ndparams, word):
    before = cluster.config
    error = await cluster.refused(op_id, **fields, ndparams=ndparams)
    assert word in error.message
    assert cluster.config is before


async def test_how_a_program_elsewhere_switches_power_is_told(cluster) -> None:
    error = await cluster.refused(
        "OP_NODE_SET_PARAMS", node_name="node1", ndparams={"oob_program": "/opt/ipmi"}
    )
    assert 'ends in exec /opt/ipmi "$@"' in error.hint


async def test_what_the_planner_reads_is_kept_as_it_reads_it(cluster) -> None:
    given = {"spindle_count": "4", "cpu_speed": "1.5", "exclusive_storage": "true"}
    node = {"node_name": "node1"}
    await cluster.run("OP_NODE_SET_PARAMS", **node, ndparams=given)
    kept = {"spindle_count": 4, "cpu_speed": 1.5, "exclusive_storage": True}
    assert cluster.config.node("node1").ndparams == kept
    await cluster.run("OP_NODE_SET_PARAMS", **node, ndparams={"cpu_speed": "default"})
    assert "cpu_speed" not in cluster.config.node("node1").ndparams


async def test_a_mark_that_nobody_acts_on_is_told(cluster) -> None:
    fields = {"node_name": "node3", "powered": True}
    job = await cluster.finished(await cluster.submit("OP_NODE_SET_PARAMS", **fields))
    assert job.status == "success"
    assert "no power is switched" in str(job.ops[0].log)
