# SPDX-License-Identifier: BSD-2-Clause
"""A network card as QEMU has it: a device, and its end of the cable. Pure.

Each card sits on a port of its own, so that it can be plugged. A guest that an older
agent started has no such ports: its cards sit on the first bus, in their order.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.model.hvparams import NIC_TYPES, Parameters
from moorage.node.hypervisors.base import Card

from . import slots

SEATS = 8
"""Network cards that a guest can have, as in Ganeti."""
_DEVICE, _CABLE, _PORT = "nic-", "cable-", "seat"
_FIRST_PORT_ADDRESS, _FUNCTIONS, _FIRST_CHASSIS = 0x6, 8, 17
_FIRST_ADDRESS = 0x10


def device_name(card: str) -> str:
    """Return what the device of a card is called."""
    return f"{_DEVICE}{card}"


def cable_name(card: str) -> str:
    """Return what QEMU's end of a card's cable is called."""
    return f"{_CABLE}{card}"


def card_of(device: str) -> str | None:
    """Return the uuid of the card that a device is; None for others."""
    return device.removeprefix(_DEVICE) if device.startswith(_DEVICE) else None


def port_name(seat: int) -> str:
    """Return what a card's port is called."""
    return f"{_PORT}{seat}"


def ports() -> Iterator[str]:
    """Yield the ports of cards, as devices."""
    for seat in range(SEATS):
        slot, function = divmod(seat, _FUNCTIONS)
        at = f"addr={_FIRST_PORT_ADDRESS + slot:#x}.{function},multifunction=on"
        number = _FIRST_CHASSIS + seat
        name = f"id={port_name(seat)},chassis={number},slot={number}"
        yield f"pcie-root-port,{name},io-reserve=0,{at}"


def cable(card: str, fds: list[str], vhosts: list[str]) -> dict[str, Any]:
    """Return QEMU's end of a cable: a tap's descriptors, by number or name."""
    many = len(fds) > 1
    words: dict[str, Any] = {"type": "tap", "id": cable_name(card)}
    words["fds" if many else "fd"] = ":".join(fds)
    if vhosts:
        words["vhost"] = True
        words["vhostfds" if many else "vhostfd"] = ":".join(vhosts)
    return words


def typed(words: Mapping[str, Any]) -> str:
    """Return such an end as it stands on the command line."""
    rest = {name: value for name, value in words.items() if name != "type"}
    told = ("on" if value is True else value for value in rest.values())
    pairs = zip(rest, told, strict=True)
    return ",".join([words["type"], *(f"{name}={value}" for name, value in pairs)])


def device(
    card: Card, seat: int | None, given: Parameters, *, cabled: bool
) -> dict[str, Any]:
    """Return the device.

    Parameters
    ----------
    seat
        Its port, or its slot in a pc; None in a guest that has no ports.
    cabled
        Whether it has a cable.
    """
    driver = NIC_TYPES[given.nic_type]
    made: dict[str, Any] = {
        "driver": driver,
        "id": device_name(card.uuid),
        "mac": card.mac,
    }
    if seat is None:
        made["addr"] = f"{_FIRST_ADDRESS + card.index:#x}"
    else:
        made |= slots.address(seat) if given.is_pc else {"bus": port_name(seat)}
    if cabled:
        made["netdev"] = cable_name(card.uuid)
    queues = given.virtio_net_queues
    if queues > 1 and given.nic_type == "paravirtual":
        made |= {"mq": True, "vectors": 2 * queues + 2}
    return made
