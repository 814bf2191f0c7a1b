# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster renew-crypto``: new keys and certificates, while everything runs."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.jobs.results import Following
from moorage.jobs.unread import Moot
from moorage.model import Node
from moorage.model.caller import Role
from moorage.model.kinds import Count
from moorage.ops import certificates
from moorage.protocol import (
    AbandonAuthority,
    PrepareAuthority,
    RetireAuthority,
    SwitchAuthority,
)

_NO_SSH = Moot("nodes are reached over TLS, not by ssh")


class ClusterRenewCrypto(Operation, frozen=True, kw_only=True):
    """Renew the master's key, the nodes', and the authority.

    Attributes
    ----------
    node_certificates
        New certificates of all nodes and of the master; each node is a job of its own.
    cluster_certificate
        A new authority, and with it all keys, in one job. The master trusts both
        authorities until it ends.
    force
        Believe nodes by their certificates alone, whatever keys they have; with a new
        authority, shut out nodes that are marked offline: they know the old one only.
    """

    op_id = "OP_CLUSTER_RENEW_CRYPTO"
    role = Role.ROOT

    node_certificates: bool = False
    cluster_certificate: bool = False
    force: bool = False
    renew_ssh_keys: Annotated[bool, _NO_SSH] = False
    ssh_key_type: Annotated[str | None, _NO_SSH] = None
    ssh_key_bits: Annotated[Count | None, _NO_SSH] = None

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the authority; where it changes, nobody may come in or go."""
        shared = not self.cluster_certificate
        yield Lock("cluster", view.config.cluster.uuid, shared=shared)
        for node in view.config.named(Node) if self.cluster_certificate else ():
            yield Lock("node", node.uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes for new keys, and how far the authority is."""
        yield certificates.key_request_on(view, _own(view))
        if self.cluster_certificate:
            yield certificates.authority_on(view)
            yield from (certificates.request_on(node) for node in view.config.online())
            for node in _candidates(view):
                yield certificates.key_request_on(view, node)

    def check(self, view: View) -> None:
        """Refuse to shut out a node that is off for a while, or silent."""
        if not (self.node_certificates or self.cluster_certificate):
            raise BadInput(
                "nothing to renew was named",
                hint=certificates.RENEW_NODES,
            )
        if not self.cluster_certificate:
            return
        off = [node.name for node in _offline(view)]
        if off and not self.force:
            raise WrongState(
                f"node {off[0]} is marked offline: it would not know the new authority",
                hint=f"{certificates.RENEW_AUTHORITY} --force; such a node comes back "
                "with gnt-node add --readd",
            )
        view.answer(certificates.authority_on(view))
        for node in view.config.online():
            view.answer(certificates.request_on(node))
        for node in _candidates(view):
            view.answer(certificates.key_request_on(view, node))

    def warnings(self, view: View) -> Iterator[str]:
        """Name the nodes that are left out."""
        told = "keeps its certificate"
        if self.cluster_certificate:
            told = "is shut out: it comes back with gnt-node add --readd"
        for node in _offline(view):
            yield f"node {node.name} is marked offline, and {told}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Renew the master's own key, or let an authority follow another."""
        if not self.cluster_certificate:
            yield from certificates.new_key(view, _own(view))
            yield from certificates.told(view)
            return
        yield self._begun(view)
        for node in view.config.online():
            new = yield from certificates.renewal(view, node, by_next=True)
            if node in (*_candidates(view), _own(view)):
                yield from certificates.new_key(view, new, node)
        what = "let the new authority sign"
        yield certificates.on_master(view, what, SwitchAuthority(), final=True)
        yield from certificates.told(view)
        what = "trust the new authority alone"
        yield certificates.on_master(view, what, RetireAuthority(), final=True)

    def _begun(self, view: View) -> Task:
        """Return what makes the next authority; the master trusts both.

        It is taken back only by the job that began it: after one that came to no end,
        nodes may have certificates of the next authority already.
        """
        said = view.answer(certificates.authority_on(view))
        first = said is not None and said.trusted == 1
        return certificates.on_master(
            view,
            "make a new authority",
            PrepareAuthority(),
            undo=AbandonAuthority() if first else None,
        )

    def jobs(self, view: View) -> list[list[dict[str, Any]]]:
        """Return a job for each node."""
        if self.cluster_certificate:
            return []
        op: dict[str, Any] = {"OP_ID": "OP_NODE_RENEW_CRYPTO"}
        op |= {"force": True} if self.force else {}
        return [[op | {"node_name": node.name}] for node in view.config.online()]

    def result(self, view: View, _results: Sequence[Any]) -> Following:
        """Return whom the jobs are for, in their order."""
        nodes = [] if self.cluster_certificate else view.config.online()
        return Following(names=tuple(node.name for node in nodes))


def _own(view: View) -> Node:
    return view.config.node(view.config.cluster.master_node)


def _candidates(view: View) -> list[Node]:
    """Return the nodes that get a new key to lead with, besides the master."""
    online = view.config.online()
    return [one for one in online if one.master_candidate and one != _own(view)]


def _offline(view: View) -> list[Node]:
    return [node for node in view.config.named(Node) if node.offline]
