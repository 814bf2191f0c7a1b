# SPDX-License-Identifier: BSD-2-Clause
"""Whether this master is still the one that leads, by what the nodes say.

One node's word is not enough: its key may be stolen. When more than half of them refuse
this master, it leads a store that is a copy, or has been followed by another, and it
ends. A candidate's word weighs more, for it keeps a key to lead with: when one refuses
a commit, nobody is told of it before more than half of the nodes say otherwise.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from moorage.api.query import Sources
from moorage.errors import MoorageError, Stale, Unreachable, WrongState
from moorage.jobs import Nodes
from moorage.jobs.turns import together
from moorage.model import Node
from moorage.model.store_trouble import StoreTrouble
from moorage.protocol import (
    CopyStatus,
    GetCopies,
    GetFacts,
    GetStore,
    GetWatcher,
    Report,
    TellMasters,
    TrustMasters,
    Verb,
    one_by_one,
    silent,
)
from moorage.store import ConfigStore

R = TypeVar("R")

_AT_ONCE = 32
"""Nodes that are asked at once, so that others get their turn meanwhile."""
_PAUSE = 10.0
"""Seconds between two times that all nodes are asked."""
_WAYS = (
    "if there is no other, since a failover broke: gnt-cluster master-failover, on a "
    "candidate; if the store is a copy that was put back: moorage master start (each "
    "start raises the term by one)"
)
_WAYS_WITH_ETCD = (
    "if there is no other: moorage master stop, on every machine with one; then "
    "moorage backup FILE, and put that back, which counts a higher term than nodes "
    "have heard, on SQLite"
)
"""What to do when nodes heed none of a cluster's masters."""


class Standing:
    """The way to the nodes, which notes when one of them refuses this master.

    Attributes
    ----------
    refused
        Set when one did.
    over
        Set when this is not the cluster's master any more.
    copies
        Returns what is known of the copies of the state.
    watcher
        Returns what :class:`~moorage.protocol.GetWatcher` does.
    store
        Returns what :class:`~moorage.protocol.GetStore` does.
    masters
        Returns what is told to nodes of whose orders to take, as it is on record.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.refused = asyncio.Event()
        self.over = asyncio.Event()
        self.copies: Callable[[], list[CopyStatus]] = list
        self.watcher: Callable[[], float | None] = lambda: None
        self.store: Callable[[], Awaitable[list[StoreTrouble]]] = _no_trouble
        self.masters: Callable[[], TrustMasters] = lambda: TrustMasters(certificates=())
        self._nodes = nodes
        self._telling: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def call(self, node: Node, call: Verb[R], term: int, report: Report) -> R:
        """Run a verb on a node, as :meth:`moorage.jobs.Nodes.call` does."""
        if isinstance(call, GetCopies):
            return cast("R", self.copies())
        if isinstance(call, GetWatcher):
            return cast("R", self.watcher())
        if isinstance(call, GetStore):
            return cast("R", await self.store())
        if isinstance(call, TellMasters):
            return cast("R", await self._tell(node, term, report))
        try:
            return await self._nodes.call(node, call, term, report)
        except Stale as error:
            self._notice(error)
            raise

    async def _tell(self, node: Node, term: int, report: Report) -> None:
        """Tell a node whose orders to take; what is told last is what is so now.

        Nobody is told before the master's own key is on record.
        """
        async with self._telling[node.uuid]:
            known = self.masters()
            if known.certificates:
                await self.call(node, known, term, report)

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Ask a node several things, as :meth:`moorage.jobs.Nodes.ask` does."""
        if any(isinstance(one, GetCopies | GetStore | GetWatcher) for one in calls):
            return await one_by_one(
                lambda one: self.call(node, one, term, silent), calls
            )
        found = await self._nodes.ask(node, calls, term)
        for one in found:
            self._notice(one)
        return found

    def _notice(self, told: object) -> None:
        if isinstance(told, Stale) and "term" in told.facts:
            self.refused.set()

    async def watch(self, at: Sources) -> None:
        """Ask all nodes when one refuses, until this master is not the one any more."""
        while True:
            await self.refused.wait()
            if await self.left(at.config_store):
                return
            await asyncio.sleep(_PAUSE)
            self.refused.clear()

    async def left(self, config_store: ConfigStore) -> bool:
        """Say whether more than half of the nodes refuse this master; it is over then.

        They are asked if one has refused it.
        """
        if not self.refused.is_set():
            return False
        words = await self._words(config_store)
        if words.count(False) * 2 > len(words):
            self.over.set()
        return self.over.is_set()

    async def superseded(self, config_store: ConfigStore, within: float | None) -> bool:
        """Whether a later master leads: a candidate has heard one, and may be right.

        It is not right when half of the nodes take this master's orders: the others are
        not more than half, which a later master needs. So of two nodes the word of one,
        which may be anybody's, ends no master that its own node obeys.

        Parameters
        ----------
        within
            Seconds in which one of the candidates that are asked now must refuse this
            master; where all are silent, nobody is known to lead. None if one has
            refused it already.
        """
        nodes = config_store.config.online()
        refused, obeying = within is None, 0
        turn = asyncio.Semaphore(_AT_ONCE)
        asked = [
            asyncio.create_task(self._word(config_store, one, turn)) for one in nodes
        ]
        try:
            for answer in asyncio.as_completed(asked, timeout=within):
                node, obeys = await answer
                obeying += obeys is True
                if obeying * 2 >= len(nodes):
                    return False  # the others need not be waited for
                refused |= obeys is False and node.master_candidate
        except TimeoutError:
            pass
        finally:
            for one in asked:
                one.cancel()
        return refused

    async def _word(
        self, config_store: ConfigStore, node: Node, turn: asyncio.Semaphore
    ) -> tuple[Node, bool | None]:
        async with turn:
            return node, await self._obeys(config_store, node)

    async def _words(self, config_store: ConfigStore) -> list[bool | None]:
        nodes = config_store.config.online()
        return await together(self._obeys(config_store, node) for node in nodes)

    async def _obeys(self, config_store: ConfigStore, node: Node) -> bool | None:
        """Return whether a node takes orders; None where it says nothing."""
        call = GetFacts(brief=True)
        try:
            await self._nodes.call(node, call, config_store.term, silent)
        except Stale as error:
            return "term" not in error.facts
        except Unreachable:
            return None
        except MoorageError:
            return True
        return True


async def _no_trouble() -> list[StoreTrouble]:
    return []


def fenced(term: int, *, etcd: bool = False) -> WrongState:
    """Return what a master says that the nodes have left, and why it ends.

    Parameters
    ----------
    etcd
        Whether its state is there, and not on a disk of its own.
    """
    ways = _WAYS_WITH_ETCD if etcd else _WAYS
    return WrongState(
        f"this is not the cluster's master (its term is {term}): its nodes have heard "
        "another one, and none takes orders of this one; it ends",
        hint=ways,
    )
