# SPDX-License-Identifier: BSD-2-Clause
"""The address that moves with the master: ``gnt-cluster activate-master-ip`` and so on.

While it is to be up, the master's node is told so again and again, by the master that
leads; here it is told at once, so that whoever asks for it learns whether it can be.
"""

from collections.abc import Iterator
from typing import Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Ask, Lock, Operation, Run, Task, View
from moorage.model import Cluster, Config, Instance, Node
from moorage.model.master_address import MasterAddress, checked, master_address
from moorage.protocol import AddressThere, DropAddress, HoldAddress, LookForAddress

FIELDS = ("master_ip", "master_netdev", "master_netmask")
"""What is given of it, or changed."""
LEASE = 15
"""Seconds for which the address stays where it is, when nobody says so again."""
_NONE = "the cluster has no address that moves with its master"
_SET = "gnt-cluster modify --master-ip ADDRESS --master-netdev DEVICE"


def changed(
    cluster: Cluster | None, ip: str | None, device: str | None, bits: int | None
) -> MasterAddress | None:
    """Return the address that moves with the master, with changes; None for none.

    Parameters
    ----------
    cluster
        None for one that is made.
    device
        Empty for no such address any more.

    Raises
    ------
    BadInput
        If it cannot be one, or half of it is missing.
    """
    now = master_address(cluster) if cluster else None
    if device == "":
        if ip or bits:
            raise BadInput("an address is set on a device: --master-netdev DEVICE")
        return None
    device = device or (now.device if now else "")
    ip = ip or (now.ip if now else "")
    if not device or not ip:
        lacks = "the device that it is set on" if ip else "the address"
        raise BadInput(f"{_NONE}: give {lacks}, too", hint=_SET)
    if bits is None and now and ip == now.ip:
        bits = now.bits
    return checked(ip, device, bits or 0)


def look_on(node: str, address: MasterAddress) -> Ask[AddressThere]:
    """Ask a node whether it has an address, and could have it."""
    return Ask(node, LookForAddress(address=address))


def ask(config: Config, address: MasterAddress) -> Iterator[Ask[AddressThere]]:
    """Ask every candidate."""
    return (look_on(node.uuid, address) for node in candidates(config))


def fields(config: Config, address: MasterAddress | None) -> dict[str, Any]:
    """Return what is on record of an address that moves, or of none."""
    own = config.node(config.cluster.master_node).primary_ip
    return recorded(address, own) | ({} if address else {"master_ip_active": True})


def of_new(settings: dict[str, Any], own: str) -> dict[str, Any]:
    """Return the same of a cluster that is made; what was given of it is used up.

    Parameters
    ----------
    own
        The address of its first node.
    """
    ip, device, bits = (settings.pop(one, None) for one in FIELDS)
    given = any((ip, device, bits))
    found = changed(None, ip, device, bits) if given else None
    if found and found.ip == own:
        raise BadInput(f"{own} is the node's own: it cannot move with the master")
    return recorded(found, own)


def recorded(address: MasterAddress | None, own: str) -> dict[str, Any]:
    """Return fields of the cluster; without an address the node's own stands there."""
    told = (address.ip, address.device, address.bits) if address else (own, "", 0)
    return dict(zip(FIELDS, told, strict=True))


def candidates(config: Config) -> list[Node]:
    """Return the nodes whose masters can lead, and that are not marked offline."""
    return [one for one in config.online() if one.master_candidate]


def check_unused(config: Config, ip: str) -> None:
    """Raise `BadInput` if an address is a node's, or an instance's."""
    for node in config.all(Node):
        if ip in (node.primary_ip, node.secondary_ip):
            raise BadInput(f"{ip} is node {node.name}'s own: it cannot move")
    for instance in config.all(Instance):
        if any(nic.ip == ip for nic in instance.nics):
            raise BadInput(f"{ip} is instance {instance.name}'s")


def check_there(node: Node, told: AddressThere | None, address: MasterAddress) -> None:
    """Refuse an address that a node says it cannot have; a silent one says nothing."""
    if told and told.problem:
        raise WrongState(
            f"node {node.name} cannot have {address.ip}: {told.problem}",
            hint="name a device that every master candidate has: --master-netdev",
        )
    if told and told.lasting:
        raise WrongState(
            f"{address.ip} is set on {told.device} of node {node.name} for good, and "
            "not by Moorage: it cannot move",
            hint=f"on {node.name}: ip addr del {address.ip}/{address.bits} "
            f"dev {told.device}",
        )


def check(view: View, address: MasterAddress) -> None:
    """Refuse an address that is somebody's, or that a candidate cannot have."""
    check_unused(view.config, address.ip)
    for node in candidates(view.config):
        check_there(node, view.told(look_on(node.uuid, address)), address)


def moving(config: Config, new: MasterAddress | None) -> Iterator[Task]:
    """Take the address of before off the master's node, and give it a new one."""
    if config.cluster.master_ip_active:
        yield from tasks(config, master_address(config.cluster), new)


def tasks(
    config: Config, old: MasterAddress | None, new: MasterAddress | None
) -> Iterator[Task]:
    """Take an address off the master's node, and give it another one."""
    node = config.node(config.cluster.master_node)
    if old and old != new:
        yield Run(
            what=f"take {old.ip} off node {node.name}",
            node=node.uuid,
            do=DropAddress(address=old),  # the master sets it again, if it is to be
        )
    if new:
        yield Run(
            what=f"set {new.ip} on {new.device} of node {node.name}",
            node=node.uuid,
            do=HoldAddress(address=new, seconds=LEASE),
            undo=DropAddress(address=new) if new != old else None,
        )


class ClusterActivateMasterIp(Operation, frozen=True, kw_only=True):
    """Have the address that moves with the master set on its node."""

    op_id = "OP_CLUSTER_ACTIVATE_MASTER_IP"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the cluster's settings."""
        yield Lock("cluster", view.config.cluster.uuid)

    def questions(self, view: View) -> Iterator[Ask[AddressThere]]:
        """Ask every candidate whether it can have it."""
        address = master_address(view.config.cluster)
        if address:
            yield from ask(view.config, address)

    def check(self, view: View) -> None:
        """Refuse where there is none, or a candidate cannot have it."""
        check(view, _known(view.config.cluster))

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it, and tell the node."""
        cluster = view.config.cluster
        if not cluster.master_ip_active:
            what = "record that the master's address is up"
            yield view.change(what, cluster, master_ip_active=True)
        yield from tasks(view.config, None, _known(cluster))


class ClusterDeactivateMasterIp(Operation, frozen=True, kw_only=True):
    """Take the address that moves with the master away, until it is activated again."""

    op_id = "OP_CLUSTER_DEACTIVATE_MASTER_IP"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the cluster's settings."""
        yield Lock("cluster", view.config.cluster.uuid)

    def check(self, view: View) -> None:
        """Refuse where there is none."""
        _known(view.config.cluster)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record it, and tell the node."""
        cluster = view.config.cluster
        if cluster.master_ip_active:
            what = "record that the master's address is down"
            yield view.change(what, cluster, master_ip_active=False)
        yield from tasks(view.config, _known(cluster), None)


def _known(cluster: Cluster) -> MasterAddress:
    found = master_address(cluster)
    if found is None:
        raise WrongState(_NONE, hint=_SET)
    return found
