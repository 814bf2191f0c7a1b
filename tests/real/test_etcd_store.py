# SPDX-License-Identifier: BSD-2-Clause
"""A cluster whose state is in a real etcd of three members; its nodes are simulated."""

import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.client import Client, Socket
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.store import inspect
from support.etcd_members import Members, members
from support.masters import Account

pytestmark = pytest.mark.real
LONG = 60.0


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """Return agents that wait to be let in."""
    at = tmp_path_factory.mktemp("town") / "c"
    made = devcluster.up(at, nodes=2, hypervisor="sim", bare=True)
    yield made
    devcluster.down(at)


@pytest.fixture(scope="module")
def hands(bare: Scratch) -> Typist:
    return Typist(bare.environment(), io.StringIO())


def word(etcd: Members, prefix: str = "demo") -> str:
    hosts = ",".join(url.removeprefix("http://") for url in etcd.clients)
    return f"etcd://{hosts}/{prefix}"


@pytest.fixture(scope="module")
def town(bare: Scratch, hands: Typist, etcd: Members) -> Scratch:
    options = "-B memory=160M,vcpus=1 --shared-file-storage-dir=/shared"
    hands.type(f"gnt-cluster init --store {word(etcd)} {options} demo")
    hands.type("gnt-node add node2")
    return bare


def refused(hands: Typist, line: str) -> str:
    said = hands.refused(line)
    assert "Traceback" not in said
    return said


SLIPS = {
    "etcd://10.0.0.1:2379/x": "the state would go to 10.0.0.1 in clear",
    "nowhere.json": "is no etcd://HOST:PORT,…/PREFIX and no file of settings",
}


def test_a_slip_leaves_nothing_behind(bare: Scratch, hands: Typist) -> None:
    for slip, sentence in SLIPS.items():
        said = refused(hands, f"gnt-cluster init --store {slip} demo")
        assert sentence in said, slip
    away = "etcd://127.0.0.1:1/x"
    done = hands._run(f"gnt-cluster init --store {away} demo", shown=False)
    assert done.returncode == 1
    assert f"{away} gives no answer" in done.stderr
    assert not bare.master.root.exists()


def test_a_cluster_lives_in_etcd(town: Scratch, hands: Typist) -> None:
    assert not town.master.store.exists()
    assert town.master.etcd.stat().st_mode & 0o077 == 0
    hands.type("gnt-instance add -t sharedfile -s 32M --no-install web1")
    hands.type("moorage master stop")
    hands.type("moorage master start")
    (row,) = hands.ask("gnt-instance list -o name,status")
    assert row["name"] == "web1"
    assert "ERROR" not in hands.type("gnt-cluster verify")
    assert "No problem" in hands.type("moorage master check")
    with Client(Socket(str(town.master.socket))) as client:
        told = client.store()
    assert told["engine"] == "etcd"
    assert [one["up"] for one in told["members"]] == [True] * 3
    assert all(0 < one["size"] < one["quota"] for one in told["members"])
    said = refused(hands, "gnt-cluster init other")
    assert "there is a cluster in" in said


def test_what_is_refused_stops_no_master(town: Scratch, hands: Typist) -> None:
    """Who stops gives the lead away."""
    pid = process.holder(town.master.lock)
    assert pid
    said = refused(hands, "gnt-cluster destroy --yes-do-it")
    assert "other node" in said or "instance" in said
    assert process.holder(town.master.lock) == pid
    said = refused(hands, "gnt-cluster master-failover --yes-do-it")
    assert "the master is on this node already" in said
    assert process.holder(town.master.lock) == pid


def test_a_backup_is_taken_from_etcd(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    hands.type(f"moorage backup {tmp_path / 'b.tar'}")
    hands.enter(f"cd {tmp_path} && tar xf b.tar")
    found = inspect(tmp_path / "state.sqlite", live=False)
    assert found.faults == []
    there = inspect(town.master.store, live=True)
    assert dict(found.records).keys() == dict(there.records).keys()


def test_a_master_that_is_killed_comes_back(town: Scratch, hands: Typist) -> None:
    """What it had told as done is there; its successor waits for its lease to end."""
    account = Account(town.master)
    assert process.wait_until(lambda: len(account.acknowledged) > 5, LONG)
    pid = process.holder(town.master.lock)
    assert pid
    os.kill(pid, signal.SIGKILL)
    account.ended()
    assert process.wait_until(lambda: serves(hands), LONG)
    disks = {one["name"] for one in hands.ask("gnt-disk list -o name")}
    assert disks >= set(account.acknowledged)
    assert "ERROR" not in hands.type("gnt-cluster verify")


def serves(hands: Typist) -> bool:
    return hands._run("gnt-cluster getmaster", shown=False).returncode == 0


def test_a_master_that_stood_still_ends(town: Scratch, hands: Typist) -> None:
    """It is stopped for longer than its lease: nothing that it does then counts."""
    pid = process.holder(town.master.lock)
    assert pid
    seconds = json.loads(town.master.etcd.read_bytes())["lease"]
    os.kill(pid, signal.SIGSTOP)
    process.wait_until(lambda: False, seconds + 1.0)
    os.kill(pid, signal.SIGCONT)
    assert process.wait_until(lambda: not process.alive(pid), LONG)
    assert process.wait_until(lambda: serves(hands), LONG)
    assert "to follow whoever leads" in town.master.log.read_text()


@pytest.mark.usefixtures("town")
def test_members_of_etcd_die(hands: Typist, etcd: Members) -> None:
    for number in range(3):
        etcd.signal(number, signal.SIGKILL)
        hands.type(f"gnt-disk add -t sharedfile -s 1M after{number}")
        etcd.start(number)
        etcd.wait()


@pytest.mark.usefixtures("town")
def test_without_most_members_nothing_is_acknowledged(
    hands: Typist, etcd: Members
) -> None:
    for number in (0, 1):
        etcd.signal(number, signal.SIGKILL)
    try:
        assert process.wait_until(lambda: "gives no answer" in said(hands), LONG)
    finally:
        for number in (0, 1):
            etcd.start(number)
    assert process.wait_until(lambda: serves(hands), LONG)
    hands.type("gnt-disk add -t sharedfile -s 1M since")


def said(hands: Typist) -> str:
    done = hands._run("gnt-cluster info", shown=False)
    return str(done.stderr)


def test_a_destroyed_cluster_leaves_nothing_in_etcd(
    town: Scratch, hands: Typist, etcd: Members
) -> None:
    said = refused(hands, f"gnt-cluster init --store {word(etcd)} demo")
    assert "there is a cluster in" in said
    for one in hands.ask("gnt-instance list -o name"):
        hands.type(f"gnt-instance remove -f {one['name']}")
    for one in hands.ask("gnt-disk list -o name"):
        hands.type(f"gnt-disk remove -f {one['name']}")
    hands.type("gnt-node remove node2")
    hands.type("gnt-cluster destroy --yes-do-it")
    assert not town.master.etcd.exists()
    assert etcd.keys() == []
