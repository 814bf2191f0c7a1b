# SPDX-License-Identifier: BSD-2-Clause
"""Network cards of a request: what may be asked for, and what comes of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from msgspec import Struct, ValidationError, convert

from moorage.errors import BadInput, Exists, NotSupported
from moorage.jobs import View
from moorage.model import Config, Instance, Nic
from moorage.model.misfit import misfit
from moorage.storage.validation import check_name

MOST = 8
"""Cards of one instance, as in Ganeti."""
GENERATED = ("auto", "generate")
"""Words for an address that the cluster makes."""
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_LINK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
_MODES = ("bridged", "routed", "openvswitch")
_NONE = (None, "", "none")


class Card(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network card as somebody wants it.

    Attributes
    ----------
    mac
        Its hardware address; the cluster makes one for ``auto`` and ``generate``.
    ip
        What the OS's scripts are told.
    mode, link
        ``bridged`` and the bridge; without a bridge the card has no cable.
    """

    mac: str | None = None
    ip: str | None = None
    name: str | None = None
    mode: str | None = None
    link: str | None = None
    vlan: str | None = None
    network: str | None = None


def check(config: Config, given: Sequence[Mapping[str, Any]]) -> None:
    """Raise `Refused` unless an instance can have these cards.

    Raises
    ------
    BadInput
        If there are too many, or a word of one is off.
    NotSupported
        If one asks for a network, or for a mode that there is not.
    Exists
        If a hardware address is somebody else's.
    """
    if len(given) > MOST:
        raise BadInput(f"an instance has at most {MOST} network cards")
    taken = dict(_taken(config))
    for number, one in enumerate(given):
        what = f"network card {number}"
        mac = _checked(what, _card(what, one))
        if mac in taken:
            raise Exists(f"{what}: {taken[mac]} has the MAC address {mac} already")
        if mac:
            taken[mac] = what


def warnings(given: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each card that is connected to nothing."""
    for number, one in enumerate(given):
        if not one.get("link"):
            yield (
                f"network card {number} names no bridge and is connected to nothing; "
                f"--net {number}:link=BRIDGE names one"
            )


def new(view: View, given: Sequence[Mapping[str, Any]]) -> tuple[Nic, ...]:
    """Return the cards, with hardware addresses that nobody in the cluster has."""
    taken = {mac for mac, _ in _taken(view.config)}
    found = []
    for number, one in enumerate(given):
        card = _card(f"network card {number}", one)
        mac = _mac(card) or _free(view, taken)
        taken.add(mac)
        params = {"mode": card.mode, "link": card.link}
        nic = Nic(
            uuid=view.fresh(),
            mac=mac,
            ip=None if card.ip in _NONE else card.ip,
            name=None if card.name in _NONE else card.name,
            nicparams={key: value for key, value in params.items() if value},
        )
        found.append(nic)
    return tuple(found)


def _taken(config: Config) -> Iterator[tuple[str, str]]:
    """Yield each hardware address that is in use, and whose it is."""
    for instance in config.all(Instance):
        for nic in instance.nics:
            yield nic.mac, f"instance {instance.name}"


def _card(what: str, given: Mapping[str, Any]) -> Card:
    try:
        return convert(dict(given), Card)
    except ValidationError as error:
        raise BadInput(
            f"{what}: {misfit(error)}", hint="--net 0:mode=bridged,link=br0"
        ) from None


def _checked(what: str, card: Card) -> str:
    """Return the card's hardware address in small letters, if it names one."""
    _check_mode(what, card)
    if card.name not in _NONE:
        _check_name(what, str(card.name))
    if card.ip not in _NONE:
        _check_ip(what, str(card.ip))
    mac = _mac(card)
    if mac and not (_MAC.fullmatch(mac) and int(mac[:2], 16) % 2 == 0):
        raise BadInput(f"{what}: {card.mac!r} is not a MAC address of one card")
    return mac


def _check_mode(what: str, card: Card) -> None:
    if card.network not in _NONE:
        raise NotSupported(f"{what}: there are no networks", hint="add link=BRIDGE")
    if card.vlan not in _NONE:
        raise NotSupported(f"{what}: no VLAN can be chosen, only the bridge: link")
    if card.mode in _MODES[1:]:
        raise NotSupported(f"{what}: there is no mode '{card.mode}' yet, only bridged")
    if card.mode is not None and card.mode not in _MODES:
        raise BadInput(f"{what}: a mode is bridged, not '{card.mode}'")
    if card.mode and not card.link:
        raise BadInput(f"{what} is bridged, and names no bridge", hint="add link=br0")
    if card.link is not None and not _LINK.fullmatch(card.link):
        raise BadInput(f"{what}: '{card.link}' is not the name of a bridge")


def _check_name(what: str, name: str) -> None:
    try:
        check_name("network card", name)
    except BadInput as error:
        raise BadInput(f"{what}: {error.message}") from None


def _check_ip(what: str, ip: str) -> None:
    try:
        ip_address(ip)
    except ValueError:
        raise BadInput(f"{what}: '{ip}' is not an IP address") from None


def _mac(card: Card) -> str:
    """Return the address that was given, in small letters; empty for a new one."""
    return "" if card.mac in (*_NONE, *GENERATED) else str(card.mac).lower()


def _free(view: View, taken: set[str]) -> str:
    prefix = view.config.cluster.mac_prefix.lower()
    while True:
        tail = sha256(view.fresh().encode()).hexdigest()
        mac = ":".join([prefix, tail[:2], tail[2:4], tail[4:6]])
        if mac not in taken:
            return mac
