# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's settings as clients get them, with Ganeti's names."""

import platform
from collections.abc import Callable, Mapping
from typing import Any

from moorage import __version__
from moorage.errors import BadInput
from moorage.model import Config, NodeFacts, nicparams
from moorage.model.addresses import is_v6
from moorage.model.ipolicy import cluster_policy
from moorage.storage.provider import SEARCH_PATH

from .luxi_messages import VERSION
from .query import defaults

_OS_API = 20
_SAME = (
    "blacklisted_os",
    "candidate_pool_size",
    "ctime",
    "default_iallocator",
    "default_iallocator_params",
    "diskparams",
    "enabled_disk_templates",
    "enabled_hypervisors",
    "enabled_user_shutdown",
    "file_storage_dir",
    "gluster_storage_dir",
    "hidden_os",
    "job_retention",
    "mac_prefix",
    "master_ip",
    "master_ip_active",
    "master_netdev",
    "max_running_jobs",
    "mtime",
    "os_hvp",
    "osparams",
    "shared_file_storage_dir",
    "ssconf",
    "tags",
    "uid_pool",
    "uuid",
    "volume_group_name",
)
"""Settings that go by the name that the configuration has for them."""
_ABSENT: Mapping[str, Any] = {
    "compression_tools": [],
    "data_collector_interval": {},
    "drbd_usermode_helper": None,
    "enabled_data_collectors": {},
    "install_image": "",
    "instance_communication_network": "",
    "maintain_node_health": False,
    "max_tracked_jobs": 0,
    "modify_ssh_setup": False,
    "prealloc_wipe_disks": False,
    "reserved_lvs": [],
    "ssh_key_bits": 0,
    "ssh_key_type": "",
    "use_external_mip_script": False,
    "vcs_version": "",
    "zeroing_image": "",
}
"""Ganeti's settings that there are not here, as it tells those that are off."""


def cluster_info(config: Config, facts: NodeFacts | None = None) -> dict[str, Any]:
    """Return what ``gnt-cluster info`` shows.

    Parameters
    ----------
    facts
        What the master's node says of itself; None if it says nothing.
    """
    cluster = config.cluster
    master = config.node(cluster.master_node)
    most = 128 if is_v6(cluster.master_ip) else 32
    return {
        **{name: getattr(cluster, name) for name in _SAME},
        **_ABSENT,
        "name": cluster.cluster_name,
        "beparams": defaults.back_end(cluster),
        "hvparams": defaults.of_cluster(cluster),
        "ndparams": defaults.node(cluster.ndparams),
        "nicparams": {**cluster.nicparams, "default": nicparams.defaults(cluster)},
        "storage_pools": config.storage_pools(),
        "master": master.name,
        "software_version": __version__,
        "protocol_version": VERSION,
        "config_version": VERSION,
        "os_api_version": _OS_API,
        "export_version": 0,
        "architecture": [platform.architecture()[0], platform.machine()],
        "default_hypervisor": cluster.enabled_hypervisors[0],
        "es_search_path": list(facts.extstorage_path if facts else SEARCH_PATH),
        "master_netmask": cluster.master_netmask or most,
        "primary_ip_version": 6 if is_v6(master.primary_ip) else 4,
        "ipolicy": cluster_policy(cluster),
        "mnode_is_kept": True,
    }


_VALUES: dict[str, Callable[[Config], Any]] = {
    "cluster_name": lambda config: config.cluster.cluster_name,
    "master_node": lambda config: config.node(config.cluster.master_node).name,
    "volume_group_name": lambda config: config.cluster.volume_group_name or None,
    "watcher_pause": lambda config: config.cluster.watcher_pause,
}


def config_value(config: Config, name: str, draining: bool) -> Any:  # noqa: ANN401
    """Return one value of the configuration.

    Parameters
    ----------
    draining
        Whether new jobs are refused.
    """
    if name == "drain_flag":
        return draining
    if name not in _VALUES:
        known = ", ".join(sorted({*_VALUES, "drain_flag"}))
        raise BadInput(f"there is no configuration value '{name}': there is {known}")
    return _VALUES[name](config)
