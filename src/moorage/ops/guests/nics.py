# SPDX-License-Identifier: BSD-2-Clause
"""Network cards of a request: what may be asked for, and what comes of it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from moorage.errors import BadInput, Exists, NoCapacity
from moorage.jobs import View
from moorage.model import Config, Network, Nic, nicparams
from moorage.model.misfit import misfit
from moorage.model.networks import MAC, Address, contains, free, outside
from moorage.storage.validation import check_name
from moorage.units import is_whole

MOST_CARDS = 8
"""Cards of one instance, as in Ganeti."""
GENERATED = ("auto", "generate")
"""Words for an address that the cluster makes."""
POOL = "pool"
"""The word for any address of a network."""
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NONE = (None, "", "none")


class Card(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network card as somebody wants it.

    Attributes
    ----------
    mac
        Its hardware address; the cluster makes one for ``auto`` and ``generate``.
    ip
        What scripts are told; of a network, ``pool`` is any one that is free.
    network
        The network that it is in, which says how it is connected.
    mode, link, vlan
        How it is connected, where it is in no network; else as the cluster says.
    filter
        What it is held to, besides what the cluster or its network says.
    """

    mac: str | None = None
    ip: str | None = None
    name: str | None = None
    mode: str | None = None
    link: str | None = None
    vlan: str | None = None
    filter: str | None = None
    network: str | None = None

    def params(self) -> dict[str, str]:
        """Return how it is connected, as far as it says so."""
        found = {name: getattr(self, name) for name in nicparams.NAMES}
        words = {name: one for name, one in found.items() if one is not None}
        return {name: "" if one == "none" else one for name, one in words.items()}


@dataclass
class Making:
    """Cards that are made in one request: none gets an address of another's.

    Attributes
    ----------
    own
        Name of the instance that they are for.
    conflicts
        Whether an address without a network must not be one of a network's.
    given
        Addresses of this request, and what has them.
    freed
        Addresses that this request gives back.
    """

    view: View
    own: str
    conflicts: bool = True
    given: dict[Address, str] = field(default_factory=dict)
    freed: set[Address] = field(default_factory=set)

    def whose(self, address: Address) -> str:
        """Return who has an address; empty for nobody."""
        if address in self.given:
            return self.given[address]
        for instance in self.view.config.holders_of(address):
            if not (instance.name == self.own and address in self.freed):
                return f"instance {instance.name}"
        claimed = (one for one in self.view.claims if address in one.addresses)
        return next((f"a job for {one.instance}" for one in claimed), "")

    def take(self, address: Address, what: str) -> str:
        """Take an address, and return it; raise `Exists` if it is somebody's."""
        holder = self.whose(address)
        if holder:
            kind = "MAC address" if address[0] == MAC else "IP address"
            raise Exists(f"{what}: {holder} has the {kind} {address[1]} already")
        self.given[address] = what
        return address[1]

    def leave(self, nic: Nic) -> None:
        """Give the addresses of a card back."""
        for one in of_card(nic):
            self.freed.add(one)
            self.given.pop(one, None)


def made(making: Making, given: Sequence[Mapping[str, Any]]) -> tuple[Nic, ...]:
    """Return the cards of a new instance.

    Raises
    ------
    BadInput
        If there are too many, or a word of one is off.
    NotFound
        If there is no such network.
    Exists
        If an address is somebody else's.
    NoCapacity
        If a network has no free address.
    """
    check_count(len(given))
    words = [(number_of(n), read(number_of(n), one)) for n, one in enumerate(given)]
    for what, card in words:  # before addresses are made: none is another's wish
        _check_mac(what, card)
    check_names([card.name for _, card in words])
    fixed = {what: take_mac(making, what, card) for what, card in words if _given(card)}
    return tuple(
        new(making, what, card, mac=fixed.get(what, "")) for what, card in words
    )


def number_of(number: int) -> str:
    """Return what a card is called in sentences."""
    return f"network card {number}"


def check_count(count: int) -> None:
    """Raise `BadInput` if an instance cannot have so many cards."""
    if count > MOST_CARDS:
        raise BadInput(f"an instance has at most {MOST_CARDS} network cards")


def check_names(names: Iterable[str | None]) -> None:
    """Raise `Exists` if two cards of an instance have one name."""
    known = [name for name in names if name not in _NONE]
    for name in known:
        if known.count(name) > 1:
            raise Exists(f"two network cards of the instance are called '{name}'")


def read(what: str, given: Mapping[str, Any]) -> Card:
    """Return a card as it is asked for; raise `BadInput` for what none can have."""
    try:
        return convert(dict(given), Card)
    except ValidationError as error:
        raise BadInput(
            f"{what}: {misfit(error)}", hint="--net 0:mode=bridged,link=br0"
        ) from None


def new(making: Making, what: str, card: Card, *, mac: str = "") -> Nic:
    """Return a new card; its hardware address may be taken already (`mac`)."""
    network = _network(making.view.config, card)
    nic = Nic(
        uuid=making.view.fresh(),
        mac=mac or take_mac(making, what, card, network),
        name=_name(what, card),
        network=network.uuid if network else None,
        nicparams=_params(making.view.config, what, card, network),
    )
    return replace(nic, ip=_ip(making, what, card.ip, network))


