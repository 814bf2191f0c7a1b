# SPDX-License-Identifier: BSD-2-Clause
"""Masters on three candidates, with one state in a real etcd: who waits takes over."""

import io
import os
import signal
import time
from collections.abc import Iterator

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.store import inspect
from support.etcd_members import Members, members
from support.masters import Account, kill, on, places

pytestmark = pytest.mark.real
LONG = 120.0
NAMES = ("node1", "node2", "node3")


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, etcd: Members) -> Iterator[Scratch]:
    """Return a cluster with a master that leads, and two that wait."""
    at = tmp_path_factory.mktemp("town") / "c"
    made = devcluster.up(at, nodes=3, hypervisor="sim", bare=True)
    hosts = ",".join(url.removeprefix("http://") for url in etcd.clients)
    try:
        hands = Typist(made.environment(), io.StringIO())
        where = f"--store etcd://{hosts}/demo --shared-file-storage-dir=/shared"
        hands.type(f"gnt-cluster init {where} --node-name node1 demo")
        for name in NAMES[1:]:
            hands.type(f"gnt-node add {name}")
            key = made.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, LONG)
        for name in NAMES[1:]:
            said = on(made, name).type(
                f"moorage master wait --store {made.master.etcd}"
            )
            assert f"A master on {name} waits for the lead" in said
        yield made
    finally:
        for name in NAMES:
            on(made, name)._run("moorage master stop", shown=False)
        devcluster.down(at)


def leads(town: Scratch, name: str) -> bool:
    done = on(town, name)._run("gnt-cluster info", shown=False)
    return done.returncode == 0


def leader(town: Scratch, *among: str) -> str:
    """Return which master leads, as soon as one does."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        for name in among:
            if leads(town, name):
                return name
    raise AssertionError("nobody leads")


def test_who_waits_says_where_the_master_is(town: Scratch) -> None:
    said = on(town, "node2").refused("gnt-node list")
    assert "this master waits for the lead: another master leads on etcd://" in said
    said = on(town, "node2").refused(f"moorage master wait --store {town.master.etcd}")
    assert "there is a master here already" in said


def test_a_master_that_is_killed_is_followed(town: Scratch) -> None:
    """Twice, and back to the first: what was told as done is there."""
    before: Account | None = None
    now = "node1"
    for _ in range(3):
        account = before = Account(places(town, now), before)
        much = len(account.acknowledged) + 5
        assert process.wait_until(
            lambda a=account, m=much: len(a.acknowledged) > m, LONG
        )
        kill(places(town, now))
        account.ended()
        others = [one for one in NAMES if one != now]
        heir = leader(town, *others)
        hands = on(town, heir)
        disks = {one["name"] for one in hands.ask("gnt-disk list -o name")}
        assert disks >= set(account.acknowledged)
        assert hands.type("gnt-cluster getmaster") == f"{heir}\n"
        assert "ERROR" not in hands.type("gnt-cluster verify")
        on(town, now).type("moorage master start")  # it waits from now on
        assert not leads(town, now)
        now = heir
    statuses = {one["status"] for one in hands.ask("gnt-job list -o status")}
    assert statuses <= {"success", "error"}


def test_a_master_that_stood_still_is_refused(town: Scratch) -> None:
    old = leader(town, *NAMES)
    pid = process.holder(places(town, old).lock)
    assert pid
    term = inspect(places(town, old).store, live=True).term
    os.kill(pid, signal.SIGSTOP)
    heir = leader(town, *(one for one in NAMES if one != old))
    on(town, heir).type("gnt-disk add -t sharedfile -s 1M since")
    os.kill(pid, signal.SIGCONT)
    assert process.wait_until(lambda: not process.alive(pid), LONG)
    found = inspect(places(town, heir).store, live=True)
    assert found.faults == []
    assert found.term == term + 1
    assert leads(town, heir)


def test_the_lead_is_handed_over_in_peace(town: Scratch) -> None:
    old = leader(town, *NAMES)
    on(town, old).type("moorage master stop")
    heir = leader(town, *(one for one in NAMES if one != old))
    on(town, heir).type("gnt-disk add -t sharedfile -s 1M peace")
    on(town, old).type("moorage master start")
    assert not leads(town, old)
