# SPDX-License-Identifier: BSD-2-Clause
"""How the place is where the state is kept, found out once for all who look."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import to_builtins

from moorage.model import Config
from moorage.model.store_trouble import StoreHealth

_LOG = logging.getLogger(__name__)
_GOOD = 30.0
"""Seconds that an answer is good for; then the next one who looks has it renewed."""
_OLD = 300.0
"""Seconds after which it is shown to nobody any more."""


class KnownHealth:
    """What was found last; however many look, one question is under way.

    Whoever looks gets what is known already, and waits only where nothing is: a member
    that hangs takes seconds.

    Parameters
    ----------
    ask
        Finds out how it is.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[StoreHealth]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._clock = ask, clock
        self._found, self._at = StoreHealth(), float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def latest(self) -> StoreHealth:
        """Return how it is, or was lately."""
        age = self._clock() - self._at
        if self._ask and age > _GOOD:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._renew(self._ask))
            if age > _OLD:
                await asyncio.shield(self._asking)
        return self._found

    async def _renew(self, ask: Callable[[], Awaitable[StoreHealth]]) -> None:
        try:
            found = await ask()
        except Exception:  # noqa: BLE001 - who looks is told of all else
            _LOG.exception("nobody knows how the store is")
            return
        self._found, self._at = found, self._clock()


async def store_told(known: KnownHealth, config: Config, term: int) -> dict[str, Any]:
    """Return what is told of the store: how it is, who leads, and since when.

    Returns
    -------
    The attributes of `StoreHealth`, and ``master`` (a node's name), ``since`` (seconds;
    None where that is not on record) and ``term``.
    """
    cluster = config.cluster
    master = config.node(cluster.master_node).name
    last = cluster.leads[-1] if cluster.leads else None
    since = last.time if last and last.node == master else None
    told = to_builtins(await known.latest())
    return {**told, "master": master, "since": since or None, "term": term}
