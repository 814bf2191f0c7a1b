# SPDX-License-Identifier: BSD-2-Clause
"""A job as the journal has it: everything that a new process must know to carry on.

States, priorities, dependencies and log entries are Ganeti's.
"""

from typing import Any, TypeVar

from msgspec import Struct, convert, field, json

from moorage.model import Claim, Disk
from moorage.model.caller import NOBODY, Caller

from .locks import Lock
from .task import Commit, Run, Task

QUEUED, WAITING, CANCELING, RUNNING = "queued", "waiting", "canceling", "running"
CANCELED, SUCCESS, ERROR = "canceled", "success", "error"
FINISHED = frozenset({CANCELED, SUCCESS, ERROR})
BEGUN = frozenset({RUNNING, CANCELING})
"""The states of operations that may have done something."""

_WORDS = 500
"""Characters that are kept of a reason, in the stories of disks."""
FAILED, LEFT_OUT, UNKNOWN = "failed", "left out", "not known"
"""What became of a task that an operation went past without its being known as done."""

T = TypeVar("T")
Stamp = tuple[int, int]
"""Seconds and microseconds."""
Opcodes = list[dict[str, Any]]
"""The operations of one job as they are submitted, in order."""


def stamp(now: float) -> Stamp:
    """Return a time as the pair that Ganeti writes."""
    return int(now), int(now % 1 * 1_000_000)


class Pending(Struct, frozen=True, kw_only=True):
    """The hooks that are to run when an operation has ended.

    Attributes
    ----------
    path
        Name of their directories, without the phase.
    nodes
        Uuids of the nodes that have some of the operation's own, and of those that may
        have some, where nobody was asked before.
    everywhere
        Whether the master's node has hooks of every operation.
    env
        Variables, without the prefix ``GANETI_``.
    """

    path: str
    nodes: tuple[str, ...]
    everywhere: bool
    env: dict[str, str]


class Suspect(Struct, frozen=True, kw_only=True):
    """A disk that cannot be proven safe.

    Attributes
    ----------
    disk
        As the step knew it; its record may not exist.
    cause
        Why, in a sentence.
    unproven
        Whether its volume may be somebody else's.
    """

    disk: Disk
    cause: str
    unproven: bool = False


class Op(Struct, kw_only=True):
    """One operation of a job, and how far it has come.

    Attributes
    ----------
    input
        The opcode as it was submitted.
    tasks, results
        The journal: what is to be done, in order, and what came of it so far.
    cursor
        The task that may have begun; those before it are done.
    passed
        The tasks that were not done, by position: `FAILED` for one that the operation
        could do without, `LEFT_OUT` for what depended on it, `UNKNOWN` for one that
        may have been done and cannot be taken back.
    undoing
        Whether the cursor runs backwards.
    suspects
        What was left in doubt on the way back; quarantined at its end, whoever is the
        master then.
    error
        Why it failed, as JSON values.
    locks
        What the operation holds; a new process takes them again before all others.
    claims
        What room the tasks take; other jobs leave it alone until the operation ends.
    log
        Ganeti's entries: serial, time, type, message.
    versions
        Serial numbers, by uuid, of the objects that nobody else may change while the
        operation lasts: as it found them, or as it committed them itself.
    parked
        Whether the master stopped as planned between two tasks: the one at the cursor
        has not begun.
    hooks
        What is to run when it has ended; None if nothing is.
    """

    input: dict[str, Any]
    summary: str = ""
    status: str = QUEUED
    result: Any = None
    log: list[tuple[int, Stamp, str, Any]] = field(default_factory=list)
    start_timestamp: Stamp | None = None
    exec_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None
    tasks: list[Task] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    cursor: int = 0
    passed: dict[int, str] = field(default_factory=dict)
    undoing: bool = False
    suspects: list[Suspect] = field(default_factory=list)
    error: dict[str, Any] | None = None
    locks: list[Lock] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    parked: bool = False
    claims: list[Claim] = field(default_factory=list)
    hooks: Pending | None = None

    def begun(self) -> list[Task]:
        """Return the tasks that may have taken effect.

        A commit at the cursor has not: it would have moved the cursor in the same
        transaction.
        """
        reached = self.tasks[: self.cursor + 1]
        if self.cursor < len(self.tasks) and isinstance(reached[-1], Commit):
            reached.pop()
        return reached

    def failed_on(self, node: str) -> bool:
        """Whether something failed on a node that could be done without."""
        failed = (self.tasks[at] for at, how in self.passed.items() if how != LEFT_OUT)
        return any(isinstance(task, Run) and task.node == node for task in failed)

    def committed_to(self) -> bool:
        """Whether there is no way back."""
        return not self.undoing and any(task.final for task in self.begun())


