# SPDX-License-Identifier: BSD-2-Clause
"""Who keeps a copy, and what a commit waits for.

A commit is acknowledged when every candidate that was current has it on its disk. One
that is slow or gives no answer holds a commit up once, for some seconds; then it counts
as behind, and gets what it lacks when it can.

Who is current is on record in the store, so that the next master waits for the same
ones: a candidate is struck off before a commit is acknowledged that it lacks.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from moorage.errors import MoorageError
from moorage.jobs import Nodes
from moorage.model import Change, Cluster, Config, Node
from moorage.protocol import CopyStatus, DropCopy, ReleaseLead, silent
from moorage.store import ConfigStore, StoreLost

from .follower import Follower, Pace
from .log import CommitLog

_LOG = logging.getLogger(__name__)

KIND = "copy"
"""Kind of the records that name who is current, by the uuid of the node."""
_LATER = 60.0
"""Seconds before nodes that are no candidates any more are told again."""
_UNKNOWN = "it was so under the master before, and was not asked yet"


class Replication:
    """The copies of a master's state.

    Parameters
    ----------
    keys
        Returns the cluster's keys: each file by its name.
    superseded
        Asked whether another master leads: when a candidate has heard one, and, within
        so many seconds, before one that is silent is struck off the record.

    Attributes
    ----------
    wanted
        Whether there are to be any: a store that is on several machines has no need.
        To be set before it begins.
    wished
        Set when a candidate that has all is to be the next master.
    """

    def __init__(
        self,
        config_store: ConfigStore,
        log: CommitLog,
        nodes: Nodes,
        keys: Callable[[], Mapping[str, bytes]],
        superseded: Callable[[float | None], Awaitable[bool]],
        pace: Pace = Pace(),  # noqa: B008 - it is frozen
    ) -> None:
        self.wanted = True
        self._config_store = config_store
        self._log = log
        self._nodes = nodes
        self._keys = keys
        self._superseded = superseded
        self._pace = pace
        self._followers: dict[str, Follower] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._former: set[str] = set()
        self._changed = asyncio.Event()
        self.wished = asyncio.Event()
        self._heir = ""
        self._recorded: set[str] = set()
        self._recording = asyncio.Lock()
        self._begun = asyncio.Event()

    def status(self) -> list[CopyStatus]:
        """Return what is known of each copy."""
        return [one.status() for one in self._followers.values()]

    async def settled(self, version: int) -> list[str]:
        """Wait until the candidates have a commit, but not for ever.

        Returns
        -------
        What is to be told: which candidates were left out meanwhile. Of one that is
        none any more, somebody has said so.

        Raises
        ------
        StoreLost
            If another master leads: nobody may be told of the commit.
        """
        await self._begun.wait()
        before = set(self._recorded)
        await self._first_words()
        await self._reached(version)
        await self._strike()
        if any(one.refused for one in self._followers.values()):
            await self._judge()
        left_out = (before - self._recorded) & self._followers.keys()
        return [*map(self._left_out, sorted(left_out))]

    async def _reached(self, version: int) -> None:
        """Wait until those that are awaited have a commit; lose patience with some."""
        clock = asyncio.get_running_loop().time
        since = clock()
        late = {
            one: one.reached(version)
            for one in self._followers.values()
            if one.lacks(version)
        }
        while late := {one: done for one, done in late.items() if one.lacks(version)}:
            until = min(one.deadline(since) for one in late)
            await asyncio.wait(late.values(), timeout=max(until - clock(), 0.0))
            for one in late:
                if one.lacks(version) and one.deadline(since) <= clock():
                    text = f"it did not have a commit within {clock() - since:.1f} s"
                    one.fall_behind(text)

    def _left_out(self, uuid: str) -> str:
        one = self._followers[uuid]
        return (
            f"Warning: the copy of the state on {one.node.name} is behind "
            f"({one.why or 'for a moment'}): what is done from now on is not on it"
        )

    def _wish(self, uuid: str) -> None:
        if not self.wished.is_set():
            name = self._followers[uuid].node.name
            _LOG.info("%s is to be the next master: this one ends as planned", name)
            self._heir = uuid
            self.wished.set()

    async def release(self) -> bool:
        """Let the next master have all, and tell it that this one has ended.

        Nothing may be committed any more. Returns False if it does not have all, or
        does not hear it: then this master has to go on.
        """
        if self._heir not in self._awaited():
            return False
        heir = self._followers[self._heir]
        head = self._log.head
        await self._reached(head.version)
        if heir.lacks(head.version) or self._heir not in self._awaited():
            return False
        call = ReleaseLead(head=head)
        try:
            await self._nodes.call(heir.node, call, self._config_store.term, silent)
        except MoorageError as error:
            _LOG.warning("%s was not told: %s", heir.node.name, error.message)
            return False
        return True

    async def _strike(self) -> None:
        """Strike off the record whom nobody waits for any more.

        A master that stood still finds everybody silent, and may have been followed
        meanwhile: what it struck off then, the next one would lack.

        Raises
        ------
        StoreLost
            If another master leads.
        """
        async with self._recording:
            gone = sorted(self._recorded - self._awaited())
            if self._followers.keys() & set(gone):  # the others were demoted
                await self._judge(self._pace.patience)
            if gone:
                await self._config_store.note([((KIND, uuid), None) for uuid in gone])
                self._recorded -= set(gone)

    def _awaited(self) -> set[str]:
        return {uuid for uuid, one in self._followers.items() if one.awaited}

    async def _enlist(self, uuid: str) -> None:
        """Put a candidate on record that has caught up."""
        async with self._recording:
            if uuid in self._recorded or not self._followers[uuid].awaited:
                return
            await self._config_store.note([((KIND, uuid), b"current")])
            self._recorded.add(uuid)

    async def begin(self) -> asyncio.Task[None]:
        """Begin to :meth:`run`, and wait until each candidate was asked.

        The task that is returned ends by a defect only. One that is there at once is
        raised: no candidate was asked then.
        """
        life = asyncio.create_task(self.run())
        begun = asyncio.create_task(self._begun.wait())
        await asyncio.wait([life, begun], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
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
        since = asyncio.get_running_loop().time()
        waits = [asyncio.create_task(one.asked.wait()) for one in new]
        _, left = await asyncio.wait(waits, timeout=self._pace.patience)
        for wait in left:
            wait.cancel()
        for one in new:
            if one.asked.is_set():
                continue
            if one.deadline(since) <= asyncio.get_running_loop().time():
                one.fall_behind("it gives no answer")  # it holds a commit up once
            one.asked.set()

    async def _judge(self, within: float | None = None) -> None:
        """Find out whether another master leads, as a candidate may have said."""
        if await self._superseded(within):
            raise StoreLost("another master leads the cluster")
        if within is None:
            for one in self._followers.values():
                one.refused = False

    async def run(self) -> None:
        """Keep a copy on every candidate, and none anywhere else, for ever."""
        self._config_store.watchers.append(self._look)
        # One that was demoted under the master before may have been off ever since.
        self._former = {*_not_keeping(self._config_store.config)}
        if not self.wanted:  # a copy from before must not become anybody's truth
            self._former |= {one.uuid for one in _keeping(self._config_store.config)}
        dismissal: asyncio.Task[None] | None = None
        try:
            self._recorded = {*await self._log.read(KIND, "")}
            while True:
                self._changed.clear()
                self._appoint()
                self._begun.set()
                with contextlib.suppress(StoreLost):  # the store says so, too
                    await self._strike()
                if dismissal is None or dismissal.done():
                    dismissal = asyncio.create_task(self._dismiss())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LATER):
                        await self._changed.wait()
        finally:
            self._config_store.watchers.remove(self._look)
            for life in (*self._lives.values(), *filter(None, [dismissal])):
                life.cancel()

    def _look(self, change: Change) -> None:
        if any(isinstance(one, Node | Cluster) for one in (*change.put, *change.drop)):
            self._changed.set()

    def _appoint(self) -> None:
        """Begin to follow new candidates, and leave those that are none any more."""
        candidates = _keeping(self._config_store.config) if self.wanted else ()
        wanted = {node.uuid: node for node in candidates}
        known = self._recorded
        if not (known or self._begun.is_set()):
            known = {*wanted}  # a store of before has nobody on record: it may be any
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
                config_store=self._config_store,
                log=self._log,
                nodes=self._nodes,
                keys=self._keys,
                pace=self._pace,
                enlist=partial(self._enlist, uuid),
                wished=partial(self._wish, uuid),
                awaited=uuid in known,
                why="" if self._begun.is_set() or uuid in known else _UNKNOWN,
            )
            self._followers[uuid] = follower
            self._lives[uuid] = asyncio.create_task(follower.run())

    async def _dismiss(self) -> None:
        """Let nodes that are no candidates forget what they kept as such."""
        config = self._config_store.config
        self._former &= {one.uuid for one in config.all(Node)}  # the others forgot all
        for uuid in sorted(self._former):
            node = config.node(uuid)
            if node.offline:
                continue  # it is told when it is back
            with contextlib.suppress(MoorageError):
                call = DropCopy(candidate=node.master_candidate)
                await self._nodes.call(node, call, self._config_store.term, silent)
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
