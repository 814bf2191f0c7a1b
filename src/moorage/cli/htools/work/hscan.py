# SPDX-License-Identifier: BSD-2-Clause
"""hscan: write clusters to files that the other programs read."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools import remote, source
from moorage.errors import MoorageError
from moorage.htools import reports
from moorage.htools.cluster_stats import UNKNOWN, Room
from moorage.htools.constants import fixed
from moorage.htools.fleet import Fleet
from moorage.htools.formats import text
from moorage.htools.loader import load
from moorage.htools.metrics import score, total
from moorage.htools.node import people_on
from moorage.htools.state import State

LOCAL: Final = "LOCAL"
"""The name of the cluster whose master's socket is on this machine."""
FAILED: Final = 2
"""Exit status when some cluster could not be read."""


def run(options: Options) -> int:
    """Write clusters to files."""
    names = options.words or [LOCAL]
    width = max(map(len, names))
    if not options.no_headers:
        print(_heading(width))
    if options.words:
        read: Callable[[str], Fleet] = remote.rapi
    else:

        def read(_name: str) -> Fleet:
            return remote.luxi(options.luxi or "")

    done = [_scan(options, name, width, read) for name in names]
    return 0 if all(done) else FAILED


def _heading(width: int) -> str:
    counts = " ".join(f"{word:>5}" for word in ("Nodes", "Inst", "BNode", "BInst"))
    sizes = " ".join(f"{word:>6}" for word in ("t_mem", "f_mem", "t_disk", "f_disk"))
    return f"{'Name':<{width}} {counts} {sizes} {'Score':>10}"


def _scan(
    options: Options, name: str, width: int, read: Callable[[str], Fleet]
) -> bool:
    """Print the line of a cluster and write its file; say whether it was read."""
    try:
        fleet = read(name)
        state = load(fleet, source.reading(options)).state
    except MoorageError as error:
        print(f"\nError for {name}: failed to load data. Details:\n{error.message}")
        return False
    print(f"{name:<{width}} {summary(state)}", flush=True)
    if options.print_nodes is not None:
        print(reports.node_table(state.nodes, options.print_nodes), end="")
    target = Path(options.output_dir) / (name.replace("/", "_") + ".data")
    source.write(str(target), text.dump(fleet))
    return True


def summary(state: State) -> str:
    """Return a cluster in one line: counts, memory and disk (GiB), score."""
    nodes = state.nodes
    bad = state.failing
    counts = (len(nodes), len(state.insts), len(bad), len(people_on(bad)))
    mem = fixed(total(node.mem_total for node in nodes), 0)
    free = sum(node.mem_free for node in nodes)
    room = Room.of(nodes)
    disk = fixed(room.total / 1024, 0) if room.known else UNKNOWN
    disk_free = room.told(room.free // 1024)
    return (
        " ".join(f"{count:5d}" for count in counts)
        + f" {mem:>6} {free:6d} {disk:>6} {disk_free:>6} {fixed(score(nodes), 8)}"
    )
