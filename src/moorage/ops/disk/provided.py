# SPDX-License-Identifier: BSD-2-Clause
"""Which nodes of a group will not reach a new disk: asked once for many disks.

To make one disk, its node's provider is all that must be known. That others lack it is
worth a warning, and not a question to each of them for every disk. So what was found is
kept for a while, as long as the group has the same nodes.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from moorage.jobs import Question, View
from moorage.model import Node
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.planning import disk_checks
from moorage.ops.volumes.disk_access import online
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.protocol import ListProviders

_GOOD = 120.0
"""Seconds that what was found is told to others, too."""
_TOLD = 3
"""How many nodes are named, each with its reason."""


class _Found(NamedTuple):
    """Which nodes lack something, in sentences, and when that was found."""

    time: float
    nodes: tuple[Node, ...]
    sentences: tuple[str, ...]


class _Lacking(dict[tuple[str, str], _Found]):
    """What was found last, by node group and what makes the disk."""


class Others:
    """The nodes of a group, where one of them, the worker, makes a disk for all."""

    def __init__(self, view: View, wanted: DiskSpec, worker: Node) -> None:
        self._view = view
        self._wanted = wanted
        self._worker = worker
        self._shelf = view.kept.of(_Lacking)
        self._key = worker.group, wanted.driver

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Those of the group that may run storage commands."""
        config = self._view.config
        return online(config, config.group(self._worker.group))

    @cached_property
    def _known(self) -> _Found | None:
        """What was found lately of the same provider, if it holds still."""
        last = self._shelf.get(self._key)
        if last is None or not 0 <= self._view.now - last.time < _GOOD:
            return None
        return last if last.nodes is self.nodes else None

    def ask(self) -> list[Question]:
        """Ask the node that makes the disk; the others, too, if nobody has lately."""
        if not self._wanted.kind.capabilities.provider:
            return []
        asked = (self._worker,) if self._known else self.nodes
        return [providers_on(node.uuid) for node in asked]

    def warnings(self) -> Iterator[str]:
        """Say which nodes of the group will not reach the disk.

        What was known when the nodes were to be asked may be old by now. It is told all
        the same: the others were not asked, and what they did not say is not what they
        lack.
        """
        found = self._known
        if found is None and self._were_asked():
            found = self._found()
        found = found or self._shelf.get(self._key)
        if found is None:
            return
        yield from found.sentences[:_TOLD]
        more = len(found.sentences) - _TOLD
        if more > 0:
            yield f"nor can it be used on {more} other nodes of the group"

    def _were_asked(self) -> bool:
        """Whether each node was asked for what it lacks, if it may lack it."""
        if not self._wanted.kind.capabilities.provider:
            return True
        told = self._view.answers
        asked = {one.node for one in told if isinstance(one.call, ListProviders)}
        return all(node.uuid in asked for node in self.nodes)

    def _found(self) -> _Found:
        """Return what nodes have just said, and keep it for the next disks."""
        told = tuple(disk_checks.warnings(self._view, self._wanted, self._worker))
        found = _Found(self._view.now, self.nodes, told)
        self._shelf[self._key] = found
        return found
