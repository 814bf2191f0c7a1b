# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster verify-disks``: disks that a node should hold, and does not."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.jobs import Operation, Question, View
from moorage.jobs.results import Following
from moorage.model import Instance, Node, pair_of
from moorage.model.caller import Role
from moorage.ops.asking.node_tasks import facts_on
from moorage.ops.asking.silence import unanswered
from moorage.ops.volumes import behind, copies, pairs

from . import checks_mirrors

_ACTIVATE = "OP_INSTANCE_ACTIVATE_DISKS"


class Looked(Following, frozen=True, kw_only=True):
    """What the look at disks found; the jobs that follow activate them.

    Attributes
    ----------
    silent
        Why a node gave no answer, by its name.
    degraded
        Instance, disk and state of each mirror whose copies differ.
    """

    silent: dict[str, str]
    degraded: list[list[str]]


class ClusterVerifyDisks(Operation, frozen=True, kw_only=True):
    """Find instances whose disks are not attached, or not mirrored, as they should be.

    It holds no locks: the jobs that follow look again.

    Attributes
    ----------
    group_name
        Of this node group alone.
    """

    op_id = "OP_CLUSTER_VERIFY_DISKS"
    role = Role.OPERATE

    group_name: str | None = None

    def nodes(self, view: View) -> list[Node]:
        """Return the nodes that are asked."""
        config = view.config
        wanted = config.group(self.group_name).uuid if self.group_name else ""
        return [node for node in config.online() if wanted in ("", node.group)]

    def questions(self, view: View) -> Iterator[Question]:
        """Ask each node once what it holds."""
        for node in self.nodes(view):
            yield facts_on(node)
        yield from checks_mirrors.ask(view.config)

    def check(self, view: View) -> None:
        """Refuse nothing but the name of a group that is not known."""
        self.nodes(view)

    def _lacking(self, view: View) -> list[Instance]:
        found: list[Instance] = []
        for node in self.nodes(view):
            facts = view.told(facts_on(node))
            if facts is None:
                continue
            held = {one.disk for one in facts.held}
            here = view.config.instances_on(node)
            # Disks of Ganeti's guests are held once somebody takes them over.
            foreign = {one.uuid for one in facts.guests if one.origin == "foreign"}
            active = [
                one for one in here if one.disks_active and one.uuid not in foreign
            ]
            found += [
                one
                for one in active
                if not held.issuperset(one.disks) or _is_degraded(view, one, node)
            ]
        return found

    def _told(self, view: View) -> list[list[str]]:
        """Return instance, disk and state of each mirror whose copies differ."""
        found = []
        for node in self.nodes(view):
            for instance in view.config.instances_on(node):
                for disk in view.config.disks_of(instance):
                    side = behind.side(view, disk, node) if pair_of(disk) else None
                    if side and instance.disks_active and not side.in_sync:
                        state = f"node {node.name} says {pairs.told(side)}"
                        found.append([instance.name, disk.label, state])
        return found

    def jobs(self, view: View) -> list[list[dict[str, Any]]]:
        """Return a job for each instance."""
        return [
            [{"OP_ID": _ACTIVATE, "instance_name": one.name, "verified": True}]
            for one in self._lacking(view)
        ]

    def result(self, view: View, _results: Sequence[Any]) -> Looked:
        """Return whom the jobs are for, and why nodes did not answer."""
        silent = unanswered(view, map(facts_on, self.nodes(view)))
        names = tuple(one.name for one in self._lacking(view))
        return Looked(names=names, silent=silent, degraded=self._told(view))


def _is_degraded(view: View, instance: Instance, home: Node) -> bool:
    """Whether copies are to be connected, or are not as the record says."""
    for disk in view.config.disks_of(instance):
        if pair_of(disk) is None:
            continue
        found, others = behind.side(view, disk, home), copies.peers
        if behind.known(view, disk, home) != disk.behind:
            return True
        if found and not found.connected and others(view.config, disk, home):
            return True
    return False
