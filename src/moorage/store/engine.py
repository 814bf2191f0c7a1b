# SPDX-License-Identifier: BSD-2-Clause
"""The engine of a master's store: it is chosen here, and nowhere else."""

from collections.abc import Callable
from pathlib import Path

from moorage.directories import ETCD

from .base import Store
from .etcd import EtcdSettings, EtcdStore, read
from .sqlite import SqliteStore


def etcd_of(path: Path) -> EtcdSettings | None:
    """Return where in etcd the store is that a master has at `path`.

    None if it is the SQLite file itself.

    Raises
    ------
    BadInput
        If the file of settings beside it has none.
    OSError
        If that cannot be read.
    """
    settings = path.with_name(ETCD)
    try:
        data = settings.read_bytes()
    except FileNotFoundError:
        return None
    return read(data, str(settings))


def store_at(
    path: Path, ended: Callable[[str], None] | None = None, *, new: bool = False
) -> Store:
    """Return the store that a master's directory has at `path`; nobody leads it yet.

    Parameters
    ----------
    ended
        Called, in a thread of the store's, when a lead is lost that can be: what leads
        has to end at once. With SQLite it lasts as long as its process.
    new
        Whether it is to be made, where there is none.
    """
    settings = etcd_of(path)
    if settings:
        return EtcdStore(settings, ended, new=new)
    return SqliteStore(path)
