# SPDX-License-Identifier: BSD-2-Clause
"""What operations cost as the cluster grows: wall time and CPU of the whole cluster.

One scratch cluster a size, with the fake hypervisor; every instance has two disks, one
of them in a storage pool, and runs. CPU counts the master, the agents and what they
start, not the command line; `list` counts the command line, too. A figure is the median
of its runs.

The bar: an attach with its detach costs at 10,000 instances at most 1.5 times what it
costs at 100.
"""

import argparse
import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moorage.api.luxi import LuxiClient
from moorage.daemons import devcluster, master_process, process
from moorage.daemons.devcluster import Scratch
from moorage.model import Change, Disk, Instance, NodeGroup, StoragePool, successor
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.fake import Fake
from moorage.store import ConfigStore, SqliteStore
from moorage.units import Mib

SIZES = (100, 1_000, 10_000)
BAR = 1.5
_TICKS = os.sysconf("SC_CLK_TCK")
_BATCH = 1_000
POOL = "pool-bench"
"""Uuid of the storage pool that one disk of each instance is in."""


@contextmanager
def cluster(instances: int) -> Iterator[Scratch]:
    """Yield a scratch cluster with that many running instances, two disks each."""
    directory = Path(tempfile.mkdtemp(prefix="moorage-bench-"))
    shutil.rmtree(directory)
    found = devcluster.up(directory, nodes=3, hypervisor="fake")
    try:
        master_process.stop(found.master)
        asyncio.run(_fill(found, instances))
        master_process.start(found.master)
        yield found
    finally:
        devcluster.down(directory)


async def _fill(found: Scratch, instances: int) -> None:
    """Write instances, disks and guests behind the back of master and agents."""
    config_store, _ = await ConfigStore.open(SqliteStore(found.master.store))
    await config_store.commit(
        Change((_pool(next(config_store.config.all(NodeGroup))),))
    )
    fakes = {n: Fake(found.node(n).run / "fake") for n in found.names}
    for start in range(0, instances, _BATCH):
        put: list[Disk | Instance] = []
        for number in range(start, min(start + _BATCH, instances)):
            name = found.names[number % len(found.names)]
            node = config_store.config.node(name)
            disks = [_disk(found, number, slot, node.group) for slot in (0, 1)]
            uuid = f"instance-{number:05}"
            put += disks
            put.append(
                Instance(
                    uuid=uuid,
                    name=f"web{number:05}",
                    primary_node=node.uuid,
                    hypervisor="fake",
                    admin_state="up",
                    disks_active=True,
                    disks=tuple(disk.uuid for disk in disks),
                )
            )
            spec = GuestSpec(uuid=uuid, name=f"web{number:05}", memory=Mib(160))
            await fakes[name].start(spec)
        await config_store.commit(Change(tuple(put)))
    extra = _disk(found, 0, 9, "")
    Path(extra.volume).parent.mkdir(parents=True, exist_ok=True)
    Path(extra.volume).write_bytes(bytes(1024 * 1024))
    cluster_now = config_store.config.cluster
    grown = successor(cluster_now, 0.0, tags=("bench",))
    await config_store.commit(Change((extra, grown)))
    await config_store.close()


def _pool(group: NodeGroup) -> StoragePool:
    return StoragePool(
        uuid=POOL, name="bench", template="sharedfile", groups=(group.uuid,)
    )


def _disk(found: Scratch, number: int, slot: int, group: str) -> Disk:
    name = f"disk-{number:05}-{slot}"
    path = f"{found.root}/shared/bench/{name}.sharedfile.disk0"
    return Disk(
        uuid=name,
        name=name,
        dev_type="sharedfile",
        logical_id=("loop", path),
        size=Mib(1),
        group=group or None,
        pool=POOL if slot == 1 else None,
    )


def cpu_of(found: Scratch) -> float:
    """Return the CPU seconds of master and agents, with what they have started."""
    pids = [process.running(found.master.pid, process.WORD)]
    pids += [
        process.running(found.node(name).pid, process.WORD) for name in found.names
    ]
    return sum(_cpu(pid) for pid in pids if pid)


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / _TICKS


