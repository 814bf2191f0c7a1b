# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's methods on the master: those on jobs, and the table of all."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, ValidationError, convert

from moorage.errors import BadInput, MoorageError, from_json
from moorage.jobs import Job
from moorage.model.misfit import misfit

from . import job_kill
from .luxi import NOCHANGE
from .luxi_line import ConnectInstance, DrawTicket
from .luxi_messages import error_to_wire
from .luxi_method import Fields, Method, Numbers, Opcodes
from .luxi_queries import QUERIES
from .luxi_unneeded import UNNEEDED
from .opcode_checks import PRIORITIES, check_opcodes
from .query import Sources, resource_named, rows
from .query.job import log_entries

LONGEST_WAIT = 89.0
"""Seconds that a client waits for a job's change at most, as in Ganeti."""

# -- submitting ----------------------------------------------------------------------


class SubmitJob(Method, frozen=True):
    """Queue one job; return its number."""

    although_drained: ClassVar[bool] = False
    """Whether the job is taken all the same when the queue is drained."""

    ops: Opcodes

    async def answer(self, at: Sources) -> int:
        """Check the common fields, then let the engine check the others."""
        check_opcodes(at.engine, self.ops, [])
        drained = self.although_drained
        return await at.engine.submit(self.ops, although_drained=drained)


class SubmitJobToDrainedQueue(SubmitJob, frozen=True):
    """Queue one job although the queue is drained; return its number."""

    although_drained = True


class SubmitManyJobs(Method, frozen=True):
    """Queue jobs; return for each whether it was taken, and its number or why not.

    A dependency on -1 is one on the job before it in the list, and so on.
    """

    jobs: Annotated[list[Opcodes], Meta(max_length=20_000)]

    async def answer(self, at: Sources) -> list[list[Any]]:
        """Queue one after the other; a refusal does not hold the others up."""
        answers: list[list[Any]] = []
        earlier: list[int | None] = []
        for ops in self.jobs:
            try:
                check_opcodes(at.engine, ops, earlier)
                number = await at.engine.submit(ops)
                answers.append([True, number])
                earlier.append(number)
            except MoorageError as error:
                answers.append([False, error_to_wire(error)])
                earlier.append(None)
        return answers


# -- jobs ----------------------------------------------------------------------------


class WaitForJobChange(Method, frozen=True):
    """Wait until a job differs from what the client has seen of it."""

    waits = True

    job: int
    fields: Fields
    seen: list[Any] | None = None
    serial: int | None = None
    timeout: float = LONGEST_WAIT

    async def answer(self, at: Sources) -> Any:  # noqa: ANN401
        """Return ``[values, log entries]``, ``nochange``, or None for no such job."""
        clock = asyncio.get_running_loop().time
        end = clock() + min(self.timeout, LONGEST_WAIT)
        while (job := at.engine.jobs.get(self.job)) is not None:
            (values,) = job_values(at, [job], self.fields)
            entries = log_entries(job, self.serial or 0)
            if values != self.seen or entries or job.finished:
                return [values, entries]
            left = end - clock()
            if left <= 0 or not await at.engine.queue.changed(self.job, left):
                return NOCHANGE
        return None


def job_values(at: Sources, jobs: list[Job], names: list[str]) -> list[list[Any]]:
    """Return the values of jobs' fields, as JSON has them.

    Raises
    ------
    BadInput
        If there is no such field.
    """
    resource = resource_named("job")
    fields = [resource.find(name) for name in names]
    for field in fields:
        if field.kind == "unknown":
            raise BadInput(f"no job has the field '{field.name}'")
    found = rows(fields, jobs, at.scene())
    return [[_as_json(value) for _, value in row] for row in found]


