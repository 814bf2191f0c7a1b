# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node add``: a machine becomes a node of the cluster."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import force_setattr, replace

from moorage.errors import BadInput, Exists, NotFound
from moorage.jobs import Lock, Operation, Run, Task, View
from moorage.model import Instance, Node, successor
from moorage.model.caller import Role
from moorage.model.hostnames import lowered
from moorage.model.token import Token, from_text, to_text
from moorage.ops import addresses, certificates
from moorage.ops.candidates import room_for_one
from moorage.ops.ndparams import checked
from moorage.ops.new_names import is_machine_name
from moorage.ops.volumes.disk_access import only_group
from moorage.protocol import EnrolNode, ExpelNode

_ANEW = "; it makes one when its directory keys is emptied and it is started anew"


class NodeAdd(Operation, frozen=True, kw_only=True):
    """Let a node in.

    Attributes
    ----------
    node_name
        A name of a host that no other node has.
    primary_ip
        Where its agent is reached; what the token says without it.
    secondary_ip
        Where disks are mirrored to, and guests migrate to; the primary one without it.
    master_capable
        Whether it may ever become the master.
    vm_capable
        Whether it runs instances.
    ndparams
        Node parameters that differ from its group's.
    token
        What the node's agent printed. It names the key that the node is known by from
        then on, and no other.
    group
        Name of the node group; the only one when there is one.
    readd
        Give a node that is known a new certificate, at the place the token names.
    """

    op_id = "OP_NODE_ADD"
    role = Role.ROOT

    node_name: str
    token: str | None = None
    primary_ip: str | None = None
    secondary_ip: str | None = None
    group: str | None = None
    readd: bool = False
    master_capable: bool = True
    vm_capable: bool = True
    ndparams: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Take the name as it is recorded."""
        force_setattr(self, "node_name", lowered(self.node_name))

    def _token(self) -> Token:
        if not self.token:
            raise BadInput(
                f"node {self.node_name} can be added with its token only",
                hint="its agent keeps it in the file join-token: give --token-file"
                + _ANEW * self.readd,
            )
        return from_text(self.token)

    def _is_known(self, view: View) -> bool:
        """Whether there is such a node; a new one may be what another is for short."""
        config, name = view.config, self.node_name
        return config.knows(Node, config.full_name(Node, name) if self.readd else name)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name, or the node that is added again; and the authority."""
        yield Lock("cluster", view.config.cluster.uuid, shared=True)
        known = self._is_known(view)
        uuid = view.config.node(self.node_name).uuid if known else self.node_name
        yield Lock("node", uuid)

    def check(self, view: View) -> None:
        """Refuse names that are taken, or that no certificate could carry."""
        token = self._token()
        addresses.check(self._primary(token), "primary", "--primary-ip")
        if not is_machine_name(self.node_name):
            raise BadInput(
                f"'{self.node_name}' is not a node name: lower-case letters, digits, "
                "dots and dashes"
            )
        known = self._is_known(view)
        if known and not self.readd:
            raise Exists(
                f"node {self.node_name} is in the cluster already",
                hint=f"gnt-node add --readd {self.node_name}",
            )
        if not known and view.config.knows(Instance, self.node_name):
            raise Exists(f"an instance is called {self.node_name}: no node can be")
        if self.readd and not known:
            raise NotFound(f"node {self.node_name} is not in the cluster")
        self._group(view)
        checked(self.ndparams)
        if self.secondary_ip:
            addresses.check(self.secondary_ip, "secondary", "--secondary-ip")
        mine = filter(None, (self._primary(token), self.secondary_ip))
        addresses.check_unused(view.config, self.node_name, *mine)

    def warnings(self, view: View) -> Iterator[str]:
        """Say what may keep the node's network from the others'."""
        node = self._again(view) if self.readd else self._new(view)
        yield from addresses.warnings(view.config, node)

    def _primary(self, token: Token) -> str:
        return self.primary_ip or token.address

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
        token = replace(self._token(), address=node.primary_ip)
        yield view.record(f"record node {node.name}", node)
        yield Run(
            what=f"let {node.name} in",
            node=node.uuid,
            do=EnrolNode(token=to_text(token)),
            undo=ExpelNode(),
        )
        if self.readd and node.master_certs != view.config.node(node.uuid).master_certs:
            yield from certificates.told(view)

    def _new(self, view: View) -> Node:
        token = self._token()
        address = self._primary(token)
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
        address = self._primary(token)
        moved = address if old.secondary_ip == old.primary_ip else old.secondary_ip
        where = {
            "primary_ip": address,
            "secondary_ip": self.secondary_ip or moved,
            "port": token.port,
        }
        # What the node had may be in other hands; the master's key is not the node's.
        own = old.uuid == view.config.cluster.master_node
        known = old.master_certs if own else ()
        new = successor(old, view.now, pins=(token.fingerprint,), **where)
        return replace(new, offline=False, powered=True, master_certs=known)

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return str(results[0][0])
