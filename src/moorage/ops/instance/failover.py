# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance failover``: an instance starts again on another node."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from moorage.jobs import Run, Sought, Task, View
from moorage.jobs.unread import Unsupported
from moorage.model import Disk, Node
from moorage.model.caller import Role
from moorage.model.kinds import Seconds
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import rescue
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import (
    check_known,
    check_nowhere_else,
    holds,
    runs,
    seek,
)
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT, detach_all
from moorage.ops.instance.relocation import ToAnotherNode, check_mobile, disks_in, moved
from moorage.ops.planning import processors
from moorage.ops.volumes import copies
from moorage.ops.volumes.disk_access import can, check_sound
from moorage.protocol import AbortGuest, OpenDisk
from moorage.storage import Can


class InstanceFailover(ToAnotherNode, frozen=True, kw_only=True):
    """Stop an instance where it is, if it is anywhere, and start it elsewhere.

    A node that gives no answer may still run it. So this is refused until the node
    answers, or somebody has said that it is off.

    Attributes
    ----------
    shutdown_timeout
        How long the guest gets to shut down.
    ignore_consistency
        Whether it goes on with a second copy that lacks what was written last.
    start
        Whether it is started there, if it should run.
    """

    op_id = "OP_INSTANCE_FAILOVER"
    role = Role.OPERATE

    ignore_consistency: bool = False
    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT
    start: bool = True
    cleanup: Annotated[
        bool, Unsupported("a failover that broke is undone by itself")
    ] = False

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse while nobody can tell whether the old node still runs it."""
        instance = self.instance(view)
        check_nowhere_else(view, instance)
        check_mobile(view, instance, "failover")
        check_known(view, instance)
        for disk in view.config.disks_of(instance):
            check_sound(disk)
        self.check_target(view)
        if self.start and instance.admin_state == "up":
            processors.check_starts(view.config, instance)
        if not self.ignore_consistency:
            self.check_current(view)

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop and detach at the old node; record; attach and start at the new one."""
        config, instance = view.config, self.instance(view)
        source, target = config.home(instance), self.target(view)
        disks = config.disks_of(instance)
        if not source.offline:
            if runs(view, instance):
                patience = self.shutdown_timeout
                yield guest_tasks.stop(config, instance, disks, source, patience)
                # The line may have broken since it was looked at: then what the guest
                # wrote on its way down is here alone, and it starts here again.
                for disk in () if self.ignore_consistency else disks:
                    yield from copies.wait(config, disk, source, firm=True)
            if holds(view, instance):
                yield from _closed(view, disks, source)
            yield from detach_all(view, instance, source)
        starts = self.start and instance.admin_state == "up"
        lost = self.ignore_consistency or (source.offline and starts)
        there = moved(view, instance, target, active=starts, lost=lost)
        yield view.record(f"record {instance.name} on {target.name}", *there)
        if starts:
            # Undone, it is on its node again, and starts there if that is on.
            again = rescue(config, instance) if source.offline else ""
            for task in self._started(view, disks_in(there), target):
                yield replace(task, hint=again)

    def _started(self, view: View, disks: list[Disk], target: Node) -> Iterator[Run]:
        instance = self.instance(view)
        if self._waits(view, target):
            yield Run(
                what=f"end what waits for {instance.name} on {target.name}",
                node=target.uuid,
                do=AbortGuest(**node_tasks.of_guest(instance)),
            )
        for disk in disks:
            seized = self.ignore_consistency
            yield from copies.take_over(view.config, disk, target, seized=seized)
        yield guest_tasks.start(view.config, instance, disks, target)

    def _waits(self, view: View, target: Node) -> bool:
        """Whether a migration that broke left a guest waiting on the target."""
        found = view.told(node_tasks.guest_on(target.uuid, self.instance(view)))
        return found is not None and found.state == "incoming"


def _closed(view: View, disks: list[Disk], node: Node) -> Iterator[Task]:
    for disk in disks:
        if can(disk, Can.OPEN):
            again = OpenDisk(**node_tasks.of_disk(view.config, disk), alone=True)
            yield replace(copies.close(view.config, disk, node), undo=again)
