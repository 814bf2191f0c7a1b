# SPDX-License-Identifier: BSD-2-Clause
"""On SQLite there is one worker: no row of it can be locked for somebody."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

from moorage_cloud.errors import Conflict


@contextmanager
def place_of_worker() -> Iterator[bool]:
    """Hold what a worker needs; yield whether it is the only one that there can be.

    The lock is a file beside the database's, and falls with the process, however that
    ends.

    Raises
    ------
    Conflict
        If there is a worker already, and there can be no second one.
    """
    if connection.vendor != "sqlite":
        yield False
        return
    database = connection.settings_dict["NAME"]
    with Path(f"{database}.worker").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                f"a worker is at work on {database} already: with SQLite there is one, "
                "for several take PostgreSQL"
            ) from None
        yield True
