# SPDX-License-Identifier: BSD-2-Clause
"""The job engine: takes requests, and gives each its locks, facts, journal and end."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from moorage.errors import Failed, MoorageError, WrongState, sentence
from moorage.model import Config, Instance
from moorage.model.audit import CANCEL
from moorage.model.caller import MASTER, Caller
from moorage.store import ConfigStore

from .asking import Asker, Nodes
from .deciding import Deciding, Decision, reported_again
from .dry_run import Parse, planned
from .effects import REAL, Effects
from .executor import Executor, Parked
from .hooks import Hooks, HooksOf
from .job import (
    BEGUN,
    CANCELED,
    ERROR,
    FINISHED,
    QUEUED,
    SUCCESS,
    WAITING,
    Job,
    Op,
    Opcodes,
    cancel,
    stamp,
)
from .journal import Records
from .operation import Operation
from .planner import Planner
from .queue import Queue
from .taking import taken
from .turns import breathing
from .waiting import Waiting, in_turn

_LOG = logging.getLogger(__name__)

COMMON = frozenset(
    {"OP_ID", "reason", "priority", "depends", "comment", "debug_level", "dry_run"}
)
"""Fields that every opcode has; the engine reads them, operations do not."""


class Engine:
    """Runs jobs.

    Parameters
    ----------
    parse
        Makes an operation of an opcode.
    hooks
        Tells which hooks an operation has; None for a cluster without any.

    Attributes
    ----------
    queue
        Every job as it is stored.
    parking
        Whether jobs are to stop at their next task.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        nodes: Nodes,
        parse: Parse,
        effects: Effects = REAL,
        hooks: HooksOf | None = None,
    ) -> None:
        self.config_store = config_store
        self.queue = Queue(config_store, effects.clock, effects.patience)
        self.parking = False
        self._operation = parse
        self._clock = effects.clock
        self._deciding = Deciding(config_store, effects, self.queue.working)
        waiting = self._waiting = Waiting(
            config_store, nodes, self.queue, self._deciding.view, self.finished, effects
        )
        self.locks, self.slots = waiting.locks, waiting.slots
        self.recent = waiting.recent
        asker = self._asker = Asker(
            config_store, nodes, self.queue, self.slots, effects.sleep, waiting.ordered
        )
        self._hooks = hooks and Hooks(
            config_store, self.queue, asker, hooks, effects.point
        )
        self._executor = Executor(
            config_store, self.queue, asker, effects, lambda: self.parking
        )
        self._running: dict[int, asyncio.Task[None]] = {}
        self._leaving = False

    @property
    def jobs(self) -> dict[int, Job]:
        """Every job as it is stored, by number."""
        return self.queue.jobs

    async def submit(
        self,
        opcodes: Opcodes,
        caller: Caller = MASTER,
        *,
        although_drained: bool = False,
        key: str = "",
    ) -> int:
        """Queue a job of `opcodes` for a caller, and return its number.

        A request that may come twice has a key: see :mod:`.repeats`.

        Raises
        ------
        BadInput
            If an opcode is not known or its fields are off; nothing is queued.
        Forbidden
            If the caller may not ask for that.
        WrongState
            If the queue is drained, or the master stops.
        """
        if self.queue.draining and not although_drained:
            raise WrongState(
                "the queue is drained: no new jobs are accepted",
                hint="gnt-cluster queue undrain",
            )
        if self._leaving:
            raise WrongState(
                "the master is being stopped: no new jobs are accepted", lost="master"
            )
        job = self._new(opcodes, caller)
        more = self.queue.repeats.add(key, opcodes, job) if key else ()
        await self.queue.add([job], more=more)
        self._begin(job, self._live(job))
        return job.id

    def _new(self, opcodes: Opcodes, caller: Caller) -> Job:
        number = self.queue.number
        return taken(number, opcodes, caller, self._operation, self._clock())

    def job(self, number: int) -> Job:
        """Return a job by its number, as it is stored."""
        return self.queue.job(number)

    async def finished(self, number: int) -> Job:
        """Wait until a job is over, and return it."""
        task = self._running.get(number)
        if task is not None:
            await asyncio.shield(asyncio.wait([task]))
        return self.job(number)

    async def cancel(self, number: int, caller: Caller = MASTER) -> tuple[bool, str]:
        """Ask a job to stop: at once if it waits, as soon as possible if it runs.

        Returns whether it will, and a sentence; both are stored before they are told.
        """
        self.job(number)
        await self.queue.asks(caller, CANCEL, number)
        job = self.queue.working.get(number)
        if job is None:
            return False, f"Job {number} is no longer waiting in the queue"
        async with self.queue.turn(job):
            waits = job.current.status in (QUEUED, WAITING)
            done, text = (True, f"Job {number} canceled") if waits else cancel(job)
            job.cancel_asked |= done
            if done and not waits:
                await self.queue.write(job)
        if done and not waits:
            self._asker.cancelled(job)
        if waits:
            self._waiting.cancel(number)
            await self.finished(number)
        return done, text

    async def change_priority(
        self, number: int, priority: int, caller: Caller = MASTER
    ) -> bool:
        """Change when a job gets its turn; return whether it has not ended.

        It counts for the slot, and for locks that the job does not wait for yet.
        """
        self.job(number)
        job = self.queue.working.get(number)
        if job is None:
            return False
        await self.queue.put(job, priority, caller)
        return True

    async def start(self, records: Records) -> None:
        """Take over the jobs of an earlier process.

        What it had begun is carried on or undone; its locks are taken before any new
        job can ask for them.
        """
        left = self.queue.load(records)
        begun = [job for job in left if job.current.status in BEGUN]
        for job in begun:
            self._begin(job, self._recover(job))
        await asyncio.sleep(0)  # each of them takes its locks in its first turn
        for job in left:
            if job not in begun:
                self._begin(job, self._live(job))

    async def leave(self, patience: float) -> None:
        """Stop as planned: what runs may end, and else stops between two tasks.

        What waits, and what stands between two tasks, the next master carries on.

        Parameters
        ----------
        patience
            Seconds that running jobs get to end, and once more to end their task.
        """
        self._leaving = True
        for number, job in self.queue.working.items():
            if job.current.status not in BEGUN and number in self._running:
                self._running[number].cancel()
        for self.parking in (False, True):
            busy = [t for n, t in self._running.items() if n not in self._asker.stuck]
            if busy:
                await asyncio.wait(busy, timeout=patience)
        await self.stop()

    async def stop(self) -> None:
        """Stop at once, as a crash would: the journal knows how to go on."""
        self._waiting.guests.stop()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, job: Job, life: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(life, name=f"job {job.id}")
        self._running[job.id] = task

        def over(done: asyncio.Task[None]) -> None:
            self._running.pop(job.id, None)
            error = None if done.cancelled() else done.exception()
            if isinstance(error, Exception):
                _LOG.error("job %s broke", job.id, exc_info=error)

        task.add_done_callback(over)

    async def _live(self, job: Job) -> None:
        """Run a job to its end.

        What ends this earlier ends the process; the job keeps its locks.
        """
        if await self._may_begin(job):
            for op in job.ops:
                if op.status not in FINISHED:
                    await self._operate(job, op)
                if op.status != SUCCESS:
                    break
        await self._end(job)

    async def _may_begin(self, job: Job) -> bool:
        try:
            await self._waiting.for_jobs(job)
        except Failed as error:
            job.cancel_asked = True
            self.queue.note(job, job.current, f"Not run: {error.message}")
        return not job.cancel_asked

    async def _recover(self, job: Job) -> None:
        op = job.current
        await self.locks.acquire(job.id, op.locks, job.priority)
        self.queue.note(job, op, "A new master goes on with this job")
        follow: list[Job] = []
        try:
            done = await self._executor.recover(job, op)
            operation, view = self._operation(op.input), self._deciding.view(job)
            if done:
                op.result = reported_again(operation, view, op.results)
                opcodes = operation.jobs(view)
                follow = await self._followed(job, op, view.config, opcodes)
            await self._after(job, op, operation)
        except Exception as error:  # noqa: BLE001
            op.error = sentence(error).to_json()
        await self._finish(job, op, follow)
        await self._live(job)

    async def _operate(self, job: Job, op: Op) -> None:
        if self._leaving:
            raise Parked
        op.start_timestamp = stamp(self._clock())
        job.start_timestamp = job.start_timestamp or op.start_timestamp
        follow: list[Job] = []
        decision: Decision | None = None
        try:
            decision = await self._decided(job, op)
            operation = decision.operation
            for text in decision.warnings:
                self.queue.note(job, op, f"Warning: {text}")
            view, tasks = decision.view, decision.tasks
            if op.input.get("dry_run"):
                op.result = planned(operation, view, tasks, self._operation)
            else:
                await self._waiting.for_slot(job, op)
                if self._hooks:
                    first = self._hooks.before(job, op, operation, view, tasks)
                    await self._waiting.for_hooks(job, first)
                follow = await self._execute(job, op, decision)
                await self._after(job, op, operation)
        except Exception as error:  # noqa: BLE001
            op.error = sentence(error).to_json()
        await self._finish(job, op, follow)
        if decision is not None:
            await self._deciding.let_go(decision)

    async def _decided(self, job: Job, op: Op) -> Decision:
        """Decide what an operation does, first of all with the likeliest node."""
        operation = self._operation(op.input)
        likely = operation
        if isinstance(operation, Planner):
            likely = operation.likely(self._deciding.view(job))
        if likely is not operation:
            try:
                return await self._decide(job, op, likely)
            except MoorageError:
                if job.cancel_asked:
                    raise
                self.locks.release(job.id)
        return await self._decide(job, op, operation)

    async def _decide(self, job: Job, op: Op, operation: Operation) -> Decision:
        """Take the locks and ask the nodes, then decide; its locks are held."""
        seen = await self._waiting.for_locks(job, op, operation)
        ask = partial(self._waiting.for_answers, job, op, seen)
        consult = partial(self._waiting.for_allocator, job, op)
        decision = await self._deciding.decide(job, operation, ask, consult)
        if decision.operation is not operation or decision.view.advice is not None:
            self._waiting.keep_locks(job, op, decision.operation)
        return decision

    async def _execute(self, job: Job, op: Op, decision: Decision) -> list[Job]:
        """Do the tasks; return the jobs that follow this one, not yet queued."""
        self._executor.begin(op, decision.tasks)
        if decision.tasks and not await self._executor.carry(job, op):
            return []
        op.result, opcodes = await self._deciding.told(decision, op.results)
        return await self._followed(job, op, decision.view.config, opcodes)

    async def _followed(
        self, job: Job, op: Op, config: Config, opcodes: list[Opcodes]
    ) -> list[Job]:
        """Make the jobs that follow an operation; its result names them."""
        make = partial(self._following, config, job.caller)
        follow = await in_turn(opcodes, make)
        if follow:
            jobs = [[True, one.id] for one in follow]
            op.result = {**(op.result or {}), "jobs": jobs}
        return follow

    def _following(self, config: Config, who: Caller, opcodes: Opcodes) -> Job:
        """Make a job that follows: it finds an instance that is renamed meanwhile."""
        job, field = self._new(opcodes, who), "instance_name"
        for op in job.ops:
            name = op.input.get(field)
            if name and config.knows(Instance, name):
                op.input = op.input | {field: config.instance(name).uuid}
        return job

    async def _after(self, job: Job, op: Op, operation: Operation) -> None:
        if self._hooks:
            await self._hooks.after(job, op, operation, self._deciding.view(job))

    async def _finish(self, job: Job, op: Op, follow: Sequence[Job] = ()) -> None:
        async with self.queue.turn(job):
            if op.error is None:
                op.status = SUCCESS
            else:
                op.status = CANCELED if job.cancel_asked else ERROR
                op.result = op.error
            op.end_timestamp = stamp(self._clock())
            # Stored first: else the journal could show two jobs that hold one lock.
            await self.queue.add(follow, job)
        self.slots.release(job)
        self.locks.release(job.id)
        async for one in breathing(follow):
            self._begin(one, self._live(one))

    async def _end(self, job: Job) -> None:
        """Give the operations that were never begun their end."""
        async with self.queue.turn(job):
            status, why = ERROR, "an earlier operation failed"
            if job.cancel_asked:
                status, why = CANCELED, "the job was canceled"
            for op in job.ops:
                if op.status not in FINISHED:
                    op.status = status
                    op.error = op.result = Failed(why).to_json()
                    op.end_timestamp = stamp(self._clock())
            job.end_timestamp = stamp(self._clock())
            await self.queue.write(job)
        self.queue.over(job)
