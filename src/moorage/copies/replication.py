# SPDX-License-Identifier: BSD-2-Clause
"""Who keeps a copy, and what a commit waits for.

A commit is acknowledged when every candidate that was current has it on its disk. One
that is slow or gives no answer holds a commit up once, for some seconds; then it counts
as behind, and gets what it lacks when it can.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping

from moorage.errors import MoorageError
from moorage.jobs import Nodes
from moorage.model import Change, Cluster, Config, Node
from moorage.protocol import CopyStatus, DropCopy, silent
from moorage.store import ConfigStore, StoreLost

from .follower import Follower, Pace
from .log import CommitLog

_LATER = 60.0
"""Seconds before nodes that are no candidates any more are told again."""


class Replication:
    """The copies of a master's state.

    Parameters
    ----------
    keys
        Returns the cluster's keys: each file by its name.
    superseded
        Asked when a candidate has heard a later master: whether that is true.
    """

    def __init__(
        self,
        truth: ConfigStore,
        log: CommitLog,
        nodes: Nodes,
        keys: Callable[[], Mapping[str, bytes]],
        superseded: Callable[[], Awaitable[bool]],
        pace: Pace = Pace(),  # noqa: B008 - it is frozen
    ) -> None:
        self._truth = truth
        self._log = log
        self._nodes = nodes
        self._keys = keys
        self._superseded = superseded
        self._pace = pace
        self._followers: dict[str, Follower] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._former: set[str] = set()
        self._changed = asyncio.Event()

    def status(self) -> list[CopyStatus]:
        """Return what is known of each copy."""
        return [one.status() for one in self._followers.values()]

    async def settled(self, version: int) -> None:
        """Wait until the candidates have a commit, but not for ever.

        Raises
        ------
        StoreLost
            If another master leads: nobody may be told of the commit.
        """
        await self._first_words()
        late = [one for one in self._followers.values() if one.lacks(version)]
        if late:
            waits = [one.reached(version) for one in late]
            await asyncio.wait(waits, timeout=self._pace.patience)
            for one in late:
                if one.lacks(version):
                    text = f"it did not have a commit within {self._pace.patience:g} s"
                    one.fall_behind(text)
        if any(one.refused for one in self._followers.values()):
            await self._judge()

    async def begin(self) -> asyncio.Task[None]:
        """Begin to :meth:`run`, and wait until each candidate was asked.

        The task that is returned ends by a defect only. One that is there at once is
        raised: no candidate was asked then.
        """
        life = asyncio.create_task(self.run())
        await asyncio.sleep(0)  # it appoints them in its first turn
        await self._first_words()
        if life.done():
            life.result()
        return life

    async def _first_words(self) -> None:
        """Wait until each candidate was asked: one may have heard a later master.

        A master that starts knows of none that refuses it; so it acknowledges nothing
        before it could.
        """
        new = [one for one in self._followers.values() if not one.asked.is_set()]
        if not new:
            return
        waits = [asyncio.create_task(one.asked.wait()) for one in new]
        _, left = await asyncio.wait(waits, timeout=self._pace.patience)
        for wait in left:
            wait.cancel()
        for one in new:
            one.asked.set()  # one that hangs holds a commit up once

    async def _judge(self) -> None:
        """Find out whether a candidate that has heard a later master is right."""
        if await self._superseded():
            raise StoreLost("another master leads the cluster")
        for one in self._followers.values():
            one.refused = False

    async def run(self) -> None:
        """Keep a copy on every candidate, and none anywhere else, for ever."""
        self._truth.watchers.append(self._look)
        # One that was demoted under the master before may have been off ever since.
        self._former = {*_not_keeping(self._truth.config)}
        dismissal: asyncio.Task[None] | None = None
        try:
            while True:
                self._changed.clear()
                self._appoint()
                if dismissal is None or dismissal.done():
                    dismissal = asyncio.create_task(self._dismiss())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LATER):
                        await self._changed.wait()
        finally:
            self._truth.watchers.remove(self._look)
            for life in (*self._lives.values(), *filter(None, [dismissal])):
                life.cancel()

    def _look(self, change: Change) -> None:
        if any(isinstance(one, Node | Cluster) for one in (*change.put, *change.drop)):
            self._changed.set()

    def _appoint(self) -> None:
        """Begin to follow new candidates, and leave those that are none any more."""
        wanted = {node.uuid: node for node in _keeping(self._truth.config)}
        for uuid in self._followers.keys() - wanted.keys():
            self._followers.pop(uuid).fall_behind("it is no candidate any more")
            self._former.add(uuid)
            self._lives.pop(uuid).cancel()
        for uuid, node in wanted.items():
            self._former.discard(uuid)
            if uuid in self._followers:
                self._followers[uuid].node = node
                continue
            follower = Follower(
                node=node,
                truth=self._truth,
                log=self._log,
                nodes=self._nodes,
                keys=self._keys,
                pace=self._pace,
            )
            self._followers[uuid] = follower
            self._lives[uuid] = asyncio.create_task(follower.run())

    async def _dismiss(self) -> None:
        """Let nodes that are no candidates forget what they kept as such."""
        config = self._truth.config
        self._former &= {one.uuid for one in config.all(Node)}  # the others forgot all
        for uuid in sorted(self._former):
            node = config.node(uuid)
            if node.offline:
                continue  # it is told when it is back
            with contextlib.suppress(MoorageError):
                await self._nodes.call(node, DropCopy(), self._truth.term, silent)
                self._former.discard(uuid)


def _keeping(config: Config) -> Iterator[Node]:
    """Yield the nodes that are to keep a copy of the state: not the master's own."""
    for node in config.all(Node):
        own = node.uuid == config.cluster.master_node
        if node.master_candidate and not (node.offline or own):
            yield node


def _not_keeping(config: Config) -> Iterator[str]:
    """Yield the nodes that are to have no copy; the master's own has the state."""
    for node in config.all(Node):
        if not node.master_candidate and node.uuid != config.cluster.master_node:
            yield node.uuid
