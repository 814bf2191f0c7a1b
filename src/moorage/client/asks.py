# SPDX-License-Identifier: BSD-2-Clause
"""What can be asked: each method of the clients once, without a connection.

An `Ask` is a method of LUXI with its arguments, how its answer is read, and whether it
may be sent twice. Connections know how one is sent; clients, when it is sent again.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from moorage.errors import BadInput, MoorageError, NotFound

from .told import Change, Field, Job, Table

T = TypeVar("T")
Opcode: TypeAlias = Mapping[str, Any]
"""An operation with its fields; ``OP_ID`` names it."""
Filter: TypeAlias = Sequence[Any]
"""Which objects, in Ganeti's language of filters: ``["==", "name", "web1"]``."""
Row: TypeAlias = Sequence[Any]
"""Values of fields, in the order in which these were named."""

AGAIN: Final = 0.5
"""Seconds before something is asked again."""
TIMEOUT: Final = 180.0
"""Seconds without a word after which an answer is given up."""
PATIENCE: Final = 30.0
"""Seconds that a door or a master may be away."""
LONGEST_WAIT: Final = 85.0
"""Seconds that one question for a job's change waits at most."""
_JOB = ("status", "summary", "opstatus", "opresult")


class Ask(NamedTuple, Generic[T]):
    """A request.

    Attributes
    ----------
    again
        Whether it is the same to the cluster if it comes once or twice.
    """

    method: str
    args: tuple[Any, ...]
    read: Callable[[Any], T]
    again: bool = True


def is_lost(error: MoorageError) -> bool:
    """Whether an answer is lost, or the one who could give it: asking again may help.

    Whoever raises such an error says so by the fact ``lost``: what a node's silence did
    to a job, or to a field, is an answer.
    """
    return error.code == "no-master" or bool(error.facts.get("lost"))


def may_go_again(ask: Ask[T], error: MoorageError) -> bool:
    """Whether a request may be sent again after what came of it.

    Whoever found nobody was not heard: so may any.
    """
    return is_lost(error) and (ask.again or error.code == "no-master")


def new_key() -> str:
    """Return a name for a request that nobody else has."""
    return os.urandom(16).hex()


def _same(answer: Any) -> Any:  # noqa: ANN401
    return answer


def _first(answer: Any) -> Any:  # noqa: ANN401
    return answer[0]


def _nothing(_answer: Any) -> None:  # noqa: ANN401
    return None


def raw(method: str, args: tuple[Any, ...]) -> Ask[Any]:
    """Ask something that only looks."""
    return Ask(method, args, _same)


# -- looking ---------------------------------------------------------------------------


def query(what: str, fields: Sequence[str], qfilter: Filter | None) -> Ask[Table]:
    """Ask for fields of objects."""
    found = None if qfilter is None else list(qfilter)
    return Ask("Query", (what, list(fields), found), _table)


def _table(answer: Any) -> Table:  # noqa: ANN401
    rows = [[(status, value) for status, value in row] for row in answer["data"]]
    return Table(_fields(answer), rows)


def query_fields(what: str, fields: Sequence[str] | None) -> Ask[list[Field]]:
    """Ask which fields there are."""
    return Ask("QueryFields", (what, list(fields) if fields else None), _fields)


def _fields(answer: Any) -> list[Field]:  # noqa: ANN401
    names = Field._fields
    return [Field(*(one[name] for name in names)) for one in answer["fields"]]


def info() -> Ask[dict[str, Any]]:
    """Ask for the cluster's settings."""
    return Ask("QueryClusterInfo", (), _same)


def features() -> Ask[frozenset[str]]:
    """Ask what may be relied on."""
    return Ask("Features", (), frozenset)


def tags(kind: str, name: str) -> Ask[list[str]]:
    """Ask for the tags of an object."""
    return Ask("QueryTags", (kind, name), _same)


def story(disk: str) -> Ask[dict[str, Any]]:
    """Ask what happened to a disk."""
    return Ask("QueryDiskStory", (disk,), _same)


def store() -> Ask[dict[str, Any]]:
    """Ask where the state is kept, and what needs somebody there."""
    return Ask("QueryStore", (), _same)


def audit(after: int) -> Ask[list[str]]:
    """Ask who had what changed."""
    return Ask("QueryAudit", (after,), lambda answer: list(answer["lines"]))


# -- jobs ------------------------------------------------------------------------------


def submit(ops: Sequence[Opcode], key: str) -> Ask[int]:
    """Ask for a job."""
    return Ask("SubmitJobOnce", (key, [dict(one) for one in ops]), int)


