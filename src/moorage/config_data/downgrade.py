# SPDX-License-Identifier: BSD-2-Clause
"""A configuration as an older version has it, one version at a time.

What the older one cannot hold is refused where guests would miss it, and said where
they would not.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy

from moorage.errors import BadInput

from .document import (
    KNOWN,
    Document,
    Part,
    Version,
    all_disks,
    all_hvparams,
    all_ndparams,
    family,
    holders,
    version_of,
)
from .upgrade import KINDS

_OLD_KINDS = {new: old for old, new in KINDS.items()}
_SSH_PORT = 22


class Refused(BadInput):
    """An older version cannot hold something."""


def downgrade(document: Document, to: Version) -> tuple[Document, list[str]]:
    """Return a document as an older version has it, and what is not in it any more.

    The newer one is left as it was.

    Raises
    ------
    Refused
        If a version on the way cannot hold something; the sentence names it.
    """
    found = deepcopy(document)
    lost: list[str] = []
    at = version_of(found)
    while at > to:
        below = KNOWN[KNOWN.index(at) - 1]
        lost += _STEPS[at](found)
        found["version"] = below.number
        at = below
    return found, lost


def _drop(parts: Iterable[Part], *names: str) -> None:
    for part in parts:
        for name in names:
            part.pop(name, None)


def _drop_hvparams(found: Document, names: Mapping[str, Iterable[str]]) -> None:
    """Drop parameters, by the beginning of their hypervisor's name."""
    for hypervisor, params in all_hvparams(found):
        for beginning, gone in names.items():
            if hypervisor.startswith(beginning):
                _drop([params], *gone)


def _diskparams(found: Document, template: str, *names: str) -> None:
    for one in holders(found):
        _drop([(one.get("diskparams") or {}).get(template) or {}], *names)


def _from_3_1(found: Document) -> list[str]:
    for hypervisor, params in (found["cluster"].get("hvparams") or {}).items():
        if hypervisor.startswith("xen-"):
            params["xen_cmd"] = "xl"
    _diskparams(found, "rbd", "user-id")
    return []


def _ssh_keys(found: Document) -> list[str]:
    cluster = found["cluster"]
    kind = cluster.get("ssh_key_type", "dsa")
    if kind != "dsa":
        raise Refused(
            f"the nodes' SSH keys are of type {kind}, and Ganeti knows no others than "
            "dsa before 2.16"
        )
    _drop([cluster], "ssh_key_type", "ssh_key_bits")
    return []


def _from_2_15(found: Document) -> list[str]:
    _drop([found["cluster"].get("data_collectors") or {}], "xen-cpu-avg-load")
    return []


def _from_2_14(found: Document) -> list[str]:
    disks, instances = found["disks"], found["instances"]
    lost = [
        *_no_forthcoming(instances, "instance"),
        *_no_forthcoming(disks, "disk"),
    ]
    for one in instances.values():
        one["disks"] = [uuid for uuid in one.get("disks", []) if uuid in disks]
    mixed = []
    for one in instances.values():
        kinds = sorted({disks[uuid]["dev_type"] for uuid in one["disks"]})
        if len(kinds) > 1:
            its = (f"{uuid} ({disks[uuid]['dev_type']})" for uuid in one["disks"])
            mixed.append(f"instance {one['name']} has {', '.join(its)}")
        one["disk_template"] = kinds[0] if kinds else "diskless"
    if mixed:
        raise Refused(
            "an instance has disks of one template before 2.14, and the others are to "
            f"be detached or converted: {'; '.join(mixed)}"
        )
    _drop(all_disks(found), "nodes")
    _drop([*instances.values(), *disks.values()], "forthcoming")
    return lost


def _no_forthcoming(parts: dict[str, Part], kind: str) -> list[str]:
    gone = [uuid for uuid, part in parts.items() if part.get("forthcoming")]
    lost = [f"{kind} {parts[uuid].get('name') or uuid} is forthcoming" for uuid in gone]
    for uuid in gone:
        del parts[uuid]
    return lost


def _from_2_13(found: Document) -> list[str]:
    _diskparams(found, "ext", "access")
    _drop([found["cluster"]], "data_collectors")
    lost = [f"{len(found['filters'])} job filters"] if found.get("filters") else []
    found.pop("filters", None)
    for hypervisor, params in all_hvparams(found):
        if hypervisor == "lxc":  # all that it had
            _drop([params], *(params.keys() - {"cpu_mask"}))
    return lost


def _from_2_12(found: Document) -> list[str]:
    _drop_hvparams(found, {"kvm": ("migration_caps", "disk_aio", "virtio_net_queues")})
    _drop(all_ndparams(found), "cpu_speed")
    cluster, instances = found["cluster"], found["instances"].values()
    secret = [one["name"] for one in instances if one.get("osparams_private")]
    lost = [f"private OS parameters of instance {name}" for name in secret]
    if cluster.get("osparams_private_cluster"):
        lost.append("private OS parameters of the cluster")
    _drop(instances, "osparams_private")
    _drop(
        [cluster],
        "osparams_private_cluster",
        "instance_communication_network",
        "install_image",
        "zeroing_image",
        "compression_tools",
        "max_tracked_jobs",
    )
    disks = found.pop("disks")
    for one in instances:
        one["disks"] = [disks.pop(uuid) for uuid in one["disks"]]
    lost += [f"disk {disk.get('name') or uuid}" for uuid, disk in disks.items()]
    _drop(all_disks(found), "serial_no", "ctime", "mtime")
    return lost


