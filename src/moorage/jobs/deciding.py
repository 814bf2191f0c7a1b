# SPDX-License-Identifier: BSD-2-Clause
"""From a request to its tasks: check, choose, claim."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

from msgspec import json

from moorage.errors import MoorageError, NoCapacity
from moorage.model import Claim, Config, Disk, apply
from moorage.model import change as changes
from moorage.protocol import RunAllocator
from moorage.store import ConfigStore

from .effects import Effects
from .job import FINISHED, Job
from .operation import Answers, Kept, Operation, Sight, Strays, View
from .planner import Auditor, Planner, Surveyor
from .task import Commit, Run, Task
from .turns import give_back, let_go
from .unread import idle

Claims = dict[tuple[int, int, int], Claim]
"""By job, operation and number."""


class Heard(NamedTuple):
    """What nodes answered, and whether some of it was said before it was asked.

    And what other nodes have of guests that were sought, and what an allocator said.
    """

    answers: Answers
    lately: bool = False
    strays: Strays = {}
    advice: str | None = None


_MANY = 100
"""Answers that are too many to be looked at while everybody else waits."""


class AnswersFor(Protocol):
    """Asks the questions of an operation."""

    def __call__(self, operation: Operation, *, anew: bool = False) -> Awaitable[Heard]:
        """Return the answers; `anew` if those that were given lately do not count."""


_ADVICES = 3
"""How often an allocator is asked, where others took room while it thought."""

Consult = Callable[[RunAllocator], Awaitable[str]]
"""Asks an allocator."""


class _Before(NamedTuple):
    """What was so before the nodes were asked."""

    config: Config
    in_hand: list[Disk]
    claims: Claims


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done.

    Attributes
    ----------
    operation
        The request, with the nodes named that were chosen.
    view
        What it was decided on.
    warnings
        Sentences for the job's log.
    claims
        The room that the tasks take.
    """

    operation: Operation
    view: View
    warnings: tuple[str, ...]
    claims: tuple[Claim, ...]
    tasks: list[Task]

    @property
    def wide(self) -> bool:
        """Whether it rests on what many nodes said: to look at it takes long."""
        return _is_wide(self.operation, self.view.answers)


class Told(NamedTuple):
    """What comes of an operation: its result, and the opcodes of the jobs to follow."""

    result: Any
    jobs: list[list[dict[str, Any]]]


