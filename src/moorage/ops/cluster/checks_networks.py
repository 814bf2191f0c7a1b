# SPDX-License-Identifier: BSD-2-Clause
"""Verify that nodes have the bridges of their group's network cards, and addresses."""

from collections import defaultdict
from collections.abc import Iterator

from moorage.jobs import Ask
from moorage.model import Config, Instance, Network, NodeGroup, nicparams
from moorage.model.networks import contains, outside
from moorage.model.nicparams import NicParams
from moorage.ops.planning import links
from moorage.ops.planning.links import Wanted
from moorage.protocol import Peer, ReachNodes
from moorage.units import shortened

from .observation import Finding, Seen


def bridges(seen: Seen) -> Iterator[Finding]:
    """Find bridges that are missing on any node where cards may have to go.

    Nothing is broken while no instance of the group needs it.
    """
    groups = seen.config.all(NodeGroup)
    wants = {group.uuid: _wanted(seen.config, group) for group in groups}
    for node, facts in seen.nodes():
        if facts.links is None or not node.vm_capable:
            continue
        for want, users in wants[node.group].items():
            why = links.problem(facts.links, want)
            if why:
                yield Finding(
                    f"node {node.name}",
                    f"{why}, which {_needed_by(users)}",
                    f"on {node.name}: {links.remedy(facts.links, want)}",
                    warning=not users,
                )


def filters(seen: Seen) -> Iterator[Finding]:
    """Find nodes that cannot hold their guests' network cards to an address."""
    for node, facts in seen.nodes():
        if facts.filters:
            continue
        users = [
            one.name
            for one in seen.config.instances_on(node)
            if any(
                nicparams.filled(seen.config.cluster, group, nic).filter
                for group in [seen.config.group(node.group)]
                for nic in one.nics
            )
        ]
        if users:
            yield Finding(
                f"node {node.name}",
                f"it has no nftables, which {_needed_by(users)}",
                f"on {node.name}: apt-get install nftables",
            )


def _wanted(config: Config, group: NodeGroup) -> dict[Wanted, list[str]]:
    """Return the bridges that a group's cards need, each with the instances' names."""
    found: dict[Wanted, list[str]] = defaultdict(list)
    for given in group.networks.values():
        want = links.wanted(NicParams(**given))
        if want:
            found[want] = []
    for node in config.nodes_in(group):
        for instance in config.instances_on(node):
            for want in set(links.needed(config, node, instance.nics)):
                found[want].append(instance.name)
    return found


def _needed_by(users: list[str]) -> str:
    if not users:
        return "cards in a network of its node group would need"
    return f"network cards of {shortened(users, 1)} need"


def ask(config: Config) -> Iterator[Ask[dict[str, str]]]:
    """Ask each node whether it reaches three others, over the secondary network.

    Those are the next two by name, and the one farthest away: so every node is tried
    by three, and a network that fell into two halves shows, at a bounded cost.
    """
    nodes = config.online()
    count = len(nodes)
    for place, node in enumerate(nodes):
        steps = sorted({1, 2, count // 2} & {*range(1, count)})
        peers = [nodes[(place + step) % count] for step in steps]
        apart = node.secondary_ip != node.primary_ip
        told = ReachNodes(
            peers=tuple(
                Peer(name=one.name, address=one.secondary_ip, port=one.port)
                for one in peers
            ),
            source=node.secondary_ip if apart else "",
        )
        if peers:
            yield Ask(node.uuid, told)


def reached(seen: Seen) -> Iterator[Finding]:
    """Find nodes that do not reach others, which answer the master."""
    silent = {seen.config.node(uuid).name for uuid in seen.silent}
    for question in ask(seen.config):
        node = seen.config.node(question.node)
        for name, why in (seen.view.told(question) or {}).items():
            if name not in silent:
                there = seen.config.node(name)
                yield Finding(
                    f"node {node.name}",
                    f"it does not reach node {name} at {there.secondary_ip}: {why}; "
                    "disks are mirrored and guests migrate on this way",
                    f"on {node.name}: ping {there.secondary_ip}",
                )


def addresses(seen: Seen) -> Iterator[Finding]:
    """Find cards that have an address which no card may have."""
    config = seen.config
    for one in config.named(Network):
        never = outside(one)
        for instance in config.instances_in(one):
            for ip in _addresses_in(instance, one):
                if ip in never or not contains(one, ip):
                    yield Finding(
                        f"instance {instance.name}",
                        f"a network card has {ip}, which network {one.name} does not "
                        "give to cards",
                        f"gnt-network info {one.name}",
                    )


def _addresses_in(instance: Instance, network: Network) -> list[str]:
    found = (nic for nic in instance.nics if nic.network == network.uuid)
    return [nic.ip for nic in found if nic.ip]
