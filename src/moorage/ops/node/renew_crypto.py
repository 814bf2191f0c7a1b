# SPDX-License-Identifier: BSD-2-Clause
"""A node gets a new key and certificate while it serves, and its guests run."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Lock, Question, Task, View
from moorage.model.caller import Role
from moorage.ops import certificates

from .base import OnNode


class NodeRenewCrypto(OnNode, frozen=True, kw_only=True):
    """Give a node a new key, and the certificate of it; a candidate, one to lead with.

    The master asks for it by itself when a certificate has 120 days left, for a node of
    which no key is noted, and for a candidate that has none to lead with.

    Attributes
    ----------
    lead_only
        Give it a key to lead with, and leave the one that it serves with.
    force
        Believe the node by its certificate alone, whatever key it has: for records that
        are older than the key, as after a copy of the store was put back.
    """

    op_id = "OP_NODE_RENEW_CRYPTO"
    role = Role.ROOT

    force: bool = False
    lead_only: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the node's keys, but neither its guests nor its disks."""
        node = self.node(view)
        yield Lock("cluster", view.config.cluster.uuid, shared=True)
        yield Lock("node", node.uuid, shared=True)
        yield Lock("node", f"keys of {node.uuid}")

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for the new key."""
        node = self.node(view)
        if not self.lead_only:
            yield certificates.request_on(node, any_key=self.force)
        if self._leads(view):
            yield certificates.key_request_on(view, node)

    def _leads(self, view: View) -> bool:
        """Whether the node is to have a key to lead with; the master renews its own."""
        node = self.node(view)
        own = node.uuid == view.config.cluster.master_node
        return node.master_candidate and not own

    def check(self, view: View) -> None:
        """Refuse unless the node answers."""
        node = self.node(view)
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline: it keeps its certificate",
                hint=f"gnt-node modify --offline=no {node.name}",
            )
        if self.lead_only and not self._leads(view):
            raise WrongState(
                f"node {node.name} is no master candidate: it gets no key to lead with",
                hint=f"gnt-node modify -C yes {node.name}",
            )
        if not self.lead_only:
            view.answer(certificates.request_on(node, any_key=self.force))
        if self._leads(view):
            view.answer(certificates.key_request_on(view, node))

    def tasks(self, view: View) -> Iterator[Task]:
        """Renew it."""
        asked = node = self.node(view)
        if not self.lead_only:
            node = yield from certificates.renewal(view, node, any_key=self.force)
        if self._leads(view):
            yield from certificates.new_key(view, node, asked)
            yield from certificates.told(view)
