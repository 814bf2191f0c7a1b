# SPDX-License-Identifier: BSD-2-Clause
"""What choosing a node costs as the number of nodes grows, and who waits meanwhile.

The nodes are simulated in this process; the master's engine and socket are real. Every
node has storage units, five nodes in a hundred lack the provider, and there are ten
instances a node. Each figure is the median of its runs, in ms:

add
    One ``gnt-instance add`` without ``-n``, from its submission to its end.
add, CPU
    Its CPU time, with that of the nodes, which answer in the same process.
verify
    One ``gnt-cluster verify``.
list
    One list of all instances, with what nodes say of them.
add meanwhile
    An add that is asked for while verify plans.
silence
    The longest time that the master gave no answer to a client while all that ran.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.daemons import pauses
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import PROVIDERS

SIZES = (20, 80, 200, 1_000)
PER_NODE = 10
"""Instances of each node."""
_LACKING = 20
"""Of so many nodes one lacks the provider."""
_ENDED = ("success", "error", "canceled")


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """Yield the socket of a master with that many simulated nodes."""
    ready, done = threading.Event(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as at:
        root = Path(at)
        work = _serve(root, nodes, ready, done)
        thread = threading.Thread(target=lambda: asyncio.run(work))
        thread.start()
        ready.wait()
        try:
            yield str(root / "luxi.sock")
        finally:
            done.set()
            thread.join()


async def _serve(
    root: Path, nodes: int, ready: threading.Event, done: threading.Event
) -> None:
    builder = ClusterBuilder(nodes)
    for number in range(nodes * PER_NODE):
        home = f"node{_home(number)}"
        builder.disk(f"d{number}", last_node=home)
        fields = {"admin_state": "up", "disks_active": True}
        fields |= {"beparams": {"maxmem": 2600, "minmem": 2600}}
        builder.instance(f"old{number}", home, (f"d{number}",), **fields)
    (root / "nodes").mkdir()
    sim = SimCluster(root / "nodes")
    sim.aside = asyncio.to_thread  # as in a master that serves
    await sim.make(builder)
    for number, node in enumerate(sim.nodes.nodes.values()):
        if number % _LACKING == _LACKING - 1:
            node.machine.installed = [p for p in PROVIDERS if p.name != "san"]
    server = LuxiServer(Sources(sim.truth, sim.nodes, sim.engine), root / "luxi.sock")
    await server.start()
    pauses.keep_short()
    ready.set()
    await asyncio.to_thread(done.wait)
    await server.stop()
    await sim.stop()


def _home(number: int) -> int:
    """Return the number of the node of an instance: one that has the provider."""
    node = number // PER_NODE
    return node if node % _LACKING == _LACKING - 1 else node + 1


# -- measuring -------------------------------------------------------------------------


@dataclass
class Watch:
    """Asks the master for little, again and again, and keeps the longest answer.

    Attributes
    ----------
    longest
        Seconds.
    """

    socket: str
    longest: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        """Begin to ask."""
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        with LuxiClient(self.socket) as luxi:
            while not self._over.wait(0.005):
                began = time.perf_counter()
                luxi.call("QueryConfigValues", ["cluster_name"])
                self.longest = max(self.longest, time.perf_counter() - began)


class Hands:
    """Runs jobs."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._names = 0

    def run(self, opcode: dict[str, Any]) -> float:
        """Return how many seconds a job took, from its submission to its end."""
        with LuxiClient(self._socket) as luxi:
            began = time.perf_counter()
            number = luxi.submit_job([opcode])
            status: object = None
            while status not in _ENDED:
                change = luxi.wait_for_job_change(number, ["status"], ([status], None))
                status = status if change == "nochange" else change[0][0]
            took = time.perf_counter() - began
            if status != "success":
                result = list(luxi.query_jobs([number], ["opresult"]))
                sys.exit(f"{opcode['OP_ID']} ended as {status}: {result}")
        return took

    def add(self) -> float:
        """Add an instance without naming a node."""
        self._names += 1
        disks = [{"size": 64, "provider": "san"}]
        fields = {"instance_name": f"new{self._names}", "disk_template": "ext"}
        memory = {"beparams": {"memory": 512}, "disks": disks}
        return self.run({"OP_ID": "OP_INSTANCE_CREATE", **fields, **memory})

    def list(self) -> float:
        """List all instances."""
        fields = ["name", "pnode", "admin_state", "status", "oper_ram", "beparams"]
        with LuxiClient(self._socket) as luxi:
            began = time.perf_counter()
            luxi.query("instance", fields)
            return time.perf_counter() - began

    def verify(self) -> float:
        """Verify the cluster."""
        return self.run({"OP_ID": "OP_CLUSTER_VERIFY"})

    def add_meanwhile(self) -> float:
        """Add an instance while verify plans."""
        other = threading.Thread(target=Hands(self._socket).verify)
        other.start()
        time.sleep(0.05)
        took = self.add()
        other.join()
        return took


def figures(nodes: int, runs: int) -> dict[str, float]:
    """Return seconds by what was measured."""
    with cluster(nodes) as socket, Watch(socket) as watch:
        hands = Hands(socket)
        before = time.process_time()
        found = {"add": statistics.median(hands.add() for _ in range(runs))}
        found["add, CPU"] = (time.process_time() - before) / runs
        works = {"verify": hands.verify, "list": hands.list}
        works["add meanwhile"] = hands.add_meanwhile
        for name, work in works.items():
            found[name] = statistics.median(work() for _ in range(runs))
    return found | {"silence": watch.longest}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    found = {size: figures(size, asked.runs) for size in asked.sizes}
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms")
    print(f"{'nodes':16}" + "".join(f"{size:>10,}" for size in asked.sizes))
    for name in found[asked.sizes[0]]:
        cells = (f"{found[size][name] * 1e3:10.0f}" for size in asked.sizes)
        print(f"{name:16}" + "".join(cells))


if __name__ == "__main__":
    main()
