# SPDX-License-Identifier: BSD-2-Clause
"""Nodes, networks and guests in a quiet moment, compared with what they must be."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from expected import Expected

from moorage import model
from moorage.model.networks import addresses, contains, outside
from moorage.ops.asking import node_tasks
from moorage.testing.cluster import SimCluster


def differences(cluster: SimCluster, expected: Expected) -> Iterator[str]:
    """Yield a line for each thing that is not as it must be."""
    config = cluster.config
    yield from _nodes(config, expected)
    yield from _networks(config, expected)
    yield from _cards(config, expected)
    yield from _wires(cluster)
    yield from _memory(cluster)
    jobs = cluster.engine.jobs.values()
    open_ = {job.id for job in jobs if not job.finished}
    yield from (f"job left: {number}" for number in open_)


def _nodes(config: model.Config, expected: Expected) -> Iterator[str]:
    found = {
        one.name: (config.group(one.group).name, one.offline, one.drained)
        for one in config.all(model.Node)
    }
    wanted = {
        name: (group, name in expected.offline, name in expected.drained)
        for name, group in expected.nodes.items()
    }
    yield from unlike("node", found, wanted)
    for one in config.all(model.Node):
        if one.offline + one.drained + one.master_candidate > 1:
            yield f"node {one.name} has two roles"
    if not config.node(config.cluster.master_node).master_candidate:
        yield "the master is no candidate"


def _networks(config: model.Config, expected: Expected) -> Iterator[str]:
    found = {one.name: set[str]() for one in config.all(model.Network)}
    for group in config.all(model.NodeGroup):
        for uuid in group.networks:
            if uuid in config.objects:
                found[config.network(uuid).name].add(group.name)
            else:
                yield f"node group {group.name} names network {uuid}"
    yield from unlike("network", found, expected.networks)


def _cards(config: model.Config, expected: Expected) -> Iterator[str]:
    """Compare network cards; no address is given twice, none is where it cannot be."""
    held = Counter(a for one in config.all(model.Instance) for a in addresses(one))
    yield from (f"address {one} is given {n} times" for one, n in held.items() if n > 1)
    for instance in config.all(model.Instance):
        group = config.group(config.node(instance.primary_node).group)
        for nic in instance.nics:
            if nic.network and nic.network not in group.networks:
                yield f"{instance.name} has a card in a network of another node group"
        wanted = expected.instances[instance.name].cards
        if wanted is not None:
            found = [_card(config, nic) for nic in instance.nics]
            same = len(found) == len(wanted) and all(map(_is_like, found, wanted))
            if not same:
                yield f"cards of {instance.name} are {found}, not {wanted}"


def _card(config: model.Config, nic: model.Nic) -> tuple[model.Network | None, Any]:
    return config.network(nic.network) if nic.network else None, nic.ip


def _is_like(found: tuple[model.Network | None, Any], wanted: Any) -> bool:
    network, ip = found
    if (network.name if network else None) != wanted.network:
        return False
    if wanted.ip != "pool":
        return bool(ip == wanted.ip)
    return bool(network and contains(network, ip) and ip not in outside(network))


def _wires(cluster: SimCluster) -> Iterator[str]:
    """Tell which running guest lacks a card, has one too many, or is wired wrongly."""
    config = cluster.config
    for key, record in cluster.nodes.san.guests.items():
        instance = config.get(model.Instance, key.split(" ")[1])
        seats = record["state"]["cards"] or {}
        wanted = {
            nic.uuid: node_tasks.wired(config, instance, nic).nicparams
            for nic in instance.nics
        }
        if seats.keys() != wanted.keys() or len({*seats.values()}) != len(seats):
            yield f"the guest of {instance.name} has cards {seats}, not {[*wanted]}"
            continue
        for uuid, params in wanted.items():
            wire = dict(
                zip(("mode", "link", "vlan"), record["wires"][uuid], strict=True)
            )
            if wire != {name: params[name] for name in wire}:
                yield f"card {uuid} of {instance.name} is wired {wire}, not {params}"


def _memory(cluster: SimCluster) -> Iterator[str]:
    """Tell which node is fuller than its memory says."""
    for name, node in cluster.nodes.nodes.items():
        taken, most = node.machine.busy(), node.machine.size
        if taken > most - most // 8:
            yield f"guests of {name} have {taken} MiB of {most}"


def unlike(kind: str, found: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for key in sorted(found.keys() | wanted.keys()):
        if found.get(key) != wanted.get(key):
            yield f"{kind} {key} is {found.get(key)}, not {wanted.get(key)}"
