# SPDX-License-Identifier: BSD-2-Clause
"""What a guest may send from its network card: rules of nftables at its interface.

They stand at the interface's ingress, before a bridge or a route sees a packet, in a
chain that has the interface's name. A chain of one filter replaces another at once: no
packet passes between the two.
"""

import asyncio
import re
import socket
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from moorage.errors import Failed
from moorage.model.nicparams import BY_IP, BY_MAC
from moorage.node.hypervisors.base import Card
from moorage.node.machine.commands import PATH
from moorage.node.machine.installed import has_program
from moorage.node.machine.links import NFT
from moorage.node.text import clean
from moorage.storage import limits

_TABLE = "netdev moorage"
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_INTERFACE = re.compile(r"[A-Za-z0-9_.-]{1,15}", re.ASCII)
_CHAIN = re.compile(r"^\s*chain (\S+) \{", re.MULTILINE)
_SAID = 500
_INTERFACE_BITS = 64
"""Bits of an IPv6 address that a card makes of its MAC address."""


def rules(card: Card, interface: str) -> str:
    """Return what `nft` is to read for a card; it replaces what was there.

    Raises
    ------
    Failed
        If the card has no address that it could be held to.
    """
    if not (_MAC.fullmatch(card.mac) and _INTERFACE.fullmatch(interface)):
        raise Failed(f"network card {card.index} has no MAC address: {card.mac!r}")
    if card.filter not in (BY_MAC, BY_IP):
        raise Failed(f"this node knows no filter {card.filter!r} of network cards")
    held = card.filter == BY_IP
    lines = [f"ether saddr != {card.mac} drop", *(_addresses(card) if held else ())]
    hook = f'type filter hook ingress device "{interface}" priority -300'
    first = f"{{ {hook}; policy {'drop' if held else 'accept'}; }}"
    made = f"add chain {_TABLE} {interface}"
    whole = [f"add table {_TABLE}", made, f"delete chain {_TABLE} {interface}"]
    whole += [f"{made} {first}"]
    whole += [f"add rule {_TABLE} {interface} {line}" for line in lines]
    return "\n".join(whole) + "\n"


def _addresses(card: Card) -> Iterator[str]:
    """Yield what passes from a card that is held to its addresses; the rest is dropped.

    A packet with a VLAN's tag is none of them: behind it anything could stand.
    """
    four, six = addresses(card)
    yield "ether type { 8021q, 8021ad } drop"
    yield "ether type 0x8035 @nh,48,16 3 accept"  # QEMU tells where a guest is now
    if four:
        yield from _ipv4(card.mac, four)
    yield from _ipv6(six)


def _ipv4(mac: str, own: IPv4Address) -> Iterator[str]:
    arp = f"arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp saddr ether {mac}"
    yield f"ether type arp {arp} arp saddr ip {own} accept"
    yield f"ether type arp {arp} arp saddr ip 0.0.0.0 arp daddr ip {own} accept"
    yield "ether type ip udp sport 67 drop"  # answers of a DHCP server
    yield f"ether type ip ip saddr {own} accept"
    asks = "ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67"
    yield f"ether type ip {asks} accept"


def _ipv6(own: tuple[IPv6Address, ...]) -> Iterator[str]:
    told = ", ".join(map(str, own))
    targets = ", ".join(f"0x{int(one):032x}" for one in own)
    target = f"@th,64,128 != {{ {targets} }}"
    yield "ether type ip6 icmpv6 type { nd-router-advert, nd-redirect } drop"
    yield f"ether type ip6 icmpv6 type nd-neighbor-advert {target} drop"
    yield "ether type ip6 udp sport 547 drop"
    yield f"ether type ip6 ip6 saddr {{ {told} }} accept"
    new = "ether type ip6 ip6 saddr :: icmpv6 type"
    yield f"{new} nd-neighbor-solicit {target} drop"  # who asks for a neighbour's
    asks = "nd-neighbor-solicit, nd-router-solicit, mld-listener-report"
    yield f"{new} {{ {asks}, mld2-listener-report }} accept"


def addresses(card: Card) -> tuple[IPv4Address | None, tuple[IPv6Address, ...]]:
    """Return the IPv4 address of a card, if it has one, and its IPv6 addresses.

    These are the one that is on record, and what the card makes of its MAC address
    (EUI-64, RFC 4291): the link's own, and that of its network's IPv6 range.

    Raises
    ------
    Failed
        If none is on record.
    """
    if not card.ip:
        raise Failed(
            f"network card {card.index} is to be held to its IP address, and has none",
            hint="gnt-instance modify --net N:ip=ADDRESS, or filter=mac",
        )
    own = ip_address(card.ip)
    ranges = [IPv6Network("fe80::/64")]
    if card.network and card.network.network6:
        found = ip_network(card.network.network6, strict=False)
        if isinstance(found, IPv6Network) and found.prefixlen == _INTERFACE_BITS:
            ranges.append(found)
    six = [_eui64(one, card.mac) for one in ranges]
    if isinstance(own, IPv6Address):
        six.append(own)
    four = own if isinstance(own, IPv4Address) else None
    return four, tuple(dict.fromkeys(six))


def _eui64(network: IPv6Network, mac: str) -> IPv6Address:
    six = bytes.fromhex(mac.replace(":", ""))
    tail = bytes([six[0] ^ 2]) + six[1:3] + b"\xff\xfe" + six[3:]
    return IPv6Address(int(network.network_address) + int.from_bytes(tail))


class Filters:
    """Puts rules at interfaces, and takes them away, one after the other."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def put(self, guest: str, card: Card, interface: str) -> None:
        """Hold a card to what it may send, at an interface that is there.

        A card that may send anything loses what another guest's left under that name.

        Raises
        ------
        Failed
            If it cannot be held; then the guest must not have the card.
        """
        async with self._turn:
            if card.filter:
                what = f"network card {card.index} of {guest} is to be filtered"
                await _told(what, rules(card, interface))
            else:
                await _delete(interface)

    async def lift(self, interface: str) -> None:
        """Take the rules of an interface away that is gone.

        One that is there is another guest's by now, and so are its rules.
        """
        async with self._turn:
            if interface not in (name for _, name in socket.if_nameindex()):
                await _delete(interface)


async def _delete(interface: str) -> None:
    if has_program(NFT):
        await _run("delete", "chain", *_TABLE.split(), interface)


async def filtered() -> frozenset[str]:
    """Return the interfaces that have rules."""
    if not has_program(NFT):
        return frozenset()
    code, said = await _run("list", "table", *_TABLE.split())
    return frozenset() if code else frozenset(_CHAIN.findall(said))


async def _told(what: str, asked: str) -> None:
    if not has_program(NFT):
        raise Failed(
            f"{what}, and this node has no {NFT}", hint="apt-get install nftables"
        )
    code, said = await _run("-f", "-", asked=asked)
    if code:
        raise Failed(f"{what}: {NFT}: {clean(said)[:_SAID].strip() or code}")


async def _run(*words: str, asked: str = "") -> tuple[int, str]:
    """Run nftables; return how it ended, and what it said."""
    child = await asyncio.create_subprocess_exec(
        NFT,
        *words,
        stdin=PIPE if asked else DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={"PATH": PATH, "LC_ALL": "C"},
    )
    try:
        async with asyncio.timeout(limits.WIRING):
            said, _ = await child.communicate(asked.encode() or None)
    except TimeoutError:
        child.kill()
        await child.wait()
        return 1, f"lasted {limits.WIRING:.0f} s"
    return child.returncode or 0, said.decode(errors="replace")
