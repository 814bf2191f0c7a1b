# SPDX-License-Identifier: BSD-2-Clause
"""From a request to its tasks: ask the nodes, check, choose, claim."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.errors import MoorageError
from moorage.model import Claim
from moorage.store import Truth

from .carrier import Nodes, reachable
from .operation import Answers, Operation, Question, View
from .record import FINISHED, Job
from .task import Call, Task
from .unread import idle
from .world import World


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done.

    Attributes
    ----------
    view
        What it was decided on.
    warnings
        Sentences for the job's log.
    claims
        The room that the tasks take.
    """

    view: View
    warnings: tuple[str, ...]
    claims: tuple[Claim, ...]
    tasks: list[Task]


class Deciding:
    """Decides what operations do.

    Those that plan decide one after the other, and each sees what the jobs before it
    have chosen. So two that ask at once are answered as if one had come later.

    Parameters
    ----------
    jobs
        All jobs, by number; the engine's own, as they are at any time.
    """

    def __init__(
        self, truth: Truth, nodes: Nodes, world: World, jobs: Mapping[int, Job]
    ) -> None:
        self._truth = truth
        self._nodes = nodes
        self._world = world
        self._jobs = jobs
        self._choosing = asyncio.Lock()

    async def decide(self, job: Job, operation: Operation) -> Decision:
        """Ask the nodes, then check a request, and say what to do.

        Raises
        ------
        MoorageError
            If the request is refused.
        """
        earlier = self._claims(job)
        answers = await self._ask(job, operation)
        if not operation.plans:
            return _decided(operation, self.view(job, answers))
        async with self._choosing:
            # The answers may be older than the end of a job that was under way when
            # they were asked for: what it chose may not show in them yet.
            claims = earlier | self._claims(job)
            view = self.view(job, answers, tuple(claims.values()))
            found: Decision = await self._world.aside(lambda: _decided(operation, view))
            job.current.claims = list(found.claims)
        return found

    def view(
        self,
        job: Job,
        answers: Answers | None = None,
        claims: tuple[Claim, ...] = (),
    ) -> View:
        """Return the newest snapshot, as an operation of a job sees it."""
        world = self._world
        now = world.clock()
        config = self._truth.config
        return View(config, answers or {}, now, world.fresh, job.id, claims)

    def _claims(self, job: Job) -> dict[tuple[int, int, int], Claim]:
        """Return what other jobs have chosen and not ended with."""
        return {
            (other.id, at, number): claim
            for other in self._jobs.values()
            if other is not job
            for at, op in enumerate(other.ops)
            if op.claims and op.status not in FINISHED
            for number, claim in enumerate(op.claims)
        }

    async def _ask(self, job: Job, operation: Operation) -> dict[Question, Any]:
        questions = list(dict.fromkeys(operation.questions(self.view(job))))
        answers = await asyncio.gather(*(self._answer(one) for one in questions))
        return dict(zip(questions, answers, strict=True))

    async def _answer(self, question: Question) -> Any:  # noqa: ANN401
        call = Call(question.verb, dict(question.args))
        config = self._truth.config
        try:
            node = config.node(question.node)
            if not question.even_offline:
                reachable(config, question.node)
            return await self._nodes.call(node, call, self._truth.term, _silent)
        except MoorageError as error:
            return error


def _decided(operation: Operation, view: View) -> Decision:
    operation.check(view)
    return Decision(
        view,
        warnings=(*idle(operation), *operation.warnings(view)),
        claims=tuple(operation.claims(view)),
        tasks=list(operation.tasks(view)),
    )


def _silent(_done: int, _total: int, _unit: str, _note: str) -> None:
    """Drop the progress of a question."""
