# SPDX-License-Identifier: BSD-2-Clause
"""Whether a configuration is consistent: all that Ganeti's own check finds, and more.

The same checks look at a file of Ganeti's and at the objects of a store.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.model import Cluster, ipolicy
from moorage.model.change import KIND_OF, encode
from moorage.model.objects import Entity

from . import checks
from .parts import CODES, CONFIG, Complaint, Complaints, parts_of

__all__ = [
    "CODES",
    "CONFIG",
    "Complaint",
    "Complaints",
    "complaints",
    "complaints_of_objects",
]
_PLACES = {
    "node": "nodes",
    "nodegroup": "nodegroups",
    "network": "networks",
    "instance": "instances",
    "disk": "disks",
}
"""Where a configuration has the objects of a kind."""


def complaints(document: Mapping[str, Any]) -> Complaints:
    """Return what is wrong with a configuration of 3.0 or later, object by object.

    Whatever JSON it is, it is told of: an object that cannot be read is named, and
    looked at no further.
    """
    return _found(document, (*checks.OF_FILES, *checks.OF_BOTH))


def complaints_of_objects(entities: Iterable[Entity]) -> Complaints:
    """Yield what is wrong with the objects of a store, one of which is the cluster.

    They have no keys beside their uuids, their places are no part of disks, a card may
    be without a cable, and an address of the master's that does not move is its node's.
    """
    document: dict[str, Any] = {place: {} for place in _PLACES.values()}
    for one in sorted(entities, key=lambda it: str(getattr(it, "name", ""))):
        kind = KIND_OF[type(one)]
        if kind in _PLACES:
            document[_PLACES[kind]][one.uuid] = encode(one)
        elif isinstance(one, Cluster):
            moves = one.master_ip if one.master_netdev else ""
            own = {"ipolicy": _policy(one), "master_ip": moves}
            document["cluster"] = encode(one) | own
    return _found(document, (*checks.OF_STORES, *checks.OF_BOTH))


def _policy(cluster: Cluster) -> dict[str, Any]:
    """Return the instance policy with its defaults; as it is, where it is none."""
    try:
        return ipolicy.cluster_policy(cluster)
    except (AttributeError, KeyError, TypeError, ValueError):
        return cluster.ipolicy


def _found(document: Mapping[str, Any], looks: Iterable[checks.Check]) -> Complaints:
    wrong: list[Complaint] = []
    parts = parts_of(document, wrong)
    yield from wrong
    for check in looks:
        yield from check(parts)
