# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage pool modify``: what a pool presets for disks to come."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.jobs import Question, Task, View, rights
from moorage.jobs.results import Changed
from moorage.model import StoragePool
from moorage.model.kinds import Count
from moorage.ops.merging import merged
from moorage.ops.volumes.pools import groups_of
from moorage.storage import naming

from . import working
from .base import OnPool, presets


class StoragePoolSetParams(OnPool, frozen=True, kw_only=True):
    """Change a storage pool; the disks that are in it keep what they have.

    Attributes
    ----------
    params
        Parameters of disks to come; the value ``default`` drops one.
    volume_name
        Pattern of the names of volumes to come, of ``{uuid}``, ``{short}``,
        ``{instance}``, ``{index}`` and ``{pool}``; empty for the template's own.
    longest
        How many characters such a name may have.
    force_params
        Accept parameters that the provider does not list.
    """

    op_id = "OP_STORAGE_POOL_SET_PARAMS"

    params: Annotated[dict[str, Any], rights.DISK] = field(default_factory=dict)
    volume_name: str | None = None
    longest: Count | None = None
    force_params: bool = False

    def changes(self, view: View) -> dict[str, Any]:
        """Return the fields that change."""
        pool, found = self.pool(view), dict[str, Any]()
        if self.params:
            wanted = merged(pool.params, self.params)
            cluster = view.config.cluster
            found["params"] = presets(cluster, pool.template, pool.provider, wanted)
        if self.volume_name is not None or self.longest is not None:
            longest = pool.longest if self.longest is None else self.longest
            new = self.volume_name
            pattern = pool.volume_name if new is None else new
            found["volume_name"] = naming.check_pattern(pattern, longest, pool.name)
            found["longest"] = longest
        if not found:
            raise BadInput(
                "nothing to change was named", hint="gnt-storage pool modify --help"
            )
        return found

    def _after(self, view: View) -> StoragePool:
        return replace(self.pool(view), **self.changes(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it works with other parameters, where it is connected."""
        groups = groups_of(view.config, self.pool(view)) if self.params else []
        if self.params:
            yield from working.ask(view.config, self._after(view), groups)

    def check(self, view: View) -> None:
        """Refuse parameters that no disk could have, or that a group cannot use."""
        pool = self._after(view)
        if not self.params:
            return
        working.check_driver(view, pool, force=self.force_params)
        for group in groups_of(view.config, pool):
            working.check(view, pool, group)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the change."""
        pool = self.pool(view)
        yield view.change(
            f"change storage pool {pool.name}", pool, **self.changes(view)
        )

    def result(self, view: View, _results: Sequence[Any]) -> list[Changed]:
        """Return what changed, and to what."""
        return list(self.changes(view).items())