def measured(
    found: Scratch, runs: int, work: Callable[[int], None]
) -> tuple[float, float]:
    """Return wall and CPU seconds of one run: median and mean (ticks are coarse)."""
    walls = []
    work(0)  # the first one warms caches and connections
    before = cpu_of(found)
    for number in range(1, runs + 1):
        began = time.perf_counter()
        work(number)
        walls.append(time.perf_counter() - began)
    return statistics.median(walls), (cpu_of(found) - before) / runs


def job(luxi: LuxiClient, **opcode: object) -> None:
    """Run a job of one operation to its end."""
    number = luxi.submit_job([opcode])
    status: object = None
    while status not in ("success", "error", "canceled"):
        change = luxi.wait_for_job_change(number, ["status"], ([status], None))
        status = status if change == "nochange" else change[0][0]
    if status != "success":
        result = list(luxi.query_jobs([number], ["opresult"]))
        sys.exit(f"{opcode['OP_ID']} ended as {status}: {result}")


def figures(found: Scratch, runs: int) -> dict[str, tuple[float, float]]:
    """Return wall and CPU seconds by operation."""
    environ = {**os.environ, **found.environment()}
    with LuxiClient(str(found.master.root / "luxi.sock")) as luxi:

        def attach_and_detach(_number: int) -> None:
            attach = {"disk": "disk-00000-9", "instance_name": "web00000"}
            job(luxi, OP_ID="OP_DISK_ATTACH", **attach)
            job(luxi, OP_ID="OP_DISK_DETACH", disk="disk-00000-9")

        def add(number: int) -> None:
            disks = [{"size": 4, "dev_type": "sharedfile"}] * 2
            what: dict[str, Any] = {
                "instance_name": f"new{number:05}",
                "pnode": "node2",
            }
            # Its instances are on record only: no machine has the memory.
            what["ignore_capacity"] = True
            job(luxi, OP_ID="OP_INSTANCE_CREATE", disks=disks, **what)

        def listed(_number: int) -> None:
            _command(environ, "gnt-instance", "list")

        def listed_one(_number: int) -> None:
            _command(environ, "gnt-instance", "list", "web00007")

        def pools(_number: int) -> None:
            _command(environ, "gnt-storage", "pool", "list")

        return {
            "attach + detach": measured(found, runs, attach_and_detach),
            "instance add": measured(found, max(3, runs // 4), add),
            "list, one": _with_children(found, max(3, runs // 4), listed_one),
            "list, all": _with_children(found, 3, listed),
            "list, pools": _with_children(found, max(3, runs // 4), pools),
        }


def _command(environ: dict[str, str], *argv: str) -> None:
    subprocess.run(argv, env=environ, stdout=subprocess.DEVNULL, check=True)


def _with_children(
    found: Scratch, runs: int, work: Callable[[int], None]
) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, cpu = measured(found, runs, work)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu + own / (runs + 1)


def main() -> int:
    """Measure, print a table, and say whether the bar holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    found: dict[int, dict[str, tuple[float, float]]] = {}
    for size in asked.sizes:
        with cluster(size) as one:
            found[size] = figures(one, asked.runs)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; wall / CPU in ms")
    first, last = asked.sizes[0], asked.sizes[-1]
    heads = "".join(f"{size:>18,}" for size in asked.sizes)
    print(f"{'instances':18}{heads}   {last:,} : {first:,}")
    for name in found[first]:
        cells = "".join(
            f"{wall * 1e3:>10.1f} / {cpu * 1e3:5.1f}"
            for wall, cpu in (found[size][name] for size in asked.sizes)
        )
        ratio = found[last][name][0] / found[first][name][0]
        print(f"{name:18}{cells}   {ratio:.2f}")
    ratio = found[last]["attach + detach"][0] / found[first]["attach + detach"][0]
    verdict = "holds" if ratio <= BAR else "is missed"
    print(f"the bar of {BAR} for attach + detach {verdict}: {ratio:.2f}")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
