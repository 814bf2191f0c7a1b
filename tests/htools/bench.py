# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Processor time of each program beside Ganeti's, on the same files.

python tests/htools/bench.py [--limit SECONDS] [--only WORDS]

Whole processes are measured, with the options that are printed and no others: the
best of three runs, or the only run of what takes longer. Python's bytecode is made
before, as installing does. What takes Ganeti longer than the limit is extrapolated
from its time for a step, where there are steps, and is a lower bound elsewhere.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hail as messages

from moorage.htools import sample
from moorage.htools.formats import text

HAIL = "/usr/lib/ganeti/iallocators/hail"
SHORT = 2.0
"""Seconds: what takes longer is run once."""
PATIENCE = 1800.0
"""Seconds that our programs may take."""
LAUNCHER = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), resource.RLIM_INFINITY))
null = [(os.POSIX_SPAWN_OPEN, 1, sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)]
pid = os.posix_spawn(sys.argv[3], sys.argv[3:], os.environ, file_actions=null)
_, status, use = os.wait4(pid, 0)
seconds = None if os.WIFSIGNALED(status) else use.ru_utime + use.ru_stime
print(json.dumps([seconds, use.ru_maxrss / 1024]))
"""
"""Starts a program from a small process, whose memory is not taken for its."""


@dataclass(frozen=True)
class Case:
    """Something to measure, and what is expected of it.

    Attributes
    ----------
    asked, aimed : float
        How many times faster than Ganeti; seconds of our own where Ganeti is not
        run.
    memory : tuple of float or None
        The same for MiB at most.
    steps : bool
        Whether a limit of steps (-l) makes it shorter.
    """

    title: str
    program: str
    words: tuple[str, ...]
    asked: float
    aimed: float
    beside: bool = True
    memory: tuple[float, float] | None = None
    steps: bool = False


@dataclass(frozen=True)
class Run:
    """Processor seconds and peak memory, MiB, of one run, and what it printed."""

    seconds: float
    memory: float
    output: str


@cache
def cluster(kind: str, nodes: int, insts: int, cpus: float | None = 64.0):
    """Return a plain cluster of a size; None for processors as they are drawn."""
    shape = sample.Shape(kind=kind, nodes=nodes, instances=insts, fill=0.4, oddity=0.0)
    fleet = sample.cluster(5, shape)
    if cpus is not None:
        fleet = fleet.replaced(nodes=tuple(n._replace(cpus=cpus) for n in fleet.nodes))
    if kind != "shared":
        return fleet
    rows = tuple(inst._replace(template="ext") for inst in fleet.instances)
    return fleet.replaced(instances=rows)


@cache
def grown(nodes: int, insts: int):
    """Return a cluster whose nodes were doubled: one half of them is empty."""
    fleet = cluster("drbd", nodes // 2, insts)
    new = tuple(
        node._replace(
            name=f"new{at:03d}.example.com",
            mem_free=int(node.mem_total) - node.mem_own,
            disk_free=int(node.disk_total),
            master=False,
        )
        for at, node in enumerate(fleet.nodes)
    )
    return fleet.replaced(nodes=(*fleet.nodes, *new))


class Files:
    """Writes clusters and messages into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def saved(self, *size, cpus: float | None = 64.0) -> tuple[str, str]:
        """Return the options that name a cluster's file."""
        path = self.folder / "-".join(map(str, (*size, cpus)))
        path.write_text(text.dump(cluster(*size, cpus)))
        return "-t", str(path)

    def grown(self, nodes: int, insts: int) -> tuple[str, str]:
        """Return the same for a cluster half of whose nodes are new."""
        path = self.folder / f"grown-{nodes}"
        path.write_text(text.dump(grown(nodes, insts)))
        return "-t", str(path)

    def allocate(self, *size) -> tuple[str]:
        """Return the file of a message that asks for a place."""
        fleet = cluster(*size)
        new = messages.instance(fleet.instances[0]) | {"vcpus": 1, "name": "new"}
        nodes = 2 if size[0] == "drbd" else 1
        return self._asked(size, new | {"type": "allocate", "required_nodes": nodes})

    def evacuate(self, *size) -> tuple[str]:
        """Return the file of a message about everybody with a disk on one node."""
        rows = cluster(*size).instances
        names = [row.name for row in rows if 3 in (row.primary, row.secondary)]
        asked = {"type": "node-evacuate", "instances": names, "evac_mode": "all"}
        return self._asked(size, asked)

    def on_units(self, nodes: int, *, shared: bool) -> tuple[str]:
        """Return the file of a message that asks for a place where nodes list a unit.

        The nodes are alike, with 25 instances each, on a pool of all of them; or on
        external storage, beside a unit of each node that nobody wants.
        """
        kind = "sharedfile" if shared else "file"
        unit = {"sunit": [kind, "/srv", []], "free": 10**7, "total": 10**8}
        fleet = cluster("shared", nodes, 25 * nodes)
        template = kind if shared else "ext"
        rows = tuple(
            inst._replace(template=template, mem=512, primary=at % nodes)
            for at, inst in enumerate(fleet.instances)
        )
        fleet = fleet.replaced(instances=rows)
        new = messages.instance(rows[0]) | {"vcpus": 1, "name": "new"}
        asked = new | {"type": "allocate", "required_nodes": 1}
        message = messages.message(fleet, asked, drained=False)
        for node in message["nodes"].values():
            free = node["total_memory"] - node["reserved_memory"] - 25 * 512
            node |= {"free_memory": free, "storage": [unit]}
        path = self.folder / f"{kind}-{nodes}"
        path.write_text(json.dumps(message))
        return (str(path),)

    def _asked(self, size, request: dict) -> tuple[str]:
        path = self.folder / "-".join(map(str, (*size, request["type"])))
        message = messages.message(cluster(*size), request, drained=False)
        path.write_text(json.dumps(message))
        return (str(path),)


