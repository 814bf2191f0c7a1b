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

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

# Loaded when asked for: a program that balances has no use for the allocator.
_HOMES: Final = {
    "Allocate": ("requests", "Allocate"),
    "Allocation": ("allocate", "Allocation"),
    "Asking": ("allocate", "Asking"),
    "Change": ("explain", "Change"),
    "Disk": ("fleet", "Disk"),
    "Evacuation": ("evacuation", "Evacuation"),
    "Fleet": ("fleet", "Fleet"),
    "Group": ("fleet", "Group"),
    "GroupHealth": ("health", "GroupHealth"),
    "Health": ("health", "Health"),
    "InstanceRow": ("fleet", "InstanceRow"),
    "Loaded": ("loading", "Loaded"),
    "NodeRow": ("fleet", "NodeRow"),
    "Placement": ("allocate", "Placement"),
    "Plan": ("balancing", "Plan"),
    "Policy": ("policy", "Policy"),
    "Pool": ("pools", "Pool"),
    "Reading": ("loading", "Reading"),
    "Reason": ("explain", "Reason"),
    "Response": ("requests", "Response"),
    "Restart": ("redundancy", "Restart"),
    "Rules": ("balancing", "Rules"),
    "Searcher": ("search", "Searcher"),
    "Spec": ("policy", "Spec"),
    "State": ("state", "State"),
    "Step": ("balancing", "Step"),
    "Survival": ("redundancy", "Survival"),
    "Unit": ("fleet", "Unit"),
    "answer": ("requests", "answer"),
    "balance": ("balancing", "balance"),
    "change_group": ("evacuation", "change_group"),
    "check": ("health", "check"),
    "evacuate": ("evacuation", "evacuate"),
    "is_redundant": ("redundancy", "is_redundant"),
    "keeps_redundancy": ("redundancy", "keeps_redundancy"),
    "load": ("loading", "load"),
    "place": ("requests", "find_place"),
    "pools": ("pools", "pools"),
    "reasons": ("explain", "reasons"),
    "smallest_change": ("explain", "smallest_change"),
    "summed": ("health", "summed"),
    "survive": ("redundancy", "survive"),
    "unlosable": ("redundancy", "unlosable"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Return a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, original = _HOMES[name]
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), original)
    return found


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
