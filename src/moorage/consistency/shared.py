# SPDX-License-Identifier: BSD-2-Clause
"""What two have that only one can: disks, MACs, ports, minors and addresses."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from .parts import Cluster, Complaint, Complaints, Nic, Parts, default

_LINKS = {"bridged": "bridge", "routed": "route", "openvswitch": "ovs"}


class Holder(NamedTuple):
    """Who has something: an object, and what people call that part of it."""

    kind: str
    name: str
    place: str

    def complain(self, message: str) -> Complaint:
        """Return a complaint about it."""
        return Complaint(self.kind, self.name, message)


def owners(parts: Parts) -> Complaints:
    """Find disks that two instances have."""
    seen: dict[str, str] = {}
    for instance in parts.instances.values():
        name = instance.name
        for uuid in instance.disks:
            if uuid in seen:
                told = f"instance '{seen[uuid]}' has too"
                told = f"Instance '{name}' has disk '{uuid}', which {told}"
                yield Complaint("instance", name, told)
            seen.setdefault(uuid, name)


def macs(parts: Parts) -> Complaints:
    """Find hardware addresses that two cards have."""
    seen: set[str] = set()
    for instance in parts.instances.values():
        name = instance.name
        for number, nic in enumerate(instance.nics):
            if nic.mac in seen:
                told = f"instance '{name}' has NIC {number} mac {nic.mac} duplicate"
                yield Complaint("instance", name, told)
            seen.add(nic.mac)


def minors(parts: Parts) -> Complaints:
    """Find mirrors that share a device's number on a node."""
    of = {uuid: one.name for one in parts.instances.values() for uuid in one.disks}
    seen: dict[tuple[str, int], tuple[str, str]] = {}
    for uuid, disk in parts.disks.items():
        mirror = disk.mirror
        if not mirror:
            continue
        owner = of.get(uuid, disk.label or uuid)
        for place in zip(disk.ends, mirror.minors, strict=True):
            before, first = seen.setdefault(place, (uuid, owner))
            if before == uuid:
                continue
            node, minor = place
            where = parts.nodes[node].name if node in parts.nodes else node
            told = f"assigned twice to instances {first} and {owner}"
            told = f"DRBD minor {minor} on node {where} is {told}"
            yield Complaint("disk", disk.label or uuid, told)


def ports(parts: Parts) -> Complaints:
    """Find TCP ports that two have, or that are higher than the highest one."""
    found: dict[int, list[Holder]] = defaultdict(list)
    for port, holder in _ports(parts):
        found[port].append(holder)
    for port, those in sorted(found.items()):
        if len(those) > 1:
            told = ", ".join(f"{one.name or one.kind}/{one.place}" for one in those)
            yield those[0].complain(f"tcp/udp port {port} has duplicates: {told}")
    highest = parts.cluster.highest_used_port
    if highest is not None and found and max(found) > highest:
        told = f"saved {highest}, computed {max(found)}"
        yield Complaint("cluster", "", f"Highest used port mismatch, {told}")


def _ports(parts: Parts) -> Iterator[tuple[int, Holder]]:
    detached = dict(parts.disks)
    for instance in parts.instances.values():
        for number, uuid in enumerate(instance.disks):
            detached.pop(uuid, None)
            disk = parts.disks.get(uuid)
            if disk and disk.mirror:
                place = f"drbd disk {number}"
                yield disk.mirror.port, Holder("instance", instance.name, place)
        if instance.network_port is not None:
            holder = Holder("instance", instance.name, "network port")
            yield instance.network_port, holder
    for uuid, disk in detached.items():
        if disk.mirror:
            yield disk.mirror.port, Holder("disk", disk.label or uuid, "drbd disk")
    for port in parts.cluster.tcpudp_port_pool:
        yield port, Holder("cluster", "", "port marked as free")


def addresses(parts: Parts) -> Complaints:
    """Find IP addresses that two have; of cards, on one link and network."""
    found: dict[str, list[Holder]] = defaultdict(list)
    for address, holder in _addresses(parts):
        found[address].append(holder)
    for address, those in found.items():
        if len(those) > 1:
            told = ", ".join(one.place for one in those)
            told = f"IP address {address} is used by multiple owners: {told}"
            yield those[-1].complain(told)


def _addresses(parts: Parts) -> Iterator[tuple[str, Holder]]:
    cluster = parts.cluster
    if cluster.master_ip:
        yield cluster.master_ip, Holder("cluster", "", "cluster_ip")
    for node in parts.nodes.values():
        for which, ip in (
            ("primary", node.primary_ip),
            ("secondary", node.secondary_ip),
        ):
            if ip and (which == "primary" or ip != node.primary_ip):
                yield ip, Holder("node", node.name, f"node:{node.name}/{which}")
    for instance in parts.instances.values():
        for number, nic in enumerate(instance.nics):
            if nic.ip is not None:
                place = f"instance:{instance.name}/nic:{number}"
                holder = Holder("instance", instance.name, place)
                yield f"{_link(cluster, nic)}/{nic.ip}/{nic.network}", holder


def _link(cluster: Cluster, nic: Nic) -> str:
    params = default(cluster.nicparams) | nic.nicparams
    mode = params.get("mode", "bridged")
    return f"{_LINKS.get(str(mode), mode)}:{params.get('link', '')}"
