# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's configuration as Ganeti's, and what Ganeti has no place for.

What is set nowhere is written as it counts here: Ganeti's own defaults may be others.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, json
from msgspec.structs import fields

from moorage.api.query import defaults
from moorage.errors import BadInput
from moorage.model import (
    KINDS,
    Cluster,
    Config,
    Disk,
    Entity,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
    nicparams,
)
from moorage.model.addresses import is_v6
from moorage.model.change import encode
from moorage.model.ipolicy import cluster_policy
from moorage.model.master_address import MasterAddress, master_address
from moorage.model.networks import outside, subnet
from moorage.model.pair import PORTS, pair_of
from moorage.units import counted

from . import own_words
from .document import NEWEST, Document, Part, Version
from .downgrade import downgrade
from .foreign import PLACES, restored
from .upgrade import COLLECTED, COLLECTORS

_ENTITY = ("uuid", "serial_no", "ctime", "mtime")
_NODE = (
    *("name", "primary_ip", "secondary_ip", "group", "master_candidate", "offline"),
    *("drained", "master_capable", "vm_capable", "powered", "ndparams", "tags"),
)
_DISK = (
    *("dev_type", "logical_id", "size", "mode", "name", "nodes", "params", "spindles"),
)
_CLUSTER = (
    *("cluster_name", "master_node", "candidate_pool_size", "mac_prefix", "tags"),
    *("file_storage_dir", "shared_file_storage_dir", "gluster_storage_dir"),
    *("volume_group_name", "enabled_hypervisors", "enabled_disk_templates"),
    *("diskparams", "osparams", "osparams_private_cluster", "os_hvp", "hidden_os"),
    *("blacklisted_os", "default_iallocator", "default_iallocator_params"),
    *("candidate_certs", "uid_pool", "enabled_user_shutdown", "max_running_jobs"),
)
"""Fields that go by the same name there."""
_OTHERWISE = ("beparams", "hvparams", "ipolicy", "ndparams", "nicparams")
"""Fields of the cluster that are written as they count."""
_OURS_ALONE = frozenset({"foreign", "reserved"})
"""Fields of instances, groups and networks that Ganeti has not."""


def of_ganeti(kind: type[Struct]) -> tuple[str, ...]:
    """Return the fields of a kind of object that a file of Ganeti's may say.

    The others are Moorage's own: no word of theirs in such a file means anything.
    """
    told: Mapping[type[Struct], tuple[str, ...]] = {
        Cluster: (*_CLUSTER, *_OTHERWISE),
        Disk: (*_DISK, "children"),
        Node: _NODE,
    }
    own = tuple(one for one in kind.__struct_fields__ if one not in _OURS_ALONE)
    return (*_ENTITY, *told[kind]) if kind in told else own


_SETTINGS: Mapping[str, Any] = {
    "compression_tools": ["gzip", "gzip-fast", "gzip-slow"],
    "disk_state_static": {},
    "drbd_usermode_helper": "/bin/true",
    "hv_state_static": {},
    "install_image": "",
    "instance_communication_network": "",
    "maintain_node_health": False,
    "max_tracked_jobs": 25,
    "modify_etc_hosts": False,
    "modify_ssh_setup": True,
    "prealloc_wipe_disks": False,
    "reserved_lvs": [],
    "rsahostkeypub": "",
    "ssh_key_bits": 2048,
    "ssh_key_type": "rsa",
    "use_external_mip_script": False,
    "zeroing_image": "",
}
"""Ganeti's settings that there are not here, as a new cluster of Ganeti's has them."""
GIVEN = frozenset(
    {
        *("master_ip", "master_netdev", "master_netmask"),
        *("highest_used_port", "tcpudp_port_pool"),
    }
)
"""What a cluster of Ganeti's goes on with on the way back, and nobody uses here."""
_OTHER_KEYS = Version(3, 0)
"""The first version to which nodes come with SSH keys of another type than DSA."""
_OWN_HVPARAMS = frozenset({"accel", "vif_type"})
"""Hypervisor parameters of KVM that Ganeti does not know."""
OF_DISKS = (
    *("tags", "epoch", "quarantine", "identity", "cname", "pool", "behind"),
    *("adopted", "unproven", "by_uuid", "group", "last_node"),
)
"""What a disk has here alone."""
_WORDS = {
    "tags": "the tags",
    "epoch": "the epoch",
    "quarantine": "the quarantine",
    "identity": "the identity of the device",
    "cname": "the volume's name",
    "pool": "the storage pool",
    "behind": "the word which copy is behind",
    "adopted": "the word that it was adopted",
    "unproven": "the word that its volume may be somebody else's",
    "by_uuid": "the word that its provider goes by uuids",
}
"""What people call them; the rest is found again."""
_NAMED = frozenset({"quarantine", "behind", "unproven"})
"""What it is dangerous not to know: Ganeti would use such a disk."""


