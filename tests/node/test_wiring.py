# SPDX-License-Identifier: BSD-2-Clause
"""How interfaces are connected: the commands, and scripts with Ganeti's variables."""

import os
from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.node.hypervisors import wiring
from moorage.node.hypervisors.base import Card
from moorage.node.hypervisors.wiring import Bridge, Wiring
from moorage.node.machine import links
from moorage.protocol import NetworkOf

CARD = Card(uuid="u", mac="aa:00:00:00:00:01", index=1, link="br0")
LAN = NetworkOf(
    uuid="n",
    name="lan",
    network="192.0.2.0/24",
    gateway="192.0.2.1",
    mac_prefix="aa:00:00",
    tags=("a", "b"),
)


def card(**more: object) -> Card:
    names = ("uuid", "mac", "index", "link")
    return Card(**({name: getattr(CARD, name) for name in names} | more))


def typed(words: object) -> list[str]:
    return [" ".join(argv) for argv in words]


def test_a_bridge_gets_an_interface_with_its_mtu_and_a_high_address() -> None:
    assert typed(wiring.bridged(CARD, "tap3", Bridge(mtu=9000))) == [
        "ip link set dev tap3 address fe:00:00:00:00:01 mtu 9000",
        "ip link set dev tap3 master br0 up",
    ]


@pytest.mark.parametrize(
    ("vlan", "commands"),
    [
        (".5", ["add dev tap3 vid 5 master pvid untagged"]),
        (":10:20", ["add dev tap3 vid 10 master", "add dev tap3 vid 20 master"]),
        (
            ".5:10",
            ["add dev tap3 vid 5 master pvid untagged", "add dev tap3 vid 10 master"],
        ),
    ],
)
def test_an_interface_is_in_its_vlans_and_no_other(vlan: str, commands: list) -> None:
    bridge = Bridge(vlans=True, default=1)
    _, _, *found = typed(wiring.bridged(card(vlan=vlan), "tap3", bridge))
    whole = ["del dev tap3 vid 1 master", *commands]
    assert found == [f"bridge vlan {one}" for one in whole]


def test_the_cables_to_the_world_carry_the_vlans() -> None:
    bridge = Bridge(vlans=True, default=0, uplinks=("eth1",))
    _, _, *found = typed(wiring.bridged(card(vlan=":7"), "tap3", bridge))
    assert found == [
        "bridge vlan add dev tap3 vid 7 master",
        "bridge vlan add dev eth1 vid 7 master",
    ]


@pytest.mark.parametrize(
    ("vlan", "words"),
    [
        ("", ""),
        (".5", " tag=5"),
        (":10:20", " trunks=10,20"),
        (".5:10", " tag=5 trunks=10 vlan_mode=native-untagged"),
    ],
)
def test_open_vswitch_gets_a_port_in_the_place_of_an_old_one(vlan, words) -> None:
    one = card(mode="openvswitch", link="ovs0", vlan=vlan)
    assert typed(wiring.switched(one, "tap3")) == [
        "ip link set dev tap3 up",
        "ovs-vsctl --timeout=10 -- --if-exists del-port tap3 -- add-port ovs0 tap3"
        + words,
    ]


def test_an_address_is_routed_to_an_interface() -> None:
    one = card(mode="routed", link="guests", ip="192.0.2.5")
    assert typed(wiring.routed(one, "tap3")) == [
        "ip link set dev tap3 up",
        "ip rule add dev tap3 table guests",
        "ip route replace 192.0.2.5 table guests proto static dev tap3",
    ]
    main = card(mode="routed", link="", ip="2001:db8::5")
    assert typed(wiring.routed(main, "tap3"))[1:] == [
        "ip -6 route replace 2001:db8::5 proto static dev tap3"
    ]
    assert "ipv4/conf/tap3/proxy_arp" in wiring.settings("tap3")


def test_a_script_is_told_all_that_ganetis_are() -> None:
    one = card(ip="192.0.2.5", name="front", vlan=".5", network=LAN)
    found = wiring.environment("web1", ("gold", "x"), one, "tap3")
    found.pop("PATH")
    assert found == {
        "INSTANCE": "web1",
        "MAC": "aa:00:00:00:00:01",
        "MODE": "bridged",
        "INTERFACE": "tap3",
        "INTERFACE_INDEX": "1",
        "INTERFACE_UUID": "u",
        "INTERFACE_NAME": "front",
        "TAGS": "gold x",
        "IP": "192.0.2.5",
        "LINK": "br0",
        "BRIDGE": "br0",
        "VLAN": ".5",
        "NETWORK_NAME": "lan",
        "NETWORK_UUID": "n",
        "NETWORK_SUBNET": "192.0.2.0/24",
        "NETWORK_GATEWAY": "192.0.2.1",
        "NETWORK_MAC_PREFIX": "aa:00:00",
        "NETWORK_TAGS": "a b",
    }


def script(path: Path, name: str, text: str) -> Path:
    made = path / name
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("name", ["kvm-ifup-custom", "kvm-vif-bridge"])
async def test_a_script_takes_the_place_of_the_commands(tmp_path, name) -> None:
    script(tmp_path, name, f"echo $INSTANCE $INTERFACE $LINK >> {tmp_path}/told")
    script(tmp_path, "kvm-ifdown-custom", f"echo down $MAC >> {tmp_path}/told")
    wires = Wiring(tmp_path)
    await wires.up("web1", (), CARD, "tap3")
    await wires.down("web1", (), CARD, "tap3")
    told = (tmp_path / "told").read_text()
    assert told == "web1 tap3 br0\ndown aa:00:00:00:00:01\n"


async def test_what_a_script_says_when_it_fails_is_told(tmp_path) -> None:
    made = script(tmp_path, "kvm-ifup-custom", "echo no such switch; exit 3")
    with pytest.raises(Failed, match="no such switch"):
        await Wiring(tmp_path).up("web1", (), CARD, "tap3")
    made.chmod(0o777)
    with pytest.raises(Failed, match="others than root could write"):
        await Wiring(tmp_path).up("web1", (), CARD, "tap3")


async def test_open_vswitch_is_asked_and_obeys(tmp_path, monkeypatch) -> None:
    """With its program recorded: its kernel module is in few kernels of tests."""
    script(tmp_path, "ovs-vsctl", f'echo "$@" >> {tmp_path}/told; echo ovs0')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = {one.name: one for one in await links.found()}
    assert found["ovs0"].kind == "openvswitch"
    assert (tmp_path / "told").read_text() == "--timeout=5 list-br\n"


def test_bridges_are_found_with_and_without_vlans(tmp_path) -> None:
    for name in ("br0", "br1", "eth0"):
        (tmp_path / name).mkdir()
    for name, filtering in (("br0", None), ("br1", "1\n")):
        (tmp_path / name / "bridge").mkdir()
        if filtering:
            (tmp_path / name / "bridge" / "vlan_filtering").write_text(filtering)
    found = {one.name: one.vlans for one in links.kernels(tmp_path)}
    assert found == {"br0": False, "br1": True}
