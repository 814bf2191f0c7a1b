# SPDX-License-Identifier: BSD-2-Clause
"""Whose orders a node took, and from when on: a small file, for who looks later."""

from collections.abc import Collection
from pathlib import Path

from msgspec import DecodeError, json

from moorage import durable
from moorage.model import LeadChange
from moorage.model.objects import MOST_LEADS


class Led:
    """The last changes of lead that a node saw.

    A start of the same master is none: its key is known by then, or follows one that
    is. Who spoke is told by its keys alone: a name could be anybody's.

    Parameters
    ----------
    path
        Where they are kept; what cannot be read counts as none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> tuple[LeadChange, ...]:
        """Return them, the oldest one first."""
        try:
            found = json.decode(self._path.read_bytes(), type=tuple[LeadChange, ...])
        except (OSError, DecodeError):
            return ()
        return found[-MOST_LEADS:]

    def note(self, term: int, pins: Collection[str], now: float) -> None:
        """Note that other keys lead from a term on."""
        kept = (*self.all(), LeadChange(term=term, pins=tuple(sorted(pins)), time=now))
        durable.write(self._path, json.encode(kept[-MOST_LEADS:]) + b"\n")
