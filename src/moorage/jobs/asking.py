# SPDX-License-Identifier: BSD-2-Clause
"""Asking a node on behalf of a job: once, a few times, or until it answers.

A call under way is given up when somebody says that its node is off, or cancels its
job before the point of no return. What the node makes of it nobody knows then, as with
every answer that was lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol, TypeVar

from moorage.errors import Failed, MoorageError, Unreachable, may_be_off
from moorage.model import Change, Config, Node
from moorage.protocol import Report, Verb, patience
from moorage.protocol.verb import name_of
from moorage.store import ConfigStore

from .job import Job, Op
from .queue import Queue
from .slots import Slots
from .staying import doubtful

T = TypeVar("T")

ATTEMPTS = len(patience.ATTEMPT) + 1
"""How often an undo is tried before its disk is quarantined, and a tolerant task
before its failure is a warning."""
PAUSE = 1.0
"""Seconds before a node that gave no answer is asked again; grows to ten times this."""


class Nodes(Protocol):
    """The way to the nodes' agents."""

    async def call(self, node: Node, call: Verb[T], term: int, report: Report) -> T:
        """Run a verb on a node and return its result.

        Raises
        ------
        Unreachable
            If no answer came; the fact ``sent`` is False when the node cannot have
            got the request.
        MoorageError
            What the node answered instead of a result.
        """

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Return what a node says to verbs that only read; an error where it fails.

        There is at least one of them.
        """


@dataclass(eq=False, slots=True)
class _Pending:
    """Something that a job waits for from a node, and why it was given up."""

    job: Job
    op: Op
    node: str
    work: asyncio.Task[Any]
    given_up: str = ""

    def give_up(self, why: str) -> None:
        self.given_up = why
        self.work.cancel()


class Asker:
    """Asks nodes.

    Parameters
    ----------
    ordered
        Takes note that something was done on a node; or for how many seconds it may be
        done still, where its answer was lost.

    Attributes
    ----------
    stuck
        Numbers of the jobs that wait for a node that gave no answer.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        nodes: Nodes,
        queue: Queue,
        slots: Slots,
        sleep: Callable[[float], Awaitable[None]],
        ordered: Callable[[str, float], None],
    ) -> None:
        self.stuck: set[int] = set()
        self._config_store = config_store
        self._nodes = nodes
        self._queue = queue
        self._slots = slots
        self._sleep = sleep
        self._ordered = ordered
        self._pending: set[_Pending] = set()
        config_store.watchers.append(self._heard)

    async def call(self, job: Job, op: Op, node: str, call: Verb[T]) -> T:
        """Call a node once, and return its answer."""

        def report(done: int, total: int, unit: str, note: str) -> None:
            if unit == "log":
                self._queue.note(job, op, note)
            else:
                self._queue.progress(job, done, total, unit, note)

        target = reachable(self._config_store.config, node)
        term, doubt = self._config_store.term, call.limit
        timed = self._queue.measures.verb(name_of(type(call)))
        try:
            with timed, self._queue.saying(job, op, lambda: _still(target, op)):
                found = await self._unless_given_up(
                    job, op, node, lambda: self._nodes.call(target, call, term, report)
                )
            doubt = 0.0
        except MoorageError as error:
            if not isinstance(error, Unreachable) or error.facts.get("sent") is False:
                doubt = 0.0
            raise
        finally:
            if not call.reads:
                self._ordered(node, doubt)
        return found

    async def try_(self, job: Job, op: Op, node: str, call: Verb[T]) -> T:
        """Call a node a few times before its failure is taken for an answer.

        Some more often, unless something failed there before, if its agent is away and
        its machine is not: it may be on its way back. The job keeps its slot, for it
        rests some seconds only: whoever got the slot could have it for hours, and the
        job has its locks meanwhile.
        """
        doubt = False
        for again in count():
            try:
                return await self.call(job, op, node, call)
            except Failed as error:
                doubt = _in_doubt(error, before=doubt)
                lost = isinstance(error, Unreachable) and not op.failed_on(node)
                away = lost and not error.facts.get("silent")
                rests = patience.BROKEN_OFF if away else patience.ATTEMPT
                once = not call.repeatable and error.facts.get("sent") is not False
                target = self._config_store.config.node(node)
                last = again >= len(rests)  # more, if it breaks off no longer
                if last or once or target.offline or given_up(job, op):
                    raise
                if lost:
                    self._queue.note(job, op, _waiting(target, error))
            rest = partial(self._sleep, rests[again])
            await self._unless_given_up(job, op, node, rest)
        raise AssertionError  # the last attempt returned or raised

    async def insist(self, job: Job, op: Op, node: str, call: Verb[T]) -> T:
        """Call a node; wait while it gives no answer and nobody says it is off."""
        try:
            return await self.call(job, op, node, call)
        except Unreachable as error:
            target = self._config_store.config.node(node)
            if target.offline:
                raise
            doubt = doubtful(error)
            self._queue.note(job, op, _waiting(target, error))
        held = self._slots.release(job)
        self.stuck.add(job.id)
        try:
            result = await self._until_answered(job, op, node, call, doubt=doubt)
        except MoorageError:
            await self._back_to_work(job, held=held)
            raise
        await self._back_to_work(job, held=held)
        return result

    async def _until_answered(
        self, job: Job, op: Op, node: str, call: Verb[T], *, doubt: bool
    ) -> T:
        pause = PAUSE
        while True:
            with suppress(Unreachable):
                rest = partial(self._sleep, pause)
                await self._unless_given_up(job, op, node, rest)
            try:
                return await self.call(job, op, node, call)
            except Unreachable as error:
                doubt = _in_doubt(error, before=doubt)
                if self._config_store.config.node(node).offline:
                    raise
            pause = min(pause * 2, PAUSE * 10)

    async def _back_to_work(self, job: Job, *, held: bool) -> None:
        self.stuck.discard(job.id)
        if held:
            await self._slots.take(job)

    def cancelled(self, job: Job) -> None:
        """Give up what a job waits for, if it can still be taken back."""
        for pending in list(self._pending):
            if pending.job.id == job.id and given_up(job, pending.op):
                pending.give_up("the job was canceled")

    def _heard(self, change: Change) -> None:
        off = {one.uuid for one in change.put if isinstance(one, Node) and one.offline}
        for pending in list(self._pending) if off else ():
            if pending.node in off:
                pending.give_up("it was marked offline meanwhile")

    async def _unless_given_up(
        self, job: Job, op: Op, node: str, work: Callable[[], Awaitable[T]]
    ) -> T:
        task = asyncio.create_task(_awaited(work))
        pending = _Pending(job, op, node, task)
        self._pending.add(pending)
        try:
            return await task
        except asyncio.CancelledError:
            ours = asyncio.current_task()
            if not pending.given_up or (ours and ours.cancelling()):
                raise
            name = self._config_store.config.node(node).name
            raise Unreachable(
                f"node {name} was not waited for: {pending.given_up}",
                node=name,
                sent=True,
            ) from None
        finally:
            task.cancel()
            self._pending.discard(pending)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    """Return what comes of `work`, which is not begun if nobody waits for it."""
    return await work()


def given_up(job: Job, op: Op) -> bool:
    """Whether a job was cancelled, and what it does can still be taken back."""
    return job.cancel_asked and not op.undoing and not op.committed_to()


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


def _in_doubt(error: Failed, *, before: bool) -> bool:
    """Return whether one of several calls may have been heard; its error then says so.

    Each call is of the same verb, so who never got the last one may have obeyed the
    first.
    """
    if before and isinstance(error, Unreachable):
        error.facts["sent"] = True
    return before or doubtful(error)


def _still(node: Node, op: Op) -> str:
    task = op.tasks[op.cursor] if 0 <= op.cursor < len(op.tasks) else None
    doing = f": {'undoing ' if op.undoing else ''}{task.what}" if task else ""
    return f"Still waiting for node {node.name}{doing}"


def _waiting(node: Node, error: Failed) -> str:
    waiting = f"Waiting for node {node.name} ({error.message})"
    if not may_be_off(error):
        return waiting
    off = f"gnt-node modify --offline=yes {node.name}"
    return f"{waiting}; if it is powered off, type: {off}"
