# SPDX-License-Identifier: BSD-2-Clause
"""etcd's JSON gateway: each request has an end, and goes to a member that answers.

Whatever is asked for here may be asked for twice: a request that changes something has
a guard, which fails the second time, and tells then what is there.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

import aiohttp
from msgspec import DecodeError, Struct, ValidationError, json

from moorage.store.base import StoreError

from .layout import Put, behind
from .settings import EtcdSettings

_LOG = logging.getLogger(__name__)
T = TypeVar("T")

LIMIT = 2.0
"""Seconds that one member gets for an answer."""
_CONNECT = 1.0
_PAUSE = 0.1
"""Seconds after all members were asked in vain."""
_PAGE = 200
"""Keys in one answer."""
_SHOWN = 200
"""Bytes that are told of an answer that is not etcd's."""
_OPEN_AGAIN = frozenset({1, 2, 4, 13, 14})
"""gRPC's codes after which a request is asked for again: CANCELLED, UNKNOWN,
DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE."""
_UNAUTHENTICATED = 16
_COMPACTED = 11
_NOT_FOUND = 5


class Value(Struct, frozen=True):
    """A key with its value."""

    key: bytes
    value: bytes = b""
    create_revision: int = 0
    mod_revision: int = 0


class Header(Struct, frozen=True):
    """Where etcd stood."""

    revision: int = 0


class Range(Struct, frozen=True):
    """An answer to a request for keys."""

    header: Header = Header()
    kvs: tuple[Value, ...] = ()
    more: bool = False


class _Response(Struct, frozen=True):
    response_range: Range | None = None


class Txn(Struct, frozen=True):
    """An answer to a guarded request.

    Attributes
    ----------
    found
        What was asked for in case that the guard fails.
    """

    header: Header
    succeeded: bool = False
    responses: tuple[_Response, ...] = ()

    @property
    def found(self) -> list[tuple[Value, ...]]:
        """What each look has found."""
        ranges = (one.response_range for one in self.responses)
        return [one.kvs for one in ranges if one]


class Lease(Struct, frozen=True):
    """A lease, granted or renewed; without seconds where there is none any more."""

    ID: int = 0
    TTL: int = 0


class Renewal(Struct, frozen=True):
    """An answer to the renewal of a lease."""

    result: Lease = Lease()


class Nothing(Struct, frozen=True):
    """An answer of which nothing is read."""


class _Token(Struct):
    token: str


class _Fault(Struct):
    code: int = 2
    message: str = ""
    error: str = ""


class Silent(StoreError):
    """No member has answered."""


class Compacted(StoreError):
    """A revision is not kept any more: it is to be read again, from the newest."""


