# SPDX-License-Identifier: BSD-2-Clause
"""What nodes said lately: enough to choose among them, and nothing to act upon.

Asking a thousand nodes for each instance costs more than choosing one of them. So what
they say for a choice is kept, and asked for again every minute or two, a few nodes a
second, as long as somebody chooses. What was said before a job did something on the
node counts no more.
"""

from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import count
from typing import Any

from .operation import Question
from .turns import together

_GOOD = 120.0
"""Seconds that an answer is good for."""
_RENEWED = 60.0
"""Seconds after which it is asked for again."""
_SHARE = 30
"""Seconds in which all nodes can be asked again."""
_WANTED = 600.0
"""Seconds for which questions are kept that nobody has asked again."""


@dataclass(slots=True)
class _Said:
    """An answer.

    Attributes
    ----------
    turn
        When it was asked for, among all questions and changes.
    asked, wanted
        When it was asked for, and when somebody has last used it; in seconds.
    """

    answer: object
    turn: int
    asked: float
    wanted: float


class Recent:
    """The answers that nodes gave lately.

    Parameters
    ----------
    clock, sleep
        The time in seconds, and how to wait.
    ask
        Asks a node some questions; an error stands for the answer that it does not
        give.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        ask: Callable[[list[Question]], Awaitable[Sequence[object]]],
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._ask = ask
        self._turns = count(1)
        self._said: dict[str, dict[Question, _Said]] = {}  # by node
        self._changed: dict[str, int] = {}
        self._forgotten = 0

    def forget(self) -> None:
        """Forget all: who asks from now on may ask of other storage."""
        self._said = {}
        self._forgotten = next(self._turns)

    def changed(self, node: str) -> None:
        """Take note that something was done on a node just now."""
        self._changed[node] = next(self._turns)

    def answers(self, questions: Iterable[Question]) -> dict[Question, Any]:
        """Return the answers that are good still."""
        now = self._clock()
        found = {}
        for one in questions:
            said = self._said.get(one.node, {}).get(one)
            if said is not None:
                said.wanted = now
                if self._is_good(one, said, now):
                    found[one] = said.answer
        return found

    def _is_good(self, question: Question, said: _Said, now: float) -> bool:
        unchanged = self._changed.get(question.node, 0) < said.turn
        return unchanged and 0 <= now - said.asked < _GOOD

    async def ask(self, questions: list[Question]) -> Sequence[object]:
        """Ask a node, and keep what it says."""
        now, turn = self._clock(), next(self._turns)
        found = await self._ask(questions)
        for question, answer in zip(questions, found, strict=True):
            of_node = self._said.setdefault(question.node, {})
            known = of_node.get(question)
            latest = known.turn if known else self._forgotten
            if latest < turn:
                wanted = known.wanted if known else now
                of_node[question] = _Said(answer, turn, now, wanted)
        return found

    async def renew(self) -> None:
        """Ask again, for ever, what is wanted still and was asked for long ago."""
        while True:
            await self._sleep(1.0)
            await together(map(self.ask, self._due()))

    def _due(self) -> Iterator[list[Question]]:
        """Yield what is to be asked now, a list for each of some nodes."""
        now = self._clock()
        old = [node for node, said in self._said.items() if _is_old(said, now)]
        for node in old[: len(self._said) // _SHARE + 1]:
            said = self._said.pop(node, {})  # all may be forgotten meanwhile
            wanted = {q: one for q, one in said.items() if now - one.wanted < _WANTED}
            if wanted:
                self._said[node] = wanted
                yield list(wanted)


def _is_old(said: Mapping[Question, _Said], now: float) -> bool:
    return any(now - one.asked >= _RENEWED for one in said.values())
