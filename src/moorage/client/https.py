# SPDX-License-Identifier: BSD-2-Clause
"""Connections to a door on the network, that block."""

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLCertVerificationError
from typing import Any, Final

from moorage.api.wanted import Wanted
from moorage.errors import MoorageError, NoMaster, Unreachable

from . import rest
from .places import Door
from .pool import Pool
from .stream import SILENCE, Stream
from .told import Entry

CONNECTING: Final = 15.0
"""Seconds in which a connection must be made."""


class _Link(HTTPSConnection):
    def fileno(self) -> int:
        """Return the number of the socket's descriptor; -1 where there is none."""
        return self.sock.fileno() if self.sock else -1


class Https:
    """The way to a cluster over HTTPS.

    Parameters
    ----------
    timeout
        Seconds without a word after which an answer is given up.
    """

    def __init__(self, door: Door, timeout: float) -> None:
        self.door = door
        self._timeout = timeout
        self._trust = door.trust()
        self._pool = Pool(self._connected)

    def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method of LUXI.

        Raises
        ------
        MoorageError
            As the master, or the door, says it.
        NoMaster
            If nobody answers there: the request has not been heard.
        Unreachable
            If the answer did not come.
        """
        if method == "WaitForEvents":  # a stream begins with it
            with closing(self.listen(None, Wanted(), None)) as stream:
                return {"number": next(filter(None, stream)).number}
        http = rest.request(method, args)
        with self._pool.lent() as link:
            try:
                answer = self._asked(link, http)
                text = answer.read()
            except (OSError, HTTPException) as error:
                raise broken(self.door, error, self._timeout) from error
            if answer.will_close:
                link.close()  # it opens again by itself
        return rest.answer(method, answer.status, text)

    def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> Generator[Entry | None, None, None]:
        """Yield what happens until time is over; None says that the door lives.

        Parameters
        ----------
        after
            Number of the last entry that was heard; None for from now on.
        end
            When it is over, by the monotonic clock; None for never.

        Raises
        ------
        MoorageError
            As :meth:`call` does.
        """
        stream = Stream()
        link = self._connected()
        over = False
        try:
            answer = self._asked(link, rest.events(after, wanted))
            if answer.status != 200:
                rest.result(answer.status, answer.read())
            yield None
            while not over:
                left = SILENCE if end is None else min(SILENCE, end - time.monotonic())
                link.sock.settimeout(max(left, 0.001))
                over = left < SILENCE
                line = answer.readline()
                if not line:
                    raise ConnectionError("the door hung up")
                over = False
                yield stream.feed(line)
        except (OSError, HTTPException) as error:
            if not over:
                raise broken(self.door, error, SILENCE) from error
        finally:
            link.close()

    def close(self) -> None:
        """Hang up."""
        self._pool.close()

    def _asked(self, link: _Link, http: rest.Http) -> HTTPResponse:
        headers = {"Authorization": self.door.authorization, **http.headers()}
        link.request(http.method, http.path, http.content(), headers)
        return link.getresponse()

    def _connected(self) -> _Link:
        link = _Link(
            self.door.host,
            self.door.port,
            timeout=min(self._timeout, CONNECTING),
            context=self._trust,
        )
        try:
            link.connect()
        except OSError as error:
            link.close()
            raise absent(self.door, error) from error
        link.sock.settimeout(self._timeout)
        return link


def absent(door: Door, error: OSError) -> MoorageError:
    """Return what is said where no connection could be made."""
    if isinstance(error, SSLCertVerificationError):
        named = "not valid for" in error.verify_message
        return Unreachable(
            f"the certificate of {door.url} is not believed: {error.verify_message}",
            hint="ask by a name that it has, or have it made for this one: "
            "moorage rapi certificate NAME, where the door is"
            if named
            else "name the file of the authority that signed it: MOORAGE_CA",
            silent=False,
        )
    return NoMaster(f"nobody answers at {door.url}: {error.strerror or error}")


def broken(door: Door, error: Exception, timeout: float) -> MoorageError:
    """Return what is said where an answer did not come."""
    took = f"no answer in {timeout:g} s" if isinstance(error, TimeoutError) else error
    return Unreachable(f"the connection to {door.url} broke: {took}", lost="door")
