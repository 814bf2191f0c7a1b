# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage pool add``: a place where disks can be gets a name."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import field

from moorage.errors import BadInput
from moorage.jobs import Lock, Operation, Question, Task, View, rights
from moorage.model import StoragePool
from moorage.model.kinds import Count
from moorage.ops.new_names import check_new_name
from moorage.ops.planning.disk_checks import check_enabled
from moorage.storage import TEMPLATES, naming
from moorage.storage.validation import check_provider_name, check_tags

from . import working
from .base import named_groups, presets


def template_with_providers() -> str:
    """Return the template whose work is done by scripts of a provider."""
    found = (name for name, one in TEMPLATES.items() if one.capabilities.provider)
    return next(found)


class StoragePoolAdd(Operation, frozen=True, kw_only=True):
    """Make a storage pool.

    Attributes
    ----------
    pool_name
        One that no other storage pool has.
    tags
        Tags that it has from the beginning.
    disk_template
        Its disks' template; not needed with a provider.
    provider
        The ExtStorage provider that it stands for.
    params
        Parameters that its disks get, where they are given no others.
    volume_name
        Pattern of the names of its volumes, of ``{uuid}``, ``{short}``, ``{instance}``,
        ``{index}`` and ``{pool}``; empty for the template's own.
    longest
        How many characters such a name may have.
    groups
        The node groups that it is connected to.
    force_params
        Accept parameters that the provider does not list.
    """

    op_id = "OP_STORAGE_POOL_ADD"

    pool_name: str
    disk_template: str | None = None
    provider: str | None = None
    params: Annotated[dict[str, Any], rights.DISK] = field(default_factory=dict)
    volume_name: str = ""
    longest: Count = 127
    groups: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    force_params: bool = False

    def made(self, view: View) -> StoragePool:
        """Return the pool; raise `Refused` if there can be none like it."""
        template = self._template()
        check_enabled(view.config, template)
        provider = check_provider_name(self.provider) if self.provider else None
        return StoragePool(
            uuid=view.fresh(),
            name=self.pool_name,
            template=template,
            provider=provider,
            params=presets(view.config.cluster, template, provider, self.params),
            volume_name=naming.check_pattern(
                self.volume_name, self.longest, self.pool_name
            ),
            longest=self.longest,
            groups=tuple(one.uuid for one in named_groups(view.config, self.groups)),
            ctime=view.now,
            mtime=view.now,
            tags=check_tags(self.tags),
        )

    def _template(self) -> str:
        if self.disk_template:
            return self.disk_template
        if not self.provider:
            raise BadInput(
                "a storage pool is of a disk template or of an ExtStorage provider",
                hint=f"gnt-storage pool add -t sharedfile {self.pool_name}",
            )
        return template_with_providers()

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name; share the groups."""
        yield Lock("pool", self.pool_name)
        for group in named_groups(view.config, self.groups):
            yield Lock("group", group.uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it works in its groups."""
        groups = named_groups(view.config, self.groups)
        yield from working.ask(view.config, self.made(view), groups)

    def check(self, view: View) -> None:
        """Refuse a name that is taken, and what does not work."""
        check_new_name(view.config, StoragePool, self.pool_name)
        pool = self.made(view)
        working.check_driver(view, pool, force=self.force_params)
        for group in named_groups(view.config, self.groups):
            working.check(view, pool, group)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it."""
        yield view.record(f"record storage pool {self.pool_name}", self.made(view))

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return str(results[-1][0])
