# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster verify-disks``: disks that a node should hold, and does not."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import MoorageError
from moorage.jobs import Lock, Operation, Question, View
from moorage.model import Instance, Node
from moorage.ops.node_tasks import facts_on


class ClusterVerifyDisks(Operation, frozen=True, kw_only=True):
    """Find instances whose disks are recorded as attached and are not; attach them.

    Attributes
    ----------
    group_name
        Of this node group alone.
    """

    op_id = "OP_CLUSTER_VERIFY_DISKS"

    group_name: str | None = None

    def nodes(self, view: View) -> list[Node]:
        """Return the nodes that are asked."""
        config = view.config
        wanted = config.group(self.group_name).uuid if self.group_name else ""
        nodes = config.named(Node)
        return [n for n in nodes if not n.offline and wanted in ("", n.group)]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold nothing: the jobs that follow look again."""
        del view
        return iter(())

    def questions(self, view: View) -> Iterator[Question]:
        """Ask each node once what it holds."""
        return (facts_on(node) for node in self.nodes(view))

    def check(self, view: View) -> None:
        """Refuse nothing but the name of a group that is not known."""
        self.nodes(view)

    def _lacking(self, view: View) -> list[Instance]:
        found: list[Instance] = []
        for node in self.nodes(view):
            try:
                facts = view.answer(facts_on(node))
            except MoorageError:
                continue
            held = {one.disk for one in facts.held} if facts else set()
            here = view.config.instances_on(node)
            active = [one for one in here if one.disks_active]
            found += [one for one in active if not held.issuperset(one.disks)]
        return found

    def jobs(self, view: View) -> list[list[dict[str, Any]]]:
        """Return a job for each instance."""
        return [
            [{"OP_ID": "OP_INSTANCE_ACTIVATE_DISKS", "instance_name": one.name}]
            for one in self._lacking(view)
        ]

    def result(self, view: View, results: Sequence[Any]) -> dict[str, Any]:
        """Return whom the jobs are for, and why nodes did not answer."""
        del results
        silent: dict[str, str] = {}
        for node in self.nodes(view):
            try:
                view.answer(facts_on(node))
            except MoorageError as error:
                silent[node.name] = error.message
        names = [one.name for one in self._lacking(view)]
        return {"jobs": [], "names": names, "silent": silent}
