# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node add``: a machine becomes a node of the cluster."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, Exists, NotFound
from moorage.jobs import Commit, Lock, Operation, Run, Task, View, commit
from moorage.model import Change, Node, successor
from moorage.model.token import Token, from_text
from moorage.ops.candidates import room_for_one
from moorage.ops.disk_access import only_group
from moorage.ops.ndparams import checked
from moorage.protocol import EnrolNode, ExpelNode

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ANEW = "; it makes one when its directory keys is emptied and it is started anew"


class NodeAdd(Operation, frozen=True, kw_only=True):
    """Let a node in.

    Attributes
    ----------
    token
        What the node's agent printed. It names the key that the node is known by from
        then on, and no other.
    group
        Name of the node group; the only one when there is one.
    readd
        Give a node that is known a new certificate, at the place the token names.
    """

    op_id = "OP_NODE_ADD"

    node_name: str
    token: str | None = None
    primary_ip: str | None = None
    secondary_ip: str | None = None
    group: str | None = None
    readd: bool = False
    master_capable: bool = True
    vm_capable: bool = True
    ndparams: dict[str, Any] = {}

    def _token(self) -> Token:
        if not self.token:
            raise BadInput(
                f"node {self.node_name} can be added with its token only",
                hint="its agent keeps it in the file join-token: give --token-file"
                + _ANEW * self.readd,
            )
        return from_text(self.token)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name, or the node that is added again; and the authority."""
        yield Lock("cluster", view.config.cluster.uuid, shared=True)
        known = view.config.knows(Node, self.node_name)
        uuid = view.config.node(self.node_name).uuid if known else self.node_name
        yield Lock("node", uuid)

    def check(self, view: View) -> None:
        """Refuse names that are taken, or that no certificate could carry."""
        token = self._token()
        check_reachable(self.primary_ip or token.address)
        if not _NAME.fullmatch(self.node_name):
            raise BadInput(
                f"'{self.node_name}' is not a node name: lower-case letters, digits, "
                "dots and dashes"
            )
        known = view.config.knows(Node, self.node_name)
        if known and not self.readd:
            raise Exists(
                f"node {self.node_name} is in the cluster already",
                hint=f"gnt-node add --readd {self.node_name}",
            )
        if self.readd and not known:
            raise NotFound(f"node {self.node_name} is not in the cluster")
        self._group(view)
        checked(self.ndparams)
        if self.secondary_ip:
            check_secondary(self.secondary_ip)

    def warnings(self, view: View) -> Iterator[str]:
        """Say that there is one network between nodes."""
        del view
        if self.secondary_ip:
            yield (
                f"no traffic goes by the secondary address {self.secondary_ip}: it is "
                "only shown"
            )

    def _group(self, view: View) -> str:
        if self.group:
            return view.config.group(self.group).uuid
        return only_group(view.config).uuid

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the node, then let it in; who is not let in is not recorded.

        A node that was let in, or perhaps was, leaves again when the job is undone:
        else it would have a key that the cluster does not know, and no door. One that
        was to be added again stood behind its door before, too.
        """
        node = self._again(view) if self.readd else self._new(view)
        yield self._recorded(view, node)
        yield Run(
            what=f"let {node.name} in",
            node=node.uuid,
            do=EnrolNode(token=self.token or ""),
            undo=ExpelNode(),
        )

    def _recorded(self, view: View, node: Node) -> Commit:
        change = Change((node,))
        return commit(f"record node {node.name}", change, view.config.before(change))

    def _new(self, view: View) -> Node:
        token = self._token()
        address = self.primary_ip or token.address
        return Node(
            uuid=view.fresh(),
            name=self.node_name,
            primary_ip=address,
            secondary_ip=self.secondary_ip or address,
            port=token.port,
            group=self._group(view),
            master_candidate=self.master_capable and room_for_one(view.config),
            master_capable=self.master_capable,
            vm_capable=self.vm_capable,
            ndparams=checked(self.ndparams),
            pins=(token.fingerprint,),
            ctime=view.now,
            mtime=view.now,
        )

    def _again(self, view: View) -> Node:
        token, old = self._token(), view.config.node(self.node_name)
        address = self.primary_ip or token.address
        where = {"primary_ip": address, "port": token.port}
        new = successor(old, view.now, pins=(token.fingerprint,), **where)
        return replace(new, offline=False, powered=True)

    def result(self, view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        del view
        return str(results[0][0])


def check_reachable(address: str) -> None:
    """Raise `BadInput` for an address that stands for all of a machine's own."""
    with suppress(ValueError):  # a name may do
        if ip_address(address).is_unspecified:
            raise BadInput(
                f"no node is reached at {address}: give its address as --primary-ip"
            )


def check_secondary(text: str) -> None:
    """Raise `BadInput` unless a text is an address."""
    try:
        ip_address(text)
    except ValueError:
        raise BadInput(f"a secondary IP is an address, not '{text}'") from None
