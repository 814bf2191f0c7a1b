# SPDX-License-Identifier: BSD-2-Clause
"""What the cluster is like."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage import __version__
from moorage.cli import policy_options
from moorage.cli.command import Call, Command
from moorage.cli.option_syntax import shown_uids
from moorage.cli.options import DEBUG, JSON, refused
from moorage.cli.table import moment
from moorage.cli.yamlish import Flow, lines
from moorage.errors import NoMaster, NotMaster, WrongState

from . import failover, renew_crypto

POLICY = "Instance policy - limits for instances"


def _info(call: Call) -> None:
    found = call.client.info()
    call.show(found, lines(cluster(found)))


def cluster(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of the cluster."""
    hypervisors = found.get("enabled_hypervisors") or []
    told = found.get("ipolicy")
    return {
        "Cluster name": found.get("name"),
        "Cluster UUID": found.get("uuid"),
        "Creation time": moment(found.get("ctime")),
        "Modification time": moment(found.get("mtime")),
        "Master node": found.get("master"),
        "Architecture (this node)": _architecture(found.get("architecture")),
        "Tags": ", ".join(found.get("tags") or ()) or "(none)",
        **renew_crypto.authority(found.get("authority") or {}),
        "Default hypervisor": found.get("default_hypervisor")
        or next(iter(hypervisors), ""),
        "Enabled hypervisors": ", ".join(hypervisors),
        "Hypervisor parameters": _maps(found.get("hvparams")),
        "OS-specific hypervisor parameters": _maps(found.get("os_hvp")) or "",
        "OS parameters": _maps(found.get("osparams")),
        "Hidden OSes": _joined(found.get("hidden_os") or ()),
        "Blacklisted OSes": _joined(found.get("blacklisted_os") or ()),
        "Cluster parameters": _parameters(found),
        "Default node parameters": _maps(found.get("ndparams")) or "",
        "Default instance parameters": _maps(found.get("beparams")),
        "Default nic parameters": _maps(found.get("nicparams")),
        "Default disk parameters": _maps(found.get("diskparams")),
        **({POLICY: policy_options.shown(told)} if told else {}),
        "Data collectors": "",
    }


def _architecture(found: Sequence[str] | None) -> str:
    return f"{found[0]} ({found[1]})" if found else ""


_PARAMETERS = {
    "candidate pool size": "candidate_pool_size",
    "maximal number of jobs running simultaneously": "max_running_jobs",
    "maximal number of jobs simultaneously tracked by the scheduler": (
        "max_tracked_jobs"
    ),
    "mac prefix": "mac_prefix",
    "master netdev": "master_netdev",
    "master netmask": "master_netmask",
    "use external master IP address setup script": "use_external_mip_script",
    "lvm volume group": "volume_group_name",
    "lvm reserved volumes": "reserved_lvs",
    "drbd usermode helper": "drbd_usermode_helper",
    "file storage path": "file_storage_dir",
    "shared file storage path": "shared_file_storage_dir",
    "gluster storage path": "gluster_storage_dir",
    "maintenance of node health": "maintain_node_health",
    "uid pool": "uid_pool",
    "default instance allocator": "default_iallocator",
    "default instance allocator parameters": "default_iallocator_params",
    "primary ip version": "primary_ip_version",
    "preallocation wipe disks": "prealloc_wipe_disks",
    "OS search path": "os_search_path",
    "ExtStorage Providers search path": "es_search_path",
    "enabled disk templates": "enabled_disk_templates",
    "install image": "install_image",
    "instance communication network": "instance_communication_network",
    "zeroing image": "zeroing_image",
    "compression tools": "compression_tools",
    "enabled user shutdown": "enabled_user_shutdown",
    "modify ssh setup": "modify_ssh_setup",
    "ssh_key_type": "ssh_key_type",
    "ssh_key_bits": "ssh_key_bits",
    "storage pools": "storage_pools",
    "seconds that archived jobs are kept": "job_retention",
    "ssconf files on nodes": "ssconf",
    "master address": "master_ip",
    "master address is to be up": "master_ip_active",
}
"""Lines in Ganeti's order, and where they come from; the last five are ours."""


def _parameters(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        word: _parameter(key, found[key])
        for word, key in _PARAMETERS.items()
        if key in found
    }


def _parameter(key: str, value: Any) -> Any:  # noqa: ANN401
    if key == "job_retention":
        return round(value)
    if key == "uid_pool":
        return shown_uids(value or ())
    if key == "reserved_lvs":
        return _joined(value or ()) or "(none)"
    if isinstance(value, Mapping):
        return _maps(value) or ""
    return _joined(value) if isinstance(value, list | tuple) else value


def _joined(values: Any) -> str:  # noqa: ANN401
    return values if isinstance(values, str) else ", ".join(map(str, values))


def _maps(value: Any) -> Any:  # noqa: ANN401
    """Return nested maps in the order of their keys, lists on one line."""
    if isinstance(value, Mapping):
        return {key: _maps(value[key]) for key in sorted(value)}
    return Flow(value) if isinstance(value, list) else "" if value is None else value


def _show_version(call: Call) -> None:
    found = call.client.info()
    shown = {
        "Software version": found.get("software_version") or __version__,
        "Internode protocol": found.get("protocol_version"),
        "Configuration format": found.get("config_version"),
        "OS api version": found.get("os_api_version"),
        "Export interface": found.get("export_version"),
    }
    for word, value in shown.items():
        if value is not None:
            call.terminal.print(f"{word}: {value}")


def _master(call: Call) -> None:
    try:
        name = call.client.info()["master"]
    except (NoMaster, NotMaster, WrongState):
        name = "" if call.is_remote else failover.heard()
        if not name:
            raise
    call.terminal.print(str(name))


INFO = Command(
    "info",
    _info,
    (),
    (refused("--roman", "numbers are shown as they are"), JSON, DEBUG),
)
COMMANDS = (
    INFO,
    Command("version", _show_version, options=(DEBUG,)),
    Command("getmaster", _master, options=(DEBUG,)),
)
