# SPDX-License-Identifier: BSD-2-Clause
"""Frozen objects, their invariants, and codecs to and from Ganeti's JSON."""

from .apply import apply, load
from .change import KIND_OF, KINDS, Change
from .config import Config, nice
from .facts import (
    Accelerator,
    Claim,
    Device,
    GuestState,
    Held,
    NodeFacts,
    Os,
    Place,
    Provider,
    Unit,
)
from .objects import (
    DISKLESS,
    MIXED,
    Cluster,
    Disk,
    Entity,
    Instance,
    Nic,
    Node,
    NodeGroup,
    StoragePool,
    successor,
)

__all__ = [
    "DISKLESS",
    "KINDS",
    "KIND_OF",
    "MIXED",
    "Accelerator",
    "Change",
    "Claim",
    "Cluster",
    "Config",
    "Device",
    "Disk",
    "Entity",
    "GuestState",
    "Held",
    "Instance",
    "Nic",
    "Node",
    "NodeFacts",
    "NodeGroup",
    "Os",
    "Place",
    "Provider",
    "StoragePool",
    "Unit",
    "apply",
    "load",
    "nice",
    "successor",
]
