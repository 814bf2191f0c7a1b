# SPDX-License-Identifier: BSD-2-Clause
"""What a configuration of Ganeti's costs to read, check, take in and write again.

A cluster of 100 nodes whose instances have three logical volumes each goes out as a
``config.data`` for 3.1, and that file comes into a cluster that was just made. CPU of
one process, in seconds; one change is the commit of a disk's new tag, after the import,
in milliseconds: the median of many.

The bar: one change costs at 10,000 instances at most 1.5 times what it costs at 100,
and a check says within two seconds a thousand objects what is wrong.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeVar

from msgspec import json
from msgspec.structs import replace

from moorage.config_data import NEWEST, Address, exported, read, upgrade
from moorage.config_data.importing import Imported, expected, imported
from moorage.config_data.importing_plan import findings
from moorage.config_data.verify import complaints
from moorage.consistency import complaints_of_objects
from moorage.model import Change, Cluster, Config, Disk, successor
from moorage.model.apply import assembled
from moorage.store import ConfigStore, SqliteStore
from moorage.testing.cluster import ClusterBuilder

SIZES = (100, 1_000, 10_000)
NODES, DISKS, CHANGES = 100, 3, 200
BAR, SECONDS = 1.5, 2.0
ADDRESS = Address("198.51.100.9", "eth0", 24)
_T = TypeVar("_T")


def configuration(instances: int) -> Config:
    """Return a cluster with that many instances, which are down."""
    builder = ClusterBuilder(NODES)
    for number in range(instances):
        node = f"node{number % NODES + 1}"
        names = [f"d{number}-{slot}" for slot in range(DISKS)]
        for name in names:
            volume = ("xenvg", f"{name}.disk")
            fields = {"params": {}, "nodes": (node,), "logical_id": volume}
            builder.disk(name, "plain", **fields)
        more = {"admin_state": "down", "disks": tuple(names)}
        builder.instance(f"web{number}", node=node, **more)
    (cluster,) = (one for one in builder.objects.values() if isinstance(one, Cluster))
    cards = {"nicparams": {"default": {"link": "br0"}}}
    linked = replace(cluster, enabled_disk_templates=("plain",), **cards)
    others = [one for one in builder.objects.values() if one is not cluster]
    return assembled([linked, *others])[0]


def spent(what: Callable[[], _T]) -> tuple[float, _T]:
    """Return the CPU that something took, and what it returned."""
    began = time.process_time()
    found = what()
    return time.process_time() - began, found


async def changed(made: Imported, here: Config, directory: Path) -> tuple[float, float]:
    """Return what the import's commit took, and one change after it."""
    path = directory / "state.sqlite"
    store, _ = await ConfigStore.open(SqliteStore(path))
    await store.commit(Change(tuple(here.objects.values())))
    began = time.process_time()
    await store.commit(made.change(store.config))
    whole = time.process_time() - began
    disk, times = next(store.config.all(Disk)), list[float]()
    for number in range(CHANGES):
        began = time.process_time()
        disk = successor(disk, float(number), tags=(f"t{number}",))
        await store.commit(Change((disk,)))
        times.append(time.process_time() - began)
    await store.close()
    return whole, statistics.median(times) * 1000


def measured(instances: int) -> tuple[float, ...]:
    """Return export, read, check, plan, commit and one change, of one size."""
    config, numbers = configuration(instances), count()
    export, out = spent(lambda: json.encode(exported(config, NEWEST, ADDRESS).document))
    reading, (document, _) = spent(lambda: upgrade(read(out), NEWEST, lambda: "new"))
    check, wrong = spent(lambda: list(complaints(document)))
    faults = list(wrong)
    verify, wrong = spent(lambda: list(complaints_of_objects(config.objects.values())))
    if faults := [*faults, *wrong]:
        raise SystemExit(f"the configuration has faults: {faults[:3]}")
    here = expected(document)
    plan, made = spent(lambda: imported(document, here, lambda: f"{next(numbers)}", {}))
    looks, _ = spent(lambda: list(findings(made, here, down=False)))
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory:
        whole, one = asyncio.run(changed(made, here, Path(directory)))
    return export, reading, check, verify, plan + looks, whole, one


def main() -> int:
    """Print a line for each size; fail if a bar is missed."""
    print("instances   export  read  check  verify   plan  commit  one change (ms)")
    ones, failed = dict[int, float](), False
    for size in SIZES:
        *costs, one = measured(size)
        ones[size] = one
        failed |= max(costs[2], costs[3]) > SECONDS * size * (DISKS + 1) / 1000
        print(
            f"{size:9}  " + "".join(f"{cost:7.2f}" for cost in costs) + f"{one:10.2f}"
        )
    ratio = ones[SIZES[-1]] / ones[SIZES[0]]
    print(f"one change: {ratio:.2f} times (bar {BAR})")
    return int(failed or ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
