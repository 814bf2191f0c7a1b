# SPDX-License-Identifier: BSD-2-Clause
"""What network cards are held to: by the cluster, by their network, by themselves."""

from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, WrongState
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

DISKLESS = {"disk_template": "diskless", "pnode": "node1"}
IP = "192.0.2.5"


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


async def made(cluster: SimCluster, nic: dict, name: str = "web1") -> str:
    """Return what the node was told that a new instance's card is held to."""
    await cluster.run("OP_INSTANCE_CREATE", instance_name=name, nics=[nic], **DISKLESS)
    return told(cluster, name)


def told(cluster: SimCluster, name: str = "web1") -> str:
    guest = cluster.nodes.san.guests[f"node1 {cluster.config.instance(name).uuid}"]
    ((_, _, _, *found),) = guest["wires"].values()
    return "".join(found)


async def refused(cluster: SimCluster, nic: dict) -> Any:
    given = {"instance_name": "web9", "nics": [{"link": "br0"} | nic]}
    return await cluster.refused("OP_INSTANCE_CREATE", **given, **DISKLESS)


async def test_a_card_is_held_to_nothing_unless_somebody_says_so(cluster) -> None:
    assert await made(cluster, {"link": "br0"}) == ""
    change = {"instance_name": "web1", "nics": [["modify", 0, {"filter": "mac"}]]}
    await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
    assert told(cluster) == "mac"
    change["nics"] = [["modify", 0, {"filter": "none"}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", **change)
    assert told(cluster) == ""


async def test_a_card_can_be_held_to_more_than_the_cluster_says_and_never_to_less(
    cluster,
) -> None:
    card = {"link": "br0", "ip": IP}
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"filter": "mac"})
    assert await made(cluster, card, "web1") == "mac"
    assert await made(cluster, card | {"filter": "none"}, "web2") == "mac"
    assert await made(cluster, card | {"filter": "ip"}, "web3") == "ip"
    routed = {"mode": "routed", "ip": "192.0.2.9"}
    assert await made(cluster, routed, "web4") == "mac"


async def test_a_network_says_it_for_its_cards_in_a_group(cluster) -> None:
    lan = {"network_name": "lan", "group_name": "default"}
    await cluster.run("OP_NETWORK_ADD", network_name="lan", network="192.0.2.0/28")
    await cluster.run("OP_NETWORK_CONNECT", network_link="br0", **lan)
    card = {"network": "lan", "ip": "pool"}
    assert await made(cluster, card, "web1") == ""
    again = {"network_link": "br0", "network_filter": "ip"} | lan
    await cluster.run("OP_NETWORK_CONNECT", **again)
    assert await made(cluster, card, "web2") == "ip"
    assert await made(cluster, card | {"filter": "mac"}, "web3") == "ip"
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"filter": "mac"})
    again["network_filter"] = "none"  # a network of routers
    await cluster.run("OP_NETWORK_CONNECT", **again)
    assert await made(cluster, card, "web4") == ""


@pytest.mark.parametrize(
    ("nic", "word"),
    [
        ({"filter": "all"}, "a filter is mac, ip or none"),
        ({"filter": "ip"}, "held to its IP address (filter=ip), and has none"),
        ({"filter": "ip", "ip": IP, "vlan": ".5:10"}, "behind the tags of a VLAN"),
        ({"filter": "mac", "mode": "openvswitch", "link": "ovs0"}, "Open vSwitch"),
    ],
)
async def test_what_would_not_hold_is_refused(cluster, nic: dict, word: str) -> None:
    error = await refused(cluster, nic)
    assert isinstance(error, BadInput)
    assert word in error.message


async def test_the_clusters_filter_is_no_way_around_that(cluster) -> None:
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"filter": "ip"})
    assert "has none" in (await refused(cluster, {})).message
    switched = {"mode": "openvswitch", "link": "ovs0", "ip": IP}
    assert "Open vSwitch" in (await refused(cluster, switched)).message


async def test_a_node_without_nftables_takes_no_such_card(cluster) -> None:
    assert await made(cluster, {"link": "br0"}) == ""
    cluster.nodes.nodes["node1"].machine.lacking.add("nft")
    error = await refused(cluster, {"filter": "mac"})
    assert isinstance(error, WrongState)
    assert "on node node1: it has no nftables" in error.message
    assert error.hint == "on node1: apt-get install nftables"
    assert (await cluster.run("OP_CLUSTER_VERIFY"))["errors"] == []
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"filter": "mac"})
    (found,) = (await cluster.run("OP_CLUSTER_VERIFY"))["errors"]
    assert "no nftables, which network cards of web1 need" in str(found)


async def test_what_is_told_of_a_card_is_ganetis_list_of_nine(tmp_path: Path) -> None:
    cluster = await harbour(tmp_path / "nodes")
    card = [["modify", "0", {"filter": "mac"}]]
    await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name="web2", nics=card)
    told = await cluster.run("OP_INSTANCE_QUERY_DATA", instances=["web2"])
    ((nic,),) = (one["nics"] for one in told.values())
    own = cluster.config.instance("web2").nics[0]
    assert nic[:7] == [own.name, own.uuid, own.ip, own.mac, "bridged", "br0", ""]
    assert len(nic) == 9
    await cluster.stop()
