# SPDX-License-Identifier: BSD-2-Clause
"""Verify that storage pools work on every node of the groups they are connected to."""

from collections.abc import Iterator

from moorage.jobs import Question
from moorage.model import Config, Node, StoragePool
from moorage.ops.storage.diagnose import examined_on
from moorage.ops.volumes.directories import place
from moorage.ops.volumes.disk_access import online
from moorage.ops.volumes.pools import groups_of

from .observation import Finding, Seen


def ask(config: Config) -> Iterator[Question]:
    """Ask the nodes where a pool is connected what they have."""
    for node in dict.fromkeys(node.uuid for _, node in _connected(config)):
        yield examined_on(config, config.node(node))


def pools(seen: Seen) -> Iterator[Finding]:
    """Find nodes where a connected pool does not work.

    Nothing is broken while no instance of the node has a disk in it.
    """
    for pool, node in _connected(seen.config):
        problem = _problem(seen, pool, node)
        if problem:
            yield Finding(
                f"storage pool {pool.name}",
                f"it does not work on node {node.name}: {problem}",
                f"gnt-storage diagnose {pool.name}",
                warning=not _is_used_on(seen.config, pool, node),
            )


def _connected(config: Config) -> Iterator[tuple[StoragePool, Node]]:
    for pool in config.named(StoragePool):
        for group in groups_of(config, pool):
            for node in online(config, group):
                yield pool, node


def _problem(seen: Seen, pool: StoragePool, node: Node) -> str:
    """Return what is wrong on a node that answered."""
    told = seen.view.told(examined_on(seen.config, node)) or []
    where = place(seen.config, seen.config.group(node.group), pool)
    return next((one.problem for one in told if one.place == where), "")


def _is_used_on(config: Config, pool: StoragePool, node: Node) -> bool:
    owners = (config.owner(disk) for disk in config.disks_in(pool))
    return any(owner and owner.primary_node == node.uuid for owner in owners)
