# SPDX-License-Identifier: BSD-2-Clause
"""What the watcher does about what it sees. Pure: rows and a memory in, a plan out."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec import Struct, field

MOST_TRIES = 5
"""How often a guest that does not stay up is started, as in Ganeti."""
FORGOTTEN = 8 * 3600.0
"""Seconds after the last try when a guest is as good as new, as in Ganeti."""
STEADY = 1800.0
"""Seconds after the last try when a guest that runs has come back for good."""
_WRONG = {
    "ERROR_nodedown": "its node gives no answer: it may run there",
    "ERROR_nodeoffline": "its node is marked offline",
    "ERROR_wrongnode": "it runs on another node than it should",
    "ERROR_up": "it runs and should not",
}
_WELL = frozenset({"running", "ADMIN_down", "ADMIN_offline", "USER_down", "ERROR_down"})


class Guest(NamedTuple):
    """An instance as a query shows it.

    Attributes
    ----------
    pnode, snodes
        Names of its nodes.
    disks_active
        Whether its disks should be attached.
    holders
        Names of the nodes that have one of its disks attached.
    """

    name: str
    status: str
    admin_state: str
    pnode: str
    snodes: tuple[str, ...] = ()
    disks_active: bool = False
    holders: tuple[str, ...] = ()


class Tries(Struct, frozen=True):
    """How often a guest was started lately, and when last, in seconds."""

    count: int
    last: float


class Memory(Struct, frozen=True):
    """What the watcher keeps from one run to the next; lost, it begins anew.

    Attributes
    ----------
    tries
        By instance.
    boots
        What told the nodes' last boots apart, by node.
    jobs
        Jobs that have not ended, by instance.
    """

    tries: dict[str, Tries] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)


class Plan(NamedTuple):
    """What is to be done.

    Attributes
    ----------
    starts
        Instances that should run and do not.
    ended
        Those whose guests powered themselves off: they are recorded as down.
    activations
        Those whose disks a node that booted must attach again.
    warnings
        Sentences for a person.
    memory
        What to keep.
    """

    starts: tuple[str, ...]
    ended: tuple[str, ...]
    activations: tuple[str, ...]
    warnings: tuple[str, ...]
    memory: Memory


def plan(
    guests: Sequence[Guest], boots: dict[str, str], memory: Memory, now: float
) -> Plan:
    """Return what is to be done.

    Parameters
    ----------
    boots
        What tells the nodes' boots apart, of those that answer.
    now
        In seconds.
    """
    tries = {
        one.name: memory.tries[one.name]
        for one in guests
        if one.name in memory.tries and not _is_over(one, memory.tries[one.name], now)
    }
    idle = [one for one in guests if one.name not in memory.jobs]
    down = [one for one in idle if _should_run(one)]
    starts = [one.name for one in down if _may_start(one, tries)]
    rebooted = {
        node for node, boot in boots.items() if memory.boots.get(node, boot) != boot
    }
    # The memory is this machine's: where the lead has come to it since, a node may have
    # booted that it knows nothing of. What is attached there tells.
    unknown = boots.keys() - memory.boots.keys()
    lost = [one.name for one in idle if _lost_disks(one, rebooted, unknown)]
    later = {name: Tries(_count(tries, name) + 1, now) for name in starts}
    return Plan(
        starts=tuple(starts),
        ended=tuple(one.name for one in idle if _ended(one)),
        activations=tuple(lost),
        warnings=tuple(_warnings(guests, tries)),
        memory=Memory(tries | later, memory.boots | boots, memory.jobs),
    )


def _should_run(one: Guest) -> bool:
    return one.status == "ERROR_down" and one.admin_state == "up"


def _ended(one: Guest) -> bool:
    return one.status == "USER_down" and one.admin_state == "up"


def _count(tries: dict[str, Tries], name: str) -> int:
    return tries[name].count if name in tries else 0


def _is_over(one: Guest, tried: Tries, now: float) -> bool:
    """Whether tries do not count any more."""
    since = now - tried.last
    return since >= (STEADY if one.status == "running" else FORGOTTEN)


def _strangers(one: Guest) -> list[str]:
    """Return nodes that have its disks, and should not."""
    return [node for node in one.holders if node not in (one.pnode, *one.snodes)]


def _may_start(one: Guest, tries: dict[str, Tries]) -> bool:
    return _count(tries, one.name) < MOST_TRIES and not _strangers(one)


def _lost_disks(
    one: Guest, rebooted: AbstractSet[str], unknown: AbstractSet[str]
) -> bool:
    """Whether disks that should be attached were on a node that booted.

    A guest that is started anyway gets its disks then.

    Parameters
    ----------
    unknown
        Nodes whose last boot is not known: they have booted if they have no disk of it.
    """
    booted = rebooted | (unknown - {*one.holders})
    if one.status == "running":
        return bool(booted & {*one.snodes})
    down = one.disks_active and one.admin_state != "up"
    return down and bool(booted & {one.pnode, *one.snodes})


def _warnings(guests: Sequence[Guest], tries: dict[str, Tries]) -> Iterator[str]:
    for one in guests:
        if one.status in _WRONG:
            yield f"instance {one.name}: {_WRONG[one.status]}"
        elif one.status not in _WELL:
            yield (
                f"instance {one.name} stands still ({one.status}): see gnt-instance "
                f"list -o name,status.reason {one.name}"
            )
        elif _should_run(one) and _strangers(one):
            told = " and ".join(_strangers(one))
            yield (
                f"instance {one.name} is not started: node {told} has a disk of it "
                "attached, and both could write; see gnt-cluster verify"
            )
        elif _should_run(one) and _count(tries, one.name) >= MOST_TRIES:
            yield (
                f"instance {one.name} was started {MOST_TRIES} times and does not stay "
                "up: it is left alone. When it is mended: "
                f"gnt-instance startup {one.name}"
            )
