# SPDX-License-Identifier: BSD-2-Clause
"""What choosing a node costs as the number of nodes grows, and who waits meanwhile.

The master is the real one, in a process of its own; the agents are in another one and
speak HTTPS, and what they run is simulated (:mod:`fleet`). Who asks, and who watches
how long an answer takes, are two more. So the figures count what a master does, with
its store, its sockets and its TLS, and nothing that its nodes or its clients do; but
all share the cores of one machine, and on one with fewer than four they wait for each
other. Every node has storage units, five nodes in a hundred lack the provider, and
there are ten instances a node. Each figure is the median of its runs, in ms:

first add
    One ``gnt-instance add`` without ``-n``, from its submission to its end, when no
    node was asked for its room lately.
add
    The next ones: only those nodes are asked that are chosen, or were changed.
first add, CPU; add, CPU
    The master's CPU time of it.
verify
    One ``gnt-cluster verify``.
list
    One list of all instances, with what nodes say of them.
add meanwhile
    An add that is asked for while verify plans.

Of all that together, the worst:

silence
    The longest time that the master gave no answer to a client.
turn, CPU
    The CPU time of the longest turn of its event loop: what the silence would be if
    nobody else had anything to do.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from fleet import fleet

from moorage.api.luxi import LuxiClient
from moorage.errors import MoorageError

SIZES = (20, 80, 200, 1_000)
_ENDED = ("success", "error", "canceled")
_SPAWN = multiprocessing.get_context("spawn")


class Silence:
    """The longest time that a master gave no answer, in seconds."""

    def __init__(self) -> None:
        self._longest: Synchronized[float] = _SPAWN.Value("d", 0.0)

    @contextmanager
    def watched(self, socket: str) -> Iterator[None]:
        """Ask the master for little, again and again, in a process of its own."""
        begun, over = _SPAWN.Event(), _SPAWN.Event()
        shared = (socket, self._longest, begun, over)
        asking = _SPAWN.Process(target=_ask, args=shared)
        asking.start()
        begun.wait()
        try:
            yield
        finally:
            over.set()
            asking.join()

    def taken(self) -> float:
        """Return the longest time since this was asked last."""
        with self._longest:
            found, self._longest.value = self._longest.value, 0.0
        return found


def _ask(
    socket: str, longest: "Synchronized[float]", begun: Event, over: Event
) -> None:
    with LuxiClient(socket) as luxi:
        begun.set()
        while not over.wait(0.005):
            began = time.perf_counter()
            luxi.call("QueryConfigValues", ["cluster_name"])
            longest.value = max(longest.value, time.perf_counter() - began)


class Hands:
    """Runs jobs."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._names = 0

    def wait(self) -> None:
        """Wait until the master serves."""
        while True:
            with suppress(MoorageError), LuxiClient(self._socket) as luxi:
                luxi.call("QueryConfigValues", ["cluster_name"])
                return
            time.sleep(0.2)

    def run(self, opcode: dict[str, Any]) -> float:
        """Return how many seconds a job took, from its submission to its end."""
        with LuxiClient(self._socket) as luxi:
            began = time.perf_counter()
            number = luxi.submit_job([opcode])
            status: object = None
            told = -1
            while status not in _ENDED:
                known = ([status], told)
                change = luxi.wait_for_job_change(number, ["status"], known)
                if change != "nochange":
                    [status], lines = change
                    told = max([told, *(line[0] for line in lines or ())])
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


def figures(nodes: int, runs: int, *, told: bool) -> dict[str, float]:
    """Return seconds by what was measured; print the worst of each if `told`."""
    silence = Silence()
    found: dict[str, float] = {}
    worst = {"silence": 0.0, "turn, CPU": 0.0}
    with (
        tempfile.TemporaryDirectory(prefix="moorage-bench-") as at,
        fleet(Path(at), nodes) as cluster,
    ):
        hands = Hands(cluster.socket)
        hands.wait()
        hands.verify()  # the first one warms caches and connections
        cluster.rest()
        before = cluster.cpu()
        found["first add"] = hands.add()
        found["first add, CPU"] = cluster.cpu() - before
        cluster.longest_turn()
        with silence.watched(cluster.socket):
            for name in ("add", "verify", "list", "add meanwhile"):
                work = getattr(hands, name.replace(" ", "_"))
                before = cluster.cpu()
                found[name] = statistics.median(work() for _ in range(runs))
                if name == "add":
                    found["add, CPU"] = (cluster.cpu() - before) / runs
                here = (silence.taken(), cluster.longest_turn())
                if told:
                    print(name, *(f"{one * 1e3:.0f}" for one in here))
                for one, value in zip(worst, here, strict=True):
                    worst[one] = max(worst[one], value)
    return found | worst


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--each", action="store_true", help="the worst of each, too")
    asked = parser.parse_args()
    found = {size: figures(size, asked.runs, told=asked.each) for size in asked.sizes}
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms")
    print(f"{'nodes':16}" + "".join(f"{size:>10,}" for size in asked.sizes))
    for name in found[asked.sizes[0]]:
        cells = (f"{found[size][name] * 1e3:10.0f}" for size in asked.sizes)
        print(f"{name:16}" + "".join(cells))


if __name__ == "__main__":
    main()
