# SPDX-License-Identifier: BSD-2-Clause
"""What a candidate keeps for the next master: the state, and a key to lead with.

The key is its own, and never leaves the machine. Beside it lie the certificates of the
authorities that signed the nodes, and no key of theirs.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from moorage import durable
from moorage.errors import BadInput, Failed
from moorage.model.commits import Head
from moorage.node.certificates import tls

from .state_copy import StateCopy

T = TypeVar("T")

_KEYS = frozenset({"ca.key", "ca.pem", "master.pem", "master.key", "next.key"})
"""Files of the authority; a master of before each had a key of its own sent them."""
OWN = "own"
"""Name of the file with a candidate's own key and certificate, without its end."""


class Copies:
    """The directory of a candidate's copies.

    Parameters
    ----------
    directory
        Made when the first copy comes.

    Attributes
    ----------
    released
        Where the store of the master stood that let this node lead; None if none did.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = StateCopy(directory)
        self.released: Head | None = None
        self._confirmed: float | None = None
        self._wanted = 0.0
        # SQLite's connection belongs to the thread that opened it; and steps that wait
        # for the disk are done in the order in which they came.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state-copy")

    def want(self, seconds: float) -> None:
        """Note for some seconds that this node is to be the next master."""
        self._wanted = time.monotonic() + seconds
        if seconds:
            self.released = None

    def wanted(self) -> bool:
        """Whether this node is to be the next master."""
        return time.monotonic() < self._wanted

    def confirm(self) -> None:
        """Note that the copy is now what the master has."""
        self._confirmed = time.monotonic()

    def confirmed(self) -> float | None:
        """Return the seconds since that was noted; None if it was not."""
        return self._confirmed and time.monotonic() - self._confirmed

    @property
    def keys(self) -> Path:
        """Where the cluster's keys are."""
        return self.directory / "keys"

    async def run(self, work: Callable[[], T]) -> T:
        """Do something with the copy that takes its time.

        Raises
        ------
        Failed
            If the disk does not play along.
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            raise Failed(
                f"the copy of the state in {self.directory}: {error}"
            ) from error

    def own_key(self) -> str:
        """Return the pin of the key that the node can lead with; empty for none."""
        return self._pin(OWN)

    def _pin(self, name: str) -> str:
        path = self.keys / f"{name}.pem"
        try:
            return tls.pin_of(tls.load_certificate(path.read_bytes()))
        except (OSError, ValueError):
            return ""

    def asks_with(self) -> str:
        """Return the pin of the key that the node asks with before it leads.

        That is the master's, where candidates had no keys of their own yet; empty for
        a node that has none.
        """
        return self.own_key() or self._pin("master")

    def request_key(self) -> str:
        """Return the request for a certificate of a new key to lead with, as PEM.

        It is the same one for some minutes, or until the certificate is there.

        Raises
        ------
        Failed
            If the one that waits cannot be read.
        """
        path = self._next
        if not tls.waits(path):
            durable.write(path, tls.key_pem(tls.new_key()))
        with tls.whole(self.keys, "the node's key to lead with", f"rm {path}"):
            asked = tls.request(tls.load_key(path), tls.MASTER)
        return tls.request_pem(asked).decode()

    def take_key(self, certificate: str, key: str = "") -> None:
        """Keep a certificate to lead with, beside its key.

        Parameters
        ----------
        key
            As PEM, where it is the one that the master on this machine has; else it is
            the one that waits here.

        Raises
        ------
        BadInput
            If it is for no key of this node; nothing was changed then.
        """
        try:
            found = tls.load_certificate(certificate.encode())
            if self.own_key() == tls.pin_of(found) and not key:
                return
            own = tls.read_key(key.encode()) if key else tls.load_key(self._next)
            fits = tls.pin(own.public_key()) == tls.pin_of(found)
        except (OSError, ValueError, TypeError) as error:
            raise BadInput(f"the certificate cannot be taken: {error}") from None
        if not fits:
            raise BadInput("the certificate is for another key than this node's")
        durable.write(self.keys / f"{OWN}.pem", tls.key_pem(own) + certificate.encode())
        durable.remove(self._next)

    @property
    def _next(self) -> Path:
        return self.keys / f"next-{OWN}.key"

    def keep_keys(self, files: Mapping[str, bytes]) -> None:
        """Keep these keys, and no others.

        Raises
        ------
        BadInput
            If a name is none of a key's file.
        """
        odd = sorted(files.keys() - _KEYS)
        if odd:
            raise BadInput(f"the cluster's keys have no file '{odd[0]}'")
        for name, data in files.items():
            path = self.keys / name
            if not path.exists() or path.read_bytes() != data:
                durable.write(path, data)
        durable.remove(*(self.keys / name for name in _KEYS - files.keys()))


def public_keys(directory: Path) -> dict[str, bytes]:
    """Return what candidates get of the keys in a directory: certificates alone."""
    return {"ca.pem": (directory / "ca.pem").read_bytes()}


def read_keys(directory: Path) -> dict[str, bytes]:
    """Return the cluster's keys that are in a directory, by the names of their files.

    Another thread may be replacing them: they are read until two readings agree.

    Raises
    ------
    OSError
        If they cannot be read.
    """
    before: dict[str, bytes] | None = None
    while True:
        paths = [path for path in directory.iterdir() if path.name in _KEYS]
        found = None
        with suppress(FileNotFoundError):
            found = {path.name: path.read_bytes() for path in paths}
        if found is not None and found == before:
            return found
        before = found
