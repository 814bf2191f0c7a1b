# SPDX-License-Identifier: BSD-2-Clause
"""A cluster from RAPI's answers: groups, nodes, instances and info."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from moorage.htools.fleet import Disk, Fleet, Group, InstanceRow, NodeRow
from moorage.htools.formats import jsontext
from moorage.htools.formats.iallocator import policy, template, units
from moorage.htools.formats.jsontext import Value
from moorage.htools.words import ALLOC_POLICIES, STATUSES

DEFAULT_SPINDLES: Final = 1


def parse(answers: Mapping[str, str]) -> Fleet:
    """Return the fleet; keys are ``groups``, ``nodes``, ``instances``, ``info``.

    Raises
    ------
    BadInput
        One sentence with answer, line and column of the first thing that is off.
    """
    values = {name: jsontext.parse(text, name) for name, text in answers.items()}
    info = values["info"]
    groups = [_group(value) for value in values["groups"].items()]
    places = {group.uuid: at for at, group in enumerate(groups)}
    nodes = [_node(value, places) for value in values["nodes"].items()]
    nodes = [_of_cluster(node, info) for node in nodes]
    homes = {node.name: at for at, node in enumerate(nodes)}
    insts = tuple(_instance(value, homes) for value in values["instances"].items())
    tags = info["tags"].texts()
    return Fleet(tuple(groups), tuple(nodes), insts, tags, policy(info["ipolicy"]))


def _of_cluster(node: NodeRow, info: Value) -> NodeRow:
    return replace(
        node,
        master=node.name == info["master"].text(),
        hypervisor=info["default_hypervisor"].text(),
    )


def _group(value: Value) -> Group:
    return Group(
        name=value["name"].text(),
        uuid=value["uuid"].text(),
        alloc_policy=value["alloc_policy"].one_of(ALLOC_POLICIES),
        tags=value["tags"].texts(),
        policy=policy(value["ipolicy"]),
    )


def _node(value: Value, groups: Mapping[str, int]) -> NodeRow:
    group = value["group.uuid"]
    if group.text() not in groups:
        raise group.bad("is no group of this cluster")
    params = value["ndparams"]
    exclusive = params.get("exclusive_storage", Value.flag, False)
    live = not value["offline"].flag() and value.get("vm_capable", Value.flag, True)
    row = NodeRow(
        name=value["name"].text(),
        group=groups[group.text()],
        offline=not live or value["drained"].flag(),
        tags=value["tags"].texts(),
        exclusive=exclusive,
        cpus_own=0,
        spindles=params.get("spindle_count", Value.size, DEFAULT_SPINDLES),
        units=value.get("storage", units, None),
    )
    return _live(row, value) if live else row


def _live(row: NodeRow, value: Value) -> NodeRow:
    spindles = value.get("sptotal", Value.size, 0) if row.exclusive else row.spindles
    return replace(
        row,
        mem_total=value["mtotal"].number(),
        mem_own=value["mnode"].integer(),
        mem_free=value["mfree"].integer(),
        disk_total=value.get("dtotal", Value.number, 0.0),
        disk_free=value.get("dfree", Value.integer, 0),
        cpus=value["ctotal"].number(),
        cpus_own=value.get("cnos", Value.integer, 1),
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


def _instance(value: Value, homes: Mapping[str, int]) -> InstanceRow:
    params = value["beparams"]
    second = value["snodes"].items()
    sizes = [item.size() for item in value["disk.sizes"].items()]
    unknown: list[int | None] = [None] * len(sizes)
    counts = value.get("disk.spindles", _counts, unknown)
    return InstanceRow(
        name=value["name"].text(),
        mem=_memory(value),
        disk=value["disk_usage"].size(),
        vcpus=params["vcpus"].size(),
        primary=_home(value["pnode"], homes),
        secondary=_home(second[0], homes) if second else -1,
        status=value["status"].one_of(STATUSES),
        auto_balance=params["auto_balance"].flag(),
        template=template(value["disk_template"]),
        tags=value["tags"].texts(),
        spindle_use=params.get("spindle_use", Value.size, 1),
        disks=tuple(
            Disk(size, count) for size, count in zip(sizes, counts, strict=False)
        ),
        forthcoming=value.get("forthcoming", Value.flag, False),
    )


def _counts(value: Value) -> list[int | None]:
    return [None if item.data is None else item.size() for item in value.items()]


def _home(value: Value, homes: Mapping[str, int]) -> int:
    if value.text() not in homes:
        raise value.bad("is no node of this cluster")
    return homes[value.text()]