class Exported(Struct, frozen=True):
    """A configuration as Ganeti's.

    Attributes
    ----------
    document
        Of the version that was wanted.
    lost
        What that version cannot have, and newer ones can.
    beside
        What it has no place for: objects by kind and uuid, as the store has them; of
        disks the fields that Ganeti's have not.
    left
        What that is, each kind with its number.
    """

    document: Document
    lost: list[str]
    beside: dict[str, dict[str, Any]]
    left: list[str]


def exported(
    config: Config, version: Version = NEWEST, address: MasterAddress | None = None
) -> Exported:
    """Return a configuration as Ganeti's.

    Parameters
    ----------
    version
        That of the Ganeti which is to read it.
    address
        Of the master; None for the one that moves with it here, or did at Ganeti's.

    Raises
    ------
    BadInput
        If that Ganeti could not have such a cluster; the sentence names what it is.
    """
    address = address or master_address(config.cluster) or _given(config)
    document = restored_document(config, written(config, address))
    if version < _OTHER_KEYS:  # the nodes' SSH keys are made there
        document["cluster"] |= {"ssh_key_type": "dsa", "ssh_key_bits": 1024}
    found, lost = downgrade(document, version)
    beside = _beside(config)
    return Exported(found, lost, beside, list(_left(config, beside)))


def restored_document(config: Config, document: Document) -> Document:
    """Return a document with the words of the file that the objects came from."""
    for place, kind in PLACES.items():
        for one in config.all(kind):
            document[place][one.uuid] = restored(document[place][one.uuid], one.foreign)
    cluster = config.cluster
    document["cluster"] = restored(document["cluster"], cluster.foreign)
    return restored(document, cluster.foreign_document)


def _given(config: Config) -> MasterAddress | None:
    """Return the address that the master had when it was Ganeti's, if it was."""
    had = _had(config.cluster)
    ip = had.get("master_ip")
    if not ip:
        return None
    bits = had.get("master_netmask") or (128 if is_v6(ip) else 32)
    return MasterAddress(ip, had.get("master_netdev") or "", bits)


def _had(cluster: Cluster) -> Part:
    """Return what of `GIVEN` the cluster had when it was Ganeti's."""
    words = cluster.foreign or {}
    had = {name: words.get(f"/{name}", (None, None))[1] for name in GIVEN}
    return {name: one for name, one in had.items() if one is not None}


def written(config: Config, address: MasterAddress | None) -> Document:
    """Return a configuration as a document of the newest version, in our words."""
    document: Document = {
        "version": NEWEST.number,
        "serial_no": config.serial_no,
        "ctime": config.cluster.ctime,
        "mtime": max(one.mtime for kind in KINDS.values() for one in config.all(kind)),
        "cluster": _cluster(config, address),
        "nodes": {one.uuid: _part(one, _NODE) for one in config.all(Node)},
        "nodegroups": {one.uuid: _whole(one) for one in config.all(NodeGroup)},
        "networks": {one.uuid: _network(config, one) for one in config.all(Network)},
        "instances": {one.uuid: _instance(one) for one in config.all(Instance)},
        "disks": {one.uuid: _disk(config, one) for one in config.all(Disk)},
        "filters": {},
    }
    found: Document = json.decode(json.encode(document))
    own_words.leave_out(found)
    return found


def _part(entity: Entity, names: Iterable[str]) -> Part:
    """Return an object with those of its fields that Ganeti has."""
    values = encode(entity)
    return {name: values[name] for name in (*_ENTITY, *names) if name in values}


def _whole(entity: Entity) -> Part:
    """Return an object all fields of which Ganeti has, too."""
    values = encode(entity)
    values.pop("foreign", None)
    return values


