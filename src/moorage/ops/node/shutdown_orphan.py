# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node shutdown-orphan``: power down a guest that no instance is."""

from collections.abc import Iterator

from moorage.errors import Ambiguous, NotFound, WrongState
from moorage.jobs import Lock, Question, Run, Task, View
from moorage.model import GuestState, Instance, NodeFacts
from moorage.model.kinds import Seconds
from moorage.ops.asking.node_tasks import facts_on
from moorage.ops.asking.silence import check_online
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT
from moorage.protocol import StopGuest

from .base import OnNode


class NodeShutdownOrphan(OnNode, frozen=True, kw_only=True):
    """Power down a guest of a node that the configuration does not know.

    One is left where a backup was restored that does not know it. What it wrote stays,
    and so do its disks: nobody knows whose they are.

    Attributes
    ----------
    guest
        Its uuid, or its name, if nothing else has that.
    timeout
        How long the guest gets; then its process is ended.
    """

    op_id = "OP_NODE_SHUTDOWN_ORPHAN"

    guest: str
    timeout: Seconds = SHUTDOWN_TIMEOUT

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the node alone: a guest that is being made there is on record first."""
        yield Lock("node", self.node(view).uuid)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the node which guests it has."""
        yield facts_on(self.node(view))

    def check(self, view: View) -> None:
        """Refuse a guest that is an instance, and one that is not there."""
        check_online(self.node(view))
        self._found(view)

    def _facts(self, view: View) -> NodeFacts:
        """Return what the node says of itself; raise what came instead."""
        return view.answer(facts_on(self.node(view))) or NodeFacts(version="")

    def _found(self, view: View) -> GuestState:
        node, config = self.node(view), view.config
        guests = self._facts(view).guests
        found = [one for one in guests if self.guest in (one.uuid, one.name)]
        for one in found:
            instance = config.objects.get(one.uuid)
            if isinstance(instance, Instance):
                raise WrongState(
                    f"guest {self.guest} of node {node.name} is instance "
                    f"{instance.name}: it is not ended behind the back of its record",
                    hint=f"gnt-instance shutdown {instance.name}",
                    node=node.name,
                    instance=instance.name,
                )
        if not found:
            raise NotFound(
                f"node {node.name} has no guest '{self.guest}'",
                hint="gnt-cluster verify",
            )
        if len(found) > 1 or self._is_taken(view, found[0]):
            told = ", ".join(one.uuid for one in found)
            raise Ambiguous(
                f"more than one guest is called '{self.guest}': those of node "
                f"{node.name} that nobody knows are {told}",
                hint=f"gnt-node shutdown-orphan {node.name} {found[0].uuid}",
            )
        return found[0]

    def _is_taken(self, view: View, guest: GuestState) -> bool:
        """Whether the name that was typed is an instance's, too, which is elsewhere."""
        return guest.uuid != self.guest and view.config.knows(Instance, self.guest)

    def tasks(self, view: View) -> Iterator[Task]:
        """Power it down; which hypervisor runs it, its node knows."""
        node, guest = self.node(view), self._found(view)
        for hypervisor in self._facts(view).hypervisors:
            yield Run(
                what=f"stop {guest.name or guest.uuid}, which is no instance, on "
                f"{node.name}",
                node=node.uuid,
                do=StopGuest(
                    uuid=guest.uuid,
                    name=guest.name,
                    hypervisor=hypervisor,
                    timeout=self.timeout,
                ),
                final=True,
            )
