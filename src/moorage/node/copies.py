# SPDX-License-Identifier: BSD-2-Clause
"""What a candidate keeps for the next master: the state, and the cluster's keys."""

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

from .state_copy import StateCopy

T = TypeVar("T")

_KEYS = frozenset({"ca.key", "ca.pem", "master.pem", "master.key", "next.key"})
"""Files of :class:`~moorage.node.authority.Authority`."""


class Copies:
    """The directory of a candidate's copies.

    Parameters
    ----------
    directory
        Made when the first copy comes.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = StateCopy(directory)
        self._confirmed: float | None = None
        # SQLite's connection belongs to the thread that opened it; and steps that wait
        # for the disk are done in the order in which they came.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="state-copy")

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