def cases(files: Files) -> Iterator[Case]:
    """Yield what is measured."""
    yield from small_cases(files)
    yield from balancing_cases(files)
    size = "shared", 80, 1000
    words = *files.saved(*size), "--no-simulation"
    yield Case("hcheck shared 80x1000", "hcheck", words, 12, 30)
    size = "shared", 40, 400
    yield Case("hail ext 40x400", "hail", files.allocate(*size), 2, 5)
    size = "shared", 80, 1000
    yield Case("hail ext 80x1000", "hail", files.allocate(*size), 12, 30)
    words = files.allocate("drbd", 320, 8000)
    yield Case("hail drbd 320x8000", "hail", words, 8, 20, memory=(200, 100))
    words = files.evacuate("drbd", 80, 1000)
    yield Case("hail evacuate all 80x1000", "hail", words, 20, 60)
    yield from filling_cases(files)
    yield from unit_cases(files)


def unit_cases(files: Files) -> Iterator[Case]:
    """Yield a place where nodes list storage units: seconds."""
    for nodes, asked, aimed in ((20, 0.2, 0.1), (80, 0.4, 0.2), (200, 1.0, 0.5)):
        for shared, what in ((False, "a unit each"), (True, "one pool")):
            words = files.on_units(nodes, shared=shared)
            title = f"hail {nodes}x{25 * nodes}, {what}"
            yield Case(title, "hail", words, asked, aimed, beside=False)
    words = files.on_units(1000, shared=False)
    yield Case("hail 1000x25000, a unit each", "hail", words, 20, 8, beside=False)


def small_cases(files: Files) -> Iterator[Case]:
    """Yield every program with a small cluster: seconds."""
    size = "drbd", 10, 50
    saved = files.saved(*size)
    yield Case("hail 10x50", "hail", files.allocate(*size), 0.25, 0.1, beside=False)
    for program in ("hbal", "hcheck", "hinfo", "hspace", "hroller", "hsqueeze"):
        yield Case(f"{program} 10x50", program, saved, 0.25, 0.1, beside=False)


def balancing_cases(files: Files) -> Iterator[Case]:
    """Yield full balancing."""
    for nodes, insts, asked, aimed in (
        (20, 200, 60, 150),
        (40, 400, 1000, 2000),
        (80, 1000, 3000, 5000),
    ):
        for words, what in (
            (files.saved("drbd", nodes, insts), ""),
            (files.grown(nodes, insts), " half new"),
        ):
            title = f"hbal drbd {nodes}x{insts}{what}"
            yield Case(title, "hbal", words, asked, aimed, steps=True)
    words = files.saved("drbd", 160, 3000)
    yield Case("hbal drbd 160x3000", "hbal", words, 16, 8, beside=False)
    words, memory = files.saved("shared", 1000, 10000), (1024.0, 1024.0)
    title = "hbal shared 1000x10000"
    yield Case(title, "hbal", words, 180, 60, beside=False, memory=memory)


