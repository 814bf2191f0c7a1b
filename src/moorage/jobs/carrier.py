# SPDX-License-Identifier: BSD-2-Clause
"""Carries one operation through its tasks, or back.

The rules, in the order in which they matter:

* The journal knows a task before it takes effect, and a commit moves the journal in
  the same transaction. So what may have happened is always ``tasks[:cursor + 1]``.
* A failure before the point of no return (the first `final` task) undoes what may have
  happened, last first. After it, the operation only goes forward.
* After a crash the same two rules apply: undo, or carry on.
* A node that gives no answer is waited for, with the reason in the job's log, until it
  answers or somebody says that it is off.
* A disk whose undo failed is quarantined: it stays visible, and nobody can use it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from moorage.errors import Failed, MoorageError, Refused, Unreachable, may_be_off
from moorage.model import Change, Config, Disk, Node, successor
from moorage.model import change as changes
from moorage.store import Truth

from .record import Job, Op, encode
from .task import Call, Commit, Run, Task

Report = Callable[[int, int, str, str], None]
"""Progress: done, total, unit, note."""

_LOG = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often an undo is tried before its disk is quarantined, and a tolerant task
before its failure is a warning."""
Suspect = tuple[dict[str, Any], str]
"""A disk as JSON values, and why it cannot be proven safe."""
PAUSE = 1.0
"""Seconds before a node that gave no answer is asked again; grows to ten times this."""


class Nodes(Protocol):
    """The way to the nodes' agents."""

    async def call(self, node: Node, call: Call, term: int, report: Report) -> Any:  # noqa: ANN401
        """Run a verb on a node and return its result.

        Raises
        ------
        Unreachable
            If no answer came; the fact ``sent`` is False when the node cannot have
            got the request.
        MoorageError
            What the node answered instead of a result.
        """


class Ports(Protocol):
    """What the carrier asks of whoever owns the job."""

    def note(self, job: Job, op: Op, text: str) -> None:
        """Add an entry to the operation's log."""

    def progress(self, job: Job, done: int, total: int, unit: str, note: str) -> None:
        """Show how far the task under way has come."""

    def cancelled(self, job: Job) -> bool:
        """Whether somebody asked to cancel the job."""

    async def point(self, name: str) -> None:
        """Pass a place where a test may interrupt."""


