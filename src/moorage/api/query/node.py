# SPDX-License-Identifier: BSD-2-Clause
"""Nodes as queries show them."""

from collections.abc import Callable, Iterable
from typing import Any

from moorage.errors import MoorageError
from moorage.model import Config, Node, NodeFacts, Unit
from moorage.ops.ndparams import NAMES, filled
from moorage.ops.storage.units import sunit

from .field import COMMON, Family, Field, Getter, Missing, Resource, attribute
from .objects import absent, by_name, every, keys
from .snapshot import Snapshot

# -- live ----------------------------------------------------------------------------


def _of_facts(get: Callable[[Snapshot, NodeFacts], Any]) -> Getter:
    """Return a getter that takes what the node said, if it said anything."""

    def found(scene: Snapshot, node: Node) -> Any:  # noqa: ANN401
        if node.offline:
            return Missing.OFFLINE
        facts = scene.facts.get(node.uuid)
        return get(scene, facts) if isinstance(facts, NodeFacts) else Missing.NODATA

    return found


def _live(
    name: str,
    title: str,
    kind: str,
    doc: str,
    get: Any,  # noqa: ANN401
    *,
    room: bool = False,
) -> Field:
    return Field(name, title, kind, doc, _of_facts(get), live=True, room=room)


def _unit(scene: Snapshot, facts: NodeFacts) -> Unit | None:
    """Return the unit of the first enabled template whose room the node knows."""
    known = [unit for unit in facts.units if unit.total is not None]
    units = {unit.template: unit for unit in reversed(known)}
    enabled = scene.config.cluster.enabled_disk_templates or sorted(units)
    return next((units[name] for name in enabled if name in units), None)


def _room(name: str) -> Callable[[Snapshot, NodeFacts], Any]:
    def found(scene: Snapshot, facts: NodeFacts) -> Any:  # noqa: ANN401
        value = getattr(_unit(scene, facts), name, None)
        return Missing.NODATA if value is None else value

    return found


def _storage(_scene: Snapshot, facts: NodeFacts) -> list[dict[str, Any]]:
    """Return the storage units as planners read them; null is unknown room."""
    return [
        {"sunit": sunit(unit.name), "free": unit.free, "total": unit.total}
        for unit in facts.units
    ]


def _silence(scene: Snapshot, node: Node) -> Any:  # noqa: ANN401
    """Return why a node gave no answer; empty if it did."""
    if node.offline:
        return Missing.OFFLINE
    said = scene.facts.get(node.uuid)
    if isinstance(said, MoorageError):
        return str(said.facts.get("cause", said.message))
    return ""


def _accelerator(name: str) -> Callable[[Snapshot, NodeFacts], Any]:
    return lambda _scene, facts: getattr(facts.accelerator, name, None)


LIVE = (
    _live("bootid", "BootID", "text", "Changes at each boot", lambda _s, f: f.bootid),
    _live("mtotal", "MTotal", "unit", "Memory", lambda _s, f: f.memory_total),
    _live("mnode", "MNode", "unit", "Kept for the node", lambda _s, f: f.memory_own),
    _live("mfree", "MFree", "unit", "Memory to use", lambda _s, f: f.memory_free),
    _live("dtotal", "DTotal", "unit", "Room for disks", _room("total"), room=True),
    _live("dfree", "DFree", "unit", "Room to use", _room("free"), room=True),
    _live("storage", "Storage", "other", "Its storage units", _storage, room=True),
    _live("ctotal", "CTotal", "number", "Processors", lambda _s, f: f.cpus),
    _live("cnodes", "CNodes", "number", "NUMA nodes", lambda _s, _f: None),
    _live("csockets", "CSockets", "number", "Sockets", lambda _s, _f: None),
    _live("cnos", "CNOs", "number", "Processors kept for it", lambda _s, _f: 1),
    _live("sptotal", "SpTotal", "number", "Spindles", lambda _s, _f: None),
    _live("spfree", "SpFree", "number", "Spindles to use", lambda _s, _f: None),
    _live(
        "accelerator",
        "Accelerator",
        "text",
        "What executes guests: kvm, or tcg where they are emulated",
        _accelerator("name"),
    ),
    _live(
        "accelerator.reason",
        "AcceleratorReason",
        "text",
        "How that is known",
        _accelerator("reason"),
    ),
    _live(
        "links",
        "Links",
        "other",
        "Bridges that network cards can be in",
        lambda _s, f: None if f.links is None else [one.name for one in f.links],
    ),
    _live("version", "Version", "text", "Of its agent", lambda _s, f: f.version),
    _live(
        "certificate_ends",
        "CertificateEnds",
        "timestamp",
        "When the certificate that it showed is over",
        lambda _s, f: f.certificate_ends,
    ),
    Field(
        "silence",
        "Silence",
        "text",
        "Why it gives no answer; empty if it does",
        _silence,
        live=True,
    ),
)


