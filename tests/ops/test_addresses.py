# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of nodes, and ports of screens: what is refused, warned of and chosen."""

from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, Exists, WrongState
from moorage.model import Config, Instance, apply
from moorage.model.token import Token, to_text
from moorage.ops.guests import screens
from moorage.testing.cluster import ClusterBuilder, SimCluster

PIN = "0" * 64


@pytest.fixture
async def cluster(tmp_path: Path) -> Any:
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


async def said(cluster: SimCluster, op_id: str, **fields: Any) -> str:
    job = await cluster.finished(await cluster.submit(op_id, **fields))
    return str([op.log for op in job.ops])


async def test_a_secondary_address_is_recorded_and_told_of(cluster: SimCluster) -> None:
    log = await said(
        cluster, "OP_NODE_SET_PARAMS", node_name="node2", secondary_ip="192.0.2.2"
    )
    assert "node node2 has a secondary address and node node1 has none" in log
    assert cluster.config.node("node2").secondary_ip == "192.0.2.2"
    log = await said(
        cluster, "OP_NODE_SET_PARAMS", node_name="node3", secondary_ip="2001:db8::3"
    )
    assert "are of two versions of IP" in log


@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("192.0.2.2", Exists, "node node2 has the address 192.0.2.2 already"),
        ("::", BadInput, "no node is reached at ::"),
        ("239.1.1.1", BadInput, "no node is reached at 239.1.1.1"),
        ("fe80::7", BadInput, "needs the name of an interface"),
        ("node7", BadInput, "the secondary IP is an address, not 'node7'"),
    ],
)
async def test_addresses_that_no_node_can_have(
    cluster: SimCluster, address: str, kind: type[Exception], words: str
) -> None:
    given = {"node_name": "node2", "secondary_ip": "192.0.2.2"}
    await cluster.run("OP_NODE_SET_PARAMS", **given)
    for op, fields in (
        ("OP_NODE_SET_PARAMS", {"node_name": "node3"}),
        ("OP_NODE_ADD", {"node_name": "node4", "token": invitation("192.0.2.4")}),
    ):
        error = await cluster.refused(op, secondary_ip=address, **fields)
        assert isinstance(error, kind)
        assert words in error.message


def invitation(address: str) -> str:
    return to_text(Token(address, 1811, PIN, "secret"))


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])  # noqa: S104 - are refused
async def test_a_token_that_says_no_place_is_refused(
    cluster: SimCluster, address: str
) -> None:
    error = await cluster.refused(
        "OP_NODE_ADD", node_name="node4", token=invitation(address)
    )
    assert error.message == (
        f"no node is reached at {address}: give its address with --primary-ip"
    )


async def test_mirrors_that_run_keep_their_network(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(nodes=3))
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web1",
        disk_template="drbd",
        disks=[{"size": 128}],
        pnode="node1",
        snode="node2",
        nics=[],
        beparams={"memory": 128},
        no_install=True,
    )
    fields = {"node_name": "node2", "secondary_ip": "192.0.2.2"}
    error = await cluster.refused("OP_NODE_SET_PARAMS", **fields)
    assert isinstance(error, WrongState)
    assert "node node2 keeps copies of 1 mirrored disk," in error.message
    assert error.hint == "gnt-node evacuate node2"
    await cluster.stop()


async def test_an_address_stays_while_mirrors_are_made(tmp_path: Path) -> None:
    """They would go on with the old one: no record told that they were there."""
    cluster = await SimCluster.start(tmp_path)
    moves = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "node2"}
    came: list[int] = []

    async def come(name: str) -> None:
        if not came and name.startswith("before create disk"):
            job = moves | {"secondary_ip": "192.0.2.2"}
            came.append(await cluster.engine.submit([job]))

    cluster.extra_point = come
    await cluster.run(
        "OP_DISK_ADD",
        name="data",
        disk_template="drbd",
        size=128,
        node="node1:node2",
    )
    (refused,) = (await cluster.finished(came[0])).ops
    assert "node node2 keeps copies of 1 mirrored disk," in str(refused.error)
    await cluster.stop()


# -- ports of screens ---------------------------------------------------------------

OPEN = {"vnc_bind_address": "127.0.0.1"}


async def test_a_screen_with_an_address_gets_a_port_for_life(
    cluster: SimCluster,
) -> None:
    made = {"disk_template": "diskless", "disks": [], "nics": [], "pnode": "node1"}
    for name in ("web1", "web2"):
        await cluster.run(
            "OP_INSTANCE_CREATE", instance_name=name, hvparams=OPEN, **made
        )
    await cluster.run("OP_INSTANCE_CREATE", instance_name="web3", **made)
    ports = [cluster.config.instance(f"web{n}").network_port for n in (1, 2, 3)]
    assert {ports[0], ports[1]} <= {*screens.PORTS}
    assert ports[0] != ports[1]
    assert ports[2] is None
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web3", hvparams=OPEN)
    assert cluster.config.instance("web3").network_port
    shut = {"vnc_bind_address": "default"}
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web1", hvparams=shut)
    assert cluster.config.instance("web1").network_port == ports[0]


async def test_a_port_that_is_taken_is_passed_over(cluster: SimCluster) -> None:
    web = Instance(uuid="u", name="web", primary_node="node1", hvparams=OPEN)
    first = screens.with_port(cluster.config, web).network_port
    builder = ClusterBuilder().instance("other", network_port=first)
    config = apply(Config(), builder.change())
    second = screens.with_port(config, web).network_port
    assert second not in (None, first)


@pytest.mark.parametrize("whose", ["instance", "cluster"])
async def test_no_stranger_sees_a_screen_without_a_password(
    cluster: SimCluster, whose: str
) -> None:
    password = {"vnc_password_file": "/etc/moorage/vnc"}
    if whose == "cluster":
        await cluster.run("OP_CLUSTER_SET_PARAMS", hvparams={"kvm": password})
    made = {"disk_template": "diskless", "disks": [], "nics": [], "pnode": "node1"}
    fields = {"instance_name": "web1", "hvparams": {"vnc_bind_address": "::"}} | made
    if whose == "instance":
        error = await cluster.refused("OP_INSTANCE_CREATE", **fields)
        assert "it needs vnc_password_file" in error.message
        fields["hvparams"] = {"vnc_bind_address": "::"} | password
    await cluster.run("OP_INSTANCE_CREATE", **fields)
