# SPDX-License-Identifier: BSD-2-Clause
"""What the master told a moment ago: pages that are live ask the same at the same time.

A page that is live is fetched again when something has changed, and so is each other
one that shows it. The master is asked once for all of them; what somebody opens is
asked anew, always.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, NamedTuple

LASTS: Final = 2.4
"""Seconds for which an answer is good enough if nothing has changed: a page whose job
runs looks again a little later than that."""
TOGETHER: Final = 0.3
"""Seconds for which it is, whatever has changed: a script waits longer than that before
it fetches what an event was about."""
_MOST: Final = 64
"""Shared that are kept."""


class _Kept(NamedTuple):
    """An answer, or who waits for it; when it was asked for, and where the feed was."""

    at: float
    number: int | None
    work: "asyncio.Future[Any]"


class Shared:
    """The answers of a moment, by question.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    newest
        Returns where the feed of what happens is; None if that is not known.
    """

    def __init__(
        self, clock: Callable[[], float], newest: Callable[[], int | None]
    ) -> None:
        self._clock, self._newest = clock, newest
        self._known: dict[Hashable, _Kept] = {}

    async def of(
        self, question: Hashable, ask: Callable[[], Awaitable[Any]], *, anew: bool
    ) -> Any:  # noqa: ANN401 - what was asked for
        """Return the answer to a question.

        Parameters
        ----------
        ask
            Asks it.
        anew
            Whether it is asked again in any case.
        """
        now, known = self._clock(), self._known.get(question)
        if known is None or anew or not self._serves(known, now):
            known = _Kept(now, self._newest(), asyncio.ensure_future(ask()))
            self._keep(question, known)
        # Who goes away takes nothing from the others that wait.
        return await asyncio.shield(known.work)

    def _serves(self, known: _Kept, now: float) -> bool:
        if known.number is None:
            return False
        age = now - known.at
        same = known.number == self._newest()
        return age < TOGETHER or (same and age < LASTS)

    def _keep(self, question: Hashable, known: _Kept) -> None:
        self._known.pop(question, None)
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        self._known[question] = known

        def ended(work: "asyncio.Future[Any]") -> None:
            if work.cancelled() or work.exception():
                self._forget(question, known)
            else:  # answers are large: none stays when nobody can use it any more
                left = max(0.0, known.at + LASTS - self._clock())
                loop = asyncio.get_running_loop()
                loop.call_later(left, self._forget, question, known)

        known.work.add_done_callback(ended)

    def _forget(self, question: Hashable, known: _Kept) -> None:
        if self._known.get(question) is known:
            del self._known[question]
