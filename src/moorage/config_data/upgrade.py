# SPDX-License-Identifier: BSD-2-Clause
"""A configuration of an older version becomes one of a newer version.

Steps run in Ganeti's order: nodes get their keys only after disks are objects of their
own, for a disk names nodes, too. What is at its place already stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from moorage.disk_templates import FACTS, Mirror, Reach
from moorage.errors import BadInput

from .document import (
    Document,
    Part,
    Version,
    all_disks,
    all_hvparams,
    family,
    version_of,
)

KINDS = {"lvm": "plain", "drbd8": "drbd"}
"""What a type of disk was called before 2.9, and is called since."""
COLLECTORS = (
    *("cpu-avg-load", "diskstats", "drbd", "inst-status-xen", "lv"),
    "xen-cpu-avg-load",
)
COLLECTED = {"active": True, "interval": 5_000_000.0}
"""How a data collector works where nobody said otherwise; the interval is in µs."""
_NEW_SETTINGS: Mapping[str, Any] = {
    "candidate_certs": {},
    "compression_tools": ["gzip", "gzip-fast", "gzip-slow"],
    "data_collectors": {},
    "default_iallocator_params": {},
    "enabled_user_shutdown": False,
    "install_image": "",
    "instance_communication_network": "",
    "ssh_key_bits": 1024,
    "ssh_key_type": "dsa",
    "zeroing_image": "",
}
"""Settings that later versions have, with what an older one did."""

UNFIT = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What is met where a file is not as any Ganeti writes it: it is not typed."""
Notes = Iterator[str]
"""Sentences about what is not plain."""


class Ids:
    """Where new uuids come from."""

    def __init__(self, new: Callable[[], str]) -> None:
        self.new = new


def upgrade(
    document: Document, to: Version, new_uuid: Callable[[], str]
) -> tuple[Document, list[str]]:
    """Return a document as a newer version has it, and what is to be known about it.

    The old one is left as it was.

    Parameters
    ----------
    to
        3.0 or 3.1.
    new_uuid
        Makes one for each disk that had none.

    Raises
    ------
    BadInput
        If something in it fits no version; the sentence tells all of it.
    """
    found = deepcopy(document)
    if version_of(found) >= to:
        return found, []
    notes: list[str] = []
    wrong: list[str] = []
    steps: list[tuple[Version, Callable[[Document, Ids], Notes]]] = [
        (Version(3, 0), _networks),
        (Version(3, 0), _cluster),
        (Version(3, 0), _groups),
        (Version(3, 0), _instances),
        (Version(3, 0), _disks_on_top),
        (Version(3, 0), _nodes_by_uuid),
        (Version(3, 0), _instances_by_uuid),
        (Version(3, 0), _filters),
        (Version(3, 0), _disks_nodes),
        (Version(3, 0), _no_template),
        (Version(3, 1), _hypervisors),
    ]
    for version, step in steps:
        if version > to:
            continue
        try:
            notes += step(found, Ids(new_uuid))
        except BadInput as error:
            wrong.append(error.message)
        except UNFIT as error:  # a document is not typed
            part = step.__name__.strip("_").replace("_", " ")
            told = f"{type(error).__name__}: {error}"
            wrong.append(f"no version has such {part} ({told})")
    if wrong:
        raise BadInput("; ".join(wrong))
    found["version"] = to.number
    return found, notes


def _networks(found: Document, _ids: Ids) -> Notes:
    found["networks"] = found.get("networks") or {}
    yield from ()


def _cluster(found: Document, _ids: Ids) -> Notes:
    cluster = found["cluster"]
    if "config_version" in cluster:
        raise BadInput("the cluster has a 'config_version' of its own, as none has")
    for name, value in _NEW_SETTINGS.items():
        cluster.setdefault(name, deepcopy(value))
    for name in COLLECTORS:
        cluster["data_collectors"].setdefault(name, dict(COLLECTED))
    cluster.setdefault("ipolicy", None)
    _policy(cluster["ipolicy"] or {})
    yield from ()


def _policy(policy: Part, usual: Part | None = None) -> None:
    """Put the bounds of 2.7 into the list of later versions.

    Parameters
    ----------
    usual
        The cluster's policy, for that of a group: a bound that it does not name is
        the cluster's, where a list has to name all.
    """
    bounds = {end: policy.pop(end, None) for end in ("min", "max") if end in policy}
    given = {end: value for end, value in bounds.items() if value}
    if given:
        policy["minmax"] = [given]
    if usual is None:
        return
    policy.pop("std", None)
    for ends in (usual.get("minmax") or [])[:1]:
        for end, sizes in ((policy.get("minmax") or [{}])[0]).items():
            for name, value in (ends.get(end) or {}).items():
                sizes.setdefault(name, value)


def _groups(found: Document, _ids: Ids) -> Notes:
    usual = found["cluster"].get("ipolicy")
    for group in found["nodegroups"].values():
        group["networks"] = group.get("networks") or {}
        if group.get("ipolicy"):
            if usual is None:
                raise BadInput(
                    f"node group {group['name']} has an instance policy, and the "
                    "cluster has none"
                )
            _policy(group["ipolicy"], usual)
    yield from ()


