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
_NAME = 64
"""Characters by which names are told apart whose logins failed."""


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
        self._nobody = Entry(passwords.decoy(), User("", Role.KNOWN))

    async def who(
        self, authorization: str, check: Callable[[], None] = lambda: None
    ) -> User | None:
        """Return who shows a header ``Authorization``; None if that opens no door."""
        found = await self.line(authorization, check)
        return found.user if found else None

    async def line(
        self, authorization: str, check: Callable[[], None] = lambda: None
    ) -> Entry | None:
        """Return the line by which a header ``Authorization`` opens the door, or None.

        Parameters
        ----------
        check
            Raises an error if whoever shows it has failed too often; it is asked
            before each slow comparison, for others may have failed meanwhile.
        """
        if not authorization.isascii():
            return None
        self._look()
        scheme, _, rest = authorization.partition(" ")
        if scheme.lower() == "bearer":
            found = self._bearer(rest.strip())
        elif scheme.lower() == "basic":
            found = await self._basic(rest.strip(), check)
        else:
            return None
        return found if found and self._lasts(found) else None

    def still(self, line: Entry) -> User | None:
        """Return who came in by a line, as he is now; None if he is out.

        Whose password or token is another one, or has ended, is out; whose role is
        another one, has that.
        """
        self._look()
        found = self._entries().get(line.user.name)
        same = found and hmac.compare_digest(found.kept.encode(), line.kept.encode())
        return found.user if found and same and self._lasts(found) else None

    def _look(self) -> None:
        changed = [one.look() for one in self._files]
        if any(changed):
            self._shown.clear()

    def _lasts(self, line: Entry) -> bool:
        return line.user.until is None or line.user.until > self._clock()

    def _bearer(self, token: str) -> Entry | None:
        kept = passwords.sha256(token).encode()
        for one in self._entries().values():
            if hmac.compare_digest(one.kept.encode(), kept):
                return one
        return None

    def _entries(self) -> dict[str, Entry]:
        """Return all lines by name; where a name is in several files, the first one."""
        found: dict[str, Entry] = {}
        for file in reversed(self._files):
            found |= file.entries
        return found

    async def _basic(self, text: str, check: Callable[[], None]) -> Entry | None:
        try:
            name, colon, password = base64.b64decode(text).decode().partition(":")
        except (binascii.Error, UnicodeError):
            return None
        if not colon:
            return None
        known = self._entries()
        entry = known.get(name)
        slow = any(passwords.is_slow(one.kept) for one in known.values())
        if entry and not passwords.is_slow(entry.kept):
            if passwords.fits(entry.kept, name, password):
                return entry
            entry = None
        # A name that is not there must not be told from one that is, by the time.
        if slow and await self._fits_slowly(entry or self._nobody, password, check):
            return entry
        return None

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
        return len(self._entries())


def named(authorization: str) -> str:
    """Return what stands for who shows a header: a name, or a token's checksum."""
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeError, ValueError):
            return base64.b64decode(rest.strip()).decode().partition(":")[0][:_NAME]
    return hashlib.sha256(rest.encode(errors="replace")).hexdigest()[:16]
