# SPDX-License-Identifier: BSD-2-Clause
"""From a state back to a fleet, so that a plan's end can be loaded again."""

from moorage.htools.fleet import Fleet, InstanceRow, NodeRow, Unit
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.state import State


def saved(state: State) -> Fleet:
    """Return the fleet as it would report itself in this state.

    The free memory and disk of a node follow its instances: a saved plan
    loads as consistent as the cluster it came from.
    """
    fleet = state.fleet
    nodes = tuple(
        _node_row(row, node) for row, node in zip(fleet.nodes, state.nodes, strict=True)
    )
    return fleet.replaced(
        nodes=nodes,
        instances=tuple(instance_row(inst) for inst in state.insts),
    )


def _node_row(row: NodeRow, node: Node) -> NodeRow:
    recorded = int(node.mem_total) - node.mem_own - node.mem_inst
    return row._replace(
        mem_own=node.mem_own,
        mem_free=recorded - node.mem_missing,
        disk_free=node.disk_free,
        spindles_free=node.spindles_free,
        offline=node.offline,
        units=_units(row, node),
    )


def _units(row: NodeRow, node: Node) -> tuple[Unit, ...] | None:
    if row.units is None or node.units is None:
        return None
    return tuple(
        unit._replace(free=free)
        for unit, free in zip(row.units, node.units.free, strict=True)
    )


def instance_row(inst: Inst) -> InstanceRow:
    """Return an instance as it would be recorded."""
    return InstanceRow(
        name=inst.name,
        mem=inst.mem,
        disk=inst.dsk,
        vcpus=inst.vcpus,
        primary=inst.p,
        secondary=inst.s,
        status=inst.status,
        auto_balance=inst.auto_balance,
        template=inst.template,
        tags=inst.tags,
        spindle_use=inst.spindle_use,
        disks=inst.disks,
        forthcoming=inst.forthcoming,
        networks=inst.networks,
        reach=inst.reach,
    )
