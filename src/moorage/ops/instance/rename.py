# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance rename``: the instance has another name; its volumes keep theirs."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec.structs import force_setattr

from moorage.jobs import Lock, Question, Sought, Task, View
from moorage.jobs.unread import Moot
from moorage.model import successor
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams
from moorage.ops.guests.liveness import check_nowhere_else, seek
from moorage.ops.instance import names
from moorage.ops.instance.base import OnInstance, check_at_rest, with_disks


class InstanceRename(OnInstance, frozen=True, kw_only=True):
    """Rename an instance that is down.

    Its OS definition is told, if it has one: what the system calls itself is the
    business of the definition's rename script, and its failure a warning.

    Attributes
    ----------
    new_name
        A name of a host; it is not resolved.
    """

    op_id = "OP_INSTANCE_RENAME"

    new_name: str
    ip_check: Annotated[bool, Moot("nobody pings an address")] = True
    name_check: Annotated[bool, Moot("no name is resolved")] = True

    def __post_init__(self) -> None:
        """Write the name in small letters, as host names are."""
        force_setattr(self, "new_name", self.new_name.lower())

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance, its disks, and the new name."""
        yield from OnInstance.locks(self, view)
        yield Lock("instance", self.new_name)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and whether its node has its OS."""
        yield from OnInstance.questions(self, view)
        if self._has_system(view):
            yield node_tasks.oses_on(self.instance(view).primary_node)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, if a script writes to its disks."""
        if self._has_system(view):
            yield from seek(view.config, self.instance(view))

    def _has_system(self, view: View) -> bool:
        instance = self.instance(view)
        return bool(instance.os and instance.disks)

    def check(self, view: View) -> None:
        """Refuse while it runs, and a name that is taken or none."""
        OnInstance.check(self, view)
        check_at_rest(view, self.instance(view), "renamed")
        check_nowhere_else(view, self.instance(view))
        names.check(view.config, self.new_name)

    def _why_untold(self, view: View) -> str:
        """Return why the OS's script cannot run; empty if it can."""
        instance = self.instance(view)
        node = view.config.home(instance)
        own = osparams.of_instance(instance)
        return osparams.missing(view, node, instance.os, own)

    def warnings(self, view: View) -> Iterator[str]:
        """Say that the system on the disks is not told."""
        if self._has_system(view) and self._why_untold(view):
            yield f"the system on the disks is not told: {self._why_untold(view)}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name; then tell the OS, and the storage."""
        old = self.instance(view)
        new = successor(old, view.now, name=self.new_name)
        yield view.record(f"record {old.name} as {new.name}", new)
        node = view.config.home(old)
        if self._has_system(view) and not self._why_untold(view):
            disks = view.config.disks_of(new)
            told = osparams.rename(view, new, old.name, node, disks)
            yield from with_disks(view, old, node, [told])
        for disk in view.config.disks_of(old):
            yield node_tasks.setinfo(view.config, disk, node, new.name)

    def result(self, _view: View, _results: Sequence[Any]) -> str:
        """Return the new name, as Ganeti does."""
        return self.new_name
