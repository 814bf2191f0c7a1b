# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's methods on the master: those on jobs, and the table of all."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, json

from moorage.errors import BadInput, MoorageError
from moorage.jobs import Job
from moorage.model.caller import Role

from . import deeds
from .luxi import NOCHANGE
from .luxi_caller import CALLER
from .luxi_line import DrawTicket
from .luxi_messages import PEER, error_to_wire
from .luxi_method import Fields, Method, Numbers, Opcodes
from .luxi_metrics import QueryMetrics, QueryStore
from .luxi_queries import QUERIES
from .luxi_request import ConnectInstance, Request, read
from .luxi_unneeded import UNNEEDED
from .query import Snapshot, Sources, recall, resource_named, rows
from .query.job import log_entries

LONGEST_WAIT = 89.0
"""Seconds that a client waits for a job's change at most, as in Ganeti."""
MOST_ENTRIES = 500
"""Entries of the feed in one answer."""


class SubmitJob(Method, frozen=True):
    """Queue one job; return its number."""

    although_drained: ClassVar[bool] = False
    """Whether the job is taken all the same when the queue is drained."""

    ops: Opcodes

    async def answer(self, at: Sources) -> int:
        """Queue it for whoever asks."""
        drained = self.although_drained
        return await deeds.submit(at, self.ops, CALLER.get(), although_drained=drained)


class SubmitJobToDrainedQueue(SubmitJob, frozen=True):
    """Queue one job although the queue is drained; return its number."""

    although_drained = True


class SubmitJobOnce(Method, frozen=True):
    """Queue one job; a repeated request returns the number of the one that it made.

    The key is the client's own name for the request, and is known for a day.
    """

    key: str
    ops: Opcodes

    async def answer(self, at: Sources) -> int:
        """Queue it for whoever asks, once."""
        return await deeds.submit_once(at, self.ops, CALLER.get(), self.key)


class SubmitManyJobs(Method, frozen=True):
    """Queue jobs; return for each whether it was taken, and its number or why not.

    A dependency on -1 is one on the job before it in the list, and so on.
    """

    jobs: Annotated[list[Opcodes], Meta(max_length=20_000)]

    async def answer(self, at: Sources) -> list[list[Any]]:
        """Queue one after the other; a refusal does not hold the others up."""
        return [
            [False, one.message if PEER.get().ganeti else error_to_wire(one)]
            if isinstance(one, MoorageError)
            else [True, one]
            for one in await deeds.submit_many(at, self.jobs, CALLER.get())
        ]


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
            (values,) = job_values(at.snapshot(), [job], self.fields)
            entries = log_entries(job, self.serial or 0)
            if values != self.seen or entries or job.finished:
                return [values, entries]
            left = end - clock()
            if left <= 0 or not await deeds.changed(at, self.job, left):
                return NOCHANGE
        scene = at.snapshot()  # it may have ended and been archived meanwhile
        await recall(at, scene, [self.job])
        if (job := scene.jobs.get(self.job)) is None:
            return None
        (values,) = job_values(scene, [job], self.fields)
        return [values, log_entries(job, self.serial or 0)]


