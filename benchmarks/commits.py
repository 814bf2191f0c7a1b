# SPDX-License-Identifier: BSD-2-Clause
"""How long a commit takes until it is acknowledged, by the number of candidates.

The commit is `gnt-job change-priority` of a job that waits, asked over LUXI: one record
changes, and nothing follows. All nodes are processes of this machine, so the figures
are those of synced writes and of loopback; a real network adds its round trip. In the
last row of SQLite's, one of two candidates hangs from the first commit on. The row of
etcd is that of three members, which write beside it, on the same disk.

Then, what a job costs the master of a cluster without a candidate: how much it writes
into files, the store's log and its checkpoints among them, and how long it computes.
"""

import argparse
import io
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.jobs.job import FINISHED

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.etcd_members import PROGRAM, Members

CANDIDATES = (0, 1, 2)
_PATIENCE = 60.0
_LONG = 3600.0
_CHANGED = "changed meanwhile"
"""Of a node: the master itself makes candidates as soon as it may have more."""


@contextmanager
def cluster() -> Iterator[Scratch]:
    """Yield a scratch cluster of three nodes."""
    directory = Path(tempfile.mkdtemp(prefix="moorage-bench-"))
    shutil.rmtree(directory)
    found = devcluster.up(directory, nodes=3, hypervisor="fake")
    try:
        yield found
    finally:
        devcluster.down(directory)


@contextmanager
def over_etcd() -> Iterator[Scratch]:
    """Yield a scratch cluster of one node, whose state is in an etcd of three."""
    directory = Path(tempfile.mkdtemp(prefix="moorage-bench-"))
    etcd = Members(directory, 3, tls=False)
    try:
        for number in range(3):
            etcd.start(number)
        etcd.wait()
        found = devcluster.up(directory / "c", nodes=1, hypervisor="fake", bare=True)
        try:
            hosts = ",".join(one.removeprefix("http://") for one in etcd.clients)
            line = f"gnt-cluster init --store etcd://{hosts}/bench --node-name node1"
            Typist(found.environment(), io.StringIO()).type(f"{line} bench")
            yield found
        finally:
            devcluster.down(directory / "c")
    finally:
        etcd.close()
        shutil.rmtree(directory)


def run(luxi: LuxiClient, **opcode: object) -> None:
    """Run a job of one operation to its end; again where the master was faster."""
    status = ""
    while status != "success":
        number = luxi.submit_job([opcode])
        status = ""
        while status not in FINISHED:
            ((status, result),) = luxi.query_jobs([number], ["status", "opresult"])
            time.sleep(0.05)
        if status != "success" and _CHANGED not in str(result):
            sys.exit(f"{opcode} ended as {status}: {result}")


def appoint(luxi: LuxiClient, candidates: int) -> None:
    """Let so many nodes besides the master's keep a copy, and wait until it is whole.

    Raises
    ------
    TimeoutError
        If it is not within a minute.
    """
    size = {"candidate_pool_size": candidates + 1}
    run(luxi, OP_ID="OP_CLUSTER_SET_PARAMS", **size)
    for number in (2, 3):
        wanted = number - 1 <= candidates
        fields = {"node_name": f"node{number}", "master_candidate": wanted}
        run(luxi, OP_ID="OP_NODE_SET_PARAMS", **fields)

    def whole() -> bool:
        _, rows = luxi.query("node", ("copy",))
        return [value for ((_, value),) in rows].count("current") == candidates

    if not process.wait_until(whole, _PATIENCE):
        raise TimeoutError


def _delay(seconds: float, **more: object) -> dict[str, object]:
    return {"OP_ID": "OP_TEST_DELAY", "duration": seconds, **more}


def commits(
    luxi: LuxiClient, runs: int, begin: Callable[[], None] = lambda: None
) -> list[float]:
    """Return the milliseconds that each of some commits took; first do something."""
    took = []
    first = luxi.submit_job([_delay(_LONG)])
    waits = luxi.submit_job([_delay(0.0, depends=[[first, []]])])
    begin()
    for number in range(runs):
        began = time.perf_counter()
        luxi.call("ChangeJobPriority", waits, number % 2)
        took.append((time.perf_counter() - began) * 1e3)
    for job in (waits, first):
        luxi.call("CancelJob", job)
    return took


def spent(pid: int) -> tuple[float, float]:
    """Return what a process has written so far, in kB, and its seconds of CPU."""
    proc = Path(f"/proc/{pid}")
    said = dict(one.split(": ") for one in (proc / "io").read_text().splitlines())
    fields = (proc / "stat").read_text().rpartition(") ")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return int(said["wchar"]) / 1e3, ticks / os.sysconf("SC_CLK_TCK")


def jobs(luxi: LuxiClient, pid: int, runs: int) -> None:
    """Print what each kind of job makes the master write and compute, on average."""
    print(f"\n{'a job':14}{'kB':>10}{'CPU ms':>10}")
    disks = [{"size": 4, "dev_type": "sharedfile"}]
    new = {"OP_ID": "OP_INSTANCE_CREATE", "disks": disks, "pnode": "node1"}
    move = {"OP_ID": "OP_INSTANCE_MIGRATE"}
    for what, opcode in (("add", new), ("migrate", move)):
        written, computed = spent(pid)
        for number in range(runs):
            run(luxi, **opcode, instance_name=f"web{number}")
        more, longer = spent(pid)
        cost = (more - written) / runs, (longer - computed) * 1e3 / runs
        print(f"{what:14}{cost[0]:10.0f}{cost[1]:10.0f}")


def tell(what: str, took: list[float]) -> None:
    """Print a row."""
    high = statistics.quantiles(took, n=100)[98]
    print(f"{what:14}{statistics.median(took):10.1f}{high:10.1f}{max(took):10.1f}")


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms a commit")
    print(f"{'candidates':14}{'median':>10}{'99th':>10}{'longest':>10}")
    with cluster() as found, LuxiClient(str(found.master.socket)) as luxi:
        for candidates in CANDIDATES:
            appoint(luxi, candidates)
            commits(luxi, 10)  # connections, caches
            tell(str(candidates), commits(luxi, runs))
        hung = process.running(found.node("node3").pid, process.WORD)
        if not hung:
            sys.exit("the agent of node3 is gone")
        stop = partial(os.kill, hung, signal.SIGSTOP)
        tell("2, one hangs", commits(luxi, runs, stop))
        os.kill(hung, signal.SIGCONT)
    if PROGRAM is None:
        print("etcd: not measured, for there is no program etcd")
    else:
        with over_etcd() as found, LuxiClient(str(found.master.socket)) as luxi:
            commits(luxi, 10)
            tell("etcd", commits(luxi, runs))
    with cluster() as found, LuxiClient(str(found.master.socket)) as luxi:
        appoint(luxi, 0)
        master = process.running(found.master.pid, process.WORD)
        if not master:
            sys.exit("the master is gone")
        jobs(luxi, master, 5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
