# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's ``ssconf`` files: extracts of the configuration that scripts of nodes read.

Each is a text, of lines where it is a list. Their names and forms are those of Ganeti
3.0; what there is not here stands as Ganeti writes it where it is off. Parameters are
those of the hypervisors that are enabled.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from moorage import __version__
from moorage.api.query.defaults import of_cluster
from moorage.model import Config, Instance, Network, Node, NodeGroup, nice, uidpool
from moorage.model.addresses import is_v6

_SSH = 22


def ssconf(config: Config) -> dict[str, str]:
    """Return the text of each file by its name, without ``ssconf_``. Pure."""
    cluster = config.cluster
    nodes = config.named(Node)
    candidates = [node for node in nodes if node.master_candidate]
    master = config.node(cluster.master_node)
    most = "128" if is_v6(cluster.master_ip) else "32"
    texts = {
        "cluster_name": cluster.cluster_name,
        "file_storage_dir": cluster.file_storage_dir,
        "shared_file_storage_dir": cluster.shared_file_storage_dir,
        "gluster_storage_dir": cluster.gluster_storage_dir,
        "master_node": master.name,
        "master_ip": cluster.master_ip,
        "master_netdev": cluster.master_netdev,
        "master_netmask": str(cluster.master_netmask or most),
        "primary_ip_family": _family(master.primary_ip),
        "release_version": __version__,
        "maintain_node_health": str(False),
        "enabled_user_shutdown": str(cluster.enabled_user_shutdown),
    }
    lists: dict[str, Iterable[str]] = {
        "cluster_tags": cluster.tags,
        "master_candidates": (node.name for node in candidates),
        "master_candidates_ips": (node.primary_ip for node in candidates),
        "master_candidates_certs": _equals(cluster.candidate_certs),
        "node_list": (node.name for node in nodes),
        "online_nodes": (node.name for node in nodes if not node.offline),
        "offline_nodes": (node.name for node in nodes if node.offline),
        "node_primary_ips": (f"{node.name} {node.primary_ip}" for node in nodes),
        "node_secondary_ips": (
            f"{node.name} {node.secondary_ip or node.primary_ip}" for node in nodes
        ),
        "node_vm_capable": (f"{node.name}={node.vm_capable}" for node in nodes),
        "ssh_ports": (f"{node.name}={_SSH}" for node in nodes),
        "instance_list": sorted((one.name for one in config.all(Instance)), key=nice),
        "hypervisor_list": cluster.enabled_hypervisors,
        "uid_pool": filter(None, uidpool.shown(cluster.uid_pool).split(",")),
        "nodegroups": sorted(f"{one.uuid} {one.name}" for one in config.all(NodeGroup)),
        "networks": sorted(f"{one.uuid} {one.name}" for one in config.all(Network)),
        **{
            f"hvparams_{name}": _equals(parameters)
            for name, parameters in of_cluster(cluster).items()
            if name in cluster.enabled_hypervisors
        },
    }
    return texts | {name: "\n".join(lines) for name, lines in lists.items()}


def _family(address: str) -> str:
    return str(int(socket.AF_INET6 if is_v6(address) else socket.AF_INET))


def _equals(values: Mapping[str, Any]) -> Iterable[str]:
    return (f"{key}={value}" for key, value in values.items())
