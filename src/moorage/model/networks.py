# SPDX-License-Identifier: BSD-2-Clause
"""Networks' addresses: which there are, and which are taken.

Addresses of cards are not noted in their network: they are what the cards have. So none
can be taken by a card that is gone.
"""

from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network

from moorage.errors import BadInput

from .objects import Instance, Network

SMALLEST, LARGEST = 30, 16
"""Bits of a network's mask, as in Ganeti: from 4 to 65,536 addresses."""
MAC = ""
"""Stands for a network where addresses are looked up: of cards' hardware addresses."""
Address = tuple[str, str]
"""Uuid of a network, or `MAC`, and an address."""


def addresses(instance: Instance) -> Iterator[Address]:
    """Yield the addresses of an instance's cards: hardware's, and those in networks."""
    for nic in instance.nics:
        yield MAC, nic.mac
        if nic.network and nic.ip:
            yield nic.network, nic.ip


def subnet(network: Network) -> IPv4Network:
    """Return the network's addresses."""
    return IPv4Network(network.network)


def outside(network: Network) -> set[str]:
    """Return the addresses that no card gets: of the net itself, its gateway, others.

    Ganeti calls them reserved externally.
    """
    net = subnet(network)
    found = {str(net.network_address), str(net.broadcast_address), *network.reserved}
    return found | ({network.gateway} if network.gateway else set())


def free(network: Network, taken: Collection[str]) -> Iterator[str]:
    """Yield the addresses that a card can get, the lowest first."""
    never = outside(network)
    for address in map(str, subnet(network)):
        if address not in never and address not in taken:
            yield address


def usage(network: Network, taken: Collection[str]) -> str:
    """Return a letter for each address: ``X`` for one that is taken, ``.`` if not."""
    used = outside(network) | set(taken)
    return "".join("X" if str(one) in used else "." for one in subnet(network))


def in_order(found: Iterable[str]) -> tuple[str, ...]:
    """Return addresses, the lowest first, each once."""
    return tuple(map(str, sorted(set(map(IPv4Address, found)))))


def contains(network: Network, address: str) -> bool:
    """Whether an address is one of the network's, IPv4 or IPv6."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return found in subnet(network)
    return bool(network.network6) and found in IPv6Network(str(network.network6))


def check(network: Network) -> None:
    """Raise `BadInput` for a network whose parts are none, or do not fit together."""
    net = checked_subnet(network.network)
    if network.gateway:
        _check_in(network.gateway, net, "gateway")
    for address in network.reserved:
        _check_in(address, net, "reserved address")
    if network.gateway6 and not network.network6:
        raise BadInput("an IPv6 gateway needs an IPv6 network", hint="--network6")
    if network.network6:
        net6 = _net(network.network6)
        if not isinstance(net6, IPv6Network):
            raise BadInput(f"'{network.network6}' is not an IPv6 network")
        if network.gateway6:
            _check_in(network.gateway6, net6, "IPv6 gateway")


def checked_subnet(word: str) -> IPv4Network:
    """Return an IPv4 network; raise `BadInput` unless it is one of a size that goes."""
    net = _net(word)
    if not isinstance(net, IPv4Network) or "/" not in word:
        beside = f"--network=192.0.2.0/24 --network6={word}"
        raise BadInput(
            f"'{word}' is not an IPv4 network",
            hint=beside if isinstance(net, IPv6Network) else "192.0.2.0/24",
        )
    if not LARGEST <= net.prefixlen <= SMALLEST:
        raise BadInput(
            f"a network has a mask of {LARGEST} to {SMALLEST} bits, not "
            f"{net.prefixlen}: {word}"
        )
    return net


def checked_addresses(words: Iterable[str], net: IPv4Network) -> set[str]:
    """Return the addresses that words name, one each, or a range ``A-B``.

    Raises
    ------
    BadInput
        If one is none of the network's.
    """
    found: set[str] = set()
    for word in words:
        first, dash, last = word.partition("-")
        for end in (first, last) if dash else (first,):
            _check_in(end, net, "address")
        begin, end_ = IPv4Address(first), IPv4Address(last or first)
        if end_ < begin:
            raise BadInput(f"'{word}' ends before it begins")
        found |= {str(IPv4Address(n)) for n in range(int(begin), int(end_) + 1)}
    return found


def _net(word: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(word)
    except ValueError:
        raise BadInput(f"'{word}' is not a network", hint=_meant(word)) from None


def _meant(word: str) -> str:
    """Return the network that an address with a mask is in, or an example."""
    try:
        return str(ip_network(word, strict=False))
    except ValueError:
        return "2001:db8::/64" if ":" in word else "192.0.2.0/24"


def _check_in(address: str, net: IPv4Network | IPv6Network, what: str) -> None:
    try:
        found = ip_address(address)
    except ValueError:
        raise BadInput(f"the {what} '{address}' is not an IP address") from None
    if found not in net or "%" in address:
        raise BadInput(f"the {what} {address} is not in {net}")
