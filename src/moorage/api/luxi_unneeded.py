# SPDX-License-Identifier: BSD-2-Clause
"""LUXI's methods on what there is not here: filters of jobs, and files of jobs."""

from typing import Any

from moorage.errors import NotSupported

from .luxi_method import Fields, Method
from .no_filters import WHY
from .query import Sources


class QueryFilters(Method, frozen=True):
    """Return values of filters: there are none."""

    uuids: list[str] | None
    fields: Fields

    async def answer(self, _at: Sources) -> list[list[Any]]:
        """Return nothing."""
        return []


class ReplaceFilter(Method, frozen=True):
    """Make or change a filter: refused."""

    uuid: str | None
    priority: Any
    predicates: Any
    action: Any
    reason: Any

    async def answer(self, _at: Sources) -> str:
        """Say why there are none."""
        raise NotSupported(WHY)


class DeleteFilter(Method, frozen=True):
    """Remove a filter: refused."""

    uuid: str

    async def answer(self, _at: Sources) -> None:
        """Say why there are none."""
        raise NotSupported(WHY)


class PickupJob(Method, frozen=True):
    """Take up a job that somebody wrote into a file; return True.

    Jobs come over LUXI alone, and are taken up when they come.
    """

    job: int

    async def answer(self, at: Sources) -> bool:
        """Say that it is known, or raise the error of one that is not."""
        return at.engine.job(self.job).id == self.job


UNNEEDED: tuple[type[Method], ...] = (
    QueryFilters,
    ReplaceFilter,
    DeleteFilter,
    PickupJob,
)
"""Every method on what there is not."""
