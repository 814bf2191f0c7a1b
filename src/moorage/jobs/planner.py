# SPDX-License-Identifier: BSD-2-Clause
"""Operations that see more than others: those that plan, count, or survey storage."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from msgspec.structs import replace

from moorage.model import Claim
from moorage.protocol import RunAllocator

from .operation import FailedHook, Operation, View


class Planner(Operation, frozen=True, kw_only=True):
    """An operation that chooses where something goes, or takes room.

    Such decide one after the other, each with the claims of the others in sight, and
    aside from the event loop: the planner may take long.
    """

    def asks_now(self, _view: View) -> frozenset[str] | None:
        """Return uuids of the nodes whose answers must be of now; None for all.

        Of the others, what they said lately is enough: some of them may be chosen.
        """
        return None

    def likely(self, _view: View) -> Self:
        """Return the same request for a node that it would most likely choose.

        It is tried first: one node is asked, where the request as it is asks many. When
        that one is refused, for whatever reason, the request as it is is decided.
        """
        return self

    def settled(self, _view: View) -> Self:
        """Return the same request, with the nodes named that it has chosen."""
        return self

    def allocator(self, _view: View) -> str:
        """Return the name of the allocator that chooses; empty for our planner."""
        return ""

    def consults(self, _view: View) -> RunAllocator | None:
        """Return what that allocator is asked; None where nothing is to be chosen."""
        return None

    def claims(self, _view: View) -> Iterator[Claim]:
        """Say what room the tasks will take, for other jobs to leave it alone."""
        return iter(())

    def naming(self, **chosen: Any) -> Self:  # noqa: ANN401
        """Return the same request, with what was chosen named: its nodes.

        What its other words say was read already.
        """
        same = replace(self, **chosen)
        vars(same).update(vars(self))
        return same


class Auditor(Operation, frozen=True, kw_only=True):
    """An operation that counts as those that plan do, and chooses nothing.

    It sees the claims of the others, and none of them waits for it.
    """

    def judged(self, result: Any, _failed: Sequence[FailedHook]) -> Any:  # noqa: ANN401
        """Return the result, now that hooks after the operation have failed."""
        return result


class Surveyor(Operation, frozen=True, kw_only=True):
    """An operation that compares storage with the configuration.

    Its views have a :class:`moorage.jobs.Sight`.
    """
