# SPDX-License-Identifier: BSD-2-Clause
"""Room by storage unit, as nodes tell it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from moorage.client.aio import AsyncClient
from moorage.disk_templates import IN_UNITS, Reach
from moorage.units import format_size

LASTS = 30.0
"""Seconds for which the room of the whole cluster is good enough: to ask for it, all
nodes measure."""


class Room(NamedTuple):
    """The room of a storage unit, in MiB; None where it cannot be told.

    Attributes
    ----------
    nodes
        How many have it.
    """

    kind: str
    key: str
    free: int | None
    total: int | None
    nodes: int = 1

    @classmethod
    def of(cls, unit: Mapping[str, Any]) -> Self:
        """Return a unit as a node tells it."""
        kind, key = unit["sunit"][:2]
        return cls(kind, key, unit["free"], unit["total"])

    @property
    def used(self) -> int:
        """How much of 100 is taken; -1 where it cannot be told."""
        if not self.total or self.free is None:
            return -1
        return round(100 * (self.total - self.free) / self.total)

    @property
    def words(self) -> str:
        """How much is free, of how much."""
        if self.total is None or self.free is None:
            return "not told"
        return f"{format_size(self.free)} of {format_size(self.total)} free"


def together(nodes: Sequence[Mapping[str, Any]]) -> list[Room]:
    """Return the room of each unit: of a shared one once, else of all nodes."""
    found: dict[tuple[str, str], list[Room]] = {}
    for node in nodes:
        for one in map(Room.of, node.get("storage") or ()):
            facts = IN_UNITS.get(one.kind)
            if facts and facts.stored_as != facts.name:
                continue  # the same room by its other name
            found.setdefault((one.kind, one.key), []).append(one)
    return [_sum(*item) for item in sorted(found.items())]


def _sum(name: tuple[str, str], units: Sequence[Room]) -> Room:
    kind, key = name
    facts = IN_UNITS.get(kind)
    told = [one for one in units if one.total is not None and one.free is not None]
    if facts and facts.reach is not Reach.NODE:
        told = told[:1]
    free = sum(one.free or 0 for one in told) if told else None
    total = sum(one.total or 0 for one in told) if told else None
    return Room(kind, key, free, total, len(units))


class Rooms:
    """The room of the whole cluster, by role: measured once for all who look.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, Sequence[Room]]] = {}
        self._one = asyncio.Lock()

    async def of(self, role: str, client: AsyncClient) -> Sequence[Room]:
        """Return what there is, as it was a moment ago."""
        async with self._one:  # who comes meanwhile gets what the first one was told
            at, found = self._known.get(role, (self._clock() - LASTS, ()))
            if self._clock() - at >= LASTS:
                nodes = await client.query("node", ("name", "storage"))
                found = together(nodes.objects())
                self._known[role] = self._clock(), found
            return found
