# SPDX-License-Identifier: BSD-2-Clause
"""The cables of guests' network cards: laid before QEMU starts, taken away after it.

What each interface is called is noted in the guest's directory, for what outlives an
interface must be taken away by its name.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import DecodeError, json

from moorage.errors import MoorageError
from moorage.model.hvparams import Parameters
from moorage.model.nicparams import ROUTED
from moorage.node.hypervisors.base import Card, GuestSpec
from moorage.node.hypervisors.filtering import Filters, filtered
from moorage.node.hypervisors.wiring import Wiring

from .guest_dir import Home, homes
from .taps import Tap, tap

_NOTE = "cables"
_LOG = logging.getLogger(__name__)


class Laid(Card, frozen=True, kw_only=True):
    """A card with a cable.

    Attributes
    ----------
    interface
        Its end on the node.
    """

    interface: str


class Cables:
    """Lays cables and takes them away."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._filters = Filters()

    @asynccontextmanager
    async def to_start(
        self, home: Home, spec: GuestSpec, given: Parameters
    ) -> AsyncIterator[list[Tap | None]]:
        """Yield the taps of a guest that is to start; None for a card without one.

        They are closed at the end, when QEMU has them. If it did not start, nothing of
        them is left.
        """
        async with AsyncExitStack() as stack:
            lay = partial(self._laid, home, spec, given, stack)
            yield [await lay(card) for card in spec.cards]

    @asynccontextmanager
    async def one_more(
        self, home: Home, spec: GuestSpec, card: Card, given: Parameters
    ) -> AsyncIterator[Tap | None]:
        """Yield the tap of a card that is to be plugged, likewise."""
        async with AsyncExitStack() as stack:
            yield await self._laid(home, spec, given, stack, card)

    async def _laid(
        self,
        home: Home,
        spec: GuestSpec,
        given: Parameters,
        stack: AsyncExitStack,
        card: Card,
    ) -> Tap | None:
        if not card.wires.connected:
            return None
        made = tap(given)
        laid = _laid(card, made.name)

        async def leave(kind: type[BaseException] | None, *_rest: object) -> None:
            if kind is not None:
                await self._down(spec, laid)
                _write(home, [one for one in _read(home) if one.uuid != laid.uuid])

        stack.push_async_exit(leave)
        stack.callback(made.close)  # before that
        _write(home, [*(one for one in _read(home) if one.uuid != card.uuid), laid])
        await self._filters.put(spec.name, card, made.name)  # before it is heard
        if not (spec.waits and card.mode == ROUTED):  # the guest is elsewhere still
            await self._wiring.up(spec.name, spec.tags, card, made.name)
        return made

    async def keep_filtered(self, run_dir: Path) -> None:
        """Make the rules of cards here anew that somebody took away, with all others.

        Until then such a card is held to nothing.
        """
        known = [(home, one) for home in homes(run_dir) for one in _read(home)]
        wanted = [(home, one) for home, one in known if one.filter]
        there = await filtered() if wanted else frozenset()
        for home, laid in wanted:
            lost = laid.interface not in there
            if lost and home.has_process() and laid in _read(home):
                try:
                    await self._filters.put(home.spec().name, laid, laid.interface)
                except (MoorageError, OSError) as error:
                    _LOG.error("%s is not filtered: %s", laid.interface, error)

    async def arrived(self, home: Home) -> None:
        """Route to a guest that runs here since just now."""
        spec = home.spec()
        for laid in _read(home):
            if laid.mode == ROUTED:
                await self._wiring.up(spec.name, spec.tags, laid, laid.interface)

    @asynccontextmanager
    async def to_end(self, home: Home) -> AsyncIterator[None]:
        """Take the cables away of a guest that ends here, once it has."""
        spec, known = home.spec(), _read(home)
        yield
        if not home.has_process():
            for laid in known:
                await self._down(spec, laid)

    async def unplugged(self, home: Home, card: str) -> None:
        """Take the cable of a card away that is not in the guest any more."""
        spec, known = home.spec(), _read(home)
        for laid in known:
            if laid.uuid == card:
                await self._down(spec, laid)
        _write(home, [one for one in known if one.uuid != card])

    async def _down(self, spec: GuestSpec, laid: Laid) -> None:
        """Take away what is left of a cable; a guest's end does not fail for it."""
        try:
            await self._filters.lift(laid.interface)
            await self._wiring.down(spec.name, spec.tags, laid, laid.interface)
        except (MoorageError, OSError):
            _LOG.exception("something of %s is left", laid.interface)


def _laid(card: Card, interface: str) -> Laid:
    names = Card.__struct_fields__
    return Laid(**{name: getattr(card, name) for name in names}, interface=interface)


def _read(home: Home) -> list[Laid]:
    try:
        return json.decode(home.read(_NOTE), type=list[Laid])
    except DecodeError:  # none were laid
        return []


def _write(home: Home, laid: Sequence[Laid]) -> None:
    home.write(_NOTE, json.encode(laid).decode())
