# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage pool connect`` and ``disconnect``: where a pool's disks can be used."""

from collections.abc import Iterator

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Task, View
from moorage.model import NodeGroup, StoragePool

from . import working
from .base import OnPool, check_unused, in_group, named_groups


class _OfGroups(OnPool, frozen=True, kw_only=True):
    """An operation on a pool and some node groups.

    Attributes
    ----------
    groups
        Names or uuids of the node groups.
    """

    groups: tuple[str, ...]

    def named(self, view: View) -> list[NodeGroup]:
        """Return the groups; raise `BadInput` if none was named."""
        if not self.groups:
            raise BadInput("no node group was named", hint="gnt-group list")
        return named_groups(view.config, self.groups)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the pool; share the groups."""
        yield from OnPool.locks(self, view)
        for group in self.named(view):
            yield Lock("group", group.uuid, shared=True)


class StoragePoolConnect(_OfGroups, frozen=True, kw_only=True):
    """Let disks of a pool be used in node groups; those that can already, stay."""

    op_id = "OP_STORAGE_POOL_CONNECT"

    def new(self, view: View) -> list[NodeGroup]:
        """Return the groups that it is not connected to yet."""
        there = self.pool(view).groups
        return [group for group in self.named(view) if group.uuid not in there]

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it works there."""
        yield from working.ask(view.config, self.pool(view), self.new(view))

    def check(self, view: View) -> None:
        """Refuse a group where a node lacks what the pool needs."""
        for group in self.new(view):
            working.check(view, self.pool(view), group)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the connection."""
        pool, new = self.pool(view), self.new(view)
        if not new:
            return
        groups = (*pool.groups, *(group.uuid for group in new))
        what = f"connect storage pool {pool.name} to {_names(new)}"
        yield view.change(what, pool, groups=groups)


class StoragePoolDisconnect(_OfGroups, frozen=True, kw_only=True):
    """Let no disk of a pool be used in node groups any more."""

    op_id = "OP_STORAGE_POOL_DISCONNECT"

    def check(self, view: View) -> None:
        """Refuse a group where any disk of the pool is, attached or not."""
        config, pool = view.config, self.pool(view)
        for group in self.named(view):
            _check_is_connected(pool, group)
            why = (
                f"storage pool '{pool.name}' cannot be disconnected from node group "
                f"{group.name}"
            )
            check_unused(config, pool, in_group(config, pool, group), why)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        pool, gone = self.pool(view), self.named(view)
        uuids = {group.uuid for group in gone}
        groups = tuple(uuid for uuid in pool.groups if uuid not in uuids)
        what = f"disconnect storage pool {pool.name} from {_names(gone)}"
        yield view.change(what, pool, groups=groups)


def _check_is_connected(pool: StoragePool, group: NodeGroup) -> None:
    if group.uuid not in pool.groups:
        raise WrongState(
            f"storage pool '{pool.name}' is not connected to node group {group.name}",
            hint=f"gnt-storage pool info {pool.name}",
        )


def _names(groups: list[NodeGroup]) -> str:
    return ", ".join(group.name for group in groups)
