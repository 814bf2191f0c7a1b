# SPDX-License-Identifier: BSD-2-Clause
"""Whether this master is still the one that leads, by what the nodes say.

One node's word is not enough: its key may be stolen. When more than half of them refuse
this master, and none takes its orders, it leads a store that is a copy, or has been
followed by another, and it ends.
"""

import asyncio
from typing import TypeVar

from moorage.api.query import Sources
from moorage.errors import MoorageError, Stale, Unreachable, WrongState
from moorage.jobs import Nodes
from moorage.model import Node
from moorage.protocol import GetFacts, Report, Verb

R = TypeVar("R")

_PAUSE = 10.0
"""Seconds between two times that all nodes are asked."""


class Standing:
    """The way to the nodes, which notes when one of them refuses this master.

    Attributes
    ----------
    refused
        Set when one did.
    over
        Set when this is not the cluster's master any more.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.refused = asyncio.Event()
        self.over = asyncio.Event()
        self._nodes = nodes

    async def call(self, node: Node, call: Verb[R], term: int, report: Report) -> R:
        """Run a verb on a node, as :meth:`moorage.jobs.Nodes.call` does."""
        try:
            return await self._nodes.call(node, call, term, report)
        except Stale as error:
            if "term" in error.facts:
                self.refused.set()
            raise

    async def watch(self, at: Sources) -> None:
        """Ask all nodes when one refuses, until this master is not the one any more."""
        while True:
            await self.refused.wait()
            nodes = [one for one in at.truth.config.named(Node) if not one.offline]
            words = await asyncio.gather(*(self._obeys(at, node) for node in nodes))
            if True not in words and words.count(False) * 2 > len(words):
                self.over.set()
                return
            await asyncio.sleep(_PAUSE)
            self.refused.clear()

    async def _obeys(self, at: Sources, node: Node) -> bool | None:
        """Return whether a node takes orders; None where it says nothing."""
        call = GetFacts(brief=True)
        try:
            await self._nodes.call(node, call, at.truth.term, lambda *_: None)
        except Stale as error:
            return "term" not in error.facts
        except Unreachable:
            return None
        except MoorageError:
            return True
        return True


def fenced(term: int) -> WrongState:
    """Return what a master says that the nodes have left, and why it ends."""
    return WrongState(
        f"this is not the cluster's master (its term is {term}): its nodes have heard "
        "another one, and none takes orders of this one; it ends",
        hint="if there is no other, and the store is a copy that was put back: moorage "
        "master start (each start raises the term by one)",
    )
