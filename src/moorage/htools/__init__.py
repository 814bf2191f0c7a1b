# SPDX-License-Identifier: BSD-2-Clause
"""Placement: where instances and their disks go, and why.

Build a `Fleet` from plain rows, `load` it into a `State`, then ask:

* `place` - where a new instance goes, with every refusal by name
* `evacuate`, `change_group` - how instances get off their nodes
* `balance` - the plan that makes the cluster even
* `survive`, `is_redundant`, `check` - what happens when a node is lost

Every answer is a value with its reasons; nothing here reads a file, opens a
connection or changes a cluster.
"""

from moorage.htools.allocate import Allocation, Asking, Placement
from moorage.htools.balancing import Plan, Rules, Step, balance
from moorage.htools.evacuation import Evacuation, change_group, evacuate
from moorage.htools.explain import Change, Reason, reasons, smallest_change
from moorage.htools.fleet import (
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    Unit,
)
from moorage.htools.health import GroupHealth, Health, check, summed
from moorage.htools.loading import Loaded, Reading, load
from moorage.htools.policy import Policy, Spec
from moorage.htools.pools import Pool, pools
from moorage.htools.redundancy import (
    Restart,
    Survival,
    is_redundant,
    keeps_redundancy,
    survive,
    unlosable,
)
from moorage.htools.requests import Allocate, Response, answer
from moorage.htools.requests import find_place as place
from moorage.htools.search import Searcher
from moorage.htools.state import State

__all__ = [
    "Allocate",
    "Allocation",
    "Asking",
    "Change",
    "Disk",
    "Evacuation",
    "Fleet",
    "Group",
    "GroupHealth",
    "Health",
    "InstanceRow",
    "Loaded",
    "NodeRow",
    "Placement",
    "Plan",
    "Policy",
    "Pool",
    "Reading",
    "Reason",
    "Response",
    "Restart",
    "Rules",
    "Searcher",
    "Spec",
    "State",
    "Step",
    "Survival",
    "Unit",
    "answer",
    "balance",
    "change_group",
    "check",
    "evacuate",
    "is_redundant",
    "keeps_redundancy",
    "load",
    "place",
    "pools",
    "reasons",
    "smallest_change",
    "summed",
    "survive",
    "unlosable",
]