class Carrier:
    """Carries operations; holds no state of its own.

    Parameters
    ----------
    sleep
        How to wait for a node that gave no answer.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        truth: Truth,
        nodes: Nodes,
        ports: Ports,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._truth = truth
        self._nodes = nodes
        self._ports = ports
        self._clock = clock
        self._sleep = sleep

    async def carry(self, job: Job, op: Op) -> bool:
        """Do the tasks from the cursor on, or undo them; return whether all is done."""
        if not op.undoing:
            await self._forward(job, op)
        if op.undoing:
            await self._back(job, op)
        return op.error is None

    async def recover(self, job: Job, op: Op) -> bool:
        """Finish what another process began; return whether all is done."""
        interrupted = op.cursor < len(op.tasks) and not op.undoing
        if interrupted and not op.committed_to():
            cause = "the master was stopped in the middle; what was begun is undone"
            await self._turn_back(job, op, Failed(cause))
        return await self.carry(job, op)

    # -- forward ------------------------------------------------------------------

    async def _forward(self, job: Job, op: Op) -> None:
        await self._save(job)
        while op.cursor < len(op.tasks):
            if self._ports.cancelled(job) and not op.committed_to():
                await self._turn_back(job, op, Failed("the job was canceled"))
                return
            task = op.tasks[op.cursor]
            await self._ports.point(f"before {task.what}")
            try:
                await self._do(job, op, task)
            except Exception as error:  # noqa: BLE001
                if not await self._survived(job, op, task, sentence(error)):
                    return
            await self._ports.point(f"after {task.what}")

    async def _do(self, job: Job, op: Op, task: Task) -> None:
        self._ports.progress(job, op.cursor, len(op.tasks), "tasks", task.what)
        if isinstance(task, Commit):
            change = changes.from_json(task.change)
            await self._commit(job, op, change, op.cursor + 1)
        else:
            result = await self._run(job, op, task)
            await self._ports.point(f"during {task.what}")
            await self._advance(job, op, result)

    async def _run(self, job: Job, op: Op, task: Run) -> Any:  # noqa: ANN401
        used = {name: op.results[index] for name, index in task.use.items()}
        call = Call(task.do.verb, {**task.do.args, **used})
        if task.tolerant:
            return await self._try(job, op, task.node, call)
        if not task.final:
            return await self._call(job, op, task.node, call)
        try:
            return await self._insist(job, op, task.node, call)
        except Failed:
            if task.witness is None:
                raise
            return await self._insist(job, op, task.witness.node, task.witness.ask)

    async def _call(self, job: Job, op: Op, node: str, call: Call) -> Any:  # noqa: ANN401
        def report(done: int, total: int, unit: str, note: str) -> None:
            if unit == "log":
                self._ports.note(job, op, note)
            else:
                self._ports.progress(job, done, total, unit, note)

        target = reachable(self._truth.config, node)
        return await self._nodes.call(target, call, self._truth.term, report)

    async def _try(self, job: Job, op: Op, node: str, call: Call) -> Any:  # noqa: ANN401
        """Call a node a few times before its failure is taken for an answer."""
        for _ in range(1, ATTEMPTS):
            try:
                return await self._call(job, op, node, call)
            except Failed:
                if self._truth.config.node(node).offline:
                    raise
            await self._sleep(PAUSE)
        return await self._call(job, op, node, call)

    async def _insist(self, job: Job, op: Op, node: str, call: Call) -> Any:  # noqa: ANN401
        """Call a node; wait while it gives no answer and nobody says it is off."""
        told, pause = False, PAUSE
        while True:
            try:
                return await self._call(job, op, node, call)
            except Unreachable as error:
                target = self._truth.config.node(node)
                if target.offline:
                    raise
                if not told:
                    self._ports.note(job, op, _waiting(target, error))
                    told = True
            await self._sleep(pause)
            pause = min(pause * 2, PAUSE * 10)

    async def _survived(
        self, job: Job, op: Op, task: Task, error: MoorageError
    ) -> bool:
        """Do what a failed task asks for; return whether the next one is to be done."""
        run = task if isinstance(task, Run) else None
        if run and run.tolerant:
            self._ports.note(job, op, f"Warning: {task.what}: {error.message}")
            await self._advance(job, op, None)
            return True
        committed = any(earlier.final for earlier in op.tasks[: op.cursor])
        if run and run.spoils and (committed or not isinstance(error, Refused)):
            await self._spoilt(job, op, run, error)
            return True
        if not committed:
            await self._turn_back(job, op, error)
        else:  # there is neither a way forward nor one back
            op.error = error.to_json()
            await self._save(job)
        return False

    async def _spoilt(self, job: Job, op: Op, task: Run, error: MoorageError) -> None:
        """Quarantine the disk, and go on behind the task that would forget it."""
        op.error = op.error or error.to_json()
        op.results += [None, None]
        op.cursor += 2
        disk = task.do.disk()
        suspects = [(disk, f"{task.what}: {error.message}")] if disk else []
        await self._quarantine(job, op, suspects)

    # -- back ---------------------------------------------------------------------

    async def _turn_back(self, job: Job, op: Op, error: MoorageError) -> None:
        op.error = error.to_json()
        op.undoing = True
        unsent = isinstance(error, Unreachable) and error.facts.get("sent") is False
        pending = op.cursor < len(op.tasks)
        if not pending or unsent or isinstance(op.tasks[op.cursor], Commit):
            op.cursor -= 1
        await self._save(job)

    async def _back(self, job: Job, op: Op) -> None:
        suspects: list[Suspect] = []
        while op.cursor >= 0:
            task = op.tasks[op.cursor]
            await self._ports.point(f"before undoing {task.what}")
            if isinstance(task, Commit):
                await self._commit(job, op, self._taken_back(task), op.cursor - 1)
                continue
            suspects += await self._undo(job, op, task)
            op.cursor -= 1
            await self._save(job)
            await self._ports.point(f"after undoing {task.what}")
        if suspects:
            await self._quarantine(job, op, suspects)

    async def _undo(self, job: Job, op: Op, task: Run) -> list[Suspect]:
        """Take a task back; return the disk that it could not be proven safe for."""
        if task.undo is None or self._is_gone(task):
            return []
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._insist(job, op, task.node, task.undo)
            except MoorageError as error:
                if self._is_gone(task):
                    return []
                cause = f"undoing '{task.what}': {error.message}"
                self._ports.note(job, op, f"Warning: {cause}")
                if attempt < ATTEMPTS and not isinstance(error, Unreachable):
                    await self._sleep(PAUSE)
                    continue
                disk = task.undo.disk()
                return [(disk, cause)] if disk else []
            else:
                return []
        return []

    def _is_gone(self, task: Run) -> bool:
        """Whether what a task did went with the power of its node."""
        return not task.lasting and self._truth.config.node(task.node).offline

    async def _quarantine(self, job: Job, op: Op, suspects: list[Suspect]) -> None:
        """Keep the disks visible, and unusable until somebody has looked."""
        now = self._clock()
        put: dict[str, Disk] = {}
        for values, cause in suspects:
            disk = cast("Disk", changes.decode("disk", values))
            put[disk.uuid] = _quarantined(
                self._truth.config, disk, f"job {job.id}: {cause}", now
            )
            text = f"disk {disk.label} is quarantined: {cause}"
            self._ports.note(job, op, text)
        await self._truth.commit(Change(tuple(put.values())), [self._entry(job)])

    # -- journal ------------------------------------------------------------------

    async def _advance(self, job: Job, op: Op, result: Any) -> None:  # noqa: ANN401
        op.results.append(result)
        op.cursor += 1
        await self._save(job)

    async def _commit(self, job: Job, op: Op, change: Change, cursor: int) -> None:
        """Commit a change and move the cursor, in one transaction."""
        was, op.cursor = op.cursor, cursor
        if cursor > was:
            op.results.append([entity.uuid for entity in change.put])
        try:
            await self._truth.commit(change, [self._entry(job)])
        except MoorageError:
            op.cursor = was
            if cursor > was:
                op.results.pop()
            raise

    def _taken_back(self, task: Commit) -> Change:
        """Return the inverse of a commit, on top of what later tasks committed."""
        back, config = changes.from_json(task.back), self._truth.config
        return back.onto(config.before(back))

    async def _save(self, job: Job) -> None:
        await self._truth.commit(None, [self._entry(job)])

    @staticmethod
    def _entry(job: Job) -> tuple[tuple[str, str], bytes]:
        return ("job", str(job.id)), encode(job)


def reachable(config: Config, uuid: str) -> Node:
    """Return a node that may be asked.

    Raises
    ------
    Unreachable
        If somebody said that it is off.
    """
    node = config.node(uuid)
    if node.offline:
        raise Unreachable(
            f"node {node.name} is marked offline", sent=False, node=node.name
        )
    return node


def _quarantined(config: Config, disk: Disk, cause: str, now: float) -> Disk:
    known = config.objects.get(disk.uuid)
    if isinstance(known, Disk):
        return successor(known, now, quarantine=cause)
    return successor(disk, now, quarantine=cause)


def sentence(error: Exception) -> MoorageError:
    """Return an error of ours; a defect of ours becomes one, and is logged."""
    if isinstance(error, MoorageError):
        return error
    _LOG.error("a task broke", exc_info=error)
    return Failed(f"internal error: {type(error).__name__}: {error}")


def _waiting(node: Node, error: Unreachable) -> str:
    waiting = f"Waiting for node {node.name} ({error.message})"
    if not may_be_off(error):
        return waiting
    off = f"gnt-node modify --offline=yes {node.name}"
    return f"{waiting}; if it is powered off, type: {off}"
