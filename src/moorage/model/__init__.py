# SPDX-License-Identifier: BSD-2-Clause
"""Frozen objects, their invariants, and codecs to and from Ganeti's JSON."""

from .apply import apply, load
from .change import KIND_OF, KINDS, Change
from .claim import Claim
from .config import Config, by_name, nice
from .facts import (
    Accelerator,
    Device,
    Examined,
    ForeignGuest,
    GuestState,
    Held,
    LeadChange,
    LeadFacts,
    Link,
    MirrorState,
    Need,
    NodeFacts,
    Os,
    Place,
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
    Lead,
    Network,
    Nic,
    Node,
    NodeGroup,
    StoragePool,
    successor,
)
from .pair import Pair, id_parts, pair_of, shown_id
