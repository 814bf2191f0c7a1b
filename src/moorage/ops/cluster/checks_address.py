# SPDX-License-Identifier: BSD-2-Clause
"""Verify that the address that moves with the master is where the master is."""

from collections.abc import Iterator

from moorage.jobs import Ask
from moorage.model import Config, Node
from moorage.model.master_address import MasterAddress, master_address
from moorage.protocol import AddressThere

from .master_address import ask as asked
from .observation import Finding, Seen


def ask(config: Config) -> Iterator[Ask[AddressThere]]:
    """Ask every candidate whether it has the address, and could have it."""
    address = master_address(config.cluster)
    if address:
        yield from asked(config, address)


def moves(seen: Seen) -> Iterator[Finding]:
    """Find an address that is not up, or up elsewhere, or that cannot move."""
    cluster = seen.config.cluster
    address = master_address(cluster)
    if address is None:
        return
    if not cluster.master_ip_active:
        yield Finding(
            "cluster",
            f"the master's address {address.ip} is down, as it was told to be",
            "gnt-cluster activate-master-ip",
            warning=True,
        )
    for question in asked(seen.config, address):
        node, told = seen.config.node(question.node), seen.view.told(question)
        here = node.uuid == cluster.master_node
        if told:
            due = here and cluster.master_ip_active
            yield from _on(node, told, address, here=here, due=due)


def _on(
    node: Node, told: AddressThere, address: MasterAddress, *, here: bool, due: bool
) -> Iterator[Finding]:
    """Find what is wrong with it on a node; `due` if that is to have it."""
    ip, hint = address.ip, ""
    if told.problem:
        text = f"it cannot have the master's address {ip}: {told.problem}"
        hint = "gnt-cluster modify --master-netdev DEVICE, one that every one has"
    elif told.lasting:
        text = f"it has the master's address {ip} on {told.device} for good"
        hint = f"on {node.name}: ip addr del {ip}/{address.bits} dev {told.device}"
    elif told.device and not due:
        why = "is to be down" if here else "is to be where the master is"
        text = f"it has the master's address {ip} on {told.device}, which {why}"
    elif due and not told.device:
        text = f"the master's address {ip} is not up on it"
        hint = "gnt-cluster activate-master-ip"
    else:
        return
    mild = bool(told.problem) and not here
    yield Finding(f"node {node.name}", text, hint, warning=mild)
