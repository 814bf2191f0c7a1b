# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance activate-disks`` and ``deactivate-disks``: the disks without it."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import WrongState
from moorage.jobs import Sought, Task, View
from moorage.jobs.unread import Idle
from moorage.model.caller import Role
from moorage.ops.asking import node_tasks
from moorage.ops.guests.foreign import check_taken
from moorage.ops.guests.liveness import check_nowhere_else, holds, runs, seek
from moorage.ops.instance.base import OnInstance, check_answers
from moorage.ops.instance.starting import recorded
from moorage.ops.volumes import copies

Left = tuple[dict[str, str], list[str], dict[str, list[str]]]
"""Why nodes are silent, instances to activate, and volumes that they lack."""


class InstanceActivateDisks(OnInstance, frozen=True, kw_only=True):
    """Attach an instance's disks on its node without starting it.

    Attributes
    ----------
    ignore_size
        Take devices that have another size than their records say.
    wait_for_sync
        Whether the job lasts until both copies of mirrored disks are the same.
    verified
        Whether it follows ``OP_CLUSTER_VERIFY_DISKS``: Ganeti's clients are told what
        is left to them of silent nodes, instances and volumes, which is nothing.
    """

    op_id = "OP_INSTANCE_ACTIVATE_DISKS"
    role = Role.OPERATE

    ignore_size: bool = False
    wait_for_sync: bool = False
    verified: bool = False

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest."""
        yield from seek(view.config, self.instance(view))

    def check(self, view: View) -> None:
        """Refuse while another node has the disks for its guest."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        check_nowhere_else(view, instance)
        check_taken(view, instance)
        node = view.config.home(instance)
        for disk in view.config.disks_of(instance):
            copies.check_alone(view.config, disk, node)

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach, and record it."""
        instance = self.instance(view)
        node = view.config.home(instance)
        held, disks = holds(view, instance), view.config.disks_of(instance)
        for disk in disks:
            for peer in copies.peers(view.config, disk, node):
                late = runs(view, instance)
                yield copies.follow(view.config, disk, peer, held=held, tolerant=late)
            yield node_tasks.attach(
                view.config, disk, node, held=held, ignore_size=self.ignore_size
            )
        yield from recorded(view, instance, instance.admin_state, active=True)
        for disk in disks if self.wait_for_sync else ():
            yield from copies.wait(view.config, disk, node)

    def result(self, view: View, results: Sequence[Any]) -> list[list[str]] | Left:
        """Return node, slot and device or URI of each disk."""
        if self.verified:
            return {}, [], {}
        instance = self.instance(view)
        node = view.config.home(instance)
        found, at = [], 0
        for slot, disk in enumerate(view.config.disks_of(instance)):
            at += len(copies.peers(view.config, disk, node))  # they came first
            where, at = results[at], at + 1
            uris = sorted((where or {}).get("uris", {}).values())
            reached = (where or {}).get("path") or next(iter(uris), "")
            found.append([node.name, f"disk/{slot}", reached])
        return found


class InstanceDeactivateDisks(OnInstance, frozen=True, kw_only=True):
    """Detach the disks of an instance that does not run."""

    op_id = "OP_INSTANCE_DEACTIVATE_DISKS"
    role = Role.OPERATE

    force: Annotated[
        bool, Idle("the disks of a guest that runs are never detached")
    ] = False

    def check(self, view: View) -> None:
        """Refuse while it runs."""
        check_answers(view, self.instance(view))
        instance = self.instance(view)
        if runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is running: its disks are in use",
                hint=f"gnt-instance shutdown {instance.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Detach, and record it."""
        instance = self.instance(view)
        node = view.config.home(instance)
        for disk in view.config.disks_of(instance):
            yield from copies.let_go(view.config, disk, node)
        yield from recorded(view, instance, instance.admin_state, active=False)
