# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance remove``: an instance and its attached disks; detached ones stay."""

from collections.abc import Iterator
from typing import Annotated

from moorage.errors import WrongState
from moorage.jobs import Task, View, commit
from moorage.jobs.unread import Idle, Moot
from moorage.model import Change, successor
from moorage.ops import calls
from moorage.ops.instance.common import put_down
from moorage.ops.instance.power import PATIENCE, OnInstance


class InstanceRemove(OnInstance, frozen=True, kw_only=True):
    """Destroy an instance, with the disks that are attached to it.

    Once it is forgotten there is no way back: each disk is then removed on its own,
    and one that cannot be is left detached and quarantined.
    """

    op_id = "OP_INSTANCE_REMOVE"

    ignore_failures: Annotated[
        bool, Idle("a disk that cannot be removed is left detached")
    ] = False
    shutdown_timeout: float = PATIENCE
    force: Annotated[bool, Moot("only people are asked")] = False

    def check(self, view: View) -> None:
        """Refuse on a node that is offline or silent: nothing could be removed."""
        try:
            OnInstance.check(self, view)
        except WrongState as refusal:
            disks = view.config.disks_of(self.instance(view))
            if any(disk.quarantine for disk in disks):
                labels = " ".join(disk.uuid for disk in disks if disk.quarantine)
                refusal.with_hint(f"first: gnt-disk detach {labels}")
            raise

    def tasks(self, view: View) -> Iterator[Task]:
        """Stop, detach, forget; then remove one disk after the other."""
        config, instance = view.config, self.instance(view)
        node = config.node(instance.primary_node)
        disks = config.disks_of(instance)
        yield from put_down(view, instance, node, self.shutdown_timeout)
        left = tuple(
            successor(disk, view.now, epoch=disk.epoch + 1, group=node.group)
            for disk in disks
        )
        change = Change(left, (instance,))
        what = f"forget {instance.name}"
        yield commit(what, change, config.before(change), final=True)
        for disk in left:
            yield calls.remove(config, disk, node)
            yield commit(f"forget disk {disk.label}", Change((), (disk,)), {})