def job_values(scene: Snapshot, jobs: list[Job], names: list[str]) -> list[list[Any]]:
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
    found = rows(fields, jobs, scene)
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

    No numbers at all mean all jobs, too: those of the archive only where one of the
    fields is ``archived``.
    """

    jobs: Numbers | None
    fields: Fields

    async def answer(self, at: Sources) -> list[list[Any] | None]:
        """Look each one up."""
        scene = at.snapshot()
        if self.jobs or "archived" in self.fields:
            await recall(at, scene, self.jobs or None)
        jobs = scene.jobs
        wanted = self.jobs or sorted(jobs)
        known = [number for number in wanted if number in jobs]
        values = job_values(scene, [jobs[number] for number in known], self.fields)
        found = dict(zip(known, values, strict=True))
        return [found.get(number) for number in wanted]


class CancelJob(Method, frozen=True):
    """Cancel a job; return whether, and a sentence."""

    role = Role.OPERATE
    job: int
    kill: bool = False

    async def answer(self, at: Sources) -> list[Any]:
        """Cancel, and end the script that the job waits for, if asked to."""
        return list(await deeds.cancel(at, self.job, CALLER.get(), kill=self.kill))


class ChangeJobPriority(Method, frozen=True):
    """Change when a job gets its turn; return whether, and a sentence."""

    role = Role.OPERATE
    job: int
    priority: int

    async def answer(self, at: Sources) -> list[Any]:
        """Change it for the slot, and the locks that the job does not wait for yet."""
        who = CALLER.get()
        return list(await deeds.change_priority(at, self.job, self.priority, who))


class ArchiveJob(Method, frozen=True):
    """Put a job away; return False if it, or one that depends on it, has not ended."""

    role = Role.OPERATE
    job: int

    async def answer(self, at: Sources) -> bool:
        """Archive it."""
        return await deeds.archive(at, self.job, CALLER.get())


class AutoArchiveJobs(Method, frozen=True):
    """Put away jobs that ended long ago; return how many, and how many are left."""

    role = Role.OPERATE
    age: float
    timeout: float = 30.0

    async def answer(self, at: Sources) -> list[int]:
        """Archive those older than `age` seconds, all if it is negative."""
        who = CALLER.get()
        return list(await deeds.archive_old(at, self.age, self.timeout, who))


class SetDrainFlag(Method, frozen=True):
    """Say whether new jobs are refused."""

    role = Role.WRITE
    flag: bool

    async def answer(self, at: Sources) -> bool:
        """Set it."""
        await deeds.drain(at, CALLER.get(), draining=self.flag)
        return True


class SetWatcherPause(Method, frozen=True):
    """Let the watcher do nothing until some time, in seconds; None: go on."""

    role = Role.WRITE
    waits = True

    until: float | None = None

    async def answer(self, at: Sources) -> float | None:
        """Record it, by a job as any other setting; return it."""
        setting = {"OP_ID": "OP_CLUSTER_SET_PARAMS", "watcher_pause": self.until or 0.0}
        await deeds.done(at, [setting], CALLER.get())
        return self.until


class WaitForEvents(Method, frozen=True):
    """Return what happened since an entry of the feed, waiting until something does.

    The answer has the ``number`` to ask from next time, and the ``entries`` behind the
    one that was named (at most `MOST_ENTRIES`). ``reset`` says that there is none such
    any more: whoever asks has to read everything anew. With no number, nothing is
    waited for: the answer says where the feed is.
    """

    role = Role.READ
    waits = True

    after: int | None = None
    timeout: float = LONGEST_WAIT

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Wait for them."""
        feed = at.config_store.feed
        if self.after is None:
            return {"number": feed.last, "reset": False, "entries": []}
        found = feed.after(self.after, MOST_ENTRIES)
        if found == []:
            await feed.grown(self.after, min(self.timeout, LONGEST_WAIT))
            found = feed.after(self.after, MOST_ENTRIES)
        if found is None:
            return {"number": feed.last, "reset": True, "entries": []}
        entries = [json.decode(one) for one in found]
        number = entries[-1]["number"] if entries else self.after
        return {"number": number, "reset": False, "entries": entries}


class QueryAudit(Method, frozen=True):
    """Return entries of the audit log behind one, as lines, and where the log stands.

    The answer has the ``lines`` (at most `MOST_ENTRIES`), and the numbers of the
    ``first`` entry that is kept and of the ``last``.
    """

    role = Role.READ

    after: int = 0

    async def answer(self, at: Sources) -> dict[str, Any]:
        """Read them."""
        found = await at.config_store.audited(self.after)
        lines = [one.decode() for one in found[:MOST_ENTRIES]]
        log = at.config_store.audit
        return {"lines": lines, "first": log.first, "last": log.shown}


_METHODS: tuple[type[Request], ...] = (
    SubmitJob,
    SubmitJobToDrainedQueue,
    SubmitJobOnce,
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
    WaitForEvents,
    QueryAudit,
    QueryMetrics,
    QueryStore,
    *QUERIES,
    *UNNEEDED,
)
METHODS = {one.__name__: one for one in _METHODS}
"""Every method by its name."""


def method(name: str, args: list[Any]) -> Request:
    """Return a request.

    Raises
    ------
    BadInput
        If there is no such method, or its arguments are off.
    """
    if name not in METHODS:
        raise BadInput(f"the master has no method '{name}'", known=sorted(METHODS))
    return read(METHODS[name], args)
