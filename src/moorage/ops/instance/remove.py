# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance remove``: an instance and its attached disks; detached ones stay."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from moorage.errors import MoorageError, WrongState
from moorage.jobs import Lock, Question, Sought, Task, View
from moorage.jobs.unread import Moot
from moorage.model import Disk, Instance, Node, successor
from moorage.model.kinds import Seconds
from moorage.ops.guests.liveness import (
    check_known,
    check_unused,
    holds,
    last_holder,
    seek,
)
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT, OnInstance, put_down
from moorage.ops.volumes import behind, copies
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_access import (
    ask_candidates,
    candidates,
    check_own,
    elsewhere,
    remover,
)
from moorage.ops.volumes.disk_names import (
    freed,
    hold_freed,
    hold_leaving,
    leaving,
    told_freed,
)


class InstanceRemove(OnInstance, frozen=True, kw_only=True):
    """Destroy an instance, with the disks that are attached to it.

    Once it is forgotten there is no way back: each disk is then removed on its own,
    and one that cannot be is left detached and quarantined.

    Attributes
    ----------
    shutdown_timeout
        How long the guest gets to shut down.
    ignore_failures
        Let the instance go although its node is marked offline, or storage fails; the
        job is a success, and its warnings say what stays behind. A guest that cannot
        be stopped is no failure to ignore: it may still write.
    keep_disks
        Whether its disks stay, detached, with all their data.
    """

    op_id = "OP_INSTANCE_REMOVE"

    ignore_failures: bool = False
    keep_disks: bool = False
    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT
    force: Annotated[bool, Moot("only people are asked")] = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks; share the nodes that do the work."""
        yield from OnInstance.locks(self, view)
        if self.keep_disks:
            disks = view.config.disks_of(self.instance(view))
            yield from hold_freed(view.config, disks)
        for disk in self._destroyed(view):
            yield from hold_leaving(disk)
        for disk in self._elsewhere(view):
            for node in candidates(view.config, disk):
                yield Lock("node", node.uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and who can work on disks that its node cannot."""
        yield from OnInstance.questions(self, view)
        for disk in self._elsewhere(view):
            yield from ask_candidates(view.config, disk)
        yield from ask_dependents(view.config, self._destroyed(view))

    def _destroyed(self, view: View) -> list[Disk]:
        """Return the disks that go with it."""
        return [] if self.keep_disks else view.config.disks_of(self.instance(view))

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest, which would use the disks."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent: nothing could be removed."""
        instance = self.instance(view)
        check_unused(view, instance)
        if self.ignore_failures:
            check_known(view, instance)
            return
        try:
            OnInstance.check(self, view)
        except WrongState as refusal:
            disks = view.config.disks_of(instance)
            if any(disk.quarantine for disk in disks):
                labels = " ".join(disk.uuid for disk in disks if disk.quarantine)
                refusal.with_hint(f"first: gnt-disk detach {labels}")
            elif view.config.home(instance).offline:
                again = f"gnt-instance remove --ignore-failures {instance.name}"
                if again not in refusal.hint:
                    refusal.with_hint(f"{refusal.hint}, or: {again}")
            raise
        check_no_dependents(view, self._destroyed(view))

    def warnings(self, view: View) -> Iterator[str]:
        """Say which disks stay behind, for no node can remove them."""
        instance = self.instance(view)
        node = view.config.home(instance)
        if self.keep_disks:
            yield from told_freed(view.config, view.config.disks_of(instance))
        for disk in self._destroyed(view):
            yield from copies.left_behind(view.config, disk)
        for disk in self._doubtful(view):
            try:
                check_own(disk)
                remover(view, _freed(view, instance, disk), node)
            except MoorageError as error:
                yield f"disk {disk.label} stays behind: {error.message}; {error.hint}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop, detach, forget; then remove the disks, one after the other."""
        config, instance = view.config, self.instance(view)
        node = config.home(instance)
        if not node.offline:
            yield from put_down(view, instance, node, self.shutdown_timeout)
        left = self._left(view)
        yield view.record(
            f"forget {instance.name}", *left, drop=(instance,), final=True
        )
        for disk in () if self.keep_disks else left:
            yield from self._removed(view, disk, node)

    def _left(self, view: View) -> list[Disk]:
        """Return its disks, once they belong to nobody, by names that are free then."""
        instance, config = self.instance(view), view.config
        disks = config.disks_of(instance)
        names = {one.uuid: leaving(config, one) for one in disks}
        if self.keep_disks:
            names = freed(config, disks)
        return [
            replace(_freed(view, instance, disk), **names[disk.uuid]) for disk in disks
        ]

    def _removed(self, view: View, disk: Disk, node: Node) -> Iterator[Task]:
        """Yield the removal of a disk; nothing where no node can, or may, do it."""
        try:
            check_own(disk)
            node = remover(view, disk, node)
        except MoorageError:
            return  # the warnings tell it
        yield from copies.destroy(view, disk, node, tolerant=self.ignore_failures)

    def _doubtful(self, view: View) -> list[Disk]:
        """Return the disks that may stay behind."""
        away = {disk.uuid for disk in self._elsewhere(view)}
        gone = self._destroyed(view)
        return [disk for disk in gone if disk.uuid in away or disk.unproven]

    def _elsewhere(self, view: View) -> list[Disk]:
        """Return the disks that another node may have to remove.

        Their own is off, or is not known to have held them.
        """
        if self.keep_disks:
            return []
        instance = self.instance(view)
        node = view.config.home(instance)
        disks = view.config.disks_of(instance)
        if not node.offline:
            return [disk for disk in disks if elsewhere(disk, node)]
        left = [_freed(view, instance, disk) for disk in disks]
        return left if self.ignore_failures else []


def _freed(view: View, instance: Instance, disk: Disk) -> Disk:
    """Return a disk that the instance leaves, in an epoch of its own."""
    node = view.config.home(instance)
    return successor(
        disk,
        view.now,
        epoch=disk.epoch + 1,
        group=node.group,
        last_node=last_holder(view, instance, disk),
        behind=behind.freed(view, disk, node, active=holds(view, instance)),
    )