class Gateway:
    """The members of etcd, for one event loop."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        self._endpoints = settings.endpoints
        self._now = 0
        self._token = ""
        # A member that hangs must not take a lease with it.
        limit = min(LIMIT, settings.lease / 4)
        connector = aiohttp.TCPConnector(ssl=settings.tls() or True)
        # Of silence: a page of large records may take longer than that.
        timeout = aiohttp.ClientTimeout(
            total=None, connect=min(_CONNECT, limit), sock_read=limit
        )
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, trust_env=False
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def ask(
        self, path: str, body: dict[str, Any], kind: type[T], until: float
    ) -> T:
        """Return an answer, of whichever member gives one.

        Parameters
        ----------
        until
            By :func:`now`: from then on nobody is asked any more.

        Raises
        ------
        StoreError
            If etcd refuses.
        Silent
            If nobody has answered until then; what was to be changed may be changed.
        Compacted
            If a revision is not kept any more.
        """
        data = json.encode(body)
        why = "it was not asked in time"
        tried = 0
        while (left := until - now()) > 0:
            try:
                async with asyncio.timeout(left):
                    return await self._one(path, data, kind)
            except (aiohttp.ClientError, TimeoutError, OSError, _AgainError) as error:
                endpoint = self._endpoints[self._now]
                why = f"{endpoint}: {_words(error)}"
                self._now = (self._now + 1) % len(self._endpoints)
                tried += 1
            if tried % len(self._endpoints) == 0:
                await asyncio.sleep(min(_PAUSE, max(until - now(), 0.0)))
        raise Silent(f"{self.settings.label} gives no answer ({why})")

    async def _one(self, path: str, data: bytes, kind: type[T]) -> T:
        """Ask the present member once."""
        if self.settings.user and not self._token:
            await self._log_in()
        headers = {"Authorization": self._token} if self._token else {}
        url = f"{self._endpoints[self._now]}/v3/{path}"
        async with self._session.post(
            url, data=data, headers=headers, allow_redirects=False
        ) as answer:
            body = await answer.read()
            if answer.status == 200:
                return self._read(body, kind)
            raise self._refusal(answer.status, body)

    async def metrics(self, until: float) -> str:
        """Return what the present member counts, as text; empty if it serves none."""
        url = f"{self._endpoints[self._now]}/metrics"
        try:
            async with (
                asyncio.timeout(max(until - now(), 0.0)),
                self._session.get(url, allow_redirects=False) as answer,
            ):
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return ""
        return body.decode(errors="replace") if answer.status == 200 else ""

    async def _log_in(self) -> None:
        settings = self.settings
        url = f"{self._endpoints[self._now]}/v3/auth/authenticate"
        who = {"name": settings.user, "password": settings.password}
        async with self._session.post(
            url, data=json.encode(who), allow_redirects=False
        ) as answer:
            body = await answer.read()
            if answer.status != 200:
                raise self._refusal(answer.status, body)
            self._token = self._read(body, _Token).token

    def _read(self, body: bytes, kind: type[T]) -> T:
        try:
            return json.decode(body, type=kind, strict=False)
        except (DecodeError, ValidationError, UnicodeError) as error:
            raise _AgainError(f"it answers what is none of etcd's: {error}") from None

    def _refusal(self, status: int, body: bytes) -> Exception:
        """Return what to make of an answer that is an error."""
        try:
            fault = json.decode(body, type=_Fault)
        except (DecodeError, ValidationError, UnicodeError):
            said = body[:_SHOWN].decode(errors="replace")
            text = "".join(one for one in said if one.isprintable())
            return _AgainError(f"it answers with status {status}: {text}")
        said = (fault.message or fault.error).removeprefix("etcdserver: ")
        stale = "auth store is old" in said
        if self._token and (fault.code == _UNAUTHENTICATED or stale):
            self._token = ""  # it has run out: the next try logs in
            return _AgainError(said)
        if fault.code in _OPEN_AGAIN:
            return _AgainError(said)
        if fault.code == _COMPACTED and "compacted" in said:
            return Compacted(f"{self.settings.label}: {said}")
        return StoreError(f"{self.settings.label} refuses: {said}")

    async def range(
        self, first: bytes, last: bytes | None, until: float, revision: int = 0
    ) -> tuple[int, list[Value]]:
        """Return a revision, and the keys from `first` to before `last` as of then.

        Without `last`, the one key.

        Parameters
        ----------
        until
            By :func:`now`; each page gets as long again.
        """
        patience = until - now()
        found: list[Value] = []
        while True:
            body: dict[str, Any] = {"key": first, "limit": _PAGE}
            if last is not None:
                body["range_end"] = last
            if revision:
                body["revision"] = revision
            page = await self.ask("kv/range", body, Range, until)
            revision = revision or page.header.revision
            found += page.kvs
            if not page.more or not page.kvs:
                return revision, found
            first = page.kvs[-1].key + b"\0"
            until = now() + patience

    async def txn(
        self,
        guard: Sequence[dict[str, Any]],
        does: Sequence[dict[str, Any]],
        looks: Sequence[bytes],
        until: float,
    ) -> Txn:
        """Do all if each guard holds; else return what `looks` names, one key each."""
        body = {
            "compare": list(guard),
            "success": list(does),
            "failure": [{"request_range": {"key": one}} for one in looks],
        }
        return await self.ask("kv/txn", body, Txn, until)

    async def renew(self, lease: int, until: float) -> int:
        """Renew a lease; return its seconds, 0 if there is none any more."""
        found = await self.ask("lease/keepalive", {"ID": lease}, Renewal, until)
        return found.result.TTL

    async def compact(self, revision: int, until: float) -> None:
        """Let etcd forget what came before a revision."""
        try:
            await self.ask("kv/compaction", {"revision": revision}, Nothing, until)
        except StoreError as error:  # somebody else's may be further
            _LOG.info("etcd keeps former values for longer: %s", error.message)

    async def revoke(self, lease: int, until: float) -> None:
        """End a lease, if it is there and etcd answers."""
        with suppress(StoreError):
            await self.ask("lease/revoke", {"ID": lease}, Nothing, until)


class _AgainError(Exception):
    """A member gave no answer to go by."""


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def now() -> float:
    """Return seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def put(key: bytes, value: bytes, lease: int = 0) -> dict[str, Any]:
    """Return the operation that writes a key."""
    found: dict[str, Any] = {"key": key, "value": value}
    if lease:
        found["lease"] = lease
    return {"request_put": found}


def done(one: Put) -> dict[str, Any]:
    """Return the operation that writes or drops a key."""
    key, value = one
    if value is None:
        return {"request_delete_range": {"key": key}}
    return put(key, value)


def drop_all(prefix: bytes) -> dict[str, Any]:
    """Return the operation that drops all keys that begin so."""
    return {"request_delete_range": {"key": prefix, "range_end": behind(prefix)}}


def is_new(key: bytes) -> dict[str, Any]:
    """Return the guard that a key is not there."""
    return made_at(key, 0)


def is_empty(prefix: bytes) -> dict[str, Any]:
    """Return the guard that no key begins so."""
    return {**is_new(prefix), "range_end": behind(prefix)}


def made_at(key: bytes, revision: int) -> dict[str, Any]:
    """Return the guard that a key is the one that was made at a revision."""
    return {
        "key": key,
        "target": "CREATE",
        "result": "EQUAL",
        "create_revision": revision,
    }


def as_of(key: bytes, revision: int) -> dict[str, Any]:
    """Return the guard that a key was changed at a revision the last time."""
    return {
        "key": key,
        "target": "MOD",
        "result": "EQUAL",
        "mod_revision": revision,
    }


def holds(key: bytes, value: bytes) -> dict[str, Any]:
    """Return the guard that a key has a value."""
    return {"key": key, "target": "VALUE", "result": "EQUAL", "value": value}
