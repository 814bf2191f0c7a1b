# SPDX-License-Identifier: BSD-2-Clause
"""Which nodes reach the storage of some disks, by what the nodes said."""

from collections.abc import Iterable, Mapping

from moorage.model import Node, NodeFacts
from moorage.ops.volumes.units import Named, is_provided, provider_of

Facts = Mapping[str, NodeFacts]
"""What nodes said, by uuid; silent ones are left out."""
Offered = tuple[frozenset[Named] | None, ...]
"""The units of each of some nodes; None for one that said nothing."""


def offered(nodes: Iterable[Node], facts: Facts) -> Offered:
    """Return the units that each node has."""
    told = (facts.get(node.uuid) for node in nodes)
    return tuple(
        None if said is None else frozenset(unit.name for unit in said.units)
        for said in told
    )


def providers(units: Iterable[Named]) -> frozenset[Named]:
    """Return the providers of some units: a node has one, or not."""
    return frozenset(provider_of(unit) for unit in units if is_provided(unit))


def reach(found: Offered, wanted: frozenset[Named]) -> frozenset[int] | None:
    """Return the places of the nodes that have all of some providers; None for all."""
    if not wanted:
        return None
    able = frozenset(
        at for at, units in enumerate(found) if units is None or wanted <= units
    )
    return None if len(able) == len(found) else able