def _as_json(value: Any) -> Any:  # noqa: ANN401
    """Return a value as it is after a trip over the wire: lists, no tuples."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    return value


class QueryJobs(Method, frozen=True):
    """Return values of some jobs, or of all; None for one that is not known.

    No numbers at all mean all jobs, too.
    """

    jobs: Numbers | None
    fields: Fields

    async def answer(self, at: Sources) -> list[list[Any] | None]:
        """Look each one up."""
        jobs = at.engine.jobs
        wanted = self.jobs or sorted(jobs)
        known = [number for number in wanted if number in jobs]
        values = job_values(at, [jobs[number] for number in known], self.fields)
        found = dict(zip(known, values, strict=True))
        return [found.get(number) for number in wanted]


class CancelJob(Method, frozen=True):
    """Cancel a job; return whether, and a sentence."""

    job: int
    kill: bool = False

    async def answer(self, at: Sources) -> list[Any]:
        """Cancel, and end the script that the job waits for, if asked to."""
        done, text = await at.engine.cancel(self.job)
        job = at.engine.queue.working.get(self.job)
        ends = job and (self.kill or job_kill.breakable(job))
        if job and ends and (done or job.current.undoing):
            ended = await job_kill.kill(at, job)
            if ended and not done:
                return [True, f"{text}; the script that it waited for is ended"]
        return [done, text]


class ChangeJobPriority(Method, frozen=True):
    """Change when a job gets its turn; return whether, and a sentence."""

    job: int
    priority: int

    async def answer(self, at: Sources) -> list[Any]:
        """Change it for the slot, and the locks that the job does not wait for yet."""
        if self.priority not in PRIORITIES:
            raise BadInput(
                f"a priority is a number from -20 to 19, not {self.priority}"
            )
        if not await at.engine.change_priority(self.job, self.priority):
            return [False, f"Job {self.job} has ended"]
        return [True, f"Job {self.job} has priority {self.priority} now"]


class ArchiveJob(Method, frozen=True):
    """Put a job away; return False if it, or one that depends on it, has not ended."""

    job: int

    async def answer(self, at: Sources) -> bool:
        """Archive, once the end of the job is stored: else it would come back."""
        if at.engine.job(self.job).finished:
            await at.engine.finished(self.job)
        return await at.engine.queue.archive(self.job)


class AutoArchiveJobs(Method, frozen=True):
    """Put away jobs that ended long ago; return how many, and how many are left."""

    age: float
    timeout: float = 30.0

    async def answer(self, at: Sources) -> list[int]:
        """Archive those older than `age` seconds, all if it is negative."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.timeout
        old = list(_ended_before(at, self.age))
        done = 0
        for number in old:
            if loop.time() >= end:
                break
            done += await at.engine.queue.archive(number)
        return [done, len(old) - done]


def _ended_before(at: Sources, age: float) -> Iterator[int]:
    limit = at.clock() - age
    for job in list(at.engine.jobs.values()):
        ended = job.end_timestamp
        if ended and (age < 0 or ended[0] < limit):
            yield job.id


class SetDrainFlag(Method, frozen=True):
    """Say whether new jobs are refused."""

    flag: bool

    async def answer(self, at: Sources) -> bool:
        """Set it."""
        await at.engine.queue.drain(draining=self.flag)
        return True


class SetWatcherPause(Method, frozen=True):
    """Let the watcher do nothing until some time, in seconds; None: go on."""

    waits = True

    until: float | None = None

    async def answer(self, at: Sources) -> float | None:
        """Record it, by a job as any other setting; return it."""
        setting = {"OP_ID": "OP_CLUSTER_SET_PARAMS", "watcher_pause": self.until or 0.0}
        number = await at.engine.submit([setting], although_drained=True)
        await at.engine.finished(number)
        error = at.engine.job(number).ops[0].error
        if error is not None:
            raise from_json(error)
        return self.until


# -- all -----------------------------------------------------------------------------

_METHODS: tuple[type[Method], ...] = (
    SubmitJob,
    SubmitJobToDrainedQueue,
    SubmitManyJobs,
    WaitForJobChange,
    QueryJobs,
    CancelJob,
    ChangeJobPriority,
    ArchiveJob,
    AutoArchiveJobs,
    SetDrainFlag,
    ConnectInstance,
    DrawTicket,
    SetWatcherPause,
    *QUERIES,
    *UNNEEDED,
)
METHODS = {one.__name__: one for one in _METHODS}
"""Every method by its name."""


def method(name: str, args: list[Any]) -> Method:
    """Return a request.

    Raises
    ------
    BadInput
        If there is no such method, or its arguments are off.
    """
    if name not in METHODS:
        raise BadInput(f"the master has no method '{name}'", known=sorted(METHODS))
    kind = METHODS[name]
    if len(args) > len(kind.__struct_fields__):
        most = len(kind.__struct_fields__)
        raise BadInput(f"{name} takes at most {most} arguments, not {len(args)}")
    try:
        return convert(args, kind, strict=False)
    except ValidationError as error:
        raise BadInput(f"{name}: {misfit(error, 'the list of arguments')}") from None
