# SPDX-License-Identifier: BSD-2-Clause
"""What all clients were told, and what was seen that must never happen."""

import threading
from dataclasses import dataclass, field

from ledger import Ledger


@dataclass
class Told:
    """How a job ended, as a client was told."""

    job: int
    status: str
    op_id: str


@dataclass
class Account:
    """What all clients saw.

    Attributes
    ----------
    accepted
        Every job that somebody was told a number of.
    tags
        Those of the cluster that somebody was told are set.
    told
        Every end of a job that somebody was told.
    faults
        What must never happen, in sentences, with a word for its kind.
    """

    ledger: Ledger
    accepted: set[int] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    told: list[Told] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    operations: int = 0
    refused: int = 0
    lost: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, kind: str, text: str) -> None:
        with self.lock:
            if (kind, text) in self.faults:
                return
            self.faults.append((kind, text))
        self.ledger.note("violation", kind=kind, text=text)

    def accept(self, job: int) -> None:
        with self.lock:
            twice = job in self.accepted
            self.accepted.add(job)
        if twice:
            self.fault("lost", f"job {job} was accepted twice")

    def end(self, told: Told) -> None:
        with self.lock:
            self.told.append(told)
        facts = {"job": told.job, "status": told.status, "op": told.op_id}
        self.ledger.note("told", **facts)

    def acknowledged(self) -> int:
        """Return how many jobs somebody was told were done."""
        return sum(told.status == "success" for told in self.told)
