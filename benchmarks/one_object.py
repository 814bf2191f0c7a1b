# SPDX-License-Identifier: BSD-2-Clause
"""What one object costs the master as the number of nodes grows, and what it remembers.

The cluster is that of :mod:`choosing`: the real master, agents that simulate, ten
instances a node. Each figure is the master's CPU time of one job in ms, the least of
ten in each of some rounds, once the nodes have been asked; beside it stands the ratio
to that of the first size. It is the least as all else that happens adds to it: others
on the machine, half as much again, and nodes that are asked anew after half a minute.
That a job executes no more lines with many nodes is a test of its own, which no machine
disturbs (``tests/jobs/test_cost.py``); what the C library, SQLite and the search for
garbage do is counted here alone.

Counted by callgrind, in millions of instructions of the whole master, when no list of
guests is old, a job takes at 3 and at 1,000 nodes: start 27 to 32 and 26 to 30 (and
once 53), activate 19 to 22 and 16 to 22, attach 23 to 30 and 19 to 26, failover 52 to
53 and 47 to 53, a new disk 34 to 37 and 38 to 40. It makes as many commits, of as many
records and bytes but for a new disk's warnings; in each, SQLite takes as much CPU, and
reads at most a page of its file. On a quiet machine no job took more than 1.02 times
with 1,000 nodes what it took with 3; with others at work on the machine, who empty the
processor's caches, it was up to 1.3 times.

start
    ``gnt-instance startup``, of instances that were shut down before.
activate
    ``gnt-instance activate-disks``, likewise.
disk add
    ``gnt-disk add`` with a provider, and no node named. From 20 nodes on some lack it,
    so its job tells four warnings more than with 3.
attach
    ``gnt-disk attach``, of those that were added.
failover
    ``gnt-instance failover -n``.
first start
    The very first one: it asks all nodes.
idle second
    What the master does in a second in which nobody asks for anything: that much of
    each figure above, by how long the job takes, is not the job's.

Of the master itself, after one verify of all and then all these jobs:

verify
    The first one, in ms.
memory verified, memory
    Its resident memory in MiB, when it is at rest after that verify, and at the end.
garbage
    The time in ms of one look for cyclic garbage: everybody waits meanwhile.

The bar: at the last size one object costs at most 1.1 times what it costs at the first
one, and the memory is below 250 MiB.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from choosing import Hands
from fleet import PAIR, PER_NODE, Fleet, fleet

SIZES = (3, 80, 200, 1_000)
BAR = 1.1
MOST = 250
"""MiB of the master at the last size."""
JOBS = ("start", "activate", "disk add", "attach", "failover")
VERIFY, IDLE, MEMORY, GARBAGE = "verify", "idle second", "memory", "garbage"
_IDLE = 5
"""Seconds in which nobody asks for anything."""
MEMORIES = ("memory verified", MEMORY)


def figures(sizes: Sequence[int], rounds: int) -> dict[int, dict[str, float]]:
    """Return seconds by job, and MiB, by the number of nodes.

    All clusters are there at once, and each round asks one after the other: whatever
    else the machine does meanwhile, it does to all of them.
    """
    found = {}
    with ExitStack() as stack:
        at = stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-"))
        clusters = {}
        for size in sizes:
            place = Path(at) / str(size)
            place.mkdir()
            clusters[size] = stack.enter_context(fleet(place, size))
            found[size] = _begin(clusters[size])
        for number in range(rounds):
            for size, cluster in clusters.items():
                cluster.rest()
                told = _jobs(cluster, Hands(cluster.socket)) | _idle(cluster)
                for name, took in told.items():
                    found[size][name] = min(took, found[size].get(name, took))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for size, cluster in clusters.items():
            found[size] |= {MEMORY: cluster.memory(), GARBAGE: cluster.garbage()}
    return found


def _begin(cluster: Fleet) -> dict[str, float]:
    """Return what comes before the rounds, and ask the nodes for all once."""
    hands = Hands(cluster.socket)
    hands.wait()
    cluster.rest()
    found = {VERIFY: _cpu(cluster, [hands.verify])}
    cluster.rest()
    found["memory verified"] = cluster.memory()
    found["first start"] = _first(cluster, hands)
    _jobs(cluster, hands)
    return found


def _cpu(cluster: Fleet, works: Sequence[Callable[[], object]]) -> float:
    """Return the master's CPU seconds of one of several works: the least."""
    took = []
    for work in works:
        before = cluster.cpu()
        work()
        took.append(cluster.cpu() - before)
    return min(took)


