# SPDX-License-Identifier: BSD-2-Clause
"""Fences: what keeps a late step of the past from touching the present.

Two numbers only rise. The *term* counts masters: a step of an earlier master is refused
once a later one has spoken. The *epoch* counts the attaches of a disk: a step that
carries an older epoch is refused. Both are kept on the node's disk, for a step may be
late by more than the life of an agent.
"""

import time
from collections.abc import Callable, Collection
from pathlib import Path

from moorage import durable
from moorage.errors import Failed, Stale
from moorage.model import Disk

from .led import Led

_DISK = "disk-"
_SURE = "no other master of the cluster is left"


class Fence:
    """The highest numbers that a node has seen.

    A number that cannot be read is never taken for a lower one: every step that asks
    for it fails, until somebody has looked.

    Parameters
    ----------
    directory
        Where they are kept, one small file a number.
    clock
        The time in seconds.

    Attributes
    ----------
    led
        Changes of lead that were seen.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._clock = clock
        durable.make(directory)
        self.led = Led(directory / "led.json")

    @property
    def term(self) -> int:
        """The highest term that was heard."""
        return self._read("term", _SURE)

    def pass_term(self, term: int) -> None:
        """Let a step of this term pass; raise `Stale` if there was a later one."""
        seen = self._read("term", _SURE)
        if term < seen:
            raise Stale(
                f"a master of term {seen} has spoken: term {term} is over",
                hint="moorage master stop",
                term=term,
                seen=seen,
            )
        if term > seen:
            self._write("term", term)

    def promise_term(self, term: int) -> None:
        """Heed no earlier term; raise `Stale` unless this one is new to the node.

        Two candidates may ask for the same term: the promise is given to one.
        """
        if term == self._read("term", _SURE):
            raise Stale(
                f"term {term} is promised to another candidate, which becomes the "
                "master at this moment",
                hint="gnt-cluster getmaster",
                term=term,
                seen=term,
            )
        self.pass_term(term)

    def pass_leader(self, term: int, mark: str) -> None:
        """Let a leader pass; raise `Stale` if another one has spoken in its term.

        Two may count the same term: one of them leads a copy of the other's store.
        The mark is drawn by chance, by each process that leads.
        """
        path = self._directory / "leader"
        said = f"{term} {mark}\n".encode()
        known = path.read_bytes() if path.exists() else b""
        if known == said:
            return
        if known.startswith(b"%d " % term) and known.endswith(b"\n"):
            raise Stale(
                f"another master of term {term} has spoken: one of the two leads a "
                "copy of the cluster's store",
                hint="moorage master stop",
                term=term,
            )
        self.pass_term(term)
        durable.write(path, said)

    def pass_keys(self, term: int, pins: Collection[str]) -> None:
        """Let a master with these keys pass; raise `Stale` if others lead in its term.

        The mark does not prove it: each node of the cluster has heard it. A key that
        another one vouches for comes to that one's side, and stays when it is gone.
        """
        path = self._directory / "keys"
        told = path.read_text().split() if path.exists() else []
        known = set(told[1:]) if told[:1] == [str(term)] else set()
        if known and known.isdisjoint(pins):
            raise Stale(
                f"term {term} is another master's: this one's key may be a candidate's",
                hint="gnt-cluster getmaster",
                term=term,
            )
        if told and set(told[1:]).isdisjoint(pins):
            self.led.note(term, pins, self._clock())
        if not known.issuperset(pins):
            kept = " ".join([str(term), *sorted(known.union(pins))])
            durable.write(path, f"{kept}\n".encode())

    def pass_disk(self, disk: Disk) -> None:
        """Let a step of the disk's epoch pass; raise `Stale` if there was a later."""
        name = f"{_DISK}{disk.uuid}"
        seen = self._read(name, f"no other node uses disk {disk.label}")
        if disk.epoch < seen:
            raise Stale(
                f"disk {disk.label} is at epoch {seen}: a step of epoch {disk.epoch} "
                "is too late",
                disk=disk.uuid,
                epoch=disk.epoch,
                seen=seen,
            )
        if disk.epoch > seen:
            self._write(name, disk.epoch)

    def old(self, before: float) -> set[str]:
        """Return the uuids of the disks whose epochs were written `before` a time."""
        written = self._directory.glob(f"{_DISK}*")
        old = (path for path in written if path.stat().st_mtime < before)
        return {path.name.removeprefix(_DISK) for path in old}

    def forget(self, disks: Collection[str], before: float) -> None:
        """Forget the epochs of some disks (uuids) that were written `before` a time."""
        gone = self.old(before).intersection(disks)
        if gone:
            durable.remove(*(self._directory / f"{_DISK}{uuid}" for uuid in gone))

    def _read(self, name: str, sure: str) -> int:
        path = self._directory / name
        try:
            text = path.read_text()
        except FileNotFoundError:
            return 0
        except (OSError, UnicodeError) as error:
            raise _unreadable(path, sure) from error
        if not (text.endswith("\n") and text.strip().isdecimal()):
            raise _unreadable(path, sure)
        return int(text)

    def _write(self, name: str, value: int) -> None:
        durable.write(self._directory / name, f"{value}\n".encode())


def forget_masters(directory: Path) -> None:
    """Forget which masters spoke: the node waits for one to let it in.

    The next cluster counts its terms from one, and a term that somebody raised too far
    is to shut out no master for ever. The epochs of disks stay: guests may run.
    """
    durable.remove(*(directory / name for name in ("term", "leader", "keys")))


def _unreadable(path: Path, sure: str) -> Failed:
    return Failed(
        f"the fence {path} cannot be read, as a power cut may leave it: nobody can "
        "tell whether the step comes too late",
        hint=f"make sure that {sure}; then, on the node: rm {path}",
        path=str(path),
    )
