# SPDX-License-Identifier: BSD-2-Clause
"""Histories of clients, while the lead moves: see ``tests/histories/checker.py``."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.etcd_members import members
from support.masters import on
from support.sampling import SEED

HISTORIES = Path(__file__).parent.parent / "histories"
sys.path.append(str(HISTORIES))

from askers import COUNTER, ENDED, REGISTER, SET, Asker, History  # noqa: E402
from checker import (  # noqa: E402
    Step,
    grown,
    linearizable,
    miscounted,
    register,
    two_masters,
)
from town import BLOWS, FIRST, LEASE, LONG, OBJECTS, Town  # noqa: E402

pytestmark = pytest.mark.real
CHANGES = int(os.environ.get("MOORAGE_CHANGES", "3"))
CALM = float(os.environ.get("MOORAGE_CALM", LEASE))
"""Seconds between two changes at most."""
KEPT = os.environ.get("MOORAGE_KEPT", "")
"""The file that a run adds its line to; empty for none."""
CLIENTS = int(os.environ.get("MOORAGE_CLIENTS", "6"))
MODELS: dict[str, tuple[Any, Step]] = {
    REGISTER: (FIRST, register),
    SET: (frozenset(), grown),
}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with members() as etcd:
        dice = Random(SEED)  # noqa: S311 - it is to be drawn again
        made = Town(tmp_path_factory.mktemp("town") / "c", etcd, dice)
        try:
            made.found()
            yield made
        finally:
            made.close()


def _unlike_one(history: History, sizes: dict[str, int]) -> Iterator[str]:
    """Yield objects that are not as one master makes them; `sizes`: disks', before."""
    for what, ops in sorted(history.ops.items()):
        kind, _, name = what.rpartition(" ")
        if kind == COUNTER:
            yield from (f"{what}: {one}" for one in miscounted(ops, sizes[name]))
        elif not linearizable(ops, *MODELS[kind]):
            yield f"{what}: not linearizable"


def _jobs(history: History, town: Town) -> Iterator[str]:
    """Yield each job that is not stored as it was told, and each that stays.

    A master whose clock is ahead puts jobs away that are six hours old by that.
    """
    rows = on(town.scratch, town.leader()).ask("gnt-job list --archived -o id,status")
    stored = {one["id"]: one["status"] for one in rows}
    for job, status in history.told.items():
        if stored.get(job) != status:
            yield f"job {job} was told as {status}, and is {stored.get(job)}"
    for job, status in stored.items():
        if status not in ENDED:
            yield f"job {job} stays {status}"


def _struck(town: Town, dice: Random) -> Counter[str]:
    """Let the lead move, each time in another way; return how often in which."""
    events: Counter[str] = Counter()
    while events.total() < CHANGES:
        time.sleep(dice.uniform(0, CALM))
        names = [*BLOWS]
        event = (names[events.total() :] or [dice.choice(names)])[0]
        events[event] += 1
        before = town.term()
        mend = town.strike(BLOWS[event])
        if not town.moved(before):
            town.faults.append(f"{event}: nobody leads after {LONG:g} s")
            return events
        time.sleep(dice.uniform(0, LEASE))
        mend()
    return events


def test_whoever_leads_the_history_is_that_of_one_master(town: Town) -> None:
    """Clients change and read instances and disks, and the lead moves all the while.

    ``MOORAGE_CHANGES`` makes it longer, ``MOORAGE_SEED`` another one.
    """
    began, first = time.monotonic(), town.term()
    dice, history = Random(SEED), History()  # noqa: S311 - it is to be drawn again
    sizes = {
        row["name"]: row["size"] for row in town.hands.ask("gnt-disk list -o name,size")
    }
    last, *clients = [
        Asker(history, town.sockets, OBJECTS, f"{SEED}/{number}")
        for number in range(CLIENTS + 1)
    ]
    for client in clients:
        client.start()
    events = _struck(town, dice)
    for client in clients:
        client.over.set()
    for client in clients:
        client.join(2 * LONG)
        assert not client.is_alive()
    town.leader()
    for name in OBJECTS * 10:
        last.read(name)
        last.look(name)
    last.away()
    orders = town.obeyed()
    faults = [
        *town.faults,
        *history.faults,
        *_unlike_one(history, sizes),
        *_jobs(history, town),
        *two_masters(orders),
    ]
    terms = {one.term for one in orders}
    told = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seed": SEED,
        "seconds": round(time.monotonic() - began),
        "changes": len([term for term in terms if term > first]),
        "events": dict(events),
        "acknowledged": history.count(known=True),
        "doubted": history.count(known=False),
        "orders": len(orders),
        "faults": faults[:20],
    }
    sys.stdout.write(f"{json.dumps(told)}\n")
    if KEPT:
        with Path(KEPT).open("a") as file:
            file.write(f"{json.dumps(told)}\n")
    assert not faults
    assert told["changes"] >= CHANGES
    assert all(history.ops[f"{REGISTER} {one}"] for one in OBJECTS)
