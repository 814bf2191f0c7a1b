# SPDX-License-Identifier: BSD-2-Clause
"""Why not there: every refusal by name, with its numbers, and what would help.

A constraint is named in words (`memory`, `disk`, ...), with what it found and
what it needed on the node. `smallest_change` says by how much the request, or
one node, would have to change to make it fit; it is found by trying, so it is
true by construction: one MiB less does not do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from moorage.htools.allocate import Allocation, Refusal
from moorage.htools.inst import Inst
from moorage.htools.node import Node
from moorage.htools.requests import (
    Allocate,
    Request,
    Response,
    find_place,
    newcomer,
)
from moorage.htools.state import State
from moorage.htools.words import Fail

NAMES: Final = {
    Fail.MEMORY: "memory",
    Fail.DISK: "disk",
    Fail.CPU: "cpu",
    Fail.N1: "n+1",
    Fail.TAGS: "exclusion tags",
    Fail.MIGRATION: "migration tags",
    Fail.DISK_COUNT: "disk count",
    Fail.SPINDLES: "spindles",
    Fail.INTERNAL: "internal",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one node, or pair, was not taken.

    Attributes
    ----------
    nodes : tuple of str
        The node, or primary and secondary.
    constraint : str
        Its name.
    facts : dict
        What was asked and what was there, MiB or counts.
    """

    nodes: tuple[str, ...]
    constraint: str
    facts: dict[str, Any]

    def sentence(self) -> str:
        """Return the reason in words."""
        facts = ", ".join(f"{key} {value}" for key, value in self.facts.items())
        return f"{'/'.join(self.nodes)}: {self.constraint} ({facts})"


@dataclass(frozen=True, slots=True)
class Change:
    """A change that turns a no into a yes.

    Attributes
    ----------
    what : str
        ``memory`` or ``disk`` of the request, or the name of a constraint.
    by : int
        How many MiB less must be asked for.
    """

    what: str
    by: int

    def sentence(self) -> str:
        """Return the change in words."""
        return f"it fits with {self.by} MiB less {self.what}"


def reasons(state: State, inst: Inst, found: Allocation) -> list[Reason]:
    """Return every refusal of a search, with its numbers."""
    return [_reason(state, inst, refusal) for refusal in found.refusals]


def _reason(state: State, inst: Inst, refusal: Refusal) -> Reason:
    nodes = [state.nodes[at] for at in refusal.nodes]
    return Reason(
        tuple(node.name for node in nodes),
        NAMES[refusal.reason],
        _FACTS[refusal.reason](inst, nodes),
    )


def _memory(inst: Inst, nodes: list[Node]) -> dict[str, Any]:
    return {
        "asked": inst.mem,
        "unallocated": [node.unallocated for node in nodes],
        "reserved": [node.reserved for node in nodes],
    }


def _disk(inst: Inst, nodes: list[Node]) -> dict[str, Any]:
    if any(node.units is not None for node in nodes):
        wants = ["/".join(name or ("any",)) + f" {size}" for name, size in inst.wants]
        return {"asked": wants, "units": [_unit_room(node) for node in nodes]}
    return {"asked": inst.dsk, "free": [node.disk_free for node in nodes]}


def _unit_room(node: Node) -> dict[str, int | None]:
    units = node.units
    if units is None:
        return {}
    pairs = zip(units.names, units.free, strict=True)
    return {"/".join(name): free for name, free in pairs}


def _cpu(inst: Inst, nodes: list[Node]) -> dict[str, Any]:
    return {
        "asked": inst.vcpus,
        "used": [node.cpu_used for node in nodes],
        "limit": [node.policy.vcpu_ratio * node.cpus for node in nodes],
    }


def _tags(inst: Inst, nodes: list[Node]) -> dict[str, Any]:
    here = [tag for tag in inst.excl_tags if any(tag in node.excl for node in nodes)]
    return {"tags": here}


def _spindles(inst: Inst, nodes: list[Node]) -> dict[str, Any]:
    return {
        "asked": inst.total_spindles or inst.spindle_use,
        "free": [node.spindles_free for node in nodes],
    }


def _count(inst: Inst, _nodes: list[Node]) -> dict[str, Any]:
    return {"disks": len(inst.disks)}


def _plain(inst: Inst, _nodes: list[Node]) -> dict[str, Any]:
    return {"asked": inst.mem}


_FACTS: Final[dict[Fail, Callable[[Inst, list[Node]], dict[str, Any]]]] = {
    Fail.MEMORY: _memory,
    Fail.DISK: _disk,
    Fail.CPU: _cpu,
    Fail.N1: _plain,
    Fail.TAGS: _tags,
    Fail.MIGRATION: _plain,
    Fail.DISK_COUNT: _count,
    Fail.SPINDLES: _spindles,
    Fail.INTERNAL: _plain,
}


def smallest_change(
    state: State, request: Allocate, fits: Callable[[State, Allocate], bool]
) -> Change | None:
    """Return the least that must be given up for a request to fit.

    Memory is tried first, then the size of the disks, each alone; None when
    neither helps.
    """
    for what, smaller in (("memory", _less_memory), ("disk", _less_disk)):

        def holds(by: int, smaller: Smaller = smaller) -> bool:
            return fits(state, smaller(request, by))

        by = _least(holds, _most(request, what))
        if by is not None:
            return Change(what, by)
    return None


Smaller = Callable[[Allocate, int], Allocate]


def _most(request: Allocate, what: str) -> int:
    """Return the most that can be given up."""
    if what == "memory":
        return request.inst.mem - 1
    return max((disk.size for disk in request.inst.disks), default=1) - 1


def _least(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the least number for which a claim holds; None when none does."""
    if most < 1 or not holds(most):
        return _least_below(holds, most)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _least_below(holds: Callable[[int], bool], most: int) -> int | None:
    """Look below a size that is too small for the policy."""
    step = most // 2
    while step >= 1:
        if holds(step):
            return _least(holds, step)
        step //= 2
    return None


def _less_memory(request: Allocate, by: int) -> Allocate:
    return replace(request, inst=replace(request.inst, mem=request.inst.mem - by))


def _less_disk(request: Allocate, by: int) -> Allocate:
    """Return the request with its largest disk smaller."""
    inst = request.inst
    if not inst.disks:
        return request
    at = max(range(len(inst.disks)), key=lambda place: inst.disks[place].size)
    disks = list(inst.disks)
    disks[at] = replace(disks[at], size=disks[at].size - by)
    return replace(request, inst=replace(inst, disk=inst.disk - by, disks=tuple(disks)))


def explanation(
    state: State,
    request: Request,
    response: Response,
    asking: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return the refusals of an answer, and what would help, as JSON values."""
    if not isinstance(request, Allocate) or not response.allocations:
        return {"refusals": [], "change": None}
    inst = newcomer(state, request.inst)
    found = [
        {"nodes": reason.nodes, "constraint": reason.constraint, **reason.facts}
        for reason in reasons(state, inst, response.allocations[0])
    ]
    change = None
    if not response.success:
        change = smallest_change(
            state,
            request,
            lambda here, one: find_place(here, one, asking).best is not None,
        )
    return {
        "refusals": found,
        "change": None if change is None else change.sentence(),
    }
