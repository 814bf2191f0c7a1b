# SPDX-License-Identifier: BSD-2-Clause
"""What is heard of a network card that is held to its addresses, on a real bridge.

No guest runs: the test itself sends through a tap what one could send.
"""

import asyncio
import os
import select
import struct
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

import pytest

from moorage.errors import Failed
from moorage.model.hvparams import parameters
from moorage.node.hypervisors import filtering
from moorage.node.hypervisors.base import Card, GuestSpec
from moorage.node.hypervisors.kvm.cables import Cables
from moorage.node.hypervisors.kvm.guest_dir import Home
from moorage.node.hypervisors.wiring import Wiring
from moorage.protocol import NetworkOf
from support.own_network import own_network

pytestmark = pytest.mark.real

MINE, OTHERS = "aa:00:00:00:00:01", "aa:00:00:00:00:02"
IP, GATEWAY, NOTHING, ALL = "192.0.2.1", "192.0.2.14", "0.0.0.0", "255.255.255.255"  # noqa: S104
EVERYBODY = "ff:ff:ff:ff:ff:ff"
LINK, GLOBAL = "fe80::a800:ff:fe00:1", "2001:db8::a800:ff:fe00:1"
LINK2, ROUTER, NODES = "fe80::a800:ff:fe00:2", "fe80::1", "ff02::1"
UDP, ICMP6 = 17, 58
RS, RA, NS, NA, REDIRECT, MLD2 = 133, 134, 135, 136, 137, 143
HEADER = bytes(10)
"""What stands before a frame in a tap (`struct virtio_net_hdr`)."""
LAN = NetworkOf(uuid="n", name="lan", network="192.0.2.0/28", network6="2001:db8::/64")


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ip(text: str) -> bytes:
    return ip_address(text).packed


def frame(kind: int, body: bytes, hard: str = MINE, tag: bytes = b"") -> bytes:
    return mac(EVERYBODY) + mac(hard) + tag + struct.pack("!H", kind) + body


def arp(sender: str, target: str, op: int = 2, hw: str = MINE, **more: Any) -> bytes:
    body = struct.pack("!HHBBH", 1, 0x800, 6, 4, op)
    return frame(
        0x806, body + mac(hw) + ip(sender) + mac(EVERYBODY) + ip(target), **more
    )


def ipv4(src: str, dst: str = ALL, ports: tuple[int, int] = (9, 9), **more) -> bytes:
    data = struct.pack("!HHHH", *ports, 16, 0) + bytes(8)
    begin = struct.pack("!BBHHHBB", 0x45, 0, 36, 0, 0, 64, UDP)
    words = struct.unpack("!5H4H", begin + ip(src) + ip(dst))
    check = 0xFFFF - (sum(words) % 0xFFFF)  # RFC 1071: a bridge drops a wrong one
    head = begin + struct.pack("!H", check) + ip(src) + ip(dst)
    return frame(0x800, head + data, **more)


def ipv6(src: str, dst: str, protocol: int, data: bytes, **more: Any) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(data), protocol, 255)
    return frame(0x86DD, head + ip(src) + ip(dst) + data, **more)


def icmp6(src: str, kind: int, target: str = "::", **more: Any) -> bytes:
    data = struct.pack("!BBHI", kind, 0, 0, 0) + ip(target)
    return ipv6(src, NODES, ICMP6, data, **more)


def udp6(src: str, source: int, dest: int) -> bytes:
    return ipv6(src, NODES, UDP, struct.pack("!HHHH", source, dest, 16, 0) + bytes(8))


