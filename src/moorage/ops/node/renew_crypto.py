# SPDX-License-Identifier: BSD-2-Clause
"""A node gets a new key and certificate while it serves, and its guests run."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Lock, Question, Task, View
from moorage.ops import certificates

from .base import OnNode


class NodeRenewCrypto(OnNode, frozen=True, kw_only=True):
    """Give a node a new key, and the certificate of it.

    The master asks for it by itself when a certificate has 120 days left, and for a
    node of which no key is noted.

    Attributes
    ----------
    force
        Believe the node by its certificate alone, whatever key it has: for records that
        are older than the key, as after a copy of the store was put back.
    """

    op_id = "OP_NODE_RENEW_CRYPTO"

    force: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the node's keys, but neither its guests nor its disks."""
        node = self.node(view)
        yield Lock("cluster", view.config.cluster.uuid, shared=True)
        yield Lock("node", node.uuid, shared=True)
        yield Lock("node", f"keys of {node.uuid}")

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for the new key."""
        node = self.node(view)
        yield certificates.request_on(node, any_key=self.force)

    def check(self, view: View) -> None:
        """Refuse unless the node answers."""
        node = self.node(view)
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline: it keeps its certificate",
                hint=f"gnt-node modify --offline=no {node.name}",
            )
        view.answer(certificates.request_on(node, any_key=self.force))

    def tasks(self, view: View) -> Iterator[Task]:
        """Renew it."""
        node = self.node(view)
        yield from certificates.renewal(view, node, any_key=self.force)
