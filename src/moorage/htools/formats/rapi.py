# SPDX-License-Identifier: BSD-2-Clause
"""A cluster from RAPI's answers: groups, nodes, instances and info."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from moorage.disk_templates import standing_for
from moorage.htools.constants import ALLOC_POLICIES, STATUSES
from moorage.htools.fleet import (
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    UnitName,
)
from moorage.htools.formats import jsontext
from moorage.htools.formats.excerpt import brief
from moorage.htools.formats.iallocator import policy, template, unit_name, units
from moorage.htools.formats.jsontext import Value
from moorage.model import MIXED

DEFAULT_SPINDLES: Final = 1
EMPTY: Final[Mapping[str, str]] = {}


def parse(answers: Mapping[str, str], files: Mapping[str, str] = EMPTY) -> Fleet:
    """Return the fleet; keys are ``groups``, ``nodes``, ``instances``, ``info``.

    Parameters
    ----------
    files
        What to call an answer in errors, where its key does not do.

    Raises
    ------
    BadInput
        One sentence with answer, line and column of the first thing that is off.
    """
    return assembled(
        {
            name: jsontext.parse(text, files.get(name, name))
            for name, text in answers.items()
        }
    )


def assembled(values: Mapping[str, Value]) -> Fleet:
    """Return the fleet of answers that are read as JSON (see `parse`)."""
    info, odd = values["info"], list[str]()
    groups = [_group(value) for value in _apart("uuid", values["groups"], odd)]
    places = {group.uuid: at for at, group in enumerate(groups)}
    nodes = [_node(value, places) for value in _apart("name", values["nodes"], odd)]
    nodes = [_of_cluster(node, info) for node in nodes]
    homes = {node.name: at for at, node in enumerate(nodes)}
    rows = _apart("name", values["instances"], odd)
    listed = {unit.name for node in nodes for unit in node.units or ()}
    insts = tuple(_in_units(_instance(value, homes), value, listed) for value in rows)
    return Fleet(
        tuple(groups),
        tuple(nodes),
        insts,
        info["tags"].texts(),
        policy(info["ipolicy"]),
        warnings=tuple(odd),
    )


def _apart(key: str, rows: Value, odd: list[str]) -> Iterator[Value]:
    """Yield rows; note those with the same value of a key."""
    seen: set[str] = set()
    odd += rows.source.warnings
    for row in rows.items():
        word = row[key].name()
        if word in seen:
            odd.append(row[key].bad(f"{brief(word)} occurs twice").message)
        seen.add(word)
        yield row


def _of_cluster(node: NodeRow, info: Value) -> NodeRow:
    """Return a node with what the cluster says of all.

    A master that says what is kept for each node needs no guess for KVM.
    """
    kept = info.get("mnode_is_kept", Value.flag, False)
    return node._replace(
        master=node.name == info["master"].text(),
        hypervisor="" if kept else info["default_hypervisor"].text(),
    )


def _group(value: Value) -> Group:
    return Group(
        name=value["name"].name(),
        uuid=value["uuid"].name(),
        alloc_policy=value["alloc_policy"].one_of(ALLOC_POLICIES),
        tags=value["tags"].texts(),
        policy=policy(value["ipolicy"]),
    )


def _node(value: Value, groups: Mapping[str, int]) -> NodeRow:
    group = value["group.uuid"]
    if group.text() not in groups:
        raise group.bad("is no group of this cluster")
    params = value["ndparams"]
    stores = value.get("storage", units, None)
    exclusive = params.get("exclusive_storage", Value.flag, False)
    exclusive = exclusive or any(unit.exclusive for unit in stores or ())
    live = not value["offline"].flag() and value.get("vm_capable", Value.flag, True)
    row = NodeRow(
        name=value["name"].name(),
        group=groups[group.text()],
        offline=not live or value["drained"].flag(),
        tags=value["tags"].texts(),
        exclusive=exclusive,
        cpus_own=0,
        spindles=0 if exclusive else _spindles(params),
        units=stores,
    )
    return _live(row, value) if live else row


def _spindles(params: Value) -> int:
    return params.get("spindle_count", Value.count, DEFAULT_SPINDLES)


def _live(row: NodeRow, value: Value) -> NodeRow:
    spindles = value.get("sptotal", Value.count, 0) if row.exclusive else row.spindles
    return row._replace(
        mem_total=value["mtotal"].number(),
        mem_own=value["mnode"].integer(),
        mem_free=value["mfree"].integer(),
        disk_total=value.get("dtotal", Value.number, 0.0),
        disk_free=value.get("dfree", Value.integer, 0),
        cpus=value["ctotal"].ratio(),
        cpus_own=value.get("cnos", Value.count, 1),
        cpu_speed=value.get("cpu_speed", Value.ratio, 1.0),
        spindles=spindles,
        spindles_free=value.get("spfree", Value.integer, 0),
    )


def _memory(value: Value) -> int:
    """Return what the instance uses now, else what it may use."""
    ram = value.get("oper_ram", lambda ram: ram.data, None)
    if isinstance(ram, int) and not isinstance(ram, bool):
        return value["oper_ram"].size()
    params = value["beparams"]
    return params["memory" if params.has("memory") else "maxmem"].size()


def _template(value: Value) -> str:
    """Return an instance's disk template; disks of several count by what they can do.

    They move as one where all of them are on shared storage, else they stay.
    """
    if value["disk_template"].data != MIXED:
        return template(value["disk_template"])
    kinds = _kinds(value)
    return standing_for(kinds)


def _kinds(value: Value) -> list[str]:
    """Return the template of each disk, where the master tells."""
    told = value.has("disk.templates")
    return [template(disk) for disk in value["disk.templates"].items()] if told else []


def _in_units(inst: InstanceRow, value: Value, listed: set[UnitName]) -> InstanceRow:
    """Return an instance with the storage unit of each disk, where the master tells.

    A unit that no node lists bounds nobody: it is a device, and a node of its own.
    """
    names: list[UnitName | None] = []
    if value.has("disk.sunits"):
        told = [unit_name(item) for item in value["disk.sunits"].items()]
        names = [name if name in listed else None for name in told]
    elif value["disk_template"].data == MIXED:
        names = [_only(listed, kind) for kind in _kinds(value)]
    if not names:
        return inst
    pairs = zip(inst.disks, names, strict=False)
    return inst._replace(disks=tuple(disk._replace(unit=name) for disk, name in pairs))


def _only(names: Iterable[UnitName], kind: str) -> UnitName | None:
    """Return the unit of a type, where there is one alone."""
    found = [name for name in names if name[0] == kind]
    return found[0] if len(found) == 1 else None


def _instance(value: Value, homes: Mapping[str, int]) -> InstanceRow:
    params = value["beparams"]
    primary = _home(value["pnode"], homes)
    second = value["snodes"].items()
    secondary = _home(second[0], homes) if second else -1
    if primary == secondary:
        raise second[0].bad("is the primary node too")
    sizes = [item.size() for item in value["disk.sizes"].items()]
    unknown: list[int | None] = [None] * len(sizes)
    counts = value.get("disk.spindles", _counts, unknown)
    return InstanceRow(
        name=value["name"].name(),
        mem=_memory(value),
        disk=value["disk_usage"].size(),
        vcpus=params["vcpus"].count(),
        primary=primary,
        secondary=secondary,
        status=value["status"].one_of(STATUSES),
        auto_balance=params["auto_balance"].flag(),
        template=_template(value),
        tags=value["tags"].texts(),
        spindle_use=params.get("spindle_use", Value.count, 1),
        disks=tuple(
            Disk(size, count) for size, count in zip(sizes, counts, strict=False)
        ),
        forthcoming=value.get("forthcoming", Value.flag, False),
        promised=value.get("promised", Value.flag, False),
    )


def _counts(value: Value) -> list[int | None]:
    return [None if item.data is None else item.count() for item in value.items()]


def _home(value: Value, homes: Mapping[str, int]) -> int:
    if value.text() not in homes:
        raise value.bad("is no node of this cluster")
    return homes[value.text()]
