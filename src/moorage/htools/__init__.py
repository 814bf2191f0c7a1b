# SPDX-License-Identifier: BSD-2-Clause
"""Placement: where instances and their disks go, and why.

Build a `Fleet` from plain rows, `load` it into a `State`, then ask:

* `place` - where a new instance goes, with every refusal by name
* `evacuate`, `change_group` - how instances get off their nodes
* `balance` - the plan that makes the cluster even; `look_ahead` goes on with pairs
  of moves, `compacted` makes it shorter, `total_cost` says what it copies
* `survive`, `is_redundant`, `check` - what happens when a node is lost

Every answer is a value with its reasons; nothing here reads a file, opens a
connection or changes a cluster.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from moorage.htools.explain.explain import (
        Change,
        Reason,
        place,
        reasons,
        smallest_change,
    )
    from moorage.htools.explain.no_move import explain_balance
    from moorage.htools.fleet import (
        Disk,
        Fleet,
        Group,
        InstanceRow,
        NodeRow,
        Unit,
    )
    from moorage.htools.health import GroupHealth, Health, check, summed
    from moorage.htools.loader import Loaded, Reading, load
    from moorage.htools.placement.allocate import Allocation, Asking
    from moorage.htools.placement.evacuation import (
        Evacuation,
        change_group,
        evacuate,
        evacuate_to,
    )
    from moorage.htools.placement.requests import Allocate, Response, answer
    from moorage.htools.plans.balancing import Plan, Rules, Step, balance
    from moorage.htools.plans.compact import compacted
    from moorage.htools.plans.cost import Cost, cost_of, total_cost
    from moorage.htools.plans.lookahead import look_ahead
    from moorage.htools.plans.search import Searcher
    from moorage.htools.policy import Policy, Spec
    from moorage.htools.single_placement import Placement
    from moorage.htools.state import State
    from moorage.htools.survival.certificate import certify
    from moorage.htools.survival.keeping import keeps_redundancy
    from moorage.htools.survival.n1 import (
        Restart,
        Survival,
        is_redundant,
        survive,
        unlosable,
    )
    from moorage.htools.survival.pool import Pool, pools

# Loaded when asked for: a program that balances has no use for the allocator.
_HOMES: Final = {
    "fleet": ("Disk", "Fleet", "Group", "InstanceRow", "NodeRow", "Unit"),
    "health": ("GroupHealth", "Health", "check", "summed"),
    "loader": ("Loaded", "Reading", "load"),
    "placement.allocate": ("Allocation", "Asking"),
    "placement.evacuation": (
        *("Evacuation", "change_group", "evacuate", "evacuate_to"),
    ),
    "placement.requests": ("Allocate", "Response", "answer"),
    "plans.balancing": ("Plan", "Rules", "Step", "balance"),
    "plans.compact": ("compacted",),
    "plans.cost": ("Cost", "cost_of", "total_cost"),
    "plans.lookahead": ("look_ahead",),
    "plans.search": ("Searcher",),
    "policy": ("Policy", "Spec"),
    "single_placement": ("Placement",),
    "state": ("State",),
    "survival.certificate": ("certify",),
    "survival.keeping": ("keeps_redundancy",),
    "survival.pool": ("Pool", "pools"),
    "survival.n1": (
        "Restart",
        "Survival",
        "is_redundant",
        "survive",
        "unlosable",
    ),
    "explain.explain": ("Change", "Reason", "place", "reasons", "smallest_change"),
    "explain.no_move": ("explain_balance",),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Return a public name from the module that holds it."""
    for module, names in _HOMES.items():
        if name in names:
            made = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = made
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
