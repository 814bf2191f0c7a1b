# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``: a guest whose process Ganeti started is taken over."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from moorage.errors import WrongState
from moorage.jobs import Ask, Operation, Question, Run, Task, View
from moorage.model import ForeignGuest, Instance, Node, pair_of
from moorage.model.caller import Role
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import unanswered
from moorage.ops.guests.liveness import guest
from moorage.ops.instance.base import OnInstance, attach_all
from moorage.ops.instance.starting import started
from moorage.protocol import AdoptGuest, ListForeignGuests


class InstanceAdoptGuest(OnInstance, frozen=True, kw_only=True):
    """Take over an instance's guest that Ganeti started, while it runs.

    One that was taken over already is left alone. One that cannot be is as it was; its
    disks stay attached, for it has them.
    """

    op_id = "OP_INSTANCE_ADOPT_GUEST"
    role = Role.OPERATE

    def check(self, view: View) -> None:
        """Refuse what has no such guest."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        found = guest(view, instance)
        if found is None or not found.origin:
            raise WrongState(
                f"instance {instance.name} has no guest that Ganeti started on node "
                f"{view.config.home(instance).name}",
                instance=instance.name,
            )
        if any(pair_of(disk) for disk in view.config.disks_of(instance)):
            raise WrongState(
                f"instance {instance.name} has mirrored disks: its guest cannot be "
                "taken over, for they are set up with both nodes at its start",
                instance=instance.name,
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach the disks, take the guest over, record that they are in use."""
        instance = self.instance(view)
        node = view.config.home(instance)
        disks = view.config.disks_of(instance)
        yield from attach_all(view, disks, node, held=True)
        yield Run(
            what=f"take over {instance.name} on {node.name}",
            node=node.uuid,
            do=AdoptGuest(
                **node_tasks.of_whole(view.config, instance, node), disks=tuple(disks)
            ),
        )
        yield from started(view, instance, remember=False)


class ForeignRow(Struct, frozen=True, kw_only=True):
    """A guest that Ganeti started.

    Attributes
    ----------
    node, name, uuid, pid
        Where it runs, what it is called, and which process it is.
    status
        ``adopted``, ``ready`` to be taken over, ``restart`` where it cannot be but its
        instance is on record, or ``unknown``, which is left alone.
    reason
        Why it is not adopted or ready, in a sentence.
    files
        What it has open that may be its disks.
    """

    node: str
    name: str
    uuid: str
    pid: int
    status: str
    reason: str = ""
    files: tuple[str, ...] = ()


class ForeignGuests(Struct, frozen=True, kw_only=True):
    """The guests of a cluster that Ganeti started.

    Attributes
    ----------
    silent
        Why nodes gave no answer, by name.
    """

    guests: list[ForeignRow]
    silent: dict[str, str]


class ClusterForeignGuests(Operation, frozen=True, kw_only=True):
    """Tell which guests of all nodes Ganeti started."""

    op_id = "OP_CLUSTER_FOREIGN_GUESTS"
    role = Role.READ

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is not marked offline."""
        return (_asked(node) for node in _online(view))

    def result(self, view: View, _results: Sequence[Any]) -> ForeignGuests:
        """Return a row for each guest, and why nodes did not answer."""
        rows = [
            _row(view, node, one)
            for node in _online(view)
            for one in view.told(_asked(node)) or ()
        ]
        return ForeignGuests(guests=rows, silent=unanswered(view, self.questions(view)))


def _online(view: View) -> list[Node]:
    return [node for node in view.config.all(Node) if not node.offline]


def _asked(node: Node) -> Ask[list[ForeignGuest]]:
    return Ask(node.uuid, ListForeignGuests())


def _row(view: View, node: Node, found: ForeignGuest) -> ForeignRow:
    status, reason = _status(view, node, found)
    return ForeignRow(
        node=node.name,
        name=found.name,
        uuid=found.uuid,
        pid=found.pid,
        status=status,
        reason=reason,
        files=found.files,
    )


def _status(view: View, node: Node, found: ForeignGuest) -> tuple[str, str]:
    """Return what becomes of a guest, and why."""
    if found.adopted:
        return "adopted", ""
    if not found.uuid:
        return "unknown", "its command line has no uuid"
    instance = view.config.objects.get(found.uuid)
    if not isinstance(instance, Instance):
        return "unknown", "no instance on record is this guest"
    if instance.primary_node != node.uuid:
        home = view.config.home(instance).name
        return "unknown", f"on record, {instance.name} is on node {home}"
    if any(pair_of(disk) for disk in view.config.disks_of(instance)):
        return "restart", "its disks are mirrored"
    return ("restart", found.monitor) if found.monitor else ("ready", "")
