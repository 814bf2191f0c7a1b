# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of malformed frames neither end nor fatten the master or the door.

The seed is the minute's unless MOORAGE_SEED names it; MOORAGE_FRAMES says how many are
sent, and ``make frames`` sends ten thousand. What is measured is what the second half
adds: caches are full, and libraries loaded, after the first.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from support.malformed import KINDS, Target, attack
from support.rapi_process import RapiProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning"),
]
SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
FRAMES = int(os.environ.get("MOORAGE_FRAMES") or 300)
_QUIET = 50
"""Looks in a row at which no connection is closed any more."""
TIDIED = 65
"""Seconds after which both processes have given back what they needed once."""
MEMORY = 24
"""MiB that a process may take more: allocators keep some of what they gave out."""


class Weighed:
    """A process, and what it holds."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self._at = Path(f"/proc/{pid}")

    @property
    def descriptors(self) -> int:
        return len(list((self._at / "fd").iterdir()))

    @property
    def memory(self) -> int:
        """MiB that are resident."""
        lines = (self._at / "status").read_text().splitlines()
        (found,) = (one for one in lines if one.startswith("VmRSS"))
        return int(found.split()[1]) >> 10


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 2 --hypervisor sim")


@pytest.fixture
def door(town: Scratch) -> Iterator[RapiProcess]:
    limits = "failures = 1000000\nunder_way = 200\n"
    found = RapiProcess(town.path / "rapi", town.master.door, limits)
    yield found
    found.kill()


def test_malformed_frames_end_nothing_and_stay_nowhere(
    town: Scratch, door: RapiProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = Random(SEED)  # noqa: S311
    master = process.holder(town.master.lock)
    assert master
    weighed = [Weighed("master", master), Weighed("door", door.pid)]
    target = Target((town.master.socket, town.master.door), door.port)
    sent: Counter[str] = Counter()

    def send(number: int) -> dict[str, tuple[int, int]]:
        for _ in range(number):
            sent[attack(dice, target)] += 1
        target.leave()
        if FRAMES >= 1000:
            time.sleep(TIDIED)
        assert door.get("/version") == 2, door.log()
        with LuxiClient(str(town.master.socket)) as luxi:
            assert luxi.call("QueryTags", "cluster", "") == []
        return {one.name: at_rest(one) for one in weighed}

    before = send(FRAMES // 2)
    after = send(FRAMES - FRAMES // 2)
    with capsys.disabled():
        sys.stdout.write(f"\nseed {SEED}: {FRAMES} frames; {before}, then {after}\n")
    assert process.holder(town.master.lock) == master
    assert door.alive
    _, broke, told = door.log().partition("Traceback")
    assert not broke, told[:4000]
    for name, (descriptors, memory) in after.items():
        assert descriptors <= before[name][0] + 5, (name, before, after)
        assert memory <= before[name][1] + MEMORY, (name, before, after)
    if 50 * len(KINDS) < FRAMES:
        assert len(sent) == len(KINDS)


def at_rest(one: Weighed) -> tuple[int, int]:
    """Return descriptors and memory, as soon as the last connections are closed."""
    seen: list[int] = []

    def quiet() -> bool:
        seen.append(one.descriptors)
        return len(seen) > _QUIET and len(set(seen[-_QUIET:])) == 1

    process.wait_until(quiet, 30)
    return seen[-1], one.memory
