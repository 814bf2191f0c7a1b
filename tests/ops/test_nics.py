# SPDX-License-Identifier: BSD-2-Clause
"""Network cards: what is asked for happens, or is refused before anything is made."""

import re
from pathlib import Path

import pytest

from moorage.errors import BadInput, Exists, NotFound, WrongState
from moorage.testing.cluster import SimCluster


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


async def made(cluster: SimCluster, *nics: dict, name: str = "web1"):
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name=name,
        disk_template="diskless",
        pnode="node1",
        nics=list(nics),
    )
    return cluster.config.instance(name)


async def refused(cluster: SimCluster, *nics: dict):
    return await cluster.refused(
        "OP_INSTANCE_CREATE",
        instance_name="web9",
        disk_template="ext",
        disks=[{"size": 64, "provider": "san"}],
        pnode="node1",
        nics=list(nics),
    )


@pytest.mark.parametrize(
    ("nic", "kind", "word"),
    [
        ({"mode": "weird"}, BadInput, "weird"),
        ({"mode": "routed", "link": "main"}, BadInput, "no IP address"),
        ({"mode": "routed", "ip": "10.0.0.1", "vlan": "5"}, BadInput, "VLAN"),
        ({"link": "br9"}, WrongState, "br9"),
        ({"link": "ovs0"}, WrongState, "no bridge ovs0"),
        ({"link": "br0", "vlan": "5"}, WrongState, "VLANs apart"),
        ({"mode": "bridged"}, BadInput, "bridge"),
        ({"bogus": "1"}, BadInput, "bogus"),
        ({"ip": "999.1.1.1"}, BadInput, "999.1.1.1"),
        ({"ip": "fe80::1%tap0;reboot"}, BadInput, "names an interface"),
        ({"ip": "pool"}, BadInput, "pool"),
        ({"network": "nosuch"}, NotFound, "nosuch"),
        ({"vlan": "5000", "link": "br1"}, BadInput, "1 to 4094"),
        ({"vlan": "x", "link": "br1"}, BadInput, "not a VLAN"),
        ({"mac": "zz"}, BadInput, "zz"),
        ({"mac": "01:00:00:00:00:01"}, BadInput, "MAC"),
        ({"mac": r"aa:00:00:11:22:44,romfile=/etc/passwd"}, BadInput, "MAC"),
        ({"link": "br0,br=x"}, BadInput, "br0,br=x"),
        ({"link": "a" * 16}, BadInput, "bridge"),
        ({"name": "a/b"}, BadInput, "a/b"),
        ({"mac": 5}, BadInput, "text"),
        ({"link": True}, BadInput, "text"),
    ],
)
async def test_a_card_that_cannot_be(cluster, nic, kind, word) -> None:
    before = cluster.config
    error = await refused(cluster, {}, nic)
    assert type(error) is kind
    assert word in error.message
    assert kind is not BadInput or "card 1" in error.message
    assert cluster.config is before
    assert not cluster.nodes.san.volumes


async def test_at_most_eight_cards(cluster) -> None:
    assert len((await made(cluster, *[{}] * 8)).nics) == 8
    error = await refused(cluster, *[{}] * 9)
    assert "at most 8 network cards" in error.message


async def test_an_address_belongs_to_one_card(cluster) -> None:
    mac = "AA:00:00:11:22:33"
    (nic,) = (await made(cluster, {"mac": mac, "ip": "none"})).nics
    assert (nic.mac, nic.ip) == (mac.lower(), None)
    error = await refused(cluster, {"mac": mac.lower()})
    assert isinstance(error, Exists)
    assert "instance web1" in error.message
    twice = {"mac": "aa:00:00:11:22:44"}
    error = await refused(cluster, twice, twice)
    assert isinstance(error, Exists)
    assert "network card 0" in error.message


async def test_addresses_that_the_cluster_makes_are_its_own(cluster) -> None:
    found = []
    for number in range(20):
        instance = await made(cluster, {}, {"mac": "generate"}, name=f"web{number}")
        found += [nic.mac for nic in instance.nics]
    assert len(set(found)) == 40
    assert all(re.fullmatch("aa:00:00(:[0-9a-f]{2}){3}", mac) for mac in found)


async def test_what_is_kept_is_what_was_asked(cluster) -> None:
    given = {"link": "br0", "mode": "bridged", "ip": "10.0.0.9", "name": "front"}
    (nic,) = (await made(cluster, given)).nics
    assert nic.nicparams == {"mode": "bridged", "link": "br0"}
    assert (nic.ip, nic.name) == ("10.0.0.9", "front")


async def test_a_card_without_a_bridge_is_told_to_be_connected_to_nothing(cluster):
    number = await cluster.submit(
        "OP_INSTANCE_CREATE",
        instance_name="web1",
        disk_template="diskless",
        pnode="node1",
        nics=[{"link": "br0"}, {"mac": "generate"}],
    )
    told = " ".join(e[3] for op in (await cluster.finished(number)).ops for e in op.log)
    assert "network card 1 names no bridge and is connected to nothing" in told
    assert "network card 0" not in told
