# SPDX-License-Identifier: BSD-2-Clause
"""A configuration of Ganeti's that comes into a cluster that was just made."""

import json
from itertools import count
from typing import Any

from msgspec.structs import replace

from moorage.config_data import (
    Document,
)
from moorage.config_data.importing import Imported, imported
from moorage.model import Cluster, Config, Node, NodeGroup
from moorage.model.apply import assembled
from moorage.model.master_address import MasterAddress
from moorage.testing.cluster import ClusterBuilder

ADDRESS = MasterAddress("198.51.100.9", "eth0", 24)
OF_THE_NODE = ("primary_ip", "secondary_ip", "master_candidate", "offline", "drained")
"""What is so where a file comes in, and not what the file says."""


def fresh() -> Any:
    numbers = count()
    return lambda: f"new-{next(numbers)}"


def here(*names: str) -> Config:
    """Return a cluster that was just made, whose nodes have these names."""
    builder = ClusterBuilder(0)
    for name in names:
        builder.node(name)
    group = NodeGroup(uuid="first-group", name="default")
    nodes = [
        replace(one, uuid=f"joined-{one.name}", group=group.uuid)
        for one in builder.objects.values()
        if isinstance(one, Node)
    ]
    (cluster,) = (one for one in builder.objects.values() if isinstance(one, Cluster))
    made = replace(cluster, uuid="first", master_node=nodes[0].uuid)
    return assembled([group, *nodes, made])[0]


def names(document: Document) -> list[str]:
    return sorted(one["name"] for one in document["nodes"].values())


def came_in(document: Document, beside: Any = None) -> Imported:
    return imported(document, here(*names(document)), fresh(), beside or {})


def comparable(document: Document) -> Document:
    """Return a document without what the nodes that joined have of their own."""
    found: Document = json.loads(json.dumps(document))
    for node in found["nodes"].values():
        for key in OF_THE_NODE:
            node.pop(key, None)
    found["cluster"].pop("master_node", None)
    for key in ("serial_no", "mtime", "ctime"):
        found.pop(key, None)
    return found