def filling_cases(files: Files) -> Iterator[Case]:
    """Yield filling; few processors stop it early, many let it go on."""
    for kind, template, nodes, insts, asked, aimed in (
        ("shared", "ext", 20, 200, 30, 80),
        ("drbd", "drbd", 40, 400, 8, 25),
    ):
        for cpus, what in ((None, ""), (64.0, " more cpus")):
            saved = files.saved(kind, nodes, insts, cpus=cpus)
            words = *saved, "--disk-template", template
            title = f"hspace {kind} {nodes}x{insts}{what}"
            yield Case(title, "hspace", words, asked, aimed)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which Python keeps bytecode, in a folder."""
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return plain | {"PYTHONPYCACHEPREFIX": str(folder)}


class Meter:
    """Runs programs and measures them."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit = folder, limit
        self.environment = environment(folder / "bytecode")

    def ours(self, case: Case) -> Run:
        """Measure our program."""
        module = f"moorage.cli.htools.{case.program}"
        first = [sys.executable, "-m", module]
        self._once([*first, "--help"], PATIENCE)
        run = self.best([*first, *case.words], PATIENCE)
        if run is None:
            raise SystemExit(f"{case.title} takes more than {PATIENCE:.0f} s")
        return run

    def theirs(self, case: Case, limit: float, *more: str) -> Run | None:
        """Measure Ganeti's; None when it takes longer than a limit."""
        program = HAIL if case.program == "hail" else f"/usr/bin/{case.program}"
        return self.best([program, *case.words, *more], limit)

    def best(self, words: list[str], limit: float) -> Run | None:
        """Return the best of three runs, or the only one where it is long."""
        runs = [self._once(words, limit)]
        while len(runs) < 3 and runs[0] is not None and runs[0].seconds < SHORT:
            runs.append(self._once(words, limit))
        done = [run for run in runs if run is not None]
        return min(done, key=lambda run: run.seconds, default=None)

    def _once(self, words: list[str], limit: float) -> Run | None:
        output = self.folder / "output"
        output.unlink(missing_ok=True)
        launcher = [sys.executable, "-S", "-c", LAUNCHER, str(round(limit))]
        done = subprocess.run(
            [*launcher, str(output), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
            check=True,
        )
        seconds, memory = json.loads(done.stdout)
        return None if seconds is None else Run(seconds, memory, output.read_text())

    def whole_plan(self, case: Case, steps: int) -> float:
        """Return Ganeti's seconds for a plan, from one step and from three."""
        one, three = (self.theirs(case, PATIENCE, "-l", n) for n in ("1", "3"))
        if one is None or three is None:
            return PATIENCE
        return one.seconds + (steps - 1) * (three.seconds - one.seconds) / 2


BOUND = "ganeti: stopped at the limit, so at least"


def beside(meter: Meter, case: Case, run: Run) -> tuple[float, str]:
    """Return Ganeti's seconds, and a word about what kind of number that is."""
    length = re.search(r"Solution length=(\d+)", run.output)
    whole, note = meter.limit, BOUND
    if case.steps and length:
        note = f"ganeti: {length[1]} steps, from the time for 1 and for 3"
        whole = meter.whole_plan(case, int(length[1]))
        if whole > meter.limit:
            return whole, note
    found = meter.theirs(case, meter.limit)
    return (whole, note) if found is None else (found.seconds, "")


def verdict(good: bool, better: bool, *, bound: bool = False) -> str:
    """Return whether what was asked, and what was aimed for, is met.

    Parameters
    ----------
    bound
        Whether the truth may be better.
    """
    if bound and not good:
        return "not known"
    return "missed" if not good else "met" if better else "met, not the aim"


def report(meter: Meter, case: Case) -> bool:
    """Measure a case and print a line about it; say whether what was asked is met."""
    run = meter.ours(case)
    start = f"{case.title:30} {run.seconds:8.3f} s"
    if case.beside:
        theirs, note = beside(meter, case, run)
        ratio = theirs / run.seconds
        good, better = ratio >= case.asked, ratio >= case.aimed
        wanted = f"{case.asked:5g}x {case.aimed:5g}x"
        line = f"{start} {theirs:9.2f} s {ratio:8.1f}x {wanted}"
    else:
        note = ""
        good, better = run.seconds <= case.asked, run.seconds <= case.aimed
        line = f"{start} {'':21} {case.asked:5g}s {case.aimed:5g}s"
    said = verdict(good, better, bound=note == BOUND)
    words = " ".join(word for word in case.words if "/" not in word and word != "-t")
    notes = "; ".join(part for part in (words, note) if part)
    print(f"{line}  {said:16} {notes}".rstrip(), flush=True)
    return report_memory(case, run) and good


def report_memory(case: Case, run: Run) -> bool:
    """Print a line about memory where something is asked of it."""
    if case.memory is None:
        return True
    asked, aimed = case.memory
    good, better = run.memory <= asked, run.memory <= aimed
    print(
        f"{'  its memory':30} {run.memory:6.0f} MiB {'':20} {asked:5g}M {aimed:5g}M"
        f"  {verdict(good, better)}",
        flush=True,
    )
    return good


def main() -> int:
    """Measure and print."""
    made = argparse.ArgumentParser()
    made.add_argument("--limit", type=float, default=60.0)
    made.add_argument("--only", default="", help="cases whose title holds this")
    given = made.parse_args()
    print(f"{'case':30} {'moorage':>10} {'ganeti':>11} {'ratio':>9} asked    aim")
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        meter = Meter(Path(name), given.limit)
        wanted = (c for c in cases(Files(Path(name))) if given.only in c.title)
        missed.extend(case.title for case in wanted if not report(meter, case))
    print(f"missed: {', '.join(missed)}" if missed else "nothing is missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
