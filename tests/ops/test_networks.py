# SPDX-License-Identifier: BSD-2-Clause
"""Networks: pools of addresses, where they are connected, and who has which address."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import BadInput, Conflict, Exists, NoCapacity, WrongState
from moorage.model import Change, Link, Network, ipolicy, successor
from moorage.model.apply import apply
from moorage.model.networks import outside, usage
from moorage.testing.cluster import ClusterBuilder, SimCluster

LAN = {"network": "192.0.2.0/29", "gateway": "192.0.2.1"}
CARD = {"network": "lan", "ip": "pool"}


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path, ClusterBuilder(2).node("far1", "far"))
    yield found
    await found.stop()


@pytest.fixture
async def lan(cluster: SimCluster):
    await cluster.run("OP_NETWORK_ADD", network_name="lan", **LAN)
    await connected(cluster)
    return cluster


async def connected(cluster: SimCluster, group: str = "default", **more: Any) -> None:
    given = {"network_link": "br0", "network_name": "lan", "group_name": group}
    await cluster.run("OP_NETWORK_CONNECT", **(given | more))


async def made(cluster: SimCluster, *nics: dict, name: str = "web1", **more: Any):
    given = {"disk_template": "diskless", "pnode": "node1", "nics": list(nics)}
    await cluster.run("OP_INSTANCE_CREATE", instance_name=name, **(given | more))
    return cluster.config.instance(name)


async def refused(cluster: SimCluster, *nics: dict, **more: Any):
    given = {"disk_template": "diskless", "pnode": "node1", "nics": list(nics)}
    return await cluster.refused(
        "OP_INSTANCE_CREATE", instance_name="web9", **(given | more)
    )


def modified(name: str, *mods: list) -> dict[str, Any]:
    return {"instance_name": name, "nics": list(mods)}


# -- networks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"network": "192.0.2.1/24"}, "not a network"),
        ({"network": "192.0.2.0"}, "not an IPv4 network"),
        ({"network": "192.0.2.0/31"}, "16 to 30 bits"),
        ({"network": "10.0.0.0/8"}, "16 to 30 bits"),
        ({"network": "2001:db8::/64"}, "not an IPv4 network"),
        (LAN | {"gateway": "192.0.3.1"}, "not in 192.0.2.0/29"),
        (LAN | {"gateway6": "2001:db8::1"}, "needs an IPv6 network"),
        (LAN | {"network6": "2001:db8::/64", "gateway6": "2001:db9::1"}, "not in"),
        (LAN | {"network6": "2001:db8::/64", "gateway6": "2001:db8::1%x;y"}, "not in"),
        (LAN | {"mac_prefix": "01:00:00"}, "MAC prefix"),
        (LAN | {"add_reserved_ips": ["192.0.2.9"]}, "not in"),
        (LAN | {"add_reserved_ips": ["192.0.2.3-192.0.2.2"]}, "ends before"),
    ],
)
async def test_a_network_that_cannot_be(cluster, fields, word) -> None:
    error = await cluster.refused("OP_NETWORK_ADD", network_name="lan", **fields)
    assert isinstance(error, BadInput)
    assert word in error.message


async def test_its_own_addresses_and_reserved_ones_are_given_to_nobody(cluster) -> None:
    more = {"add_reserved_ips": ["192.0.2.3-192.0.2.4"]}
    await cluster.run("OP_NETWORK_ADD", network_name="lan", **LAN, **more)
    lan = cluster.config.network("lan")
    assert usage(lan, set()) == "XX.XX..X"
    change = {"remove_reserved_ips": ["192.0.2.3"], "gateway": "none"}
    await cluster.run("OP_NETWORK_SET_PARAMS", network_name="lan", **change)
    assert usage(cluster.config.network("lan"), {"192.0.2.6"}) == "X...X.XX"
    error = await cluster.refused(
        "OP_NETWORK_SET_PARAMS", network_name="lan", remove_reserved_ips=["192.0.2.2"]
    )
    assert "not reserved" in error.message
    await cluster.run("OP_NETWORK_SET_PARAMS", network_name="lan", gateway="192.0.2.1")
    error = await cluster.refused(
        "OP_NETWORK_SET_PARAMS", network_name="lan", remove_reserved_ips=["192.0.2.1"]
    )
    assert "is the gateway" in error.message


async def test_addresses_of_the_clusters_nodes_are_reserved(cluster) -> None:
    net = {"network": "127.0.0.0/24"}
    await cluster.run("OP_NETWORK_ADD", network_name="lan", **net)
    nodes = {node.primary_ip for node in map(cluster.config.node, ("node1", "node2"))}
    assert nodes <= outside(cluster.config.network("lan"))
    await cluster.run("OP_NETWORK_ADD", network_name="b", conflicts_check=False, **net)
    assert not nodes & outside(cluster.config.network("b"))


async def test_a_name_is_of_one_network(lan) -> None:
    error = await lan.refused("OP_NETWORK_ADD", network_name="lan", **LAN)
    assert isinstance(error, Exists)
    await lan.run("OP_NETWORK_RENAME", network_name="lan", new_name="wan")
    assert lan.config.network("wan").network == "192.0.2.0/29"


# -- addresses -----------------------------------------------------------------------


async def test_a_card_gets_the_next_address_and_gives_it_back(lan) -> None:
    ips = [(await made(lan, CARD, name=f"web{n}")).nics[0].ip for n in range(3)]
    assert ips == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]
    await lan.run("OP_INSTANCE_REMOVE", instance_name="web1")
    assert (await made(lan, CARD, name="web7")).nics[0].ip == "192.0.2.3"
    await made(lan, CARD, CARD, name="web8")
    error = await refused(lan, CARD)
    assert isinstance(error, NoCapacity)
    assert "no free address" in error.message


async def test_requests_that_come_together_get_different_addresses(lan) -> None:
    numbers = [
        await lan.submit(
            "OP_INSTANCE_CREATE",
            instance_name=f"web{n}",
            disk_template="diskless",
            pnode="node1",
            nics=[CARD],
        )
        for n in range(5)
    ]
    jobs = await asyncio.gather(*map(lan.finished, numbers))
    assert {job.status for job in jobs} == {"success"}
    ips = {lan.config.instance(f"web{n}").nics[0].ip for n in range(5)}
    assert len(ips) == 5


@pytest.mark.parametrize(
    ("nic", "kind", "word"),
    [
        ({"network": "lan", "ip": "192.0.2.2"}, Exists, "web1 has the IP address"),
        ({"network": "lan", "ip": "192.0.2.1"}, Exists, "reserved"),
        ({"network": "lan", "ip": "192.0.2.7"}, Exists, "reserved"),
        ({"network": "lan", "ip": "192.0.3.1"}, BadInput, "not an address of network"),
        ({"network": "lan", "link": "br0"}, BadInput, "leave link out"),
        ({"ip": "192.0.2.4"}, BadInput, "the card is not in it"),
        ({"ip": "pool"}, BadInput, "none is named"),
    ],
)
async def test_an_address_that_cannot_be(lan, nic, kind, word) -> None:
    await made(lan, CARD)
    error = await refused(lan, nic)
    assert type(error) is kind
    assert word in error.message


async def test_an_address_of_a_network_without_it_is_let_through_on_demand(lan) -> None:
    web1 = await made(lan, {"ip": "192.0.2.4"}, conflicts_check=False)
    assert (web1.nics[0].ip, web1.nics[0].network) == ("192.0.2.4", None)


async def test_a_network_has_macs_of_its_own(lan) -> None:
    change = {"mac_prefix": "AA:BB:CC"}
    await lan.run("OP_NETWORK_SET_PARAMS", network_name="lan", **change)
    web1 = await made(lan, CARD, {})
    assert [nic.mac[:8] for nic in web1.nics] == ["aa:bb:cc", "aa:00:00"]


async def test_an_address_in_use_is_not_reserved(lan) -> None:
    await made(lan, CARD)
    for fields in ({"add_reserved_ips": ["192.0.2.2"]}, {"gateway": "192.0.2.2"}):
        error = await lan.refused("OP_NETWORK_SET_PARAMS", network_name="lan", **fields)
        assert "web1" in error.message


async def test_no_commit_gives_an_address_twice(lan) -> None:
    web1 = await made(lan, CARD)
    web2 = await made(lan, CARD, name="web2")
    twice = successor(web2, 0.0, nics=web1.nics)
    with pytest.raises(Conflict, match=r"192\.0\.2\.2"):
        apply(lan.config, Change((twice,)))
    with pytest.raises(Conflict, match="in use"):
        apply(lan.config, Change((), (lan.config.network("lan"),)))
    group = lan.config.group("default")
    with pytest.raises(Conflict, match="not connected"):
        apply(lan.config, Change((successor(group, 0.0, networks={}),)))
    moved = successor(web1, 0.0, primary_node="far1")
    with pytest.raises(Conflict, match="not connected"):
        apply(lan.config, Change((moved,)))


# -- node groups ---------------------------------------------------------------------


async def test_cards_are_only_where_their_network_is_connected(lan) -> None:
    error = await refused(lan, CARD, pnode="far1")
    assert isinstance(error, WrongState)
    assert error.hint == "gnt-network connect lan far"
    await made(lan, CARD)
    error = await lan.refused(
        "OP_INSTANCE_MIGRATE", instance_name="web1", target_node="far1"
    )
    assert "not connected to node group far" in error.message
    await connected(lan, "far", network_link="br1", network_vlan="7")
    await lan.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="far1")
    (nic,) = lan.config.instance("web1").nics
    wires = lan.nodes.san.guests[f"far1 {lan.config.instance('web1').uuid}"]["wires"]
    assert wires == {nic.uuid: ["bridged", "br1", ".7"]}


async def test_a_node_does_not_leave_the_networks_of_its_guests(lan) -> None:
    await made(lan, CARD)
    move = {"group_name": "far", "nodes": ["node1"]}
    error = await lan.refused("OP_GROUP_ASSIGN_NODES", **move)
    assert error.hint == "gnt-network connect lan far"
    await connected(lan, "far")
    await lan.run("OP_GROUP_ASSIGN_NODES", **move)
    await lan.run("OP_NETWORK_DISCONNECT", network_name="lan", group_name="default")


async def test_the_planner_goes_where_the_network_is(lan) -> None:
    for number in range(4):
        name = f"web{number}"
        web = await made(lan, CARD, name=name, pnode=None, start=False)
        assert lan.config.group_of(web).name == "default"


async def test_what_is_in_use_is_neither_disconnected_nor_removed(lan) -> None:
    await made(lan, CARD)
    where = {"network_name": "lan", "group_name": "default"}
    for op_id, fields in (
        ("OP_NETWORK_DISCONNECT", where),
        ("OP_NETWORK_REMOVE", {"network_name": "lan"}),
    ):
        error = await lan.refused(op_id, **fields)
        assert isinstance(error, WrongState)
        assert "web1" in error.message
    await lan.run("OP_INSTANCE_REMOVE", instance_name="web1")
    error = await lan.refused("OP_NETWORK_REMOVE", network_name="lan")
    assert "connected to node group default" in error.message
    await lan.run("OP_NETWORK_DISCONNECT", **where)
    await lan.run("OP_NETWORK_REMOVE", network_name="lan")
    assert not lan.config.count(Network)


async def test_a_connection_looks_for_conflicts(cluster) -> None:
    await cluster.run("OP_NETWORK_ADD", network_name="lan", **LAN)
    await made(cluster, {"ip": "192.0.2.4"}, conflicts_check=False)
    where = {"network_name": "lan", "group_name": "default", "network_link": "br0"}
    error = await cluster.refused("OP_NETWORK_CONNECT", **where)
    assert "web1 has 192.0.2.4" in error.message
    await connected(cluster, conflicts_check=False)


async def test_networks_in_one_bridge_share_no_addresses(lan) -> None:
    await lan.run("OP_NETWORK_ADD", network_name="more", network="192.0.2.0/24")
    where = {"network_name": "more", "group_name": "default", "network_link": "br0"}
    error = await lan.refused("OP_NETWORK_CONNECT", **where)
    assert "shares addresses with network 'lan'" in error.message
    await lan.run("OP_NETWORK_CONNECT", **where | {"network_link": "br7"})
    await lan.run("OP_NETWORK_ADD", network_name="next", network="192.0.3.0/24")
    await connected(lan, network_name="next")


async def test_a_bridge_that_a_node_lacks_is_told_and_refused(lan) -> None:
    await made(lan, CARD)
    lan.nodes.nodes["node2"].machine.bridges = (Link(name="br7"),)
    error = await lan.refused(
        "OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2"
    )
    assert "node2: it has no bridge br0" in error.message
    found = (await lan.run("OP_CLUSTER_VERIFY"))["errors"]
    assert [one["object"] for one in found] == ["node node2"]
    assert "no bridge br0, which network cards of web1 need" in found[0]["message"]
    await lan.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    lan.nodes.nodes["node1"].machine.bridges = ()
    error = await lan.refused("OP_INSTANCE_STARTUP", instance_name="web1")
    assert "ip link add br0 type bridge" in error.hint


async def test_a_bridge_that_is_there_is_told_to_keep_vlans_apart(lan) -> None:
    lan.nodes.nodes["node1"].machine.bridges = (Link(name="br0"),)
    error = await refused(lan, {"mode": "bridged", "link": "br0", "vlan": ".5"})
    assert error.hint == "on node1: ip link set br0 type bridge vlan_filtering 1"


# -- cards that change ----------------------------------------------------------------


def wires(cluster: SimCluster, name: str = "web1") -> dict[str, list[str]]:
    uuid = cluster.config.instance(name).uuid
    home = cluster.config.node(cluster.config.instance(name).primary_node).name
    guest = cluster.nodes.san.guests[f"{home} {uuid}"]
    return {
        card: guest["wires"][card]
        for card in sorted(guest["state"]["cards"], key=guest["state"]["cards"].get)
    }


async def test_cards_come_and_go_while_the_guest_runs(lan) -> None:
    await made(lan, {"link": "br0", "name": "front"})
    mods = (
        ["add", -1, CARD],
        ["modify", "front", {"vlan": "7", "link": "br1"}],
        ["add", 0, {"mac": "aa:00:00:00:00:01"}],
    )
    await lan.run("OP_INSTANCE_SET_PARAMS", **modified("web1", *mods))
    first, front, last = lan.config.instance("web1").nics
    assert (first.mac, front.nicparams, last.ip) == (
        "aa:00:00:00:00:01",
        {"link": "br1", "vlan": ".7"},
        "192.0.2.2",
    )
    found = wires(lan)
    assert found[front.uuid] == ["bridged", "br1", ".7"]
    assert found[last.uuid] == ["bridged", "br0", ""]
    gone = modified("web1", ["remove", -1, {}], ["remove", front.uuid, {}])
    await lan.run("OP_INSTANCE_SET_PARAMS", **gone)
    assert list(wires(lan)) == [first.uuid]
    assert not lan.config.addresses_in(lan.config.network("lan"))


async def test_a_new_name_touches_no_guest(lan) -> None:
    await made(lan, CARD)
    before = len(lan.nodes.calls)
    name = modified("web1", ["modify", 0, {"name": "front"}])
    await lan.run("OP_INSTANCE_SET_PARAMS", **name)
    assert "nic" not in str(lan.nodes.calls[before:])
    assert lan.config.instance("web1").nics[0].name == "front"


async def test_a_card_may_take_the_address_that_another_gives_back(lan) -> None:
    await made(lan, CARD, CARD)
    mods = (["remove", 0, {}], ["modify", 1, {"ip": "192.0.2.2"}])
    await lan.run("OP_INSTANCE_SET_PARAMS", **modified("web1", *mods))
    (nic,) = lan.config.instance("web1").nics
    assert nic.ip == "192.0.2.2"


@pytest.mark.parametrize(
    ("mods", "word"),
    [
        ([["remove", 5, {}]], "no network card 5"),
        ([["add", 7, {}]], "number from 0 to 2"),
        ([["modify", 0, {}]], "nothing to modify"),
        ([["remove", 0, {"link": "br0"}]], "remove takes no parameters"),
        ([["add", "front", {}]], "number from 0 to 2"),
        ([["modify", 0, {"bogus": "1"}]], "bogus"),
        ([["remove", 0, {}], ["modify", 0, {"name": "x"}]], "named twice"),
        ([["add", -1, {}]] * 7, "at most 8"),
        ([["modify", 1, {"name": "front"}]], "called 'front'"),
        ([["modify", 1, {"name": "0"}]], "cannot be called '0'"),
        ([["modify", 1, {"ip": "192.0.2.2"}]], "192.0.2.2 already"),
        ([["explode", 0, {}]], "[action, card, parameters]"),
        ([["add", -1, {"link": "br9"}]], "no bridge br9"),
    ],
)
async def test_a_change_that_cannot_be(lan, mods, word) -> None:
    await made(lan, CARD | {"name": "front"}, CARD)
    before = lan.config
    error = await lan.refused("OP_INSTANCE_SET_PARAMS", **modified("web1", *mods))
    assert word in error.message
    assert lan.config is before


async def test_a_guest_of_an_older_agent_keeps_its_cards(lan) -> None:
    web1 = await made(lan, CARD)
    lan.nodes.san.guests[f"node1 {web1.uuid}"]["state"]["cards"] = None
    add = modified("web1", ["add", -1, {}])
    error = await lan.refused("OP_INSTANCE_SET_PARAMS", **add)
    assert "older agent" in error.message
    await lan.run("OP_INSTANCE_MIGRATE", instance_name="web1")


# -- defaults -------------------------------------------------------------------------


async def test_the_clusters_defaults_connect_a_card(cluster) -> None:
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"link": "br1", "vlan": "9"})
    await made(cluster, {}, {"link": "br0", "vlan": "none"})
    found = list(wires(cluster).values())
    assert found == [["bridged", "br1", ".9"], ["bridged", "br0", ""]]
    for given, word in (
        ({"mode": "weird"}, "a mode is"),
        ({"bogus": "1"}, "no parameter 'bogus'"),
        ({"mode": "routed"}, "no VLAN"),
    ):
        error = await cluster.refused("OP_CLUSTER_SET_PARAMS", nicparams=given)
        assert word in error.message


async def test_without_a_word_there_is_a_card_where_the_cluster_connects_it(cluster):
    given = {"disk_template": "diskless", "pnode": "node1"}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="web1", **given)
    assert cluster.config.instance("web1").nics == ()
    await cluster.run("OP_CLUSTER_SET_PARAMS", nicparams={"link": "br0"})
    await cluster.run("OP_INSTANCE_CREATE", instance_name="web2", **given)
    assert len(cluster.config.instance("web2").nics) == 1


async def test_the_policy_counts_cards(lan) -> None:
    pair = {side: dict(one) for side, one in ipolicy.DEFAULT["minmax"][0].items()}
    pair["max"]["nic-count"] = 2
    await lan.run("OP_CLUSTER_SET_PARAMS", ipolicy={"minmax": [pair]})
    await made(lan, {}, {})
    error = await lan.refused(
        "OP_INSTANCE_SET_PARAMS", **modified("web1", ["add", -1, {}])
    )
    assert "nic-count 3" in error.message
