# SPDX-License-Identifier: BSD-2-Clause
"""What a damaged store costs: seconds until a master that is started says so.

A store of instances with three disks each, in which one thing is wrong: an instance
has a disk that is not there, the nodes' group is not there, or a job cannot be read.
Told is the wall time of `moorage master start`, which refuses it, and of `moorage
master check`, which tells all that is wrong; a store in which nothing is wrong is
checked beside them.

The bar: two seconds a thousand objects, of which starting Python is a part.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ganetis_file import DISKS, configuration
from msgspec import json
from msgspec.structs import replace

from moorage.daemons import process
from moorage.daemons.paths import MasterPlaces
from moorage.model import Change, Config, NodeGroup
from moorage.model.change import encode
from moorage.node.certificates.authority import Authority
from moorage.store import SqliteStore, Write, create

SIZES = (1_000, 10_000)
SECONDS = 2.0
"""For each thousand objects."""
SOUND = "nothing"


def defects(config: Config) -> Mapping[str, Sequence[Write]]:
    """Return the records that make each defect."""
    instance = config.instance("web0")
    dangling = replace(instance, disks=(*instance.disks, "gone"))
    (group,) = config.all(NodeGroup)
    return {
        SOUND: [],
        "a dangling disk": [
            (("instance", instance.uuid), json.encode(encode(dangling)))
        ],
        "a group that is gone": [(("nodegroup", group.uuid), None)],
        "an unreadable job": [(("job", "1"), b"{")],
    }


async def made(places: MasterPlaces, config: Config) -> None:
    """Write the store of a sound cluster."""
    store = SqliteStore(places.store)
    await create(store, Change(tuple(config.objects.values())))
    await store.close()


async def written(places: MasterPlaces, writes: Sequence[Write]) -> None:
    """Write records behind the master's back."""
    store = SqliteStore(places.store)
    await store.lead()
    await store.commit(writes, expected=(await store.load()).version)
    await store.close()


def took(places: MasterPlaces, verb: str, status: int) -> float:
    """Return the seconds of a command of the master's; end if it ends otherwise."""
    began = time.monotonic()
    command = process.command("master", verb, "--dir", str(places.root))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != status:
        sys.exit(f"master {verb} ended with {done.returncode}: {done.stderr}")
    return time.monotonic() - began


def measured(instances: int, root: Path) -> bool:
    """Print a line for each defect of one size; say whether they are below the bar."""
    config = configuration(instances)
    sound, holds = MasterPlaces(root / "sound"), True
    sound.keys.mkdir(parents=True)
    Authority.make(sound.keys, "harbour")
    asyncio.run(made(sound, config))
    bar = SECONDS * len(config.objects) / 1000
    for number, (what, writes) in enumerate(defects(config).items()):
        places = MasterPlaces(root / str(number))
        shutil.copytree(sound.root, places.root)
        asyncio.run(written(places, writes))
        check = took(places, "check", int(bool(writes)))
        start = took(places, "start", 1) if writes else 0.0
        missed = max(check, start) > bar
        holds &= not missed
        size = f"{instances:9} {instances * DISKS:7}"
        told = f"{start:7.2f}" if writes else " " * 7
        verdict = "   missed" if missed else ""
        print(f"{size}  {what:21}{told}{check:7.2f}{bar:7.1f}{verdict}")
    return holds


def main() -> int:
    """Print a table, and say whether the bars hold."""
    print("instances   disks  what is wrong          start  check    bar  (seconds)")
    holds = True
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory:
            holds &= measured(size, Path(directory))
    print(f"the bars {'hold' if holds else 'are missed'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
