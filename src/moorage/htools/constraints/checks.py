# SPDX-License-Identifier: BSD-2-Clause
"""Whether a node may take an instance: the checks, in Ganeti's order.

Each check is asked before anything changes, and returns None, or the constraint that is
not met with its numbers. `RUNNING` and `COPYING` say which checks an instance has to
pass that comes to run, or whose second copy comes. The kernel has the same checks on
rows (`moorage.htools.kernel.rows`), as it must for its speed; a test holds the two
together. Who adds a constraint writes it here and there, or, where no row shows what it
needs, has `moorage.htools.grid` say that the kernel does not know such a cluster.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from moorage.htools.constants import Fail, Mirror, ratio
from moorage.htools.constraints.violation import MIB, Names, Violation
from moorage.htools.inst import Inst
from moorage.htools.node import Node


class Arrival(NamedTuple):
    """An instance that is to come to a node.

    Attributes
    ----------
    node : Node
        As it is before that.
    inst : Inst
        Who comes.
    primary : int or None
        None if it is to run on the node; if its second copy comes, the index of the
        node on which it runs.
    force : bool
        Whether checks are skipped that protect comfort only.
    copied : bool
        Whether the second copy is there already, as its node was the primary until now.
    names : Names or None
        For violations that name others; without, they leave these names out.
    """

    node: Node
    inst: Inst
    primary: int | None = None
    force: bool = False
    copied: bool = False
    names: Names | None = None

    @property
    def mem(self) -> int:
        """Memory that it takes, or that is reserved for it, MiB."""
        inst = self.inst
        used = inst.uses_mem if self.primary is None else inst.uses_sec_mem
        return inst.mem if used else 0


Check = Callable[[Arrival], Violation | None]


class Chain(NamedTuple):
    """The checks of one role, in order; the first that fails is the answer.

    Attributes
    ----------
    hard : tuple of Check
        What cannot be, whatever is forced.
    soft : tuple of Check
        What protects comfort: N+1, ratios, exclusion tags.
    planned : tuple of Check
        The same with planned instances counted; soft, too.
    """

    hard: tuple[Check, ...]
    soft: tuple[Check, ...]
    planned: tuple[Check, ...]

    def violation(self, arrival: Arrival) -> Violation | None:
        """Return the first check that fails; None where the instance may come."""
        for check in self._asked(arrival):
            found = check(arrival)
            if found is not None:
                return found
        return None

    def _asked(self, arrival: Arrival) -> tuple[Check, ...]:
        """Return the checks that count; who is planned only takes no real room."""
        if arrival.inst.forthcoming:
            return () if arrival.force else self.planned
        return self.hard if arrival.force else self.hard + self.soft + self.planned


def memory(to: Arrival) -> Violation | None:
    """Memory that nobody has."""
    free = to.node.unallocated
    return None if to.mem < free else _memory(to, to.mem, free, "unallocated")


def planned_memory(to: Arrival) -> Violation | None:
    """Memory that nobody has, nor is to have."""
    needed = to.inst.mem if to.primary is None else to.mem
    free = to.node.mem_free_all
    if needed < free:
        return None
    what = "free with planned instances"
    return _memory(to, needed, free, what, "planned memory")


def _memory(
    to: Arrival, needed: int, free: int, what: str, name: str = "memory"
) -> Violation:
    short = needed - free + 1
    facts = _with_least({"asked": needed, what: free}, short)
    return Violation(to.node.idx, Fail.MEMORY, name, facts, MIB, short, "memory")


def _with_least(facts: dict[str, Any], short: int) -> dict[str, Any]:
    """Return facts that say, where nothing is short but the last MiB, that it is."""
    return facts | ({"to be left at least": 1} if short == 1 else {})


def failover_memory(to: Arrival) -> Violation | None:
    """Memory that is left for the failover of the worst single other node."""
    node = to.node
    if node.fails_n1:
        return None
    peers: Mapping[int, int] = node.peers
    left, reserved = node.unallocated - to.mem, node.reserved
    if to.primary is not None:
        kept = peers.get(to.primary, 0) + to.mem
        left, reserved = node.unallocated, max(reserved, kept)
    if left > reserved:
        return None
    facts: dict[str, Any] = {
        "asked": to.inst.mem,
        "unallocated": node.unallocated,
        "reserved": reserved,
    }
    if to.primary is not None:
        peers = {**peers, to.primary: kept}
    if to.names is not None and peers:
        most = max(peers, key=lambda at: peers[at])
        facts["for the loss of"] = to.names.nodes[most].name
    short = reserved - left + 1
    facts = _with_least(facts, short)
    name = "failover memory"
    return Violation(node.idx, Fail.MEMORY, name, facts, MIB, short, "memory")


def second_copy(to: Arrival) -> Violation | None:
    """Disks that are kept on two nodes at all."""
    if to.inst.mirror is Mirror.INTERNAL:
        return None
    facts = {"template": to.inst.template}
    return Violation(to.node.idx, Fail.DISK, "no second copy", facts)


def disks(to: Arrival) -> Violation | None:
    """Room for the disks: in their storage units, or on the node as a whole."""
    if to.node.units is not None:
        return _units(to)
    if not to.inst.local:
        return None
    left = to.node.disk_free - to.inst.dsk
    if left <= 0 and not to.copied:
        return _disk(to, "disk", to.node.disk_free)
    if not to.force and left < to.node.disk_floor:
        return _disk(to, "disk floor", to.node.disk_free, to.node.disk_floor)
    return None


def planned_disks(to: Arrival) -> Violation | None:
    """Room on the node as a whole that nobody is to have, either."""
    if to.node.units is not None or not to.inst.local:
        return None
    left = to.node.disk_free_all - to.inst.dsk
    if left <= 0:
        return _disk(to, "planned disk", to.node.disk_free_all)
    if left < to.node.disk_floor:
        return _disk(to, "planned disk", to.node.disk_free_all, to.node.disk_floor)
    return None


def _disk(to: Arrival, name: str, free: int, floor: int = 0) -> Violation:
    """Return that the disk of a node lacks room, or cannot keep `floor` MiB free."""
    left = free - to.inst.dsk
    short = max(1 - left, floor - left)
    facts = {"asked": to.inst.dsk, "free": free}
    facts = facts | {"to keep free": floor} if floor else _with_least(facts, short)
    return Violation(to.node.idx, Fail.DISK, name, facts, MIB, short, "disk")


def _units(to: Arrival) -> Violation | None:
    """Return which disk finds no room in its storage unit."""
    node, units, comfort = to.node, to.node.units, not (to.force or to.copied)
    assert units is not None  # noqa: S101 - `disks` asks where there are units
    free = list(units.free)
    for number, (name, size) in enumerate(to.inst.wants):
        if name is None:
            continue
        at = units.place(name)
        called = "/".join(name)
        facts: dict[str, Any] = {"disk": str(number), "unit": called}
        if at is None:
            facts["units here"] = ["/".join(one) for one in units.names]
            return Violation(node.idx, Fail.DISK, "no such unit", facts)
        for place in units.rooms(name):
            room = free[place]
            if room is None or units.shared[place]:
                continue
            free[place] = left = room - size
            floor = units.floor[place] if comfort else 0
            facts |= {"asked": size, "free": room}
            if left < 0:
                return Violation(node.idx, Fail.DISK, "unit", facts, MIB, -left, called)
            if left < floor:
                facts["to keep free"] = floor
                lack, short = "unit floor", floor - left
                return Violation(node.idx, Fail.DISK, lack, facts, MIB, short, called)
    return None


def spindles(to: Arrival) -> Violation | None:
    """Spindles of its own, where storage is exclusive."""
    return _spindles(to, to.node.spindles_free, "spindles")


def planned_spindles(to: Arrival) -> Violation | None:
    """Spindles that nobody is to have, either."""
    return _spindles(to, to.node.spindles_free_all, "planned spindles")


def _spindles(to: Arrival, free: int, name: str) -> Violation | None:
    asked = to.inst.total_spindles
    if not (to.inst.local and to.node.exclusive):
        return None
    if asked is not None and free >= asked:
        return None
    facts = {"asked": asked, "free": free}
    short = 0 if asked is None else asked - free
    return Violation(to.node.idx, Fail.SPINDLES, name, facts, "", short, "spindles")


def spindle_ratio(to: Arrival) -> Violation | None:
    """Spindle use that the policy allows."""
    return _spindle_ratio(to, to.node.spindles_used, "spindle ratio")


def planned_spindle_ratio(to: Arrival) -> Violation | None:
    """Spindle use that the policy allows, with planned instances counted."""
    return _spindle_ratio(to, to.node.spindles_used_all, "planned spindle ratio")


def _spindle_ratio(to: Arrival, used: float, name: str) -> Violation | None:
    node = to.node
    if not to.inst.local:
        return None
    use = 0 if node.exclusive else to.inst.spindle_use
    after = 0.0 if node.exclusive else used + use
    if not after > node.spindle_limit:  # a limit may be no number
        return None
    over, per = after - node.spindle_limit, node.policy.spindle_ratio
    facts = {"asked": use, "used": used, "limit": node.spindle_limit}
    short = -int(-over // per) if per > 0 else 0
    return Violation(node.idx, Fail.DISK, name, facts, "", short, "spindles")


def processors(to: Arrival) -> Violation | None:
    """Virtual processors that the policy allows."""
    return _processors(to, to.node.cpu_used, "cpu")


def planned_processors(to: Arrival) -> Violation | None:
    """Virtual processors that the policy allows, with planned instances counted."""
    return _processors(to, to.node.cpu_used_all, "planned cpu")


def _processors(to: Arrival, used: int, name: str) -> Violation | None:
    node, inst, limit = to.node, to.inst, to.node.policy.vcpu_ratio
    after = used + (inst.vcpus if inst.counts_cpu else 0)
    if not 0 <= limit < ratio(after, node.cpus):
        return None
    facts = {
        "asked": inst.vcpus,
        "used": used,
        "limit": limit * node.cpus,
        "ratio": limit,
    }
    short = -int(-(after / limit - node.cpus) // 1) if limit > 0 else 0
    short = max(1, short) if limit else 0
    return Violation(node.idx, Fail.CPU, name, facts, "", short, "processors")


def exclusion_tags(to: Arrival) -> Violation | None:
    """Nobody there who carries one of its exclusion tags."""
    here = [tag for tag in to.inst.excl_tags if tag in to.node.excl]
    if not here:
        return None
    facts = {"tags": here}
    if to.names is not None:
        people = [to.names.insts[at] for at in sorted(to.node.primaries)]
        facts["held by"] = [
            one.name for one in people if not set(here).isdisjoint(one.excl_tags)
        ]
    return Violation(to.node.idx, Fail.TAGS, "exclusion tags", facts)


RUNNING: Final = Chain(
    hard=(memory, disks, spindles),
    soft=(spindle_ratio, failover_memory, processors, exclusion_tags),
    planned=(
        planned_memory,
        planned_disks,
        planned_spindles,
        planned_spindle_ratio,
        planned_processors,
    ),
)
COPYING: Final = Chain(
    hard=(second_copy, disks, spindles),
    soft=(spindle_ratio, memory, failover_memory),
    planned=(
        second_copy,
        planned_disks,
        planned_spindles,
        planned_spindle_ratio,
        planned_memory,
    ),
)
