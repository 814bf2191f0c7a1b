# SPDX-License-Identifier: BSD-2-Clause
"""The making of an instance whose request something else completes: an export, say."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

from moorage.jobs import Task, View
from moorage.model import Claim

from .create import InstanceCreate


class Completed(InstanceCreate, frozen=True, kw_only=True):
    """A request that says what is different from what it is made of."""

    @abstractmethod
    def whole(self, view: View) -> InstanceCreate:
        """Return the request with all that was not said."""

    def settled(self, view: View) -> Self:
        """Return the same request, with its nodes named."""
        chosen = self.whole(view).settled(view)
        return self.naming(pnode=chosen.pnode, snode=chosen.snode, iallocator=None)

    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return what an allocator is asked: of all that the instance will be."""
        return self.whole(view).allocator_request(view)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim what the instance takes."""
        return self.whole(view).claims(view)

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the disks, put on them what there is, and record it all at the end."""
        return self.whole(view).tasks(view)

    def result(self, view: View, results: Sequence[Any]) -> list[str]:
        """Return the nodes, as Ganeti does."""
        return self.whole(view).result(view, results)
