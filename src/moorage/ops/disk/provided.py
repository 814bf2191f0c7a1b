# SPDX-License-Identifier: BSD-2-Clause
"""Which nodes of a group will not reach a new disk: asked once for many disks.

To make one disk, its node's provider is all that must be known. That others lack it is
worth a warning, and not a question to each of them for every disk. So what was found is
kept for a while, as long as the group has the same nodes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from moorage.jobs import Question, View
from moorage.model import Node, NodeGroup
from moorage.ops.asking.node_tasks import providers_on
from moorage.ops.planning import disk_checks
from moorage.ops.volumes.disk_access import online
from moorage.ops.volumes.disk_spec import DiskSpec

_GOOD = 120.0
"""Seconds that what was found is told to others, too."""
_TOLD = 3
"""How many nodes are named, each with its reason."""


class _Found(NamedTuple):
    """Which nodes lack something, in sentences, and when that was found."""

    time: float
    nodes: tuple[Node, ...]
    sentences: tuple[str, ...]


def ask(view: View, wanted: DiskSpec, worker: Node) -> Iterator[Question]:
    """Ask the node that makes a disk; the others, too, if nobody has lately."""
    if wanted.kind.capabilities.provider:
        known = _known(view, wanted, worker)
        for node in [worker] if known else online(view.config, _group(view, worker)):
            yield providers_on(node.uuid)


def warnings(view: View, wanted: DiskSpec, worker: Node) -> Iterator[str]:
    """Say which nodes of the group will not reach a disk that a node makes.

    What was known when the nodes were to be asked may be old by now. It is told all the
    same: the others were not asked, and what they did not say is not what they lack.
    """
    found = _known(view, wanted, worker)
    if found is None and _were_asked(view, wanted, worker):
        found = _found(view, wanted, worker)
    found = found or _kept(view, wanted, worker)
    if found is None:
        return
    yield from found.sentences[:_TOLD]
    more = len(found.sentences) - _TOLD
    if more > 0:
        yield f"nor can it be used on {more} other nodes of the group"


def _group(view: View, worker: Node) -> NodeGroup:
    return view.config.group(worker.group)


def _were_asked(view: View, wanted: DiskSpec, worker: Node) -> bool:
    """Whether each node of the group was asked for what it lacks, if it may lack it."""
    if not wanted.kind.capabilities.provider:
        return True
    nodes = online(view.config, _group(view, worker))
    return all(providers_on(node.uuid) in view.answers for node in nodes)


def _kept(view: View, wanted: DiskSpec, worker: Node) -> _Found | None:
    """Return what was found last of the same provider, however long ago."""
    return _shelf(view).get((worker.group, wanted.driver))


def _known(view: View, wanted: DiskSpec, worker: Node) -> _Found | None:
    """Return what was found lately of the same provider, if it holds still."""
    known = _kept(view, wanted, worker)
    if known is None or not 0 <= view.now - known.time < _GOOD:
        return None
    same = known.nodes == online(view.config, _group(view, worker))
    return known if same else None


def _found(view: View, wanted: DiskSpec, worker: Node) -> _Found:
    """Return what nodes have just said, and keep it for the next disks."""
    told = tuple(disk_checks.warnings(view, wanted, worker))
    found = _Found(view.now, online(view.config, _group(view, worker)), told)
    _shelf(view)[worker.group, wanted.driver] = found
    return found


def _shelf(view: View) -> dict[tuple[str, str], _Found]:
    shelf: dict[tuple[str, str], _Found] = view.kept.setdefault("nodes without", {})
    return shelf
