# SPDX-License-Identifier: BSD-2-Clause
"""Asking nodes for their facts: each once, all at the same time, not for ever."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.api.census import Census
from moorage.api.store_health import KnownHealth
from moorage.errors import MoorageError, NotSupported, Unreachable, answered_unfit
from moorage.jobs import Engine, Nodes
from moorage.jobs.turns import together
from moorage.model import Config, Node, NodeFacts
from moorage.model.export import Export
from moorage.node.lines import Line
from moorage.ops.volumes.directories import places_on
from moorage.protocol import CopyStatus, GetFacts, ListExports, Verb, silent
from moorage.protocol.line import GuestLine
from moorage.store import ConfigStore

from .snapshot import Snapshot

_LOG = logging.getLogger(__name__)
_REST = 60.0
"""Seconds for which lists do without a node that hangs, or answers as no agent does:
else each of them would wait for it, or read what it sends."""
T = TypeVar("T")
Facts = dict[str, NodeFacts | MoorageError]


async def _no_lines(_node: Node, line: GuestLine, _term: int) -> Line:
    """Raise `NotSupported`: no network is used."""
    raise NotSupported(f"guest {line.name} cannot be reached from here")


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the answers to queries come from.

    Attributes
    ----------
    patience
        Seconds after which a node that has not answered counts as silent.
    clock
        The time in seconds.
    lines
        Opens a line to a guest on a node, for a master of a term.
    copies
        Returns what is known of the copies of the state.
    left_alone
        Until when a node is not asked for lists, and why, by its uuid.
    census
        How many objects there are.
    store
        How the place is where the state is kept.
    """

    config_store: ConfigStore
    nodes: Nodes
    engine: Engine
    patience: float = 10.0
    clock: Callable[[], float] = time.time
    lines: Callable[[Node, GuestLine, int], Awaitable[Line]] = _no_lines
    copies: Callable[[], Sequence[CopyStatus]] = tuple
    left_alone: dict[str, tuple[float, str]] = field(default_factory=dict)
    census: Census = field(default_factory=Census)
    store: KnownHealth = field(default_factory=KnownHealth)

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; no node was asked yet."""
        engine = self.engine
        return Snapshot(
            config=self.config_store.config,
            jobs=dict(engine.jobs),
            locks=engine.locks.rows,
            progress=engine.queue.progress_of,
            copies={one.node: one for one in self.copies()},
        )


async def recall(
    sources: Sources, scene: Snapshot, numbers: Iterable[int] | None = None
) -> None:
    """Add jobs of the archive to a snapshot: those of some numbers, or all.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """
    lacking = None if numbers is None else set(numbers) - scene.jobs.keys()
    if lacking == set():
        return
    found = await sources.engine.queue.archived.jobs(lacking)
    scene.archived = found.keys() - scene.jobs.keys()
    scene.jobs = {**found, **scene.jobs}


async def ask(
    sources: Sources,
    config: Config,
    uuids: Iterable[str],
    *,
    room: bool = False,
    brief: bool = False,
) -> Facts:
    """Return what some nodes say; those that are marked offline are not asked.

    Parameters
    ----------
    room
        Let them measure their storage units, which takes processes.
    brief
        Let them leave out guests and held disks.
    """
    nodes = [config.node(uuid) for uuid in dict.fromkeys(uuids)]
    asked = [node for node in nodes if not node.offline]
    where = places_on(config)
    answers = await together(
        _ask(
            sources,
            node,
            GetFacts(places=where(node) if room else (), brief=brief),
        )
        for node in asked
    )
    return {node.uuid: said for node, said in zip(asked, answers, strict=True)}


async def ask_exports(sources: Sources) -> dict[str, list[Export] | MoorageError]:
    """Return the exports of every node that is not marked offline."""
    nodes = sources.config_store.config.online()
    call = ListExports()
    answers = await together(_ask(sources, node, call) for node in nodes)
    return {node.uuid: said for node, said in zip(nodes, answers, strict=True)}


async def _ask(sources: Sources, node: Node, call: Verb[T]) -> T | MoorageError:
    until, why = sources.left_alone.get(node.uuid, (0.0, ""))
    left = until - sources.clock()
    if 0 < left <= _REST:
        return Unreachable(f"{why}; it is asked again in {left:.0f} s")
    try:
        async with asyncio.timeout(sources.patience):
            found = await sources.nodes.call(
                node, call, sources.config_store.term, silent
            )
    except TimeoutError:
        said = f"node {node.name} said nothing in {sources.patience:g} s"
        return _leave_alone(sources, node, Unreachable(said))
    except MoorageError as error:
        return _leave_alone(sources, node, error) if answered_unfit(error) else error
    sources.left_alone.pop(node.uuid, None)
    return found


def _leave_alone(sources: Sources, node: Node, error: MoorageError) -> MoorageError:
    """Take note that nothing good comes of asking a node, and say so in the log."""
    sources.left_alone[node.uuid] = sources.clock() + _REST, error.message
    _LOG.warning("lists do without a node for %.0f s: %s", _REST, error.message)
    return error
