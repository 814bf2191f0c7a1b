# SPDX-License-Identifier: BSD-2-Clause
"""Who leads, as a node heard it last: what is told to who looks for the master."""

import time
from pathlib import Path

from msgspec import DecodeError, Struct, json

from moorage import durable
from moorage.protocol.sender import Sender

_FILE = "leader.json"


class Leader(Struct, frozen=True, kw_only=True):
    """The master that a node heard last.

    Attributes
    ----------
    sender
        What it says of itself.
    """

    term: int
    sender: Sender


class Leaders:
    """The newest leader, kept in a small file, and when it was heard.

    Parameters
    ----------
    run_dir
        Directory of what an agent must find again.

    Attributes
    ----------
    heard
        When it spoke last, in seconds of the monotonic clock; None if it has not since
        the agent was started.
    """

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / _FILE
        self.newest = read(run_dir)
        self.heard: float | None = None

    def hear(self, term: int, sender: Sender) -> None:
        """Note that a master spoke which no fence kept out."""
        if not sender.node:
            return
        self.heard = time.monotonic()
        found = Leader(term=term, sender=sender)
        if found != self.newest:
            durable.write(self._path, json.encode(found) + b"\n")
            self.newest = found

    def silent(self) -> float | None:
        """Return for how many seconds the leader has been silent, if that is known."""
        return None if self.heard is None else time.monotonic() - self.heard


def read(run_dir: Path) -> Leader | None:
    """Return the leader that was heard last; None if none was, or nobody can tell."""
    try:
        return json.decode((run_dir / _FILE).read_bytes(), type=Leader)
    except (OSError, DecodeError):
        return None


def forget(run_dir: Path) -> None:
    """Forget who leads: the node belongs to no cluster any more."""
    durable.remove(run_dir / _FILE)