def _from_2_11(found: Document) -> list[str]:
    ports = {one.get("ssh_port", _SSH_PORT) for one in all_ndparams(found)}
    if others := ports - {_SSH_PORT}:
        told = ", ".join(map(str, sorted(others)))
        raise Refused(f"nodes' SSH listens on port {told}, and on 22 before 2.11")
    _drop(all_ndparams(found), "ssh_port")
    _drop(
        [found["cluster"]],
        "default_iallocator_params",
        "candidate_certs",
        "gluster_storage_dir",
        "max_running_jobs",
        "enabled_user_shutdown",
    )
    _drop(found["instances"].values(), "admin_state_source")
    return _gone_kind(found, "gluster", "2.11")


def _from_2_10(found: Document) -> list[str]:
    _drop(all_ndparams(found), "ovs", "ovs_name", "ovs_link")
    nics = [nic for one in found["instances"].values() for nic in one.get("nics", ())]
    cards = [nic.get("nicparams") or {} for nic in nics]
    cards += (found["cluster"].get("nicparams") or {}).values()
    for group in found["nodegroups"].values():
        cards += (group.get("networks") or {}).values()
    tagged = any(one.get("vlan") for one in cards)
    _drop(cards, "vlan")
    _drop_hvparams(found, {"xen-": ("cpuid", "soundhw")})
    return ["VLANs of network cards"] if tagged else []


def _from_2_9(found: Document) -> list[str]:
    counted = any("spindles" in disk for disk in all_disks(found))
    _drop(all_disks(found), "spindles")
    for disk in all_disks(found):
        disk["dev_type"] = _OLD_KINDS.get(disk["dev_type"], disk["dev_type"])
    _drop_hvparams(found, {"xen-": ("xen_cmd", "vif_script")})
    _by_name(found)
    return ["disks' spindles"] if counted else []


def _by_name(found: Document) -> None:
    names = {uuid: node["name"] for uuid, node in found["nodes"].items()}
    found["nodes"] = {node["name"]: node for node in found["nodes"].values()}
    found["instances"] = {one["name"]: one for one in found["instances"].values()}
    cluster = found["cluster"]
    cluster["master_node"] = names.get(cluster["master_node"], cluster["master_node"])
    for one in found["instances"].values():
        one["primary_node"] = names.get(one["primary_node"], one["primary_node"])
    for disk in all_disks(found):
        if disk["dev_type"] == "drbd8":
            pair = disk["logical_id"][:2]
            disk["logical_id"][:2] = [names.get(node, node) for node in pair]


def _from_2_8(found: Document) -> list[str]:
    lost = []
    for one in holders(found):
        policy = one.get("ipolicy") or {}
        bounds = policy.pop("minmax", None) or []
        if len(bounds) > 1:
            whose = one.get("name") or "the cluster"
            lost.append(f"{len(bounds) - 1} ranges of the instance policy of {whose}")
        policy |= bounds[0] if bounds else {}
        if "name" in one and policy:  # a group's
            policy |= {end: policy.get(end, {}) for end in ("min", "max")}
            policy["std"] = {}
    cluster = found["cluster"]
    if cluster.get("enabled_disk_templates"):
        lost.append("which disk templates are enabled")
    _drop([cluster], "enabled_disk_templates", "dsahostkeypub")
    instances = found["instances"].values()
    _drop(instances, "disks_active")
    _drop((nic for one in instances for nic in one.get("nics", ())), "uuid")
    _drop(all_disks(found), "uuid")
    return lost


def _gone_kind(found: Document, kind: str, since: str) -> list[str]:
    """Refuse instances with disks of a template that an older version has not."""
    having = [
        one["name"]
        for one in found["instances"].values()
        if any(it["dev_type"] == kind for disk in one["disks"] for it in family(disk))
    ]
    if having:
        raise Refused(
            f"there is no disk template {kind} before {since}: instance "
            f"{', '.join(having)} has such disks"
        )
    return []


_STEPS: Mapping[Version, Callable[[Document], list[str]]] = {
    Version(3, 1): _from_3_1,
    Version(3, 0): _ssh_keys,
    Version(2, 16): _ssh_keys,
    Version(2, 15): _from_2_15,
    Version(2, 14): _from_2_14,
    Version(2, 13): _from_2_13,
    Version(2, 12): _from_2_12,
    Version(2, 11): _from_2_11,
    Version(2, 10): _from_2_10,
    Version(2, 9): _from_2_9,
    Version(2, 8): _from_2_8,
}
