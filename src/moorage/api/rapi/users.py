# SPDX-License-Identifier: BSD-2-Clause
"""Who may come in: Ganeti's file of users, and one of tokens in the same form.

A line is ``NAME PASSWORD [OPTION,…]``. An option is a role, or ``until=`` with a time
of UTC after which the line is none: ``2027-01-31T00:00:00``. A line that begins with
``#`` says nothing. A file is read again when it changes.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from . import passwords
from .roles import Role, User

_LOG = logging.getLogger(__name__)
_REMEMBERED = 1000
_UNTIL = "until="


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a file of users."""

    kept: str
    user: User

    def line(self) -> str:
        """Return it as the file has it."""
        options = [self.user.role.word]
        if self.user.until is not None:
            ends = datetime.fromtimestamp(self.user.until, UTC)
            options.append(f"{_UNTIL}{ends:%Y-%m-%dT%H:%M:%S}")
        return f"{self.user.name} {self.kept} {','.join(options)}\n"


def entries(text: str) -> Iterator[Entry]:
    """Yield the lines of a file that say who may come in."""
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) > 1 and not words[0].startswith("#"):
            options = words[2] if len(words) > 2 else ""
            yield Entry(words[1], _user(words[0], options))


def _user(name: str, options: str) -> User:
    role, until = Role.KNOWN, None
    known = {one.word: one for one in Role}
    for option in (one.strip().lower() for one in options.split(",")):
        role = max(role, known.get(option, Role.KNOWN))
        if option.startswith(_UNTIL):
            until = _time(option.removeprefix(_UNTIL))
    return User(name, role, until)


def _time(text: str) -> float:
    """Return a time in seconds; one that nobody can read is long over."""
    with suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    return 0.0


class UsersFile:
    """A file of users, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self._seen: tuple[int, ...] | None = None

    def look(self) -> bool:
        """Read it if it changed; return whether it did."""
        try:
            found = self.path.stat()
            seen = found.st_mtime_ns, found.st_ino, found.st_size
            if seen == self._seen:
                return False
            self.entries = {one.user.name: one for one in entries(self._text())}
        except FileNotFoundError:
            changed, self._seen, self.entries = bool(self.entries), None, {}
            return changed
        except (OSError, UnicodeError) as error:
            # Nobody loses a right, nor gets one, by a file that is being written.
            _LOG.warning("%s cannot be read: %s", self.path, error)
            return False
        self._seen = seen
        if found.st_mode & (stat.S_IROTH | stat.S_IWOTH):
            _LOG.warning("%s can be read by everybody: chmod o= it", self.path)
        return True

    def _text(self) -> str:
        return self.path.read_text()


class Users:
    """All who may come in.

    Parameters
    ----------
    files
        Where a name is in several, the first one counts.
    clock
        The time in seconds.
    """

    def __init__(self, *files: Path, clock: Callable[[], float]) -> None:
        self._files = [UsersFile(one) for one in files]
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._shown: dict[bytes, Entry] = {}
        """Whom slow hashes have been seen to fit, by a hash that is worth nothing
        outside of this process."""
        self._one_hash = asyncio.Lock()

    async def who(
        self, authorization: str, check: Callable[[], None] = lambda: None
    ) -> User | None:
        """Return who shows a header ``Authorization``; None if that opens no door.

        Parameters
        ----------
        check
            Raises an error if whoever shows it has failed too often; it is asked
            before each slow comparison, for others may have failed meanwhile.
        """
        if not authorization.isascii():
            return None
        changed = [one.look() for one in self._files]
        if any(changed):
            self._shown.clear()
        scheme, _, rest = authorization.partition(" ")
        if scheme.lower() == "bearer":
            found = self._bearer(rest.strip())
        elif scheme.lower() == "basic":
            found = await self._basic(rest.strip(), check)
        else:
            return None
        late = found and found.until is not None and found.until <= self._clock()
        return None if late else found

    def _bearer(self, token: str) -> User | None:
        kept = passwords.sha256(token)
        for file in self._files:
            for one in file.entries.values():
                if hmac.compare_digest(one.kept.encode(), kept.encode()):
                    return one.user
        return None

    async def _basic(self, text: str, check: Callable[[], None]) -> User | None:
        try:
            name, colon, password = base64.b64decode(text).decode().partition(":")
        except (binascii.Error, UnicodeError):
            return None
        files = (one.entries for one in self._files)
        entry = next((one[name] for one in files if name in one), None)
        if not colon or entry is None:
            return None
        if not passwords.is_slow(entry.kept):
            return entry.user if passwords.fits(entry.kept, name, password) else None
        fits = await self._fits_slowly(entry, password, check)
        return entry.user if fits else None

    async def _fits_slowly(
        self, entry: Entry, password: str, check: Callable[[], None]
    ) -> bool:
        """Compare what takes a tenth of a second, one at a time and in a thread."""
        text = f"{entry.user.name}\0{password}".encode()
        mark = hmac.digest(self._key, text, hashlib.sha256)
        if self._shown.get(mark) is entry:
            return True
        async with self._one_hash:
            if self._shown.get(mark) is entry:
                return True
            check()
            given = entry.kept, entry.user.name, password
            if not await asyncio.to_thread(passwords.fits, *given):
                return False
        if len(self._shown) >= _REMEMBERED:
            self._shown.clear()
        self._shown[mark] = entry
        return True

    @property
    def number(self) -> int:
        """How many there are."""
        for one in self._files:
            one.look()
        return len({name for one in self._files for name in one.entries})
