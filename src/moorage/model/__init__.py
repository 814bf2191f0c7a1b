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
    MirrorState,
    NodeFacts,
    Os,
    Provider,
    Unit,
    Volume,
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
    successor,
)
from .pair import Pair, pair_of

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
    "MirrorState",
    "Nic",
    "Node",
    "NodeFacts",
    "NodeGroup",
    "Os",
    "Pair",
    "Provider",
    "Unit",
    "Volume",
    "apply",
    "load",
    "nice",
    "pair_of",
    "successor",
]