HONEST = {
    "it answers for its address": arp(IP, GATEWAY),
    "it asks whether its address is free": arp(NOTHING, IP, op=1),
    "IPv4": ipv4(IP),
    "it asks a DHCP server": ipv4(NOTHING, ports=(68, 67)),
    "IPv6 on the link": udp6(LINK, 9, 9),
    "IPv6 in the network's range": udp6(GLOBAL, 9, 9),
    "it answers for its IPv6 address": icmp6(LINK, NA, LINK),
    "it asks for a neighbour": icmp6(LINK, NS, LINK2),
    "it asks whether its IPv6 address is free": icmp6("::", NS, LINK),
    "it asks for a router": icmp6("::", RS),
    "it joins a group": icmp6("::", MLD2),
    "it asks a DHCPv6 server": udp6(LINK, 546, 547),
    "QEMU tells where it is": frame(0x8035, struct.pack("!HHBBH", 1, 0x800, 6, 4, 3)),
}
OTHER_MAC = {
    "another MAC address": ipv4(IP, hard=OTHERS),
    "another MAC address asks by ARP": arp(IP, GATEWAY, hard=OTHERS, hw=OTHERS),
    "another MAC address behind a tag": ipv4(
        IP, hard=OTHERS, tag=bytes.fromhex("81000005")
    ),
}
FORGED = {
    **OTHER_MAC,
    "ARP for the gateway": arp(GATEWAY, GATEWAY),
    "ARP under another's MAC address": arp(IP, GATEWAY, hw=OTHERS),
    "a probe for another's address": arp(NOTHING, GATEWAY, op=1),
    "another's IPv4 address": ipv4(GATEWAY),
    "another's, behind the tag of no VLAN": ipv4(
        GATEWAY, tag=bytes.fromhex("81000000")
    ),
    "ARP behind two tags": arp(GATEWAY, GATEWAY, tag=bytes.fromhex("88a8000081000000")),
    "no address, and no question": ipv4(NOTHING, ports=(9, 67)),
    "it answers as a DHCP server": ipv4(IP, ports=(67, 68)),
    "another's IPv6 address": udp6(LINK2, 9, 9),
    "another's global address": udp6("2001:db8::1", 9, 9),
    "it answers for a neighbour": icmp6(LINK, NA, LINK2),
    "it answers for the router": icmp6(LINK, NA, ROUTER),
    "a neighbour answers": icmp6(LINK2, NA, LINK2),
    "it keeps a neighbour from its address": icmp6("::", NS, LINK2),
    "it is a router": icmp6(LINK, RA),
    "it sends others elsewhere": icmp6(LINK, REDIRECT),
    "it answers as a DHCPv6 server": udp6(LINK, 547, 546),
    "something else": frame(0x88CC, b"lldp"),
}


@pytest.fixture
def network() -> Iterator[None]:
    """A bridge in a network of the test's own."""
    with own_network():
        sh("ip link add br0 type bridge mcast_snooping 0")
        sh("ip link set br0 up")
        yield


def sh(command: str) -> str:
    return subprocess.run(
        command.split(), check=True, capture_output=True, text=True
    ).stdout


