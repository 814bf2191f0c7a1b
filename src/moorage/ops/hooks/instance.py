# SPDX-License-Identifier: BSD-2-Clause
"""What hooks are told of an instance: Ganeti's variables, without their prefix."""

from collections.abc import Iterator, Mapping
from typing import Any

from moorage.disk_templates import FACTS
from moorage.model import DISKLESS, MIXED, Disk, Instance, Nic
from moorage.ops.asking import node_tasks

from .context import HookContext


def variables(context: HookContext) -> dict[str, str]:
    """Return what every hook of an instance is told."""
    return {name: text(value) for name, value in _variables(context, context.instance)}


def text(value: object) -> str:
    """Return a value as a variable has it; empty for none."""
    return "" if value is None else str(value)


def _variables(
    context: HookContext, instance: Instance
) -> Iterator[tuple[str, object]]:
    full = node_tasks.beparams(context.config, instance)
    disks = context.disks(instance)
    others = context.nodes(instance)[1:]
    yield "OP_TARGET", instance.name
    yield "INSTANCE_NAME", instance.name
    yield "INSTANCE_PRIMARY", context.name(instance.primary_node)
    yield "INSTANCE_SECONDARIES", " ".join(map(context.name, others))
    yield "INSTANCE_OS_TYPE", instance.os
    yield "INSTANCE_STATUS", instance.admin_state
    yield "INSTANCE_MINMEM", full.get("minmem")
    yield "INSTANCE_MAXMEM", full.get("maxmem")
    yield "INSTANCE_MEMORY", full.get("maxmem")
    yield "INSTANCE_VCPUS", full.get("vcpus")
    yield "INSTANCE_DISK_TEMPLATE", _template(disks)
    yield "INSTANCE_HYPERVISOR", instance.hypervisor
    yield "INSTANCE_TAGS", " ".join(sorted(instance.tags))
    yield from _each("BE", full)
    yield from _each("HV", node_tasks.hvparams(context.config, instance))
    yield "INSTANCE_NIC_COUNT", len(instance.nics)
    for number, nic in enumerate(instance.nics):
        wired = node_tasks.wired(context.config, instance, nic)
        yield from _of_nic(context, f"INSTANCE_NIC{number}", wired)
    yield "INSTANCE_DISK_COUNT", len(disks)
    for number, disk in enumerate(disks):
        yield from _of_disk(context, f"INSTANCE_DISK{number}", disk)


def _each(kind: str, values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in sorted(values.items()):
        yield f"INSTANCE_{kind}_{name}", value


def _template(disks: list[Disk]) -> str:
    names = {disk.dev_type for disk in disks}
    return MIXED if len(names) > 1 else next(iter(names), DISKLESS)


def _of_nic(
    context: HookContext, prefix: str, nic: Nic
) -> Iterator[tuple[str, object]]:
    given = nic.nicparams
    if nic.name:
        yield f"{prefix}_NAME", nic.name
    yield f"{prefix}_UUID", nic.uuid
    yield f"{prefix}_IP", nic.ip
    yield f"{prefix}_MAC", nic.mac
    for name in ("mode", "link", "vlan"):
        yield f"{prefix}_{name.upper()}", given.get(name)
    if given.get("mode") in ("bridged", "openvswitch"):
        yield f"{prefix}_BRIDGE", given.get("link")
    if nic.network:
        yield f"{prefix}_NETWORK_NAME", context.name(nic.network)


def _of_disk(
    context: HookContext, prefix: str, disk: Disk
) -> Iterator[tuple[str, object]]:
    if disk.name:
        yield f"{prefix}_NAME", disk.name
    yield f"{prefix}_UUID", disk.uuid
    yield f"{prefix}_SIZE", disk.size
    yield f"{prefix}_MODE", disk.mode
    yield f"{prefix}_TEMPLATE_NAME", disk.dev_type
    yield from _identity(context, f"{prefix}_", disk)
    for part, child in zip(("DATA_", "META_"), disk.children, strict=False):
        yield from _identity(context, f"{prefix}_{part}", child)


def _identity(
    context: HookContext, prefix: str, disk: Disk
) -> Iterator[tuple[str, object]]:
    words = FACTS[disk.dev_type].identity if disk.dev_type in FACTS else ()
    for word, value in zip(words, disk.logical_id, strict=False):
        yield f"{prefix}{word}", context.name(value)