class Deciding:
    """Decides what operations do.

    Those that plan decide one after the other, and each sees what the jobs before it
    have chosen. So two that ask at once are answered as if one had come later.

    Parameters
    ----------
    jobs
        The jobs that have not ended, by number, as they are at any time.
    """

    def __init__(
        self, config_store: ConfigStore, effects: Effects, jobs: Mapping[int, Job]
    ) -> None:
        self._config_store = config_store
        self._world = effects
        self._jobs = jobs
        self._choosing = asyncio.Lock()
        self._open: list[Claims] = []
        """What each job that is deciding has come to know of the others' claims."""
        self._kept = Kept()

    async def decide(
        self, job: Job, operation: Operation, ask: AnswersFor, consult: Consult
    ) -> Decision:
        """Wait for what the nodes answer, then check a request, and say what to do.

        One that chooses among nodes chooses by what they said lately. Then it is
        decided like one that names those nodes, which are asked now. When that is
        refused, all nodes are asked, so no refusal rests on what was said earlier.

        Raises
        ------
        MoorageError
            If the request is refused.
        """
        if isinstance(operation, Planner) and operation.allocator(self.view(job)):
            return await self._advised(job, operation, ask, consult)
        with self._watching(job) as before:
            heard = await ask(operation)
            if not heard.lately:
                return await self._on(job, operation, heard, before)
            try:
                found = await self._on(job, operation, heard, before)
                if found.operation is operation:
                    return found
                heard = await ask(found.operation)
                return await self._on(job, found.operation, heard, before)
            except MoorageError:
                self._claim(job, (), before.claims)
                if job.cancel_asked:
                    raise
        with self._watching(job) as before:  # what has ended by now shows in answers
            heard = await ask(operation, anew=True)
            return await self._on(job, operation, heard, before)

    async def _advised(
        self, job: Job, operation: Planner, ask: AnswersFor, consult: Consult
    ) -> Decision:
        """Decide by what an allocator says.

        Our planner waits for none, so others may take room while one thinks: then it
        is asked again.
        """
        for left in reversed(range(_ADVICES)):
            with self._watching(job) as before:
                heard = await ask(operation, anew=True)
                seen = self.view(job, heard, (*self._claims(job).values(),))
                call = await self._world.aside(partial(operation.consults, seen))
                advice = await consult(call) if call else None
                told = heard._replace(advice=advice)
                try:
                    return await self._on(job, operation, told, before)
                except NoCapacity:
                    now = (*self._claims(job).values(),)
                    if not left or advice is None or now == seen.claims:
                        raise
        raise AssertionError  # the last attempt returned or raised

    @contextmanager
    def _watching(self, job: Job) -> Iterator[_Before]:
        """Yield what is so before nodes are asked, and will learn of others' claims.

        The answers may be older than the end of a job that was under way since they
        were asked for: what it chose may not show in them yet.
        """
        claims = self._claims(job)
        self._open.append(claims)
        try:
            yield _Before(self._config_store.config, self._in_hand(), claims)
        finally:
            self._open = [one for one in self._open if one is not claims]

    async def _on(
        self, job: Job, operation: Operation, heard: Heard, before: _Before
    ) -> Decision:
        """Decide on some answers."""
        claims = before.claims
        if isinstance(operation, Surveyor):
            sight = self._sight(before.config, before.in_hand)
            return await self._apart(operation, self.view(job, heard, sight=sight))
        if isinstance(operation, Auditor):
            return await self._aside(operation, job, heard, claims)
        if not isinstance(operation, Planner):
            view = self.view(job, heard)
            if _is_wide(operation, heard.answers):
                return await self._apart(operation, view)
            return _decided(operation, view)
        async with self._choosing:
            found = await self._aside(operation, job, heard, claims)
            self._claim(job, found.claims, claims)
        return found

    async def told(self, decision: Decision, results: Sequence[Any]) -> Told:
        """Return what comes of a decision, given the results of its tasks."""
        told = partial(_told, decision.operation, decision.view, results)
        if decision.wide:
            return cast("Told", await self._world.aside(told))
        return told()

    async def let_go(self, decision: Decision) -> None:
        """Forget what nodes said for a decision, now that it is carried out.

        What is kept for others to choose by stays. Without a thread all is freed later.
        """
        if decision.wide:
            with suppress(RuntimeError):
                await self._world.aside(partial(_forget, decision.view.answers))

    def _claim(self, job: Job, chosen: Iterable[Claim], known: Claims) -> None:
        """Let others see what a job has chosen, and nothing that it chose earlier.

        Parameters
        ----------
        known
            What the job itself knows of the others' claims.
        """
        earlier = _numbered(job)
        job.current.claims = list(chosen)
        for other in self._open:
            if other is not known:
                for number in earlier:
                    other.pop(number, None)
                other.update(_numbered(job))

    async def _aside(
        self, operation: Operation, job: Job, heard: Heard, claims: Claims
    ) -> Decision:
        """Decide with the claims of the others in sight, aside from the event loop."""
        live = self._claims(job)
        ended = (one for number, one in claims.items() if number not in live)
        known = (*live.values(), *(_room_alone(one) for one in ended))
        return await self._apart(operation, self.view(job, heard, known))

    async def _apart(self, operation: Operation, view: View) -> Decision:
        """Decide what may take long without holding up everybody else."""
        found: Decision = await self._world.aside(lambda: _decided(operation, view))
        return found

    def view(
        self,
        job: Job,
        heard: Heard | None = None,
        claims: tuple[Claim, ...] = (),
        sight: Sight | None = None,
    ) -> View:
        """Return the newest snapshot, as an operation of a job sees it."""
        heard = heard or Heard({})
        return View(
            self._config_store.config,
            heard.answers,
            self._world.clock(),
            self._world.fresh,
            job.id,
            claims,
            sight,
            self._kept,
            heard.strays,
            heard.advice,
        )

    def _sight(self, earlier: Config, disks: Sequence[Disk]) -> Sight:
        """Return what only those see who survey storage."""
        busy = [*disks, *self._in_hand()]
        return Sight(
            earlier=earlier,
            busy=frozenset(one for disk in busy for one in disk.volumes),
            disks=frozenset(disk.uuid for disk in busy),
            former=self._config_store.stories.former,
            called=self._config_store.stories.name,
            known_as=self._config_store.stories.known_as,
        )

    def _in_hand(self) -> list[Disk]:
        """Return the disks whose volumes jobs under way may make, use or remove."""
        ops = (op for job in self._jobs.values() for op in job.ops if op.tasks)
        runs = (task for op in ops for task in op.tasks if isinstance(task, Run))
        calls = (one for run in runs for one in (run.do, run.undo) if one)
        return [disk for call in calls for disk in call.volumes()]

    def _claims(self, job: Job) -> Claims:
        """Return what other jobs have chosen and not ended with."""
        found: Claims = {}
        for other in self._jobs.values():
            if other is not job:
                found |= _numbered(other)
        return found


def _numbered(job: Job) -> Claims:
    """Return what a job has chosen and not ended with."""
    return {
        (job.id, at, number): claim
        for at, op in enumerate(job.ops)
        if op.claims and op.status not in FINISHED
        for number, claim in enumerate(op.claims)
    }


def _room_alone(claim: Claim) -> Claim:
    """Return what a job that has ended may have taken and no older answer shows.

    Where its instance is, the configuration says.
    """
    return Claim(node=claim.node, rooms=claim.rooms, spindles=claim.spindles)


def _is_wide(operation: Operation, answers: Answers) -> bool:
    return isinstance(operation, Auditor | Surveyor) or len(answers) > _MANY


def _forget(answers: dict[Any, Any]) -> None:
    let_go(answers)
    give_back()


def _told(operation: Operation, view: View, results: Sequence[Any]) -> Told:
    return Told(reported(operation, view, results), operation.jobs(view))


def reported(operation: Operation, view: View, results: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return what an operation reports, as a client reads it."""
    return json.decode(json.encode(operation.result(view, results)))


def reported_again(operation: Operation, view: View, results: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return what an operation of a former master reports.

    None where what it was decided on is gone: it is talk for whoever waited, and they
    are gone with the crash.
    """
    try:
        return reported(operation, view, results)
    except Exception:  # noqa: BLE001
        return None


def _decided(operation: Operation, view: View) -> Decision:
    operation.check(view)
    planner = operation if isinstance(operation, Planner) else None
    tasks = list(operation.tasks(view))
    _try(view.config, tasks)
    return Decision(
        planner.settled(view) if planner else operation,
        view,
        warnings=(*idle(operation), *operation.warnings(view)),
        claims=tuple(planner.claims(view)) if planner else (),
        tasks=tasks,
    )


def _try(config: Config, tasks: Sequence[Task]) -> None:
    """Raise `Refused` if what is to be recorded would not be taken in the end.

    Where there is a way back, that comes out in time.
    """
    for task in tasks if any(one.final for one in tasks) else ():
        if isinstance(task, Commit):
            config = apply(config, changes.from_json(task.change))
