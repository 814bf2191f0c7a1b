# SPDX-License-Identifier: BSD-2-Clause
"""Nodes as queries show them."""

from collections.abc import Callable, Iterable
from typing import Any

from moorage.errors import MoorageError, cause_of
from moorage.model import Config, Node, NodeFacts, Unit
from moorage.ops.ndparams import filled
from moorage.ops.volumes.exclusive_storage import is_exclusive, spindles
from moorage.ops.volumes.units import named, sunit

from . import defaults
from .field import (
    Field,
    Getter,
    Missing,
    flag,
    number,
    other,
    parameters,
    text,
    timestamp,
    unit,
)
from .objects import resource
from .snapshot import Snapshot


def _live(
    kind: Callable[..., Field],
    name: str,
    title: str,
    doc: str,
    get: Callable[[Snapshot, Node, NodeFacts], Any] | str,
    *,
    room: bool = False,
) -> Field:
    """Return a field of what the node said: an attribute, or what a getter returns."""

    def found(snapshot: Snapshot, node: Node) -> Any:  # noqa: ANN401
        if node.offline:
            return Missing.OFFLINE
        facts = snapshot.facts.get(node.uuid)
        if not isinstance(facts, NodeFacts):
            return Missing.NODATA
        return (
            getattr(facts, get) if isinstance(get, str) else get(snapshot, node, facts)
        )

    return kind(name, title, doc, found, live=True, room=room)


def _unit(snapshot: Snapshot, facts: NodeFacts) -> Unit | None:
    """Return the unit of the first enabled template whose room the node knows."""
    known = [unit for unit in facts.units if unit.total is not None]
    units = {unit.template: unit for unit in reversed(known)}
    enabled = snapshot.config.cluster.enabled_disk_templates or sorted(units)
    return next((units[name] for name in enabled if name in units), None)


def _room(name: str) -> Callable[[Snapshot, Node, NodeFacts], Any]:
    def found(snapshot: Snapshot, _node: Node, facts: NodeFacts) -> Any:  # noqa: ANN401
        value = getattr(_unit(snapshot, facts), name, None)
        return Missing.NODATA if value is None else value

    return found


def _storage(snapshot: Snapshot, node: Node, facts: NodeFacts) -> list[dict[str, Any]]:
    """Return the storage units as planners read them; null is unknown room."""
    alone = is_exclusive(snapshot.config, node)
    return [
        {
            "sunit": sunit(name, exclusive=alone),
            "free": unit.free,
            "total": unit.total,
        }
        for unit in facts.units
        for name in named(snapshot.config.cluster, unit, exclusive=alone)
    ]


def _spindles(at: int) -> Callable[[Snapshot, Node, NodeFacts], Any]:
    """Return a getter of all physical volumes (0) or the empty ones (1)."""

    def found(snapshot: Snapshot, node: Node, facts: NodeFacts) -> Any:  # noqa: ANN401
        if not is_exclusive(snapshot.config, node):
            return None
        return spindles(snapshot.config.cluster, facts)[at]

    return found


def _silence(snapshot: Snapshot, node: Node) -> Any:  # noqa: ANN401
    """Return why a node gave no answer; empty if it did."""
    if node.offline:
        return Missing.OFFLINE
    said = snapshot.facts.get(node.uuid)
    if isinstance(said, MoorageError):
        return cause_of(said)
    return ""


def _accelerator(name: str) -> Callable[[Snapshot, Node, NodeFacts], Any]:
    return lambda _scene, _node, facts: getattr(facts.accelerator, name, None)


LIVE = (
    _live(text, "bootid", "BootID", "Changes at each boot", "bootid"),
    _live(unit, "mtotal", "MTotal", "Memory", "memory_total"),
    _live(unit, "mnode", "MNode", "Kept for the node", "memory_own"),
    _live(unit, "mfree", "MFree", "Memory to use", "memory_free"),
    _live(unit, "dtotal", "DTotal", "Room for disks", _room("total"), room=True),
    _live(unit, "dfree", "DFree", "Room to use", _room("free"), room=True),
    _live(other, "storage", "Storage", "Its storage units", _storage, room=True),
    _live(number, "ctotal", "CTotal", "Processors", "cpus"),
    _live(number, "cnodes", "CNodes", "NUMA nodes", lambda _s, _n, _f: None),
    _live(number, "csockets", "CSockets", "Sockets", lambda _s, _n, _f: None),
    _live(number, "cnos", "CNOs", "Processors kept for it", lambda _s, _n, _f: 1),
    _live(number, "sptotal", "SpTotal", "Spindles", _spindles(0), room=True),
    _live(number, "spfree", "SpFree", "Spindles to use", _spindles(1), room=True),
    _live(
        text,
        "accelerator",
        "Accelerator",
        "What executes guests: kvm, or tcg where they are emulated",
        _accelerator("name"),
    ),
    _live(
        text,
        "accelerator.reason",
        "AcceleratorReason",
        "How that is known",
        _accelerator("reason"),
    ),
    _live(
        other,
        "links",
        "Links",
        "Bridges that network cards can be in",
        lambda _s, _n, f: None if f.links is None else [one.name for one in f.links],
    ),
    _live(text, "version", "Version", "Of its agent", "version"),
    _live(
        timestamp,
        "certificate_ends",
        "CertificateEnds",
        "When the certificate that it showed is over",
        "certificate_ends",
    ),
    text(
        "silence",
        "Silence",
        "Why it gives no answer; empty if it does",
        _silence,
        live=True,
    ),
)


