# SPDX-License-Identifier: BSD-2-Clause
"""Another primary node by decree: ``gnt-instance modify --new-primary``."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Question, View
from moorage.model import Instance, Node
from moorage.ops.guests.liveness import check_known, check_nowhere_else
from moorage.ops.instance.base import check_at_rest, check_detached
from moorage.ops.volumes import behind, pairs
from moorage.ops.volumes.disk_access import ask_reach, check_reach


def ask(view: View, instance: Instance, node: Node) -> Iterator[Question]:
    """Ask whether the node reaches the disks."""
    disks = view.config.disks_of(instance)
    yield from ask_reach(view.config, disks, node)
    yield from pairs.ask(view.config, disks)


def check(view: View, instance: Instance, node: Node) -> None:
    """Raise unless an instance that is down can begin on another node."""
    check_known(view, instance)
    check_at_rest(view, instance, "given another primary node")
    check_nowhere_else(view, instance)
    check_detached(view, instance)
    home = view.config.home(instance)
    if not node.is_host:
        raise WrongState(
            f"node {node.name} is marked offline or not vm_capable",
            hint=f"gnt-node info {node.name}",
        )
    if node.group != home.group:
        raise WrongState(
            f"node {node.name} is in another node group than {home.name}",
            hint=f"gnt-instance change-group {instance.name}",
        )
    disks = view.config.disks_of(instance)
    for disk in disks:
        check_reach(view, disk, node)
    insist = f"gnt-instance failover --ignore-consistency {instance.name}"
    behind.check_current(view, disks, node, home, active=False, hint=insist)
