# SPDX-License-Identifier: BSD-2-Clause
"""The job engine: takes requests, and gives each its locks, facts, journal and end."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from moorage.errors import BadInput, Failed, NotFound, WrongState
from moorage.store import Truth

from .carrier import Carrier, Nodes, sentence
from .deciding import Deciding
from .locks import Locks
from .operation import Operation, View
from .record import (
    CANCELED,
    CANCELING,
    ERROR,
    FINISHED,
    QUEUED,
    RUNNING,
    SUCCESS,
    WAITING,
    Job,
    Op,
    decode,
    encode,
    stamp,
)
from .task import Task
from .world import REAL, World

COMMON = frozenset(
    {"OP_ID", "reason", "priority", "depends", "comment", "debug_level", "dry_run"}
)
"""Fields that every opcode has; the engine reads them, operations do not."""
Parse = Callable[[dict[str, Any]], Operation]
"""From an opcode to the operation that answers it; raises `BadInput`."""
BEGUN = frozenset({RUNNING, CANCELING})
"""The states of operations that may have done something."""
RUNNING_AT_ONCE = 20
"""Ganeti's default of ``max_running_jobs``."""


class Engine:
    """Runs jobs.

    Parameters
    ----------
    parse
        Makes an operation of an opcode.
    """

    def __init__(
        self, truth: Truth, nodes: Nodes, parse: Parse, world: World = REAL
    ) -> None:
        self.truth = truth
        self.locks = Locks()
        self.jobs: dict[int, Job] = {}
        self.draining = False
        self._nodes = nodes
        self._parse = parse
        self._world = world
        self._clock = world.clock
        self._deciding = Deciding(truth, nodes, world, self.jobs)
        self._carrier = Carrier(
            truth, nodes, self, clock=world.clock, sleep=world.sleep
        )
        self._running: dict[int, asyncio.Task[None]] = {}
        self._cancel: set[int] = set()
        self._progress: dict[int, dict[str, Any]] = {}
        self._serials: dict[int, int] = {}
        self._changed: dict[int, asyncio.Event] = {}
        self._slots = asyncio.Semaphore(RUNNING_AT_ONCE)
        self._last_id = 0

    # -- asking -------------------------------------------------------------------

    async def submit(self, opcodes: list[dict[str, Any]]) -> int:
        """Queue a job of `opcodes` and return its number.

        Raises
        ------
        BadInput
            If an opcode is not known or its fields are off; nothing is queued.
        """
        if not opcodes:
            raise BadInput("a job needs at least one operation")
        if self.draining:
            raise WrongState("the queue is drained: no new jobs are accepted")
        ops = [
            Op(input=opcode, summary=self._operation(opcode).summary())
            for opcode in opcodes
        ]
        self._last_id += 1
        job = Job(id=self._last_id, ops=ops, priority=_priority(opcodes))
        job.received_timestamp = stamp(self._clock())
        await self._save(job)
        self._begin(job, self._live(job))
        return job.id

    def job(self, number: int) -> Job:
        """Return a job by its number."""
        try:
            return self.jobs[number]
        except KeyError:
            raise NotFound(f"job {number} is not known", hint="gnt-job list") from None

    def progress_of(self, number: int) -> dict[str, Any] | None:
        """Return how far the task under way has come: done, total, unit, note."""
        return self._progress.get(number)

    async def finished(self, number: int) -> Job:
        """Wait until a job is over, and return it."""
        task = self._running.get(number)
        if task is not None:
            await asyncio.shield(asyncio.wait([task]))
        return self.job(number)

    async def changed(self, number: int, patience: float) -> bool:
        """Wait until anything about a job changes; False after `patience` seconds."""
        event = self._changed.setdefault(number, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), patience)
        except TimeoutError:
            return False
        return True

    async def cancel(self, number: int) -> tuple[bool, str]:
        """Ask a job to stop: at once if it waits, at the next task if it runs."""
        job = self.job(number)
        if job.finished:
            return False, f"Job {number} is no longer waiting in the queue"
        self._cancel.add(number)
        op = job.current
        if op.status in (QUEUED, WAITING):
            self._running[number].cancel()
            await asyncio.wait([self._running[number]])
            return True, f"Job {number} canceled"
        op.status = CANCELING
        self._tell(job)
        return True, f"Job {number} will be canceled; what it began is undone"

    async def archive(self, number: int) -> bool:
        """Forget a finished job; return whether it was finished."""
        job = self.job(number)
        if not job.finished:
            return False
        await self.truth.commit(None, [(("job", str(number)), None)])
        del self.jobs[number]
        return True

    # -- life ---------------------------------------------------------------------

    async def start(self, records: Iterable[bytes]) -> None:
        """Take over the jobs of an earlier process.

        What it had begun is carried on or undone; its locks are taken before any new
        job can ask for them.
        """
        for job in sorted(map(decode, records), key=lambda job: job.id):
            self.jobs[job.id] = job
            self._last_id = max(self._last_id, job.id)
        left = [job for job in self.jobs.values() if not job.finished]
        begun = [job for job in left if job.current.status in BEGUN]
        for job in begun:
            self._begin(job, self._recover(job))
        await asyncio.sleep(0)  # each of them takes its locks in its first turn
        for job in left:
            if job not in begun:
                self._begin(job, self._live(job))

    async def stop(self) -> None:
        """Stop at once, as a crash would: the journal knows how to go on."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, job: Job, life: Any) -> None:  # noqa: ANN401
        self.jobs[job.id] = job
        task = asyncio.create_task(life, name=f"job {job.id}")
        self._running[job.id] = task

        def over(done: asyncio.Task[None]) -> None:
            self._running.pop(job.id, None)
            self._progress.pop(job.id, None)
            if not done.cancelled():
                done.exception()  # a crash that a test caused is no news

        task.add_done_callback(over)

    async def _live(self, job: Job) -> None:
        try:
            await self._dependencies(job)
            async with self._slots:
                for op in job.ops:
                    if op.status not in FINISHED:
                        await self._operate(job, op)
                    if op.status != SUCCESS:
                        break
        except asyncio.CancelledError:
            if job.id not in self._cancel:
                raise
        finally:
            # What was begun and not ended keeps its locks, for the next master.
            if job.current.status not in BEGUN:
                self.locks.release(job.id)
        await self._end(job)

    async def _recover(self, job: Job) -> None:
        op = job.current
        await self.locks.acquire(job.id, op.locks, job.priority)
        self.note(job, op, "A new master goes on with this job")
        try:
            if await self._carrier.recover(job, op):
                op.result = self._result_again(job, op)
        except Exception as error:  # noqa: BLE001
            op.error = sentence(error).to_json()
        await self._finish(job, op)
        await self._live(job)

    def _result_again(self, job: Job, op: Op) -> Any:  # noqa: ANN401
        """Return the result; None where the view that it was made from is gone.

        It is talk for whoever waited; they are gone with the crash.
        """
        try:
            operation = self._operation(op.input)
            return operation.result(self._deciding.view(job), op.results)
        except Exception:  # noqa: BLE001
            return None

    async def _operate(self, job: Job, op: Op) -> None:
        op.start_timestamp = stamp(self._clock())
        job.start_timestamp = job.start_timestamp or op.start_timestamp
        try:
            operation = self._operation(op.input)
            await self._lock(job, op, operation)
            decision = await self._deciding.decide(job, operation)
            for text in decision.warnings:
                self.note(job, op, f"Warning: {text}")
            view, tasks = decision.view, decision.tasks
            if op.input.get("dry_run"):
                op.result = [self._shown(task) for task in tasks]
            else:
                await self._execute(job, op, operation, view, tasks)
        except Exception as error:  # noqa: BLE001
            op.error = sentence(error).to_json()
        await self._finish(job, op)

    async def _execute(
        self,
        job: Job,
        op: Op,
        operation: Operation,
        view: View,
        tasks: list[Task],
    ) -> None:
        op.tasks, op.status = tasks, RUNNING
        op.exec_timestamp = stamp(self._clock())
        self._tell(job)
        if tasks and not await self._carrier.carry(job, op):
            return
        op.result = operation.result(view, op.results)
        follow = operation.jobs(view)
        if follow:
            jobs = [[True, await self.submit(one)] for one in follow]
            op.result = {**(op.result or {}), "jobs": jobs}

    async def _lock(self, job: Job, op: Op, operation: Operation) -> None:
        """Take the locks; again, if what they are changed while others held them."""
        op.status = WAITING
        self._tell(job)
        while True:
            wanted = set(operation.locks(self._deciding.view(job)))
            await self.locks.acquire(job.id, wanted, job.priority)
            if set(operation.locks(self._deciding.view(job))) <= wanted:
                op.locks = sorted(wanted)
                return
            self.locks.release(job.id)

    async def _finish(self, job: Job, op: Op) -> None:
        if op.error is None:
            op.status = SUCCESS
        else:
            op.status = CANCELED if job.id in self._cancel else ERROR
            op.result = op.error
        op.end_timestamp = stamp(self._clock())
        # Saved first: else the journal could show two jobs that hold one lock.
        await self._save(job)
        self.locks.release(job.id)
        self._tell(job)

    async def _end(self, job: Job) -> None:
        """Give the operations that were never begun their end."""
        for op in job.ops:
            if op.status in FINISHED:
                continue
            cancelled = job.id in self._cancel
            why = "the job was canceled" if cancelled else "an earlier operation failed"
            op.status = CANCELED if cancelled else ERROR
            op.error = op.result = Failed(why).to_json()
            op.end_timestamp = stamp(self._clock())
        job.end_timestamp = stamp(self._clock())
        await self._save(job)
        self._tell(job)

    async def _dependencies(self, job: Job) -> None:
        for number, statuses in _dependencies(job):
            other = self.jobs.get(number)  # an archived one is long over
            if other:
                await self.finished(number)
            if other and statuses and other.status not in statuses:
                self._cancel.add(job.id)
                text = f"job {number} ended as {other.status}"
                self.note(job, job.current, f"Not run: {text}")
                raise asyncio.CancelledError(text)

    # -- what the carrier asks ------------------------------------------------------

    def note(self, job: Job, op: Op, text: str) -> None:
        """Add an entry to the operation's log; it is saved with the next task."""
        serial = self._serials.get(job.id) or max(
            (entry[0] for each in job.ops for entry in each.log), default=0
        )
        self._serials[job.id] = serial + 1
        op.log.append((serial + 1, stamp(self._clock()), "message", text))
        self._tell(job)

    def progress(self, job: Job, done: int, total: int, unit: str, note: str) -> None:
        """Show how far the task under way has come."""
        self._progress[job.id] = {
            "done": done,
            "total": total,
            "unit": unit,
            "note": note,
        }
        self._tell(job)

    def cancelled(self, job: Job) -> bool:
        """Whether somebody asked to cancel the job."""
        return job.id in self._cancel

    async def point(self, name: str) -> None:
        """Pass a place where a test may interrupt."""
        await self._world.point(name)

    # -- small parts --------------------------------------------------------------

    def _operation(self, opcode: dict[str, Any]) -> Operation:
        return self._parse(opcode)

    def _shown(self, task: Task) -> dict[str, Any]:
        node = getattr(task, "node", None)
        name = self.truth.config.node(node).name if node else "master"
        return {"what": task.what, "node": name, "final": task.final}

    async def _save(self, job: Job) -> None:
        await self.truth.commit(None, [(("job", str(job.id)), encode(job))])

    def _tell(self, job: Job) -> None:
        event = self._changed.pop(job.id, None)
        if event is not None:
            event.set()


def _priority(opcodes: list[dict[str, Any]]) -> int:
    return min(int(opcode.get("priority") or 0) for opcode in opcodes)


def _dependencies(job: Job) -> list[tuple[int, list[str]]]:
    pairs = [pair for op in job.ops for pair in op.input.get("depends") or []]
    return [(int(number), list(statuses)) for number, statuses in pairs]