def _is_master(snapshot: Snapshot, node: Node) -> bool:
    return snapshot.config.cluster.master_node == node.uuid


def role(snapshot: Snapshot, node: Node) -> str:
    """Return Ganeti's letter: Master, Candidate, Regular, Drained, Offline."""
    if _is_master(snapshot, node):
        return "M"
    if node.offline:
        return "O"
    if node.drained:
        return "D"
    return "C" if node.master_candidate else "R"


def _primary(snapshot: Snapshot, node: Node) -> list[str]:
    return [one.name for one in snapshot.config.instances_on(node)]


def _secondary(snapshot: Snapshot, node: Node) -> list[str]:
    return sorted(one.name for one in snapshot.secondaries.get(node.uuid, ()))


def _ndparams(snapshot: Snapshot, node: Node) -> dict[str, Any]:
    return defaults.node(filled(snapshot.config, node))


def _copy(name: str) -> Getter:
    """Return a getter of what is known of a candidate's copy of the state."""

    def found(snapshot: Snapshot, node: Node) -> Any:  # noqa: ANN401
        value = getattr(snapshot.copies.get(node.uuid), name, None)
        return Missing.UNAVAILABLE if value is None else value

    return found


INSTANCES = (
    number(
        "pinst_cnt",
        "Pinst",
        "Instances whose primary node it is",
        lambda s, n: len(s.config.residents.get(n.uuid, ())),
    ),
    number(
        "sinst_cnt",
        "Sinst",
        "Instances with a second copy there",
        lambda s, n: len(s.secondaries.get(n.uuid, ())),
    ),
    other("pinst_list", "PriInstances", "Their names", _primary),
    other("sinst_list", "SecInstances", "Their names", _secondary),
)
FIELDS = (
    text("name", "Node", "Name"),
    text("pip", "PrimaryIP", "Where its agent listens", "primary_ip"),
    text("sip", "SecondaryIP", "For mirrors", "secondary_ip"),
    number("port", "Port", "Of its agent"),
    text("group", "Group", "Its group", lambda s, n: s.config.group(n.group).name),
    text("group.uuid", "GroupUUID", "Uuid of its group", "group"),
    text("role", "Role", "M, C, R, D or O", role),
    flag("master", "IsMaster", "Whether it is the master", _is_master),
    flag("master_candidate", "MasterC", "Whether it may become it"),
    flag("master_capable", "MasterCapable", "Whether it ever can"),
    flag("vm_capable", "VMCapable", "Whether it runs instances"),
    flag("drained", "Drained", "Whether it takes no new instances"),
    flag("offline", "Offline", "Whether somebody said that it is off"),
    flag("powered", "Powered", "Whether its power is on"),
    text(
        "copy",
        "Copy",
        "Whether its copy of the master's state is current, filling or behind",
        _copy("state"),
    ),
    number("copy.lacks", "CopyLacks", "Commits it lacks", _copy("commits")),
    text("copy.why", "CopyWhy", "Why it is behind", _copy("why")),
    other("ndparams", "NodeParameters", "Parameters", _ndparams),
    other("custom_ndparams", "CustomNodeParameters", "Its own", "ndparams"),
    other("hv_state", "HypervisorState", "Not kept", lambda _s, _n: None),
    other("disk_state", "DiskState", "Not kept", lambda _s, _n: None),
)


def _nodes(_config: Config, found: Iterable[Any], _every_one: bool) -> Iterable[str]:
    return [node.uuid for node in found]


NODE = resource(
    "node",
    Node,
    fields=(*FIELDS, *INSTANCES, *LIVE),
    families=(parameters("ndp", defaults.NDP, "Node parameter", _ndparams),),
    nodes=_nodes,
)
