# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage pool remove``: the end of a pool that no disk is in."""

from collections.abc import Iterator

from moorage.jobs import Task, View

from .base import OnPool, check_unused


class StoragePoolRemove(OnPool, frozen=True, kw_only=True):
    """Remove a storage pool; what its storage has besides is left alone."""

    op_id = "OP_STORAGE_POOL_REMOVE"

    def check(self, view: View) -> None:
        """Refuse while any disk is in it, attached or not."""
        pool = self.pool(view)
        disks = view.config.disks_in(pool)
        why = f"storage pool '{pool.name}' cannot be removed"
        check_unused(view.config, pool, disks, why)

    def tasks(self, view: View) -> Iterator[Task]:
        """Forget it."""
        pool = self.pool(view)
        yield view.record(f"forget storage pool {pool.name}", drop=(pool,))