def changed(making: Making, what: str, nic: Nic, card: Card) -> Nic:
    """Return a card with changes; what is not named stays."""
    config = making.view.config
    making.leave(nic)
    network = _network(config, card)
    if card.network is None and nic.network:
        network = config.network(nic.network)
    moved = (network.uuid if network else None) != nic.network
    mac = nic.mac
    if card.mac is not None:
        _check_mac(what, card)
    if card.mac is None or card.mac == nic.mac:
        making.take((MAC, nic.mac), what)
    else:
        mac = take_mac(making, what, card, network)
    own = nic.nicparams
    if card.network is not None and network:
        own = {name: one for name, one in own.items() if name not in nicparams.WAYS}
    new = _params(config, what, card, network)
    kept = {name: one for name, one in own.items() if name not in card.params()}
    params = {**kept, **new}
    ip = card.ip if card.ip is not None or moved else nic.ip
    return replace(
        nic,
        mac=mac,
        name=nic.name if card.name is None else _name(what, card),
        ip=_ip(making, what, ip, network),
        network=network.uuid if network else None,
        nicparams=params,
    )


def _network(config: Config, card: Card) -> Network | None:
    return None if card.network in _NONE else config.network(str(card.network))


def _params(
    config: Config, what: str, card: Card, network: Network | None
) -> dict[str, str]:
    given = card.params()
    ways = [name for name in given if name in nicparams.WAYS]
    if network and ways:
        raise BadInput(
            f"{what} is in network '{network.name}', which says how it is connected: "
            f"leave {', '.join(ways)} out"
        )
    try:
        own = nicparams.checked(given)
        whole = nicparams.over(nicparams.defaults(config.cluster), own).params()
        if not network:
            nicparams.check_whole(whole)
    except BadInput as error:
        raise BadInput(f"{what}: {error.message}", hint=error.hint) from None
    if card.mode and not whole.connected:
        raise BadInput(
            f"{what} is {card.mode}, and names no bridge", hint="add link=br0"
        )
    usual = nicparams.defaults(config.cluster)
    return {name: value for name, value in own.items() if value or usual.get(name)}


def _name(what: str, card: Card) -> str | None:
    if card.name in _NONE:
        return None
    if is_whole(str(card.name)):
        raise BadInput(f"{what} cannot be called '{card.name}': cards have numbers")
    try:
        return check_name("network card", str(card.name))
    except BadInput as error:
        raise BadInput(f"{what}: {error.message}") from None


def _ip(
    making: Making, what: str, word: str | None, network: Network | None
) -> str | None:
    """Return a card's IP address: the one that is named, or a free one."""
    if word in _NONE:
        return None
    if word == POOL:
        if network is None:
            raise BadInput(
                f"{what}: ip={POOL} takes an address of a network, and none is named",
                hint="--net 0:network=NETWORK,ip=pool",
            )
        return making.take((network.uuid, _free(making, network)), what)
    address = _address(what, str(word))
    if network is None:
        _check_conflict(making, what, address)
        return address
    if not contains(network, address):
        raise BadInput(
            f"{what}: {address} is not an address of network '{network.name}', "
            f"{network.network}"
        )
    if address in outside(network):
        raise Exists(f"{what}: {address} is reserved in network '{network.name}'")
    return making.take((network.uuid, address), what)


def _address(what: str, word: str) -> str:
    try:
        found = ip_address(word)
    except ValueError:
        raise BadInput(f"{what}: '{word}' is not an IP address") from None
    if "%" in word:  # what follows may be anything, and scripts are told of it
        raise BadInput(f"{what}: '{word}' names an interface, and is to be an address")
    return str(found)


def _check_conflict(making: Making, what: str, address: str) -> None:
    """Raise `BadInput` for an address of a network that the card is not in."""
    if not making.conflicts:
        return
    for network in making.view.config.named(Network):
        if contains(network, address):
            raise BadInput(
                f"{what}: {address} is an address of network '{network.name}', and the "
                "card is not in it",
                hint=f"network={network.name}, or --no-conflicts-check",
            )


def _free(making: Making, network: Network) -> str:
    """Return the lowest free address of a network."""
    config = making.view.config
    claimed = {ip for one in making.view.claims for _, ip in one.addresses}
    taken = config.addresses_in(network) | claimed | {ip for _, ip in making.given}
    found = next(free(network, taken), None)
    if found is None:
        raise NoCapacity(
            f"network '{network.name}' has no free address",
            hint=f"gnt-network info {network.name}",
        )
    return found


def _given(card: Card) -> bool:
    """Whether a card names its hardware address."""
    return card.mac not in (*_NONE, *GENERATED)


def _check_mac(what: str, card: Card) -> None:
    mac = str(card.mac).lower()
    if _given(card) and not (_MAC.fullmatch(mac) and int(mac[:2], 16) % 2 == 0):
        raise BadInput(f"{what}: {card.mac!r} is not a MAC address of one card")


def take_mac(
    making: Making, what: str, card: Card, network: Network | None = None
) -> str:
    """Return the hardware address that is named, or else one that nobody has."""
    if _given(card):
        return making.take((MAC, str(card.mac).lower()), what)
    cluster = making.view.config.cluster.mac_prefix
    prefix = (network.mac_prefix if network else None) or cluster
    while True:
        tail = sha256(making.view.fresh().encode()).hexdigest()
        mac = ":".join([prefix.lower(), tail[:2], tail[2:4], tail[4:6]])
        if not making.whose((MAC, mac)):
            return making.take((MAC, mac), what)


def of_card(nic: Nic) -> Iterator[Address]:
    """Yield the addresses of a card."""
    yield MAC, nic.mac
    if nic.network and nic.ip:
        yield nic.network, nic.ip


def claimed(nics: Iterable[Nic], before: Iterable[Nic] = ()) -> tuple[Address, ...]:
    """Return the addresses that cards have and did not have before."""
    known = {one for nic in before for one in of_card(nic)}
    found = [one for nic in nics for one in of_card(nic)]
    return tuple(one for one in found if one not in known)