class Job(Struct, kw_only=True):
    """A job: operations, one after the other.

    Attributes
    ----------
    caller
        Who asked for it.
    cancel_asked
        Whether somebody asked to cancel it; a new process still knows.
    looks
        Whether it only looks, and changes nothing: the audit log does not tell of it.
    """

    id: int
    ops: list[Op]
    caller: Caller = NOBODY
    priority: int = 0
    received_timestamp: Stamp | None = None
    start_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None
    cancel_asked: bool = False
    looks: bool = False

    @property
    def status(self) -> str:
        """The status that Ganeti computes from those of the operations."""
        states = [op.status for op in self.ops]
        for decisive in (ERROR, CANCELING, CANCELED):
            if decisive in states:
                return decisive
        if all(state == SUCCESS for state in states):
            return SUCCESS
        if RUNNING in states or SUCCESS in states:
            return RUNNING
        return WAITING if WAITING in states else QUEUED

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in FINISHED

    @property
    def current(self) -> Op:
        """The operation that is next or under way; the last when all are done."""
        unfinished = (op for op in self.ops if op.status not in FINISHED)
        return next(unfinished, self.ops[-1])


def dependencies(job: Job) -> list[tuple[int, list[str]]]:
    """Return the jobs that one waits for, each with how it is to end; any way if []."""
    pairs = [pair for op in job.ops for pair in op.input.get("depends") or []]
    return [(int(number), list(statuses)) for number, statuses in pairs]


def cancel(job: Job) -> tuple[bool, str]:
    """Say that what a job does is to be taken back; return whether, and a sentence."""
    op = job.current
    if op.undoing:
        return False, f"Job {job.id} has failed, and what it began is being undone"
    if not op.committed_to():
        op.status = CANCELING
        return True, f"Job {job.id} will be canceled; what it began is undone"
    if op is not job.ops[-1]:
        return True, f"Job {job.id} will be canceled when its operation has ended"
    return False, f"Job {job.id} cannot be canceled any more: it goes on to its end"


def user_words(opcode: dict[str, Any]) -> str:
    """Return the reason that a person gave for an operation; empty for none."""
    trail = opcode.get("reason")
    entries = trail if isinstance(trail, list) else []
    lists = (entry for entry in entries if isinstance(entry, list))
    said = [str(one[1]) for one in lists if one[:1] == ["gnt:user"] and one[1:]]
    return "; ".join(said)[:_WORDS]


def encode(job: Job) -> bytes:
    """Return all of a job."""
    return json.encode(job)


def encode_tasks(tasks: list[Task]) -> bytes:
    """Return the tasks of an operation."""
    return json.encode(tasks)


_SETTINGS = {
    "file_dir": "file_storage_dir",
    "shared_file_dir": "shared_file_storage_dir",
}
"""What a former version called two fields of the cluster."""


def decode(data: bytes) -> Job:
    """Return the job that :func:`encode` wrote, or that of a former version did.

    Raises
    ------
    ValueError
        If it is none.
    """
    found = _decoded(data, Job)
    if not found.ops:
        raise ValueError("it has no operation")
    return found


def decode_tasks(data: bytes) -> list[Task]:
    """Return the tasks that :func:`encode_tasks` wrote.

    Raises
    ------
    ValueError
        If they are none.
    """
    return _decoded(data, list[Task])


def _decoded(data: bytes, kind: type[T]) -> T:
    if b'"args":' not in data:
        return json.decode(data, type=kind)
    return convert(_flat(json.decode(data)), kind)


def _flat(values: Any) -> Any:  # noqa: ANN401 - whatever a journal holds
    """Return JSON values with the arguments of each verb beside its name.

    They stood below ``args`` once, and a verb had all that any of its kind took: what
    it does not take is left out when it is read.
    """
    if isinstance(values, list):
        return [_flat(one) for one in values]
    if not isinstance(values, dict):
        return values
    if values.keys() == {"verb", "args"}:
        args = values["args"]
        kept = {name: args[old] for old, name in _SETTINGS.items() if old in args}
        return {"verb": values["verb"], **args, "settings": kept}
    return {name: _flat(one) for name, one in values.items()}
