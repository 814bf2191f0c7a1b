# SPDX-License-Identifier: BSD-2-Clause
"""What can be asked: each method of the clients once, without a connection.

An `Ask` is a method of LUXI with its arguments, how its answer is read, and whether it
may be sent twice. Connections know how one is sent; clients, when it is sent again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from moorage.errors import NotFound

from .told import Field, Job, Table

T = TypeVar("T")
Opcode: TypeAlias = Mapping[str, Any]
"""An operation with its fields; ``OP_ID`` names it."""
Filter: TypeAlias = Sequence[Any]
"""Which objects, in Ganeti's language of filters: ``["==", "name", "web1"]``."""
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


def _same(answer: Any) -> Any:  # noqa: ANN401
    return answer


def _table(answer: Any) -> Table:  # noqa: ANN401
    rows = [[(status, value) for status, value in row] for row in answer["data"]]
    return Table(_fields(answer), rows)


def _fields(answer: Any) -> list[Field]:  # noqa: ANN401
    names = Field._fields
    return [Field(*(one[name] for name in names)) for one in answer["fields"]]


def query(what: str, fields: Sequence[str], qfilter: Filter | None) -> Ask[Table]:
    """Ask for fields of objects."""
    found = None if qfilter is None else list(qfilter)
    return Ask("Query", (what, list(fields), found), _table)


def query_fields(what: str, fields: Sequence[str] | None) -> Ask[list[Field]]:
    """Ask which fields there are."""
    return Ask("QueryFields", (what, list(fields) if fields else None), _fields)


def info() -> Ask[dict[str, Any]]:
    """Ask for the cluster's settings."""
    return Ask("QueryClusterInfo", (), _same)


def submit(ops: Sequence[Opcode], key: str) -> Ask[int]:
    """Ask for a job."""
    return Ask("SubmitJobOnce", (key, [dict(one) for one in ops]), int)


def job(number: int) -> Ask[Job]:
    """Ask how a job stands."""

    def read(answer: Any) -> Job:  # noqa: ANN401
        (row,) = answer
        if row is None:
            raise NotFound(f"job {number} is not known", hint="gnt-job list")
        return Job(number, *row)

    return Ask("QueryJobs", ([number], list(_JOB)), read)


def features() -> Ask[frozenset[str]]:
    """Ask what may be relied on."""
    return Ask("Features", (), frozenset)
