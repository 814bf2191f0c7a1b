# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node remove``: an empty node leaves the cluster."""

from collections.abc import Iterator

from moorage.errors import MoorageError, WrongState
from moorage.jobs import Lock, Question, Run, Task, View
from moorage.model import Cluster, Config, Disk, Node, successor
from moorage.model.caller import Role
from moorage.ops import certificates
from moorage.protocol import LeaveCluster
from moorage.units import counted

from .base import OnNode
from .residents import guests_on, named, unknown


def check_empty(config: Config, node: Node) -> None:
    """Raise `WrongState` while the configuration needs the node."""
    if config.cluster.master_node == node.uuid:
        raise WrongState(
            f"node {node.name} is the master: it cannot leave its cluster",
            hint="gnt-cluster destroy --yes-do-it",
        )
    instances = config.instances_on(node)
    if instances:
        names = ", ".join(one.name for one in instances[:3])
        more = ", ..." if len(instances) > 3 else ""
        raise WrongState(
            f"node {node.name} still has {counted(len(instances), 'instance')}: "
            f"{names}{more}",
            hint=f"gnt-node evacuate {node.name}",
        )
    copies = config.mirrored_on(node)
    if copies:
        raise WrongState(
            f"node {node.name} still keeps copies of "
            f"{counted(len(copies), 'mirrored disk')}, one is {copies[0].label}",
            hint=f"gnt-node evacuate -s {node.name}",
        )
    disks = [disk for disk in config.all(Disk) if node.uuid in disk.nodes]
    if disks:
        raise WrongState(
            f"node {node.name} still holds the data of "
            f"{counted(len(disks), 'disk')}, one is "
            f"{disks[0].label}",
            hint=f"gnt-disk list '\"{node.name}\" in nodes'; what is lost with it: "
            f"gnt-disk forget --reason WHY {disks[0].label}",
        )


class NodeRemove(OnNode, frozen=True, kw_only=True):
    """Take a node out of the cluster."""

    op_id = "OP_NODE_REMOVE"
    role = Role.ROOT

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the node, so that nothing comes to it; and the list of certificates."""
        yield Lock("cluster", view.config.cluster.uuid)
        yield Lock("node", self.node(view).uuid)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether guests run there that nobody knows."""
        node = self.node(view)
        if not node.offline:
            yield guests_on(node)

    def check(self, view: View) -> None:
        """Refuse while anything is left on the node, or nobody can tell."""
        node = self.node(view)
        check_empty(view.config, node)
        if node.offline:
            return
        try:
            found = view.answer(guests_on(node)) or []
        except MoorageError as error:
            raise unknown(node, error) from error
        alive = [guest for guest in found if guest.lives]
        if alive:
            raise WrongState(
                f"node {node.name} still runs {named(alive)}, which the cluster does "
                "not know there",
                hint="gnt-cluster verify",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Tell the node, and forget it with its certificate: there is no way back.

        A candidate is none before it is told: no commit waits for a node that left.
        """
        node = known = self.node(view)
        if node.master_candidate and not node.offline:
            node = successor(node, view.now, master_candidate=False, master_certs=())
            yield view.record(f"{node.name} is no candidate", node, final=True)
        if not node.offline:
            yield Run(
                what=f"tell {node.name} to leave",
                node=node.uuid,
                do=LeaveCluster(),
                final=True,
                tolerant=True,
            )
        left = _without_certificate(view, view.config.cluster, node)
        yield view.record(f"forget node {node.name}", *left, drop=(node,), final=True)
        if known.master_certs:
            yield from certificates.told(view, without=node.uuid)


def _without_certificate(
    view: View, cluster: Cluster, node: Node
) -> tuple[Cluster, ...]:
    known = cluster.candidate_certs
    if node.uuid not in known:
        return ()
    left = {uuid: digest for uuid, digest in known.items() if uuid != node.uuid}
    return (successor(cluster, view.now, candidate_certs=left),)
