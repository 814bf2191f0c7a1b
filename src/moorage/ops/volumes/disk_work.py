# SPDX-License-Identifier: BSD-2-Clause
"""Work on a disk that exists: what a job holds for it, and which node does it."""

from collections.abc import Iterator

from moorage.jobs import Lock, View
from moorage.model import Config, Disk, Node

from . import copies
from .disk_access import candidates, worker


def hold_owned(config: Config, disk: Disk) -> Iterator[Lock]:
    """Hold a disk and the instance that has it; share the nodes of both."""
    yield Lock("disk", disk.uuid)
    yield from copies.hold(config, [disk])
    owner = config.owner(disk)
    if owner:
        yield Lock("instance", owner.uuid)
        yield Lock("node", owner.primary_node, shared=True)


def hold_to_work(view: View, disk: Disk) -> Iterator[Lock]:
    """Hold the disk and its instance; share the nodes that do the work."""
    yield from hold_owned(view.config, disk)
    for node in candidates(view.config, disk):
        yield Lock("node", node.uuid, shared=True)


def worker_of(view: View, disk: Disk) -> Node:
    """Return the node that is to work on a disk: where it is used, or any that can."""
    owner = view.config.owner(disk)
    if owner is None or view.config.home(owner).offline:
        return worker(view, disk)
    return view.config.home(owner)
