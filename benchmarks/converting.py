# SPDX-License-Identifier: BSD-2-Clause
"""How fast a running guest's disk gets other storage, beside ``qemu-img convert``.

A guest without a system has a disk of random data in an image file; QEMU mirrors it to
another file, and changes over. Then qemu-img copies the same data at rest. Each figure
is the median of its runs, in MiB/s; a standstill is in ms, without the commit.

It needs QEMU, and the tiny guest that ``make guest`` builds.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from moorage.node.hypervisors.base import Drive
from moorage.node.verbs.copying import copying
from moorage.testing.guest_image import build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.qemu_pair import Lab

SIZES = (256, 1024)
"""MiB."""
RUNS = 3
_GUEST = Path(__file__).resolve().parents[1] / ".build" / "guest"
_CHUNK = 16


def silent(_done: int, _total: int, _unit: str, _note: str) -> None:
    """Drop the progress."""


def filled(lab: Lab, mib: int) -> Drive:
    """Return a drive of random data."""
    drive = lab.grow(lab.drive("file"), mib)
    with Path(str(drive.where.path)).open("r+b") as file:
        file.writelines(os.urandom(_CHUNK << 20) for _ in range(0, mib, _CHUNK))
        os.fsync(file.fileno())
    return drive


async def live(lab: Lab, guest: str, old: Drive, new: Drive) -> tuple[float, float]:
    """Return the seconds of a conversion while a guest runs, and its standstill."""
    await lab.one.plug(guest, old)
    begin = time.monotonic()
    await lab.one.mirror(guest, old.disk, new, 0)
    await lab.one.follow_mirror(guest, old.disk, silent)
    equal = time.monotonic()
    await lab.one.switch(guest, old.disk)
    await lab.one.settle(guest, old.disk, silent)
    end = time.monotonic()
    return end - begin, (end - equal) * 1000


def at_rest(old: Drive, new: Drive) -> float:
    """Return the seconds of a copy by qemu-img."""
    begin = time.monotonic()
    argv = copying(old, new, 0).argv
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def measured(lab: Lab, mib: int, runs: int) -> str:
    """Return a row of the table."""
    speeds: list[tuple[float, float, float]] = []
    for _ in range(runs):
        spec = lab.spec()
        old = filled(lab, mib)
        asyncio.run(lab.one.start(replace(spec, drives=())))
        to = [lab.grow(lab.drive("file"), mib) for _ in range(2)]
        rest = at_rest(old, to[0])
        running, still = asyncio.run(live(lab, spec.uuid, old, to[1]))
        asyncio.run(lab.one.stop(spec.uuid, 0))
        speeds.append((mib / running, mib / rest, still))
        for drive in (old, *to):
            Path(str(drive.where.path)).unlink()
    running, rest, still = map(statistics.median, zip(*speeds, strict=True))
    return f"{mib:9} {running:13.0f} {rest:17.0f} {still:14.0f}"


def main() -> int:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    build(_GUEST)
    lab = Lab(_GUEST)
    print(f"{'disk, MiB':>9} {'live, MiB/s':>13} {'qemu-img, MiB/s':>17} ", end="")
    print(f"{'standstill, ms':>14}")
    try:
        for mib in given.sizes:
            print(measured(lab, mib, given.runs), flush=True)
    finally:
        lab.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
