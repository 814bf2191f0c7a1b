# SPDX-License-Identifier: BSD-2-Clause
"""Writing the text format (see `moorage.htools.formats.text`)."""

from moorage.htools.fleet import Disk, Fleet, Group, InstanceRow, NodeRow, Unit
from moorage.htools.policy import Policy, Spec


def dump(fleet: Fleet) -> str:
    """Return the fleet as text, every optional column included."""
    sections = (
        "".join(_group_line(group) for group in fleet.groups),
        "".join(_node_line(fleet, node) for node in fleet.nodes),
        "".join(_instance_line(fleet, inst) for inst in fleet.instances),
        "".join(tag + "\n" for tag in fleet.tags),
        _policy_line("", fleet.policy)
        + "".join(_policy_line(group.name, group.policy) for group in fleet.groups),
    )
    return "\n".join(sections)


def _joined(*columns: object) -> str:
    return "|".join(map(str, columns)) + "\n"


def _flag(claim: bool) -> str:
    return "Y" if claim else "N"


def _group_line(group: Group) -> str:
    return _joined(
        group.name,
        group.uuid,
        group.alloc_policy,
        ",".join(group.tags),
        ",".join(group.networks),
    )


def _node_line(fleet: Fleet, node: NodeRow) -> str:
    role = "Y" if node.offline else "M" if node.master else "N"
    columns: list[object] = [
        node.name,
        f"{node.mem_total:.0f}",
        node.mem_own,
        node.mem_free,
        f"{node.disk_total:.0f}",
        node.disk_free,
        f"{node.cpus:.0f}",
        role,
        fleet.groups[node.group].uuid,
        node.spindles,
        ",".join(node.tags),
        _flag(node.exclusive),
        node.spindles_free,
        node.cpus_own,
        shown(node.cpu_speed),
    ]
    if node.units is not None:
        columns.append(";".join(_unit_text(unit) for unit in node.units))
    return _joined(*columns)


def _unit_text(unit: Unit) -> str:
    room = ("?" if size is None else str(size) for size in (unit.free, unit.total))
    return ",".join((*room, *unit.name, *(["true"] if unit.exclusive else [])))


def _instance_line(fleet: Fleet, inst: InstanceRow) -> str:
    told = any(disk.unit for disk in inst.disks)
    spindles = [disk.spindles for disk in inst.disks]
    known = [count for count in spindles if count is not None]
    return _joined(
        inst.name,
        inst.mem,
        inst.disk,
        inst.vcpus,
        inst.status,
        _flag(inst.auto_balance),
        fleet.nodes[inst.primary].name,
        fleet.nodes[inst.secondary].name if inst.secondary >= 0 else "",
        inst.template,
        ",".join(inst.tags),
        inst.spindle_use,
        sum(known) if len(known) == len(spindles) else "-",
        _flag(inst.forthcoming),
        *([";".join(map(_disk_text, inst.disks))] if told else ()),
    )


def _disk_text(disk: Disk) -> str:
    """Return a disk with its unit: a sum of all does not say which room is taken."""
    count = "-" if disk.spindles is None else disk.spindles
    return ",".join(map(str, (disk.size, count, *(disk.unit or ()))))


def _policy_line(owner: str, policy: Policy) -> str:
    specs = [_spec_text(spec) for pair in policy.ranges for spec in pair]
    return _joined(
        owner,
        _spec_text(policy.standard),
        ";".join(specs),
        ",".join(policy.templates),
        shown(policy.vcpu_ratio),
        shown(policy.spindle_ratio),
    )


def _spec_text(spec: Spec) -> str:
    return ",".join(map(str, spec))


def shown(value: float) -> str:
    """Return a number as Ganeti's tools show one.

    >>> shown(4.0), shown(0.05), shown(1e7)
    ('4.0', '5.0e-2', '1.0e7')
    """
    text = repr(float(value))
    if value == 0 or 0.1 <= abs(value) < 1e7:
        return text
    digits, _, exponent = f"{value:e}".partition("e")
    shortest = repr(float(value)).split("e")[0].replace(".", "").strip("0") or "0"
    digits = shortest[0] + "." + (shortest[1:] or "0")
    return f"{digits}e{int(exponent)}"
