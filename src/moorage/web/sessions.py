# SPDX-License-Identifier: BSD-2-Clause
"""Who has signed in: a cookie's value stands for a line of the file of users.

No password is kept, and of a cookie its checksum alone. A session ends with its time,
without use, and with its line: whoever is taken out, or gets another password, is out
with the next request.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from moorage.api.rapi.roles import User
from moorage.api.rapi.users import Entry

LASTS = 8 * 3600.0
"""Seconds that a session lasts, however it is used."""
IDLE = 3600.0
"""Seconds without a request after which it is over."""
MOST = 10_000
"""Sessions of all; the oldest goes for a new one."""
MOST_OF_ONE = 32
"""Sessions of one user; likewise."""


@dataclass(slots=True)
class Session:
    """Somebody who has signed in.

    Attributes
    ----------
    line
        By which he came in.
    secret
        Stands in each form of his, and nowhere else.
    since, used
        When he came, and when he asked for something last, in seconds.
    """

    line: Entry
    secret: str
    since: float
    used: float


class Sessions:
    """All who have signed in.

    Parameters
    ----------
    still
        Returns who came in by a line, as he is now; None if he is out.
    clock
        The time in seconds, from anywhere.
    """

    def __init__(
        self, still: Callable[[Entry], User | None], clock: Callable[[], float]
    ) -> None:
        self._still = still
        self._clock = clock
        self._known: dict[bytes, Session] = {}

    def begin(self, line: Entry) -> str:
        """Return the value of a new session's cookie."""
        self._make_room(line.user.name)
        cookie, now = secrets.token_urlsafe(32), self._clock()
        made = Session(line, secrets.token_urlsafe(32), now, now)
        self._known[_mark(cookie)] = made
        return cookie

    def find(self, cookie: str, *, counts: bool = True) -> tuple[Session, User] | None:
        """Return the session of a cookie, with its user as he is now; None for none.

        Parameters
        ----------
        counts
            Whether this is a use of it.
        """
        mark, now = _mark(cookie), self._clock()
        found = self._known.get(mark)
        if found is None:
            return None
        late = now - found.since >= LASTS or now - found.used >= IDLE
        user = None if late else self._still(found.line)
        if user is None:
            del self._known[mark]
            return None
        if counts:
            found.used = now
        return found, user

    def end(self, cookie: str) -> None:
        """Forget a session."""
        self._known.pop(_mark(cookie), None)

    def _make_room(self, name: str) -> None:
        """Let the oldest session go, of the user or of all, if there are too many."""
        own = [mark for mark, one in self._known.items() if one.line.user.name == name]
        if len(own) >= MOST_OF_ONE:
            del self._known[own[0]]
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]


def _mark(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
