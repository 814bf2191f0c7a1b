# SPDX-License-Identifier: BSD-2-Clause
"""Histories of clients, while the lead moves: see ``tests/histories/checker.py``."""

import io
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from support.etcd_members import Members, members
from support.masters import on, places
from support.sampling import SEED

HISTORIES = Path(__file__).parent.parent / "histories"
sys.path.append(str(HISTORIES))

from askers import COUNTER, ENDED, REGISTER, SET, Asker, History  # noqa: E402
from checker import (  # noqa: E402
    Obeyed,
    Step,
    grown,
    linearizable,
    miscounted,
    register,
    two_masters,
)
from etcd_ways import Way  # noqa: E402

pytestmark = pytest.mark.real
CHANGES = int(os.environ.get("MOORAGE_CHANGES", "3"))
KEPT = os.environ.get("MOORAGE_KEPT", "")
"""The file that a run adds its line to; empty for none."""
NAMES = ("node1", "node2", "node3")
LEASE = 2
LONG = 60.0
OBJECTS, CLIENTS = ("i0", "i1", "i2"), 5
FIRST = 128
"""Memory of the instances at first, in MiB."""
MODELS: dict[str, tuple[Any, Step]] = {
    REGISTER: (FIRST, register),
    SET: (frozenset(), grown),
}
MEMBER = {"kill both": signal.SIGKILL, "kill, stop member": signal.SIGSTOP}
"""What etcd's leader gets, when the master that leads is killed."""
EVENTS = ("stop", "cut", "kill", *MEMBER)


class Town:
    """Three masters over three members of etcd, each with ways of its own there."""

    def __init__(self, path: Path, etcd: Members, patch: pytest.MonkeyPatch) -> None:
        self.etcd = etcd
        ports = [urlsplit(url).port or 0 for url in etcd.clients]
        self.ways = {name: [Way(port) for port in ports] for name in NAMES}
        words = [sys.executable, str(HISTORIES / "eye.py"), process.WORD]
        with patch.context() as patched:
            patched.setattr(process, "command", lambda *more: [*words, *more])
            self.scratch = devcluster.up(path, nodes=3, hypervisor="sim", bare=True)
        self.hands = Typist(self.scratch.environment(), io.StringIO())

    def found(self) -> None:
        """Make the cluster, its masters, and what clients change."""
        file = self._settings("node1", {"prefix": "/demo", "lease": LEASE})
        shared = "--shared-file-storage-dir=/shared"
        self.hands.type(
            f"gnt-cluster init --store {file} {shared} --node-name node1 demo"
        )
        for one in OBJECTS:
            words = "-t diskless --no-nics --no-start --no-install -n node1"
            self.hands.type(f"gnt-instance add {words} -B memory={FIRST}M {one}")
            self.hands.type(f"gnt-disk add -t sharedfile -s 1M {one}d")
        for name in NAMES[1:]:
            self.hands.type(f"gnt-node add {name}")
            key = self.scratch.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, LONG)
        given = json.loads(self.scratch.master.etcd.read_text())
        for name in NAMES[1:]:
            file = self._settings(name, given)
            on(self.scratch, name).type(f"moorage master wait --store {file}")

    def _settings(self, name: str, given: dict[str, object]) -> Path:
        ends = [f"http://127.0.0.1:{way.port}" for way in self.ways[name]]
        file = self.scratch.path / f"etcd-{name}.json"
        file.write_text(json.dumps(given | {"endpoints": ends}))
        return file

    @property
    def sockets(self) -> list[str]:
        return [str(places(self.scratch, name).socket) for name in NAMES]

    def leader(self) -> str:
        """Return which master leads, as soon as one does."""
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            for name in NAMES:
                if self._leads(name):
                    return name
            time.sleep(0.05)
        raise AssertionError("nobody leads")

    def _leads(self, name: str) -> bool:
        with LuxiClient(str(places(self.scratch, name).socket), 1.0) as luxi:
            try:
                luxi.query("node", ["name"])
            except Exception:  # noqa: BLE001 - whatever keeps it from an answer
                return False
        return True

    def obeyed(self) -> list[Obeyed]:
        """Return what the agents wrote down."""
        found = []
        for name in NAMES:
            text = (self.scratch.node(name).root / "obeyed").read_text()
            for line in text.splitlines():
                at, term = line.split()
                found.append(Obeyed(float(at), int(term), name))
        return found

    def term(self) -> int:
        """Return the newest term that a node has obeyed."""
        ends = []
        for name in NAMES:
            with (self.scratch.node(name).root / "obeyed").open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - 200, 0))
                ends.append(int(file.read().split()[-1]))
        return max(ends)

    def close(self) -> None:
        for name in NAMES:
            on(self.scratch, name)._run("moorage master stop", shown=False)
        devcluster.down(self.scratch.path)
        for way in (way for ways in self.ways.values() for way in ways):
            way.close()

    def strike(self, event: str, dice: Random) -> None:
        """Let something happen to who leads, until another lead is obeyed; mend it."""
        before, name = self.term(), self.leader()
        member = self.etcd.leader() if event in MEMBER else None
        pid = process.holder(places(self.scratch, name).lock)
        assert pid
        if event == "cut":
            for way in self.ways[name]:
                way.cut()
        else:
            os.kill(pid, signal.SIGSTOP if event == "stop" else signal.SIGKILL)
        if member is not None:
            self.etcd.signal(member, MEMBER[event])
        assert process.wait_until(lambda: self.term() > before, LONG), event
        time.sleep(dice.uniform(0, LEASE))
        for way in self.ways[name]:
            way.mend()
        if event == "stop":
            os.kill(pid, signal.SIGCONT)
        if member is not None:
            self._again(member, MEMBER[event])

    def _again(self, member: int, what: signal.Signals) -> None:
        if what == signal.SIGKILL:
            self.etcd.start(member)
        else:
            self.etcd.signal(member, signal.SIGCONT)
        self.etcd.wait()


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with members() as etcd, pytest.MonkeyPatch.context() as patch:
        made = Town(tmp_path_factory.mktemp("town") / "c", etcd, patch)
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
    """Yield each job that is not stored as it was told, and each that stays."""
    rows = on(town.scratch, town.leader()).ask("gnt-job list -o id,status")
    stored = {one["id"]: one["status"] for one in rows}
    for job, status in history.told.items():
        if stored[job] != status:
            yield f"job {job} was told as {status}, and is {stored[job]}"
    for job, status in stored.items():
        if status not in ENDED:
            yield f"job {job} stays {status}"


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
    events: Counter[str] = Counter()
    while events.total() < CHANGES:
        time.sleep(dice.uniform(0, LEASE))
        event = EVENTS[events.total()] if events.total() < len(EVENTS) else ""
        events[event := event or dice.choice(EVENTS)] += 1
        town.strike(event, dice)
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