def _instances(found: Document, ids: Ids) -> Notes:
    networks = {one["name"]: one["uuid"] for one in found["networks"].values()}
    spindleless = False
    for instance in found["instances"].values():
        instance.setdefault("admin_state_source", "admin")
        for nic in instance.get("nics", ()):
            name = nic.get("network")
            if name in networks:
                nic["network"] = networks[name]
                yield (
                    f"a card of instance {instance['name']} is in network '{name}': "
                    f"its uuid {networks[name]} is noted"
                )
        for number, disk in enumerate(instance.setdefault("disks", [])):
            if isinstance(disk, dict):
                spindleless |= "spindles" not in disk
                yield from _embedded(instance, number, disk, ids)
    if spindleless and _exclusive(found):
        yield (
            "some disks have no number of spindles, which nodes with exclusive storage "
            "need: gnt-cluster verify tells which"
        )


def _embedded(instance: Part, number: int, disk: Part, ids: Ids) -> Notes:
    name = f"disk/{number}"
    if disk.get("iv_name", "") != name:
        yield (
            f"disk {number} of instance {instance['name']} was called "
            f"'{disk.get('iv_name', '')}': it is {name}"
        )
        disk["iv_name"] = name
    for one in family(disk):
        one.pop("physical_id", None)
        one["dev_type"] = KINDS.get(one["dev_type"], one["dev_type"])
        one.setdefault("uuid", ids.new())


def _exclusive(found: Document) -> bool:
    holders = (found["cluster"], *found["nodegroups"].values())
    return any((one.get("ndparams") or {}).get("exclusive_storage") for one in holders)


def _disks_on_top(found: Document, _ids: Ids) -> Notes:
    if "disks" in found:
        return
    disks = (
        (f"{disk['iv_name']} of {instance['name']}", disk)
        for instance in found["instances"].values()
        for disk in instance["disks"]
    )
    found["disks"] = _by_uuid("disk", disks)
    for instance in found["instances"].values():
        made = instance.get("ctime", 0)
        for disk in instance["disks"]:
            disk |= {"serial_no": 1, "ctime": made, "mtime": made}
        instance["disks"] = [disk["uuid"] for disk in instance["disks"]]
    yield from ()


def _nodes_by_uuid(found: Document, _ids: Ids) -> Notes:
    uuids = {node["name"]: node["uuid"] for node in found["nodes"].values()}
    found["nodes"] = _by_uuid("node", _named(found["nodes"].values()))
    cluster = found["cluster"]
    cluster["master_node"] = uuids.get(cluster["master_node"], cluster["master_node"])
    for instance in found["instances"].values():
        home = instance["primary_node"]
        instance["primary_node"] = uuids.get(home, home)
    for disk in all_disks(found):
        if disk["dev_type"] in {"drbd", "drbd8"}:
            for place, node in enumerate(disk["logical_id"][:2]):
                disk["logical_id"][place] = uuids.get(node, node)
    yield from ()


def _instances_by_uuid(found: Document, _ids: Ids) -> Notes:
    known = found["instances"].values()
    missing = [one["name"] for one in known if not isinstance(one.get("uuid"), str)]
    if missing:
        raise BadInput(f"instances without a uuid: {', '.join(missing)}")
    found["instances"] = _by_uuid("instance", _named(known))
    yield from ()


def _by_uuid(kind: str, parts: Iterable[tuple[str, Part]]) -> dict[str, Part]:
    """Return objects by their uuids.

    Parameters
    ----------
    parts
        Each behind what people call it.

    Raises
    ------
    BadInput
        If two have the same: only one of them would be left.
    """
    found: dict[str, Part] = {}
    called: dict[str, str] = {}
    for name, part in parts:
        uuid = part["uuid"]
        if uuid in found:
            told = f"{called[uuid]} and {name}"
            raise BadInput(f"two {kind}s have the uuid {uuid}: {told}")
        found[uuid], called[uuid] = part, name
    return found


def _named(parts: Iterable[Part]) -> Iterator[tuple[str, Part]]:
    return ((part["name"], part) for part in parts)


def _filters(found: Document, _ids: Ids) -> Notes:
    found["filters"] = found.get("filters") or {}
    yield from ()


def _disks_nodes(found: Document, _ids: Ids) -> Notes:
    disks = found["disks"]
    dangling = [
        f"instance {instance['name']} has a disk {uuid}, which is not there"
        for instance in found["instances"].values()
        for uuid in instance["disks"]
        if uuid not in disks
    ]
    if dangling:
        raise BadInput("; ".join(dangling))
    for instance in found["instances"].values():
        own = [disks[uuid] for uuid in instance["disks"]]
        nodes = {instance["primary_node"]: None}
        for disk in own:
            if _is_mirrored(disk):
                nodes |= dict.fromkeys(disk["logical_id"][:2])
        for disk in own:
            if "nodes" not in disk:
                _note_nodes(disk, list(nodes))
    yield from ()


def _is_mirrored(disk: Part) -> bool:
    facts = FACTS.get(disk["dev_type"])
    return facts is not None and facts.mirror is Mirror.INTERNAL


def _note_nodes(disk: Part, nodes: list[str]) -> None:
    facts = FACTS.get(disk["dev_type"])
    if facts is None or facts.reach is Reach.GROUP:
        disk["nodes"] = []
        return
    for one in family(disk) if _is_mirrored(disk) else (disk,):
        one["nodes"] = list(nodes)


def _no_template(found: Document, _ids: Ids) -> Notes:
    for instance in found["instances"].values():
        instance.pop("disk_template", None)
    yield from ()


def _hypervisors(found: Document, _ids: Ids) -> Notes:
    for hypervisor, params in all_hvparams(found):
        if hypervisor.startswith("xen-"):
            params.pop("xen_cmd", None)
        if params.get("disk_discard") == "default":
            params["disk_discard"] = "ignore"
    yield from ()
