# SPDX-License-Identifier: BSD-2-Clause
"""What a job waits for before an operation begins: jobs, locks, answers, a slot.

The order matters. Who waits for a lock or for a node has no slot, so it is in nobody's
way but theirs who want the same; and who has a slot waits for no lock, so slots are
always given back.

Nothing has begun yet. So a cancelled job stops waiting at once, and waiting that lasts
is told in the job's log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar, cast

from moorage.errors import Failed, MoorageError
from moorage.model import Change, Cluster, Config, Node, NodeGroup, StoragePool
from moorage.protocol import RunAllocator, Said
from moorage.store import ConfigStore

from .asking import Nodes, reachable
from .deciding import Heard
from .effects import Effects
from .job import Job, Op, dependencies
from .locks import Lock, Locks
from .operation import Ask, Operation, Question, Sought, Strays, View
from .planner import Auditor, Planner, Surveyor
from .queue import Queue
from .recent import Recent
from .slots import Slots
from .turns import breathing, together
from .whereabouts import Whereabouts

T = TypeVar("T")

_SETTING = (Cluster, NodeGroup, StoragePool)
"""What says of which storage nodes are asked."""
ViewOf = Callable[[Job], View]
"""What a job sees now."""


class Waiting:
    """Waits on behalf of jobs.

    Parameters
    ----------
    ended
        Waits for the end of a job, and returns it.

    Attributes
    ----------
    recent
        What nodes said lately to those who chose among them.
    guests
        Where guests are, for those who are about to start one.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        nodes: Nodes,
        queue: Queue,
        view: ViewOf,
        ended: Callable[[int], Awaitable[Job]],
        effects: Effects,
    ) -> None:
        self.locks = Locks()
        self.slots = Slots()
        self.recent = Recent(effects.clock, effects.sleep, self._answers)
        self.guests = Whereabouts(effects.steady, self._answers)
        self._config_store = config_store
        self._nodes = nodes
        self._queue = queue
        self._view = view
        self._ended = ended
        self._aside = effects.aside
        self._under_way: dict[int, asyncio.Task[Any]] = {}
        config_store.watchers.append(self._heard)
        self._heard(Change(tuple(config_store.config.all(Cluster))))

    def _heard(self, change: Change) -> None:
        if any(isinstance(one, _SETTING) for one in (*change.put, *change.drop)):
            self.recent.forget()
        for one in change.put:
            if isinstance(one, Cluster):
                self.slots.resize(one.max_running_jobs)
            elif isinstance(one, Node):  # one that was offline was not even asked
                self.recent.changed(one.uuid)
                self.guests.forget(one.uuid)

    def ordered(self, node: str, doubt: float) -> None:
        """Take note that a node did something, or may do it for some seconds more."""
        self.recent.changed(node)
        self.guests.ordered(node, doubt)

    def cancel(self, number: int) -> None:
        """Let a job that was cancelled wait no longer."""
        if number in self._under_way:
            self._under_way[number].cancel()

    async def for_jobs(self, job: Job) -> None:
        """Wait for the jobs that this one depends on.

        Raises
        ------
        Failed
            If one of them ended otherwise than was asked for, or this one was
            cancelled; all other waits raise it in that case, too.
        """
        await self._unless_cancelled(job, self._jobs(job))

    async def for_locks(self, job: Job, op: Op, operation: Operation) -> View:
        """Take the locks; again, if what they are changed while others held them.

        Return what the operation sees now that it has them.
        """
        self._queue.waits(job, op)
        return await self._unless_cancelled(job, self._lock(job, op, operation))

    async def for_answers(
        self, job: Job, op: Op, seen: View, operation: Operation, *, anew: bool = False
    ) -> Heard:
        """Ask what the operation must know; an error stands for its answer.

        Parameters
        ----------
        seen
            What it saw before; it is looked at again if anything was changed since.
        anew
            Whether what nodes said lately does not count, where the operation would
            have enough of it.
        """
        view = seen if seen.config is self._config_store.config else self._view(job)
        work = self._heard_of(job, op, operation, view, anew=anew)
        return await self._unless_cancelled(job, work)

    async def for_allocator(self, job: Job, op: Op, call: RunAllocator) -> str:
        """Return what an allocator says, which runs on the master's node.

        Raises
        ------
        MoorageError
            If it cannot be asked, or fails.
        """
        work = self._answers([Ask(self._config_store.config.cluster.master_node, call)])
        told = f"Waiting for allocator '{call.allocator}'"
        with self._queue.saying(job, op, lambda: told):
            (found,) = await self._unless_cancelled(job, work)
        if isinstance(found, MoorageError):
            raise found
        return cast("Said", found).output

    async def for_slot(self, job: Job, op: Op) -> None:
        """Take a slot; what holds no lock is in nobody's way, and needs none."""
        if op.locks:
            with self._queue.saying(job, op, self._crowded):
                await self._unless_cancelled(job, self.slots.take(job))

    async def for_hooks(self, job: Job, hooks: Coroutine[Any, Any, None]) -> None:
        """Wait for the hooks that come before."""
        await self._unless_cancelled(job, hooks)

    async def _unless_cancelled(self, job: Job, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._under_way[job.id] = task
        try:
            found = await task
        except asyncio.CancelledError:
            ours = asyncio.current_task()
            if not job.cancel_asked or (ours and ours.cancelling()):
                raise
        else:
            if not job.cancel_asked:
                return found
        finally:
            task.cancel()
            del self._under_way[job.id]
        raise Failed("the job was canceled")

    async def _jobs(self, job: Job) -> None:
        for number, statuses in dependencies(job):
            other = self._queue.jobs.get(number)
            if other is None:
                continue  # one that was archived before was over
            with self._queue.saying(job, job.current, f"Waiting for job {number}"):
                other = await self._ended(number)
            if statuses and other.status not in statuses:
                raise Failed(f"job {number} ended as {other.status}")

    async def _lock(self, job: Job, op: Op, operation: Operation) -> View:
        while True:
            view = self._view(job)
            wanted = {*operation.locks(view), *_turn(operation, view)}
            timed = self._queue.measures.lock(job.id)
            with timed, self._queue.saying(job, op, lambda: self._blocked(job)):
                await self.locks.acquire(job.id, wanted, job.priority)
            seen = view.config is self._config_store.config
            now = view if seen else self._view(job)
            if now is view or {*operation.locks(now), *_turn(operation, now)} <= wanted:
                op.locks = sorted(wanted)
                return now
            self.locks.release(job.id)

    def _blocked(self, job: Job) -> str:
        level, uuid, holders = self.locks.blocking(job.id)
        if not level:  # it has just got it
            return "Waiting for locks"
        holding = " and ".join(f"job {number}" for number in holders) or "others first"
        return f"Waiting for the lock of {level} {self._name(uuid)}: {holding}"

    def _name(self, uuid: str) -> str:
        known = self._config_store.config.objects.get(uuid)
        return getattr(known, "name", None) or uuid

    def keep_locks(self, job: Job, op: Op, operation: Operation) -> None:
        """Give back the locks of nodes that were not chosen, and of an allocator."""
        wanted = set(operation.locks(self._view(job)))
        op.locks = [one for one in op.locks if one in wanted]
        self.locks.release(job.id, but=op.locks)

    async def _heard_of(
        self, job: Job, op: Op, operation: Operation, view: View, *, anew: bool
    ) -> Heard:
        strays = asyncio.create_task(self._strays(job, op, operation.seeks(view)))
        try:
            heard = await self._ask(job, op, operation, view, anew=anew)
            return heard._replace(strays=await strays)
        finally:
            strays.cancel()

    async def _strays(self, job: Job, op: Op, seeks: Iterable[Sought]) -> Strays:
        """Return which other nodes have the guests that an operation seeks."""
        seeks = tuple(seeks)
        if not seeks:
            return {}
        with self._queue.saying(job, op, lambda: self._unanswered(self.guests.silent)):
            return {one.guest: await self.guests.find(one) for one in seeks}

    async def _ask(
        self, job: Job, op: Op, operation: Operation, view: View, *, anew: bool
    ) -> Heard:
        now = operation.asks_now(view) if isinstance(operation, Planner) else None
        many = isinstance(operation, Auditor | Surveyor) or now is not None
        questions = await self._questions(operation, view, many=many)
        said: dict[Question, Any] = {}
        if now is not None and not anew:
            said = self.recent.answers(one for one in questions if one.node not in now)
        ask = self._answers if now is None else self.recent.ask
        asked = [one for one in questions if one not in said]
        silent = {one.node for one in asked}

        async def of_node(asked: list[Question]) -> dict[Question, Any]:
            found = await ask(asked)
            silent.discard(asked[0].node)
            return dict(zip(asked, found, strict=True))

        with self._queue.saying(job, op, lambda: self._unanswered(silent)):
            told = await together([of_node(some) for some in _by_node(asked)])
        found = said | {one: each[one] for each in told for one in each}
        return Heard({one: found[one] for one in questions}, lately=bool(said))

    async def _questions(
        self, operation: Operation, view: View, *, many: bool
    ) -> list[Question]:
        def listed() -> list[Question]:
            return list(dict.fromkeys(operation.questions(view)))

        if many:  # the whole cluster may be walked through
            return cast("list[Question]", await self._aside(listed))
        return listed()

    def _unanswered(self, silent: set[str]) -> str:
        names = sorted(map(self._name, silent))
        return f"Waiting for an answer from {', '.join(names)}"

    async def _answers(self, asked: list[Question]) -> Sequence[object]:
        """Return what the node of some questions says; an error where it does not."""
        try:
            seek = Config.node if asked[0].even_offline else reachable
            node = seek(self._config_store.config, asked[0].node)
            calls = [one.call for one in asked]
            found = await self._nodes.ask(node, calls, self._config_store.term)
        except MoorageError as error:
            return [_bare(error)] * len(asked)
        for one in found:
            if isinstance(one, MoorageError):
                _bare(one)
        if not isinstance(found[0], MoorageError):
            self.guests.met(node.uuid)
        return found

    def _crowded(self) -> str:
        return f"Waiting for a slot: {self.slots.number} jobs may run at once"


def _turn(operation: Operation, view: View) -> Iterable[Lock]:
    """Yield what is held of an allocator by who asks it."""
    name = operation.allocator(view) if isinstance(operation, Planner) else ""
    return [Lock("allocator", name)] if name else []


def _bare(error: MoorageError) -> MoorageError:
    """Return an error that does not hold the connection that it came of.

    The frames that it was raised in do, and they hold it: only a search for cyclic
    garbage would free them.
    """
    inner: BaseException | None = error
    while inner is not None and inner.__traceback__ is not None:
        inner.__traceback__ = None
        inner = inner.__cause__ or inner.__context__
    return error


def _by_node(questions: Iterable[Question]) -> list[list[Question]]:
    found: dict[tuple[str, bool], list[Question]] = {}
    for one in questions:
        found.setdefault((one.node, one.even_offline), []).append(one)
    return list(found.values())


async def in_turn(
    jobs: Iterable[list[dict[str, Any]]], make: Callable[[list[dict[str, Any]]], Job]
) -> list[Job]:
    """Make jobs that may depend on each other; -1 is the one before, and so on."""
    made: list[Job] = []
    async for opcodes in breathing(jobs):
        for op in (one for one in opcodes if one.get("depends")):
            pairs = op["depends"]
            op["depends"] = [[made[n].id if n < 0 else n, on] for n, on in pairs]
        made.append(make(opcodes))
    return made