# -- configured ----------------------------------------------------------------------


def _is_master(scene: Snapshot, node: Node) -> bool:
    return scene.config.cluster.master_node == node.uuid


def role(scene: Snapshot, node: Node) -> str:
    """Return Ganeti's letter: Master, Candidate, Regular, Drained, Offline."""
    if _is_master(scene, node):
        return "M"
    if node.offline:
        return "O"
    if node.drained:
        return "D"
    return "C" if node.master_candidate else "R"


def _primary(scene: Snapshot, node: Node) -> list[str]:
    return [one.name for one in scene.config.instances_on(node)]


def _secondary(scene: Snapshot, node: Node) -> list[str]:
    return sorted(one.name for one in scene.secondaries.get(node.uuid, ()))


def _ndparams(scene: Snapshot, node: Node) -> dict[str, Any]:
    return filled(scene.config, node)


def _copy(name: str) -> Getter:
    """Return a getter of what is known of a candidate's copy of the state."""

    def found(scene: Snapshot, node: Node) -> Any:  # noqa: ANN401
        value = getattr(scene.copies.get(node.uuid), name, None)
        return Missing.UNAVAILABLE if value is None else value

    return found


def _parameter(tail: str) -> Field:
    doc = f"Node parameter {tail}"
    return Field(
        f"ndp/{tail}",
        f"ndp/{tail}",
        "other",
        doc,
        lambda s, node: _ndparams(s, node).get(tail),
    )


INSTANCES = (
    Field(
        "pinst_cnt",
        "Pinst",
        "number",
        "Instances whose primary node it is",
        lambda s, n: len(s.config.residents.get(n.uuid, ())),
    ),
    Field(
        "sinst_cnt",
        "Sinst",
        "number",
        "Instances with a second copy there",
        lambda s, n: len(s.secondaries.get(n.uuid, ())),
    ),
    Field("pinst_list", "PriInstances", "other", "Their names", _primary),
    Field("sinst_list", "SecInstances", "other", "Their names", _secondary),
)
FIELDS = (
    attribute("name", "Node", "text", "Name"),
    attribute("pip", "PrimaryIP", "text", "Where its agent listens", "primary_ip"),
    attribute("sip", "SecondaryIP", "text", "For mirrors", "secondary_ip"),
    attribute("port", "Port", "number", "Of its agent"),
    Field(
        "group",
        "Group",
        "text",
        "Its group",
        lambda s, n: s.config.group(n.group).name,
    ),
    attribute("group.uuid", "GroupUUID", "text", "Uuid of its group", "group"),
    Field("role", "Role", "text", "M, C, R, D or O", role),
    Field("master", "IsMaster", "bool", "Whether it is the master", _is_master),
    attribute("master_candidate", "MasterC", "bool", "Whether it may become it"),
    attribute("master_capable", "MasterCapable", "bool", "Whether it ever can"),
    attribute("vm_capable", "VMCapable", "bool", "Whether it runs instances"),
    attribute("drained", "Drained", "bool", "Whether it takes no new instances"),
    attribute("offline", "Offline", "bool", "Whether somebody said that it is off"),
    attribute("powered", "Powered", "bool", "Whether its power is on"),
    Field(
        "copy",
        "Copy",
        "text",
        "Whether its copy of the master's state is current, filling or behind",
        _copy("state"),
    ),
    Field("copy.lacks", "CopyLacks", "number", "Commits it lacks", _copy("commits")),
    Field("copy.why", "CopyWhy", "text", "Why it is behind", _copy("why")),
    Field("ndparams", "NodeParameters", "other", "Parameters", _ndparams),
    attribute("custom_ndparams", "CustomNodeParams", "other", "Its own", "ndparams"),
    Field("hv_state", "HypervisorState", "other", "Not kept", lambda _s, _n: None),
    Field("disk_state", "DiskState", "other", "Not kept", lambda _s, _n: None),
)


def _nodes(config: Config, found: Iterable[Any], every_one: bool) -> Iterable[str]:
    del config, every_one
    return [node.uuid for node in found]


NODE = Resource(
    name="node",
    fields=(*FIELDS, *INSTANCES, *LIVE, *COMMON),
    families=(Family("ndp", NAMES, _parameter),),
    every=every(Node),
    order=by_name,
    keys=keys(Node),
    nodes=_nodes,
    absent=absent(Node),
)
