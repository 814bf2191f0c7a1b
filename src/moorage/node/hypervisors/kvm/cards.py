# SPDX-License-Identifier: BSD-2-Clause
"""Network cards of a running guest: plugged and unplugged over its monitor.

QEMU itself is asked what is plugged.
"""

import re
from itertools import chain

from moorage.errors import Failed
from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.base import Card, seat

from . import blockdev, devices, netdev, slots
from .monitor import Monitor, Refusal
from .taps import Tap

_SEAT = re.compile(rf"/{netdev.port_name(0)[:-1]}([0-9])(?:/|$)", re.ASCII)


async def layout(monitor: Monitor) -> dict[str, int] | None:
    """Return the seat of each card, or its slot; None if the guest has no seats."""
    names = await devices.plugged(monitor)
    if blockdev.port_name(0) in names and netdev.port_name(0) not in names:
        return None
    cards = [card for name in names if (card := netdev.card_of(name))]
    found = {
        card: await devices.number_at(monitor, netdev.device_name(card), _SEAT)
        for card in cards
    }
    return {card: at for card, at in found.items() if at is not None}


async def plug(
    monitor: Monitor, card: Card, tap: Tap | None, given: Parameters
) -> None:
    """Plug a card that is not plugged.

    Raises
    ------
    Failed
        If the guest has no seat for it.
    """
    at = await free_seat(monitor, card, given)
    await let_go(monitor, card.uuid)  # of what an interrupted attempt left
    try:
        if tap:
            await _give(monitor, card, tap)
        device = netdev.device(card, at, given, cabled=tap is not None)
        await monitor.ask("device_add", **device)
    except Failed as error:
        await let_go(monitor, card.uuid)
        said = error.said if isinstance(error, Refusal) else error.message
        raise Failed(
            f"guest {monitor.guest} cannot get network card {card.index}: {said}",
            hint=error.hint,
            guest=monitor.guest,
        ) from None


async def free_seat(monitor: Monitor, card: Card, given: Parameters) -> int:
    """Return the seat for one more card.

    Raises
    ------
    Failed
        If there is none.
    """
    seats = await layout(monitor)
    if seats is None:
        raise Failed(
            f"guest {monitor.guest} was started by an older agent: no network card can "
            "be plugged into it",
            hint="gnt-instance reboot --type=hard, and it can",
        )
    many = len(seats) >= netdev.SEATS
    found = None if many else seat(seats, card.index, netdev.SEATS)
    if found is None:
        raise Failed(
            f"guest {monitor.guest} has {netdev.SEATS} network cards already",
            hint="remove one first",
        )
    return await _free_slot(monitor, given) if given.is_pc else found


async def _free_slot(monitor: Monitor, given: Parameters) -> int:
    taken = await devices.taken(monitor)
    found = next((slot for slot in given.slots if slot not in taken), None)
    if found is None:
        raise slots.full(f"guest {monitor.guest}", given)
    return found


async def _give(monitor: Monitor, card: Card, tap: Tap) -> None:
    """Give QEMU a tap, as its end of the card's cable."""
    queues = {f"queue{n}": fd for n, fd in enumerate(tap.queues)}
    vhosts = {f"vhost{n}": fd for n, fd in enumerate(tap.vhosts)}
    for name, descriptor in chain(queues.items(), vhosts.items()):
        await monitor.give(name, descriptor)
    words = netdev.cable(card.uuid, list(queues), list(vhosts))
    await monitor.ask("netdev_add", **words)


async def let_go(monitor: Monitor, card: str) -> None:
    """Close QEMU's end of the cable of a card whose device is gone."""
    try:
        await monitor.ask("netdev_del", id=netdev.cable_name(card))
    except Refusal as error:
        if "not found" not in error.said:
            raise