class Yard:
    """Two guests' cards: what one sends the other one hears, or not."""

    def __init__(self, path: Path) -> None:
        script = path / "kvm-ifup-custom"  # /sys shows another network than this one
        script.write_text("#!/bin/sh -e\nip link set $INTERFACE master br0 up\n")
        script.chmod(0o755)
        self.cables = Cables(Wiring(path))
        self.run = path / "run"
        self.stack = AsyncExitStack()
        self.given = parameters({"vhost_net": False, "vnet_hdr": True})

    async def lay(self, name: str, **card: Any) -> tuple[Home, int]:
        """Lay the cable of a guest; return its end."""
        made = Card(**{"uuid": name, "mac": MINE, "link": "br0"} | card)
        spec = GuestSpec(
            uuid=name,
            name=name,
            memory=128,
            vcpus=1,
            hvparams={},
            drives=(),
            cards=(made,),
        )
        home = Home(self.run, name)
        held = home.claim()  # as a process of its own would
        assert held is not None
        self.stack.callback(os.close, held)
        home.write_spec(spec)
        taps = self.cables.to_start(home, spec, self.given)
        (tap,) = await self.stack.enter_async_context(taps)
        assert tap
        return home, tap.queues[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()


def heard(sender: int, ear: int, told: bytes) -> bool:
    """Whether a frame arrives, before another one that surely does."""
    last = arp(IP, GATEWAY, op=1)
    for one in (told, last):
        os.write(sender, HEADER + one)
    found = []
    while last not in found and select.select([ear], [], [], 2.0)[0]:
        found.append(os.read(ear, 2000)[len(HEADER) :])
    assert last in found
    return told in found


def check(sender: int, ear: int, frames: dict[str, bytes], *, arrive: bool) -> None:
    for what, one in frames.items():
        assert heard(sender, ear, one) is arrive, what


@pytest.mark.usefixtures("network")
async def test_forged_addresses_are_not_heard_and_honest_ones_are(
    tmp_path: Path,
) -> None:
    async with Yard(tmp_path) as yard:
        _, one = await yard.lay("one", ip=IP, network=LAN, filter="ip")
        _, ear = await yard.lay("ear", mac=OTHERS)
        check(one, ear, HONEST, arrive=True)
        check(one, ear, FORGED, arrive=False)


@pytest.mark.usefixtures("network")
async def test_a_card_that_is_held_to_its_mac_may_have_any_address(
    tmp_path: Path,
) -> None:
    async with Yard(tmp_path) as yard:
        _, one = await yard.lay("one", filter="mac")
        _, ear = await yard.lay("ear", mac=OTHERS)
        check(one, ear, OTHER_MAC, arrive=False)
        others = {name: one for name, one in FORGED.items() if name not in OTHER_MAC}
        check(one, ear, HONEST | others, arrive=True)
        check(ear, one, OTHER_MAC, arrive=True)  # nobody asked for a filter there


@pytest.mark.usefixtures("network")
async def test_rules_that_somebody_took_away_are_made_anew(tmp_path: Path) -> None:
    """`nft flush ruleset`, as a reload of the node's own rules does."""
    forged = FORGED["another's IPv4 address"]
    async with Yard(tmp_path) as yard:
        _, one = await yard.lay("one", ip=IP, filter="ip")
        _, ear = await yard.lay("ear", mac=OTHERS)
        sh("nft flush ruleset")
        assert heard(one, ear, forged)
        await Cables(Wiring(tmp_path)).keep_filtered(yard.run)  # an agent started anew
        assert not heard(one, ear, forged)
        before = sh("nft -a list ruleset")
        await yard.cables.keep_filtered(yard.run)
        assert sh("nft -a list ruleset") == before


@pytest.mark.usefixtures("network")
async def test_the_rules_go_with_the_card_and_bind_no_other_one(tmp_path: Path) -> None:
    async with Yard(tmp_path) as yard:
        home, end = await yard.lay("one", ip=IP, filter="ip")
        await asyncio.to_thread(os.close, end)  # as its QEMU does
        await yard.cables.unplugged(home, "one")
        assert "tap" not in sh("nft list ruleset")
    crashed = Yard(tmp_path)
    _, end = await crashed.lay("two", ip=IP, filter="ip")
    await asyncio.to_thread(os.close, end)  # its QEMU was killed
    async with Yard(tmp_path) as yard:
        _, one = await yard.lay("three")
        _, ear = await yard.lay("ear", mac=OTHERS)
        assert sh("ip -br link").count("tap") == 2
        check(one, ear, FORGED, arrive=True)


@pytest.mark.usefixtures("network")
async def test_a_late_end_takes_no_rules_of_who_has_the_name_now(
    tmp_path: Path,
) -> None:
    async with Yard(tmp_path) as yard:
        home, end = await yard.lay("one", ip=IP, filter="ip")
        await asyncio.to_thread(os.close, end)
        _, two = await yard.lay("two", ip=IP, filter="ip")
        _, ear = await yard.lay("ear", mac=OTHERS)
        assert sh("ip -br link").count("tap") == 2  # both had the name tap0
        await yard.cables.unplugged(home, "one")
        check(two, ear, FORGED, arrive=False)


@pytest.mark.usefixtures("network")
async def test_no_card_is_laid_that_cannot_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard = Yard(tmp_path)
    with pytest.raises(Failed, match="held to its IP address, and has none"):
        await yard.lay("one", filter="ip")
    monkeypatch.setattr(filtering, "has_program", lambda _: False)
    with pytest.raises(Failed, match="network card 0 of two is to be filtered") as said:
        await yard.lay("two", ip=IP, filter="ip")
    assert said.value.hint == "apt-get install nftables"
    assert "tap" not in sh("ip -br link")
    await yard.stack.aclose()