def _idle(cluster: Fleet) -> dict[str, float]:
    """Return the CPU seconds of a second without a request."""
    return {IDLE: _cpu(cluster, [partial(time.sleep, _IDLE)]) / _IDLE}


def _first(cluster: Fleet, hands: Hands) -> float:
    """Return the CPU seconds of the first start of all."""
    guest = {"instance_name": "old0"}
    hands.run({"OP_ID": "OP_INSTANCE_SHUTDOWN", **guest})
    start = partial(hands.run, {"OP_ID": "OP_INSTANCE_STARTUP", **guest})
    return _cpu(cluster, [start])


def _jobs(cluster: Fleet, hands: Hands) -> dict[str, float]:
    """Return the CPU seconds of each kind of job, and leave all as it was."""

    def cpu(op: str, each: Iterable[dict[str, Any]]) -> float:
        jobs = [partial(hands.run, {"OP_ID": op, **fields}) for fields in each]
        return _cpu(cluster, jobs)

    guests = [{"instance_name": f"old{number}"} for number in range(PER_NODE)]
    names = [f"new{number}" for number in range(PER_NODE)]
    disks = [{"disk": name} for name in names]
    made = {"size": 64, "disk_template": "ext", "provider": "san"}
    pairs = [a | b for a, b in zip(guests, disks, strict=True)]
    found = {}
    cpu("OP_INSTANCE_SHUTDOWN", guests)
    found["start"] = cpu("OP_INSTANCE_STARTUP", guests)
    cpu("OP_INSTANCE_SHUTDOWN", guests)
    found["activate"] = cpu("OP_INSTANCE_ACTIVATE_DISKS", guests)
    cpu("OP_INSTANCE_STARTUP", guests)
    found["disk add"] = cpu("OP_DISK_ADD", [{"name": one, **made} for one in names])
    found["attach"] = cpu("OP_DISK_ATTACH", pairs)
    cpu("OP_DISK_DETACH", disks)
    cpu("OP_DISK_REMOVE", disks)
    there, back = ([{**one, "target_node": to} for one in guests] for to in PAIR)
    found["failover"] = cpu("OP_INSTANCE_FAILOVER", there)
    cpu("OP_INSTANCE_FAILOVER", back)
    return found


def main() -> int:
    """Measure, print a table, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    found = figures(asked.sizes, asked.rounds)
    first, last = (found[asked.sizes[at]] for at in (0, -1))
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms of CPU, and MiB")
    print(f"{'nodes':16}" + "".join(f"{size:>16,}" for size in asked.sizes))
    for name in first:
        unit = 1.0 if name in MEMORIES else 1e3
        cells = (
            f"{one[name] * unit:9.1f} ({one[name] / first[name]:4.2f})"
            for one in found.values()
        )
        print(f"{name:16}" + "".join(cells))
    return _judged(
        max(last[one] / first[one] for one in JOBS), max(last[one] for one in MEMORIES)
    )


def _judged(ratio: float, memory: float) -> int:
    """Print whether the bars hold; return the exit status."""
    holds = ratio <= BAR and memory < MOST
    verdict = "hold" if holds else "are missed"
    print(
        f"the bars of {BAR} and {MOST} MiB {verdict}: one object costs up to "
        f"{ratio:.2f} times as much, and the master takes {memory:.0f} MiB"
    )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
