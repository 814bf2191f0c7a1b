# SPDX-License-Identifier: BSD-2-Clause
"""How long a cluster in etcd is without a master, when the one that leads is gone.

Three masters, three members of etcd and three simulated nodes are processes of this
machine. The time is that from the blow to the end of the first job that succeeds, asked
for over LUXI of whichever master takes it, every twentieth of a second. ``stop`` is
what a power cut looks like to the others: nobody closes a connection. Before each blow
two masters wait: one that dies every few seconds is started again after a pause, which
is ended here, and is no part of the time.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.extend(
    str(Path(__file__).parents[1] / one) for one in ("tests", "tests/histories")
)
from town import EVENTS, LEASE, NAMES, Town

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from moorage.errors import MoorageError
from moorage.jobs.job import FINISHED
from support.etcd_members import members
from support.masters import places

_ANSWER = 0.5
"""Seconds after which another master is asked."""
_TRY, _STEP = 120.0, 0.05


def tagged(sockets: Sequence[str], tag: str) -> None:
    """Give a tag to the cluster by the first master that does it.

    Raises
    ------
    TimeoutError
        If none does within two minutes.
    """
    until = time.monotonic() + _TRY
    op = {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": "", "tags": [tag]}
    while time.monotonic() < until:
        for path in sockets:
            if _done(path, op):
                return
        time.sleep(_STEP)
    raise TimeoutError("no master does a job")


def _done(path: str, op: dict[str, object]) -> bool:
    status = ""
    try:
        with LuxiClient(path, _ANSWER) as luxi:
            number = luxi.submit_job([op])
            while status not in FINISHED:
                ((status,),) = luxi.query_jobs([number], ["status"])
    except MoorageError:
        return False
    return status == "success"


def fill(path: str, instances: int) -> None:
    """Make so many instances without disks."""
    ops = [
        {
            "OP_ID": "OP_INSTANCE_CREATE",
            "instance_name": f"filler{number}",
            "disk_template": "diskless",
            "pnode": f"node{number % 3 + 1}",
            "start": False,
            "no_install": True,
            "nics": [],
            "beparams": {"maxmem": 128, "minmem": 128},
        }
        for number in range(instances)
    ]
    with LuxiClient(path) as luxi:
        jobs = [luxi.submit_job(ops[at : at + 50]) for at in range(0, len(ops), 50)]
        ended: set[str] = set()
        while not ended or not ended <= FINISHED:
            time.sleep(0.5)
            ended = {status for (status,) in luxi.query_jobs(jobs, ["status"])}
    if ended != {"success"}:
        sys.exit(f"instances could not be made: {ended}")


def without(town: Town, event: str) -> float:
    """Return for how many seconds an event leaves the cluster without a master."""
    if not process.wait_until(lambda: _all_up(town), _TRY):
        raise TimeoutError("a master does not come back")
    mend = town.strike(event)
    began = time.monotonic()
    tagged(town.sockets, f"t{time.time_ns()}")
    took = time.monotonic() - began
    mend()
    return took


def _all_up(town: Town) -> bool:
    """Whether one master leads and the others wait; hurry those that do not yet."""
    town.leader()
    for at in (places(town.scratch, name) for name in NAMES):
        if not process.holder(at.lock):
            if supervisor := process.holder(at.supervisor):
                os.kill(supervisor, signal.SIGHUP)
            return False
    return sum(map(_waits, town.sockets)) == len(NAMES) - 1


def _waits(path: str) -> bool:
    """Whether a master says that it waits for the lead."""
    with LuxiClient(path, _ANSWER) as luxi:
        try:
            luxi.query("node", ["name"])
        except MoorageError as error:
            return "led" in error.facts
    return False


def tell(event: str, took: Sequence[float]) -> None:
    """Print a row."""
    middle = statistics.median(took)
    print(f"{event:20}{min(took):8.1f}{middle:8.1f}{max(took):8.1f}", flush=True)


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--events", nargs="*", choices=EVENTS, default=EVENTS)
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; lease {LEASE} s")
    print(f"{'event':20}{'min':>8}{'median':>8}{'max':>8}  s", flush=True)
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as at, members() as etcd:
        town = Town(Path(at) / "c", etcd)
        try:
            town.found()
            fill(str(town.scratch.master.socket), args.instances)
            for event in args.events:
                tell(event, [without(town, event) for _ in range(args.tries)])
        finally:
            town.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
