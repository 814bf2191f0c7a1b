# SPDX-License-Identifier: BSD-2-Clause
"""The allocator's message: a cluster and a request, as JSON, and the answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moorage.errors import BadInput
from moorage.htools.constants import ALLOC_POLICIES, SPELLINGS
from moorage.htools.fleet import (
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    Unit,
    UnitName,
)
from moorage.htools.formats import jsontext, sunit
from moorage.htools.formats.excerpt import brief
from moorage.htools.formats.fast_instance import STATES, resident
from moorage.htools.formats.jsontext import Value
from moorage.htools.placement.requests import (
    Allocate,
    AllocateSecondary,
    ChangeGroup,
    MultiAllocate,
    NodeEvacuate,
    Relocate,
    Request,
    Response,
)
from moorage.htools.policy import Policy, Spec
from moorage.policy_sizes import POLICY_SIZES


@dataclass(frozen=True, slots=True)
class Message:
    """A cluster and what is asked of it; `request` is None when nothing is."""

    fleet: Fleet
    request: Request | None


def parse(text: str, file: str = "<message>") -> Message:
    """Return the message of a JSON text.

    Raises
    ------
    BadInput
        One sentence with file, line and column of the first thing that is off.
    """
    message = jsontext.parse(text, file)
    fleet = _fleet(message)
    if not message.has("request"):
        raise message.bad("lacks 'request'")
    return Message(fleet, _request(message["request"], fleet))


def _fleet(message: Value) -> Fleet:
    groups = [_group(uuid, value) for uuid, value in message["nodegroups"].members()]
    uuids = {group.uuid: at for at, group in enumerate(groups)}
    nodes = [_node(name, value, uuids) for name, value in message["nodes"].members()]
    kinds = message["enabled_hypervisors"].texts()
    if kinds:
        nodes = [node._replace(hypervisor=kinds[0]) for node in nodes]
    places = {node.name: at for at, node in enumerate(nodes)}
    insts = [
        _resident(name, value, places) for name, value in message["instances"].members()
    ]
    return Fleet(
        tuple(groups),
        tuple(nodes),
        tuple(insts),
        message["cluster_tags"].texts(),
        warnings=message.source.warnings,
    )


def _group(uuid: str, value: Value) -> Group:
    return Group(
        name=value["name"].name(),
        uuid=uuid,
        alloc_policy=value["alloc_policy"].one_of(ALLOC_POLICIES),
        tags=value["tags"].texts(),
        networks=value["networks"].texts(),
        policy=policy(value["ipolicy"]),
    )


def policy(value: Value) -> Policy:
    """Return an instance policy."""
    return Policy(
        ranges=tuple(
            (_spec(pair["min"]), _spec(pair["max"])) for pair in value["minmax"].items()
        ),
        standard=_spec(value["std"]),
        templates=tuple(template(item) for item in value["disk-templates"].items()),
        vcpu_ratio=value["vcpu-ratio"].ratio(),
        spindle_ratio=value["spindle-ratio"].ratio(),
    )


def _spec(value: Value) -> Spec:
    given = ((size, value[size.name]) for size in POLICY_SIZES)
    return Spec(
        **{
            size.field: one.size() if size.is_size else one.count()
            for size, one in given
        }
    )


def template(value: Value) -> str:
    """Return a disk template."""
    word = value.text()
    if word not in SPELLINGS:
        raise value.bad("is not a disk template")
    return SPELLINGS[word]


def _node(name: str, value: Value, groups: Mapping[str, int]) -> NodeRow:
    group = value["group"]
    if group.text() not in groups:
        raise group.bad("is no group of this message")
    params = value["ndparams"]
    stores = value.get("storage", units, None)
    exclusive = params["exclusive_storage"].flag()
    exclusive = exclusive or any(unit.exclusive for unit in stores or ())
    live = not value["offline"].flag() and value.get("vm_capable", Value.flag, True)
    row = NodeRow(
        name=name,
        group=groups[group.text()],
        offline=not live or value["drained"].flag(),
        tags=value.get("tags", Value.texts, ()),
        exclusive=exclusive,
        cpus_own=0,
        spindles=0 if exclusive else params["spindle_count"].count(),
        units=stores,
    )
    return _live(row, value) if live else row


def _live(row: NodeRow, value: Value) -> NodeRow:
    """Return the row with what only a living node can tell."""
    return row._replace(
        mem_total=value["total_memory"].number(),
        mem_own=value["reserved_memory"].integer(),
        mem_free=value["free_memory"].integer(),
        disk_total=value["total_disk"].number(),
        disk_free=value["free_disk"].integer(),
        cpus=value["total_cpus"].ratio(),
        cpus_own=value["reserved_cpus"].count(),
        spindles=value["total_spindles"].count() if row.exclusive else row.spindles,
        spindles_free=value["free_spindles"].integer(),
    )


def units(value: Value) -> tuple[Unit, ...]:
    """Return the storage units of a node."""
    found: dict[UnitName, Unit] = {}
    for item in value.items():
        unit = sunit.unit(
            _words(item["sunit"]),
            item.get("free", Value.size, None),
            item.get("total", Value.size, None),
            shared=item.get("shared", Value.flag, None),
        )
        if unit.name in found:
            raise item["sunit"].bad("is listed twice")
        found[unit.name] = unit
    return tuple(found.values())


def unit_name(value: Value) -> UnitName:
    """Return type, key and parameters of a storage unit."""
    return sunit.unit_name(_words(value))


def _words(value: Value) -> list[str | bool]:
    """Return ``[type, key, [extra...]]`` as one list; the extras may stand bare."""
    kind, *rest = value.items() or [value]
    if len(rest) == 2 and isinstance(rest[1].data, list):
        rest = [rest[0], *rest[1].items()]
    if not rest or not kind.text():
        raise value.bad("is no storage unit ([type, key, [extra...]])")
    more = [
        one.flag() if isinstance(one.data, bool) else one.text() for one in rest[1:]
    ]
    return [kind.text(), rest[0].text(), *more]


def _instance(name: str, value: Value) -> InstanceRow:
    kind = template(value["disk_template"])
    state = value.get("admin_state", Value.text, "up")
    return InstanceRow(
        name=name,
        mem=value["memory"].size(),
        disk=value["disk_space_total"].size(),
        vcpus=value["vcpus"].count(),
        status=STATES.get(state, "running"),
        template=kind,
        tags=value["tags"].texts(),
        spindle_use=value["spindle_use"].count(),
        disks=tuple(_disk(item) for item in value["disks"].items()),
        forthcoming=value.get("forthcoming", Value.flag, False),
        networks=tuple(
            nic["network"].text() for nic in value["nics"].items() if nic.has("network")
        ),
    )


def _disk(value: Value) -> Disk:
    return Disk(
        size=value["size"].size(),
        spindles=value.get("spindles", Value.count, None),
        unit=value.get("sunit", unit_name, None),
    )


def _resident(name: str, value: Value, places: Mapping[str, int]) -> InstanceRow:
    usual = resident(name, value.data, places)
    return _careful(name, value, places) if usual is None else usual


def _careful(name: str, value: Value, places: Mapping[str, int]) -> InstanceRow:
    homes = value["nodes"].items()
    if not homes:
        raise value["nodes"].bad("names no node")
    for home in homes:
        if home.text() not in places:
            raise home.bad("is no node of this message")
    row = _instance(name, value)
    if len(homes) > 1 and homes[0].data == homes[1].data:
        raise homes[1].bad("is the primary node too")
    second = places[homes[1].text()] if len(homes) > 1 else -1
    return row._replace(primary=places[homes[0].text()], secondary=second)


def _request(value: Value, fleet: Fleet) -> Request:
    kind = value["type"].text()
    if kind not in _KINDS:
        raise value["type"].bad(f"{brief(kind)} is an invalid request type")
    return _KINDS[kind](value, fleet)


def _allocate(value: Value, _: Fleet) -> Allocate:
    return Allocate(
        inst=_instance(value["name"].name(), value),
        nodes=value["required_nodes"].size(),
        group=value.get("group_name", Value.text, None),
        restrict=value.get("restrict-to-nodes", Value.texts, None),
    )


def _multi(value: Value, _: Fleet) -> MultiAllocate:
    group = value.get("group_name", Value.text, None)
    return MultiAllocate(
        tuple(
            Allocate(
                _instance(item["name"].name(), item),
                item["required_nodes"].size(),
                group,
            )
            for item in value["instances"].items()
        )
    )


def _relocate(value: Value, fleet: Fleet) -> Relocate:
    return Relocate(
        inst=_index(value["name"], fleet.instances, "instance"),
        nodes=value["required_nodes"].size(),
        leave=tuple(
            _index(item, fleet.nodes, "node") for item in value["relocate_from"].items()
        ),
    )


def _evacuate(value: Value, fleet: Fleet) -> NodeEvacuate:
    from moorage.htools.placement.evacuation import MODES  # noqa: PLC0415 - start-up time

    return NodeEvacuate(_insts(value, fleet), value["evac_mode"].one_of(MODES))


def _change_group(value: Value, fleet: Fleet) -> ChangeGroup:
    groups = [
        _group_index(item, fleet.groups) for item in value["target_groups"].items()
    ]
    return ChangeGroup(_insts(value, fleet), tuple(groups))


def _second(value: Value, fleet: Fleet) -> AllocateSecondary:
    return AllocateSecondary(_index(value["name"], fleet.instances, "instance"))


def _insts(value: Value, fleet: Fleet) -> tuple[int, ...]:
    items = value["instances"].items()
    return tuple(_index(item, fleet.instances, "instance") for item in items)


def _index(
    value: Value, rows: Sequence[NodeRow] | Sequence[InstanceRow], what: str
) -> int:
    name = value.text()
    # Of two with one name the last is meant, as for Ganeti's hail.
    names = [row.name for row in rows]
    if name in names:
        return len(names) - 1 - names[::-1].index(name)
    raise value.bad(f"{brief(name)} is no {what} of this message")


def _group_index(value: Value, groups: tuple[Group, ...]) -> int:
    word = value.text()
    for at, group in enumerate(groups):
        if word in (group.uuid, group.name):
            return at
    raise value.bad(f"{brief(word)} is no group of this message")


_KINDS: Final[dict[str, Callable[[Value, Fleet], Request]]] = {
    "allocate": _allocate,
    "multi-allocate": _multi,
    "relocate": _relocate,
    "node-evacuate": _evacuate,
    "change-group": _change_group,
    "allocate-secondary": _second,
}


def dump(response: Response) -> str:
    """Return the answer as JSON text, as the master reads it."""
    result = response.result if response.success else []
    answer: dict[str, Any] = {
        "success": response.success,
        "info": response.info,
        "result": result,
    }
    if response.explanation is not None:
        answer["explanation"] = response.explanation
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False)


__all__ = ["BadInput", "Message", "dump", "parse", "policy", "template", "units"]
