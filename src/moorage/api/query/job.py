# SPDX-License-Identifier: BSD-2-Clause
"""Jobs and locks as queries show them."""

from collections.abc import Hashable, Iterable
from typing import Any

from moorage.api.luxi_messages import error_to_wire
from moorage.errors import MoorageError, NotFound, from_json
from moorage.jobs import Job, Op
from moorage.jobs.secrets import shown
from moorage.jobs.staying import stays
from moorage.model import nice
from moorage.units import is_whole

from .field import Field, Resource, flag, number, other, text
from .snapshot import Snapshot


def result(op: Op) -> Any:  # noqa: ANN401
    """Return what came of an operation; an error as it goes over the wire."""
    return error_to_wire(from_json(op.error)) if op.error else op.result


def log_entries(job: Job, after: int = 0) -> list[Any]:
    """Return the log entries of all operations with higher serials, in order."""
    found = (entry for op in job.ops for entry in op.log if entry[0] > after)
    return sorted(found, key=lambda entry: entry[0])


def _number(job: Job) -> int:
    return job.id


def _tasks(snapshot: Snapshot, job: Job) -> list[list[dict[str, Any]]]:
    return [list(_shown(snapshot, op)) for op in job.ops]


def _shown(snapshot: Snapshot, op: Op) -> Iterable[dict[str, Any]]:
    for place, task in enumerate(op.tasks):
        node = getattr(task, "node", None)
        known = snapshot.config.objects.get(node) if node else None
        yield {
            "what": task.what,
            "node": getattr(known, "name", node) or "master",
            "final": task.final,
            "state": _state(op, place),
        }


def _state(op: Op, number: int) -> str:
    """Return ``done``, ``running``, ``waiting``, ``undone`` or what went wrong.

    What cannot be taken back stays ``done``, whatever becomes of the rest.
    """
    if number in op.passed:
        return op.passed[number]
    if op.undoing:
        return _state_on_the_way_back(op, number)
    if number < op.cursor:
        return "done"
    if number > op.cursor:
        return "waiting"
    return "failed" if op.error else "running"


def _state_on_the_way_back(op: Op, number: int) -> str:
    reached = len(op.results)
    if stays(op.tasks[number]) and number <= reached:
        return "done" if number < reached else "not done"
    if number < op.cursor:
        return "done"
    if number == op.cursor:
        return "undoing"
    return "undone" if number <= reached else "waiting"


def _per_op(name: str, title: str, doc: str, get: Any) -> Field:  # noqa: ANN401
    return other(name, title, doc, lambda _s, job: [get(op, job) for op in job.ops])


def _numbered(snapshot: Snapshot, value: object) -> Iterable[Job]:
    if isinstance(value, str) and is_whole(value):
        value = int(value)
    found = snapshot.jobs.get(value) if isinstance(value, int) else None
    return [found] if found else []


def no_job(number: Hashable) -> MoorageError:
    """Return the error about a number that no job has."""
    return NotFound(f"job {number} is not known", hint="gnt-job list", job=number)


JOB = Resource(
    name="job",
    fields=(
        number("id", "ID", "Number"),
        text("status", "Status", "Status"),
        number("priority", "Priority", "From -20 (first) to 19"),
        text(
            "caller",
            "Caller",
            "Who asked for it, and by which door",
            lambda _s, job: str(job.caller),
        ),
        flag(
            "archived",
            "Archived",
            "Whether it was put away; lists that ask have these, too",
            lambda snapshot, job: job.id in snapshot.archived,
        ),
        _per_op("summary", "Summary", "What each does", lambda op, _j: op.summary),
        _per_op("ops", "OpCodes", "Operations", lambda op, _j: shown(op.input)),
        _per_op("opstatus", "OpCode_status", "Of each", lambda op, _j: op.status),
        _per_op("opresult", "OpCode_result", "Of each", lambda op, _j: result(op)),
        _per_op("oplog", "OpCode_log", "Of each", lambda op, _j: op.log),
        _per_op(
            "opstart", "OpCode_start", "Of each", lambda op, _j: op.start_timestamp
        ),
        _per_op("opexec", "OpCode_exec", "Of each", lambda op, _j: op.exec_timestamp),
        _per_op("opend", "OpCode_end", "Of each", lambda op, _j: op.end_timestamp),
        _per_op("oppriority", "OpCode_prio", "Of each", lambda _op, job: job.priority),
        other("received_ts", "Received", "Submitted", "received_timestamp"),
        other("start_ts", "Start", "Begun", "start_timestamp"),
        other("end_ts", "End", "Ended", "end_timestamp"),
        other(
            "progress",
            "Progress",
            "How far the running task is: done, total, unit, note",
            lambda s, job: s.progress(job.id),
        ),
        other("tasks", "Tasks", "What each does, step by step", _tasks),
    ),
    order=_number,
    every=lambda snapshot: sorted(snapshot.jobs.values(), key=_number),
    keys={"id": _numbered},
    absent=lambda _scene, number: no_job(number),
)


def _name(snapshot: Snapshot, row: dict[str, Any]) -> str:
    """Return level and name; locks are held by uuid, which nobody can read."""
    level, _, uuid = str(row["name"]).partition("/")
    known = snapshot.config.objects.get(uuid)
    return f"{level}/{getattr(known, 'name', None) or uuid}"


def _place(row: dict[str, Any]) -> Any:  # noqa: ANN401
    return nice(str(row["name"]))


LOCK = Resource(
    name="lock",
    fields=(
        text("name", "Name", "Level and name", _name),
        other("mode", "Mode", "shared or exclusive", lambda _s, row: row["mode"]),
        other("owner", "Owner", "Jobs that hold it", lambda _s, row: row["owner"]),
        other(
            "pending",
            "Pending",
            "Jobs that wait for it",
            lambda _s, row: row["pending"],
        ),
    ),
    order=_place,
    every=lambda snapshot: sorted(snapshot.locks(), key=_place),
)
