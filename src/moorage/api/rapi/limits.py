# SPDX-License-Identifier: BSD-2-Clause
"""What one user, or one address, gets of the door."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from .refusals import HttpError

_REMEMBERED = 10_000
"""Addresses, and names at them, whose logins failed."""
_MINUTE = 60.0


class Limits(Struct, frozen=True, kw_only=True):
    """What one user, or one address, gets.

    Attributes
    ----------
    body
        Bytes of the longest body.
    bodies
        Bytes of all bodies together that are not answered yet.
    question
        The same for who may not write: such ones ask for little, and what is read
        takes thirty times its length in memory, here and at the master.
    arrival
        Seconds in which a body must have come.
    answer
        Seconds in which the master must have answered.
    under_way
        Requests of one user at a time.
    failures
        Logins of one name, or with one token, that may fail in a minute from one
        address: others behind the same address are not shut out by them.
    address_failures
        Logins that may fail in a minute from one address, whatever the names.
    connections
        At a time; one address gets at most half of them.
    """

    body: int = 8 * 1024 * 1024
    bodies: int = 64 * 1024 * 1024
    question: int = 64 * 1024
    arrival: float = 30.0
    answer: float = 60.0
    under_way: int = 64
    failures: int = 20
    address_failures: int = 200
    connections: int = 1024


class Gate:
    """Counts what users and addresses take.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.

    Attributes
    ----------
    heard
        Connections on which something was asked.
    answered
        How many requests were, by status.
    seconds
        How long all of them took.
    failures
        How many logins failed.
    certificate_end
        When the door's certificate is over, in seconds since the epoch.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.heard: set[object] = set()
        self.answered: Counter[int] = Counter()
        self.seconds = 0.0
        self.failures = 0
        self.certificate_end = 0.0
        self._clock = clock
        self._under_way: Counter[str] = Counter()
        self._bytes = 0
        self._of_names = _Failures(limits.failures, clock)
        self._of_addresses = _Failures(limits.address_failures, clock)

    @contextmanager
    def within(self, user: str) -> Iterator[None]:
        """Count a request while it is under way.

        Raises
        ------
        HttpError
            If its user has too many.
        """
        if self._under_way[user] >= self.limits.under_way:
            raise HttpError(429, f"{user} has {self._under_way[user]} under way")
        self._under_way[user] += 1
        try:
            yield
        finally:
            self._under_way[user] -= 1
            if not self._under_way[user]:
                del self._under_way[user]

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Yield what counts bytes of a body that has come, until it is answered.

        It raises `HttpError` if all bodies together are too much.
        """
        held = 0

        def hold(more: int) -> None:
            nonlocal held
            if self._bytes + more > self.limits.bodies:
                raise HttpError(429, "Too much is under way; try again in a moment")
            held += more
            self._bytes += more

        try:
            yield hold
        finally:
            self._bytes -= held

    def note(self, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.answered[status] += 1
        self.seconds += seconds

    def check(self, address: str, name: str) -> None:
        """Raise `HttpError` if too many logins failed lately.

        Parameters
        ----------
        name
            Who is said to come.
        """
        block = _block(address)
        if self._of_names.many((block, name)) or self._of_addresses.many((block, "")):
            raise HttpError(429, "Too many logins failed; try again in a minute")

    def failed(self, address: str, name: str) -> None:
        """Count a login that failed."""
        self.failures += 1
        block = _block(address)
        self._of_names.count((block, name))
        self._of_addresses.count((block, ""))


class _Failures:
    """Counts what failed within a minute."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._failed: dict[tuple[str, str], tuple[float, int]] = {}

    def many(self, key: tuple[str, str]) -> bool:
        since, failed = self._failed.get(key, (0.0, 0))
        return failed >= self._most and self._clock() - since < _MINUTE

    def count(self, key: tuple[str, str]) -> None:
        now = self._clock()
        since, failed = self._failed.pop(key, (now, 0))
        if now - since >= _MINUTE:
            since, failed = now, 0
        self._failed[key] = since, failed + 1
        if len(self._failed) > _REMEMBERED:
            del self._failed[next(iter(self._failed))]


def _block(address: str) -> str:
    """Return what counts as one address; who has one of IPv6 has 2⁶⁴ of them."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(
        found, IPv6Address
    ):  # a socket of both kinds shows IPv4 as a part of it
        found = found.ipv4_mapped or found
    return found.packed[:8].hex() if isinstance(found, IPv6Address) else str(found)