def _cluster(config: Config, address: MasterAddress | None) -> Part:
    cluster = config.cluster
    ip = address.ip if address else cluster.master_ip
    owners = [node.name for node in config.all(Node) if node.primary_ip == ip]
    if not ip or owners:
        whose = f"{ip} is node {owners[0]}'s" if owners else "there is none on record"
        raise BadInput(
            f"Ganeti's master has an address of its own, and {whose}",
            hint="--master-ip ADDRESS, one that no machine has",
        )
    cards = nicparams.defaults(cluster)
    if not cards["link"]:
        raise BadInput(
            "Ganeti's network cards have a link, and those here have none by default",
            hint="gnt-cluster modify -N link=br0",
        )
    used, had = _ports(config), _had(cluster)
    highest = max((*used, PORTS[0] - 1, had.get("highest_used_port", 0)))
    below = had.get("tcpudp_port_pool", [one for one in PORTS if one < highest])
    return {
        **_SETTINGS,
        **_part(cluster, _CLUSTER),
        "beparams": defaults.back_end(cluster),
        "data_collectors": {name: dict(COLLECTED) for name in COLLECTORS},
        "highest_used_port": highest,
        "hvparams": {
            name: _without(params)
            for name, params in defaults.of_cluster(cluster).items()
        },
        "ipolicy": cluster_policy(cluster),
        "master_ip": ip,
        "master_netdev": address.device if address else "",
        "master_netmask": address.bits if address else 128 if is_v6(ip) else 32,
        "ndparams": defaults.node(cluster.ndparams),
        "nicparams": {**cluster.nicparams, "default": cards},
        "primary_ip_family": 10 if is_v6(ip) else 2,
        "tcpudp_port_pool": [one for one in below if one not in used],
    }


def _ports(config: Config) -> set[int]:
    pairs = (pair_of(disk) for disk in config.all(Disk))
    screens = (one.network_port for one in config.all(Instance))
    return {pair.port for pair in pairs if pair} | {one for one in screens if one}


def _without(params: Mapping[str, Any]) -> Part:
    return {name: one for name, one in params.items() if name not in _OWN_HVPARAMS}


def _instance(instance: Instance) -> Part:
    return {**_whole(instance), "hvparams": _without(instance.hvparams)}


def _network(config: Config, network: Network) -> Part:
    values = _whole(network)
    del values["reserved"]
    taken, never = config.addresses_in(network), outside(network)
    return {
        **values,
        "reservations": _bits(network, taken),
        "ext_reservations": _bits(network, never),
    }


def _bits(network: Network, taken: Collection[str]) -> str:
    """Return a figure for each address, the lowest first: 1 for one that is taken."""
    return "".join("1" if str(one) in taken else "0" for one in subnet(network))


def _disk(config: Config, disk: Disk) -> Part:
    found = _part(disk, _DISK)
    found["iv_name"] = config.iv_name(disk) or ""
    if disk.children:
        found["children"] = [_part(child, _DISK) for child in disk.children]
    return found


def _beside(config: Config) -> dict[str, dict[str, Any]]:
    disks = {one.uuid: _own(one) for one in config.all(Disk)}
    owners: Iterable[Cluster | Instance] = (config.cluster, *config.all(Instance))
    return {
        "disks": {uuid: fields for uuid, fields in disks.items() if fields},
        "pools": {one.uuid: encode(one) for one in config.all(StoragePool)},
        "hvparams": {
            one.uuid: kept for one in owners if (kept := _own_hvparams(one.hvparams))
        },
    }


def _own(disk: Disk) -> Part:
    values = encode(disk)
    usual = {one.name: one.default for one in fields(Disk)}
    kept = (name for name in OF_DISKS if name in values)
    return {name: values[name] for name in kept if values[name] != usual[name]}


def _own_hvparams(params: Mapping[str, Any]) -> Part:
    """Return parameters that Ganeti does not know, by hypervisor for the cluster's."""
    found = {name: one for name, one in params.items() if name in _OWN_HVPARAMS}
    for name, one in params.items():
        if isinstance(one, Mapping) and (kept := _own_hvparams(one)):
            found[name] = kept
    return found


def _left(config: Config, beside: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield each kind of what Ganeti has no place for, with its number."""
    if beside["pools"]:
        yield counted(len(beside["pools"]), "storage pool")
    for field, what in _WORDS.items():
        having = [uuid for uuid, one in beside["disks"].items() if field in one]
        if not having:
            continue
        told = f"{what} of {counted(len(having), 'disk')}"
        if field in _NAMED:
            told += f" ({', '.join(sorted(config.disk(one).label for one in having))})"
        yield told
    yield from own_words.told(config)
    for name in sorted(_OWN_HVPARAMS):
        places = sum(name in _names(one) for one in beside["hvparams"].values())
        if places:
            yield f"the hypervisor parameter {name}, set in {counted(places, 'place')}"


def _names(params: Mapping[str, Any]) -> set[str]:
    """Return the names of parameters, those below a hypervisor's included."""
    below = (_names(one) for one in params.values() if isinstance(one, Mapping))
    return set(params).union(*below)
