# SPDX-License-Identifier: BSD-2-Clause
"""What a cluster tells: tables, jobs, and what happens."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from moorage.api.luxi_messages import error_from_wire
from moorage.errors import Failed, MoorageError, WrongState

NORMAL = 0
"""The status of a value that is there; others say why there is none."""
ENDED = ("success", "error", "canceled")
"""States of a job that goes on no more."""


class Field(NamedTuple):
    """A field of a kind of objects.

    Attributes
    ----------
    kind
        ``text``, ``number``, ``bool``, ``unit`` (MiB), ``timestamp`` (seconds),
        ``other``, or ``unknown`` for a field that there is not.
    """

    name: str
    title: str
    kind: str
    doc: str


class Table(NamedTuple):
    """What a query tells.

    Attributes
    ----------
    rows
        A row an object, a pair of status and value a field.
    """

    fields: Sequence[Field]
    rows: Sequence[Sequence[tuple[int, Any]]]

    def objects(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their fields; a missing value is None."""
        names = [field.name for field in self.fields]
        return [
            {
                name: value if status == NORMAL else None
                for name, (status, value) in zip(names, row, strict=True)
            }
            for row in self.rows
        ]


class Job(NamedTuple):
    """A job as it stands.

    Attributes
    ----------
    status
        ``queued``, ``waiting``, ``running``, ``canceling``, or one of `ENDED`.
    summaries, states, results
        What each of its operations is, how far it is, and what came of it: of one that
        failed, the error as it went over the wire.
    """

    number: int
    status: str
    summaries: Sequence[str]
    states: Sequence[str]
    results: Sequence[Any]

    @property
    def ended(self) -> bool:
        """Whether it goes on no more."""
        return self.status in ENDED

    @property
    def error(self) -> MoorageError | None:
        """Why it has ended without success; None if it has not."""
        if self.status not in ("error", "canceled"):
            return None
        found: MoorageError = Failed(f"job {self.number} ended as '{self.status}'")
        for state, result in zip(self.states, self.results, strict=True):
            if state == self.status:
                found = error_from_wire(result)
                break
        before = list(self.states).count("success") or found.facts.get("done_before", 0)
        if self.status == "canceled":
            found = WrongState(f"job {self.number} was canceled")
        found.facts = {**found.facts, "job": self.number, "done_before": before}
        return found

    def outcome(self) -> Sequence[Any]:
        """Return the results of its operations, once it has ended.

        Raises
        ------
        MoorageError
            If it failed or was cancelled; `WrongState` if it has not ended.
        """
        if self.error:
            raise self.error
        if not self.ended:
            raise WrongState(f"job {self.number} is {self.status}", job=self.number)
        return self.results


class Change(NamedTuple):
    """What became of a job.

    Attributes
    ----------
    values
        Of the fields that were asked for.
    log
        New entries of its log: number, time (seconds and microseconds), kind, message.
    """

    values: Sequence[Any]
    log: Sequence[Sequence[Any]]


class Event(NamedTuple):
    """What became of an object or a job.

    Attributes
    ----------
    kind
        ``disk``, ``instance``, ``node``, … or ``job``.
    event
        ``added``, ``changed`` or ``removed``.
    uuid, name, serial_no, tags
        Of an object, as it is from now on, or was.
    job
        Number of a job; 0 for an object.
    status, summary
        Of a job.
    """

    kind: str
    event: str
    uuid: str = ""
    name: str = ""
    serial_no: int = 0
    tags: Sequence[str] = ()
    job: int = 0
    status: str = ""
    summary: str = ""


class Entry(NamedTuple):
    """What one commit did.

    Attributes
    ----------
    number
        Rises with each entry; who comes back names the last one that it heard.
    time
        In seconds.
    job, by
        Number of the job that did it, or 0, and who asked for that.
    reset
        Whether what was before is not told: read anew what you know of the cluster.
        There are no events in it, and the next entries go on behind its number.
    """

    number: int
    time: float = 0.0
    events: Sequence[Event] = ()
    job: int = 0
    by: str = ""
    reset: bool = False


def entry(told: Mapping[str, Any]) -> Entry:
    """Return an entry of the feed, of its JSON values."""
    return Entry(
        told["number"],
        told["time"],
        [Event(**one) for one in told["events"]],
        told.get("job", 0),
        told.get("by", ""),
    )
