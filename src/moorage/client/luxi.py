# SPDX-License-Identifier: BSD-2-Clause
"""Connections to the master's socket, that block."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.api.luxi import LuxiClient
from moorage.api.wanted import Wanted

from .places import Socket
from .pool import Pool
from .told import Entry, entry

WAIT = 30.0
"""Seconds that one question waits for something to happen."""


class Luxi:
    """The way to a cluster over the master's socket.

    Parameters
    ----------
    timeout
        Seconds after which an answer is given up.
    """

    def __init__(self, at: Socket, timeout: float) -> None:
        self._pool = Pool(lambda: LuxiClient(at.path, timeout, other=at.other))

    def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method.

        Raises
        ------
        MoorageError
            As the master says it, or as :class:`LuxiClient` does.
        """
        if method == "Features":
            from moorage.api.features import FEATURES  # noqa: PLC0415 - start-up time

            return FEATURES
        with self._pool.lent() as link:
            return link.call(method, *args)

    def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> Iterator[Entry | None]:
        """Yield what happens, until time is over; see :meth:`Https.listen`."""
        at = after
        if at is None:
            at = self.call("WaitForEvents", (None, 0.0))["number"]
            yield Entry(at, reset=True)
        left = WAIT
        while left > 0:
            left = WAIT if end is None else min(WAIT, end - time.monotonic())
            told = self.call("WaitForEvents", (at, max(left, 0.0)))
            yield from heard(told, wanted)
            yield None
            at = told["number"]

    def close(self) -> None:
        """Hang up."""
        self._pool.close()


def heard(told: Mapping[str, Any], wanted: Wanted) -> Iterator[Entry]:
    """Yield the entries of an answer to ``WaitForEvents``."""
    if told["reset"]:
        yield Entry(told["number"], reset=True)
    for one in told["entries"]:
        kept = wanted.of(one)
        yield entry(kept) if kept else Entry(one["number"], one["time"])