def resolved(
    ops: Sequence[Opcode], earlier: Sequence[int | MoorageError]
) -> list[Opcode]:
    """Return operations with the jobs that they depend on by their numbers.

    Parameters
    ----------
    earlier
        The jobs before in a list, or why there is none: -1 stands for the last one.

    Raises
    ------
    BadInput
        If there is no such job.
    """
    return [{**one, **_depends(one.get("depends"), earlier)} for one in ops]


def _depends(
    depends: Any,  # noqa: ANN401 - what it has to be, the master says
    earlier: Sequence[int | MoorageError],
) -> Opcode:
    if not isinstance(depends, list):
        return {}
    return {
        "depends": [
            [_numbered(one[0], earlier), *one[1:]] if isinstance(one, list) else one
            for one in depends
        ]
    }


def _numbered(
    number: Any,  # noqa: ANN401 - what it has to be, the master says
    earlier: Sequence[int | MoorageError],
) -> Any:  # noqa: ANN401
    if not isinstance(number, int) or number >= 0:
        return number
    found = earlier[number] if -number <= len(earlier) else None
    if not isinstance(found, int):
        raise BadInput(f"the job depends on job {number}, which there is not")
    return found


def job(number: int) -> Ask[Job]:
    """Ask how a job stands."""

    def read(answer: Any) -> Job:  # noqa: ANN401
        (row,) = answer
        if row is None:
            raise unknown(number)
        return Job(number, *row)

    return Ask("QueryJobs", ([number], list(_JOB)), read)


def unknown(number: int) -> NotFound:
    """Return what is said of a job that there is not."""
    return NotFound(f"job {number} is not known", hint="gnt-job list")


def jobs(
    numbers: Sequence[int] | None, fields: Sequence[str]
) -> Ask[Sequence[Row | None]]:
    """Ask for fields of jobs."""
    wanted = None if numbers is None else list(numbers)
    return Ask("QueryJobs", (wanted, list(fields)), _same)


def change(
    number: int,
    fields: Sequence[str],
    seen: Row | None,
    serial: int | None,
    timeout: float,
) -> Ask[Change | None]:
    """Ask for a change of a job."""

    def read(answer: Any) -> Change | None:  # noqa: ANN401
        if answer is None:
            raise unknown(number)
        return None if answer == "nochange" else Change(*answer)

    known = None if seen is None else list(seen)
    patience = min(timeout, LONGEST_WAIT)
    args = (number, list(fields), known, serial, patience)
    return Ask("WaitForJobChange", args, read)


def cancel(number: int, *, kill: bool) -> Ask[tuple[bool, str]]:
    """Ask for the end of a job."""
    return Ask("CancelJob", (number, kill), _answer, again=False)


def set_priority(number: int, priority: int) -> Ask[tuple[bool, str]]:
    """Ask for another priority of a job."""
    return Ask("ChangeJobPriority", (number, priority), _answer, again=False)


def _answer(answer: Any) -> tuple[bool, str]:  # noqa: ANN401
    done, sentence = answer
    return bool(done), str(sentence)


def archive(number: int) -> Ask[bool]:
    """Ask for a job to be put away."""
    return Ask("ArchiveJob", (number,), bool, again=False)


def archive_ended(age: float) -> Ask[tuple[int, int]]:
    """Ask for old jobs to be put away."""

    def read(answer: Any) -> tuple[int, int]:  # noqa: ANN401
        done, left = answer
        return int(done), int(left)

    return Ask("AutoArchiveJobs", (age,), read, again=False)


# -- the cluster's chores --------------------------------------------------------------


def drained() -> Ask[bool]:
    """Ask whether new jobs are refused."""
    return Ask("QueryConfigValues", (["drain_flag"],), _first)


def drain(*, drained: bool) -> Ask[None]:
    """Ask for new jobs to be refused, or taken."""
    return Ask("SetDrainFlag", (drained,), _nothing, again=False)


def watcher_pause() -> Ask[float | None]:
    """Ask until when the watcher does nothing."""
    return Ask("QueryConfigValues", (["watcher_pause"],), _first)


def pause_watcher(until: float | None) -> Ask[float | None]:
    """Ask for the watcher to do nothing."""
    return Ask("SetWatcherPause", (until,), _same, again=False)


# -- what happens ----------------------------------------------------------------------


def newest() -> Ask[int]:
    """Ask where the feed is."""
    return Ask("WaitForEvents", (None, 0.0), lambda answer: int(answer["number"]))
