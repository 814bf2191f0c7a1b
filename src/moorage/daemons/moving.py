# SPDX-License-Identifier: BSD-2-Clause
"""A move of the state to the other engine: its note, and how what is decided ends.

Which engine leads, one name in the master's directory decides: ``etcd.json``. A move to
etcd is decided when that is written. A move to SQLite is decided when etcd says that
the state is elsewhere; from then on whoever finds the note here ends it, a master that
starts as well as the command that is typed again.
"""

import time
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, json

from moorage import durable
from moorage.errors import Failed
from moorage.store import Elsewhere
from moorage.store.etcd import EtcdSettings
from moorage.store.records import leave

from .paths import MasterPlaces


class Move(Struct, frozen=True, kw_only=True):
    """A move that was begun.

    Attributes
    ----------
    id
        Drawn for it.
    etcd
        Where to; None for the SQLite file.
    """

    id: str
    etcd: EtcdSettings | None = None


def noted(places: MasterPlaces) -> Move | None:
    """Return the move that was begun here, and did not end.

    Raises
    ------
    Failed
        If the note of it cannot be read.
    """
    try:
        return json.decode(places.moving.read_bytes(), type=Move)
    except FileNotFoundError:
        return None
    except (OSError, DecodeError, ValidationError) as error:
        raise Failed(f"{places.moving} cannot be read: {error}") from None


def note(places: MasterPlaces, move: Move) -> None:
    """Remember a move until it has ended."""
    durable.write(places.moving, json.encode(move))


def draft(places: MasterPlaces) -> Path:
    """Return where the SQLite file lies until it leads."""
    return places.store.with_name(f"{places.store.name}.moving")


def came(places: MasterPlaces, told: Elsewhere) -> bool:
    """End a move from etcd to here that was decided; return whether there was one."""
    move = noted(places)
    if move is None or told.facts.get("move") != move.id:
        return False
    if draft(places).exists():
        draft(places).replace(places.store)
        durable.sync(places.root)  # it is there before the other one goes
    aside = _aside(places, "moved-to-sqlite")
    if places.etcd.exists():
        places.etcd.replace(aside / places.etcd.name)
    durable.sync(aside)
    durable.sync(places.root)
    durable.remove(places.moving)
    return True


def went(places: MasterPlaces, move: Move, where: str) -> None:
    """Lay the SQLite file aside, now that etcd leads; the move has ended."""
    if places.store.exists():
        leave(places.store, move.id, where)
        aside = _aside(places, "moved-to-etcd")
        for end in ("-wal", "-shm", ""):
            one = places.store.with_name(f"{places.store.name}{end}")
            if one.exists():
                one.replace(aside / one.name)
        durable.sync(aside)
        durable.sync(places.root)
    durable.remove(places.moving)


def _aside(places: MasterPlaces, name: str) -> Path:
    """Make a directory that says when which store was laid aside."""
    made = places.root / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns()}"
    durable.make(made)
    return made
