# SPDX-License-Identifier: BSD-2-Clause
"""The master's process: started, stopped and killed, and what is there instead of it.

The nodes are simulated, so nothing here needs root or QEMU.
"""

import io
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, master, master_process, process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.master_process import _answers as answers
from moorage.errors import Failed
from moorage.node.records.state_copy import StateCopy
from moorage.store import inspect

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
LONG = 60.0
"""Seconds that anything may last on a busy machine."""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """Return a cluster of two nodes, whose master each test finds running."""
    at = tmp_path_factory.mktemp("town") / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


@pytest.fixture
def hands(town: Scratch) -> Iterator[Typist]:
    typist = Typist(town.environment(), io.StringIO())
    typist.type("moorage master start")
    yield typist
    typist.type("moorage master start")
    assert len(typist.ask("gnt-node list -o name")) == 2


def refused(hands: Typist, line: str) -> str:
    """Type a command that must be refused, in a sentence; return what it says."""
    said = hands.refused(line)
    assert "Traceback" not in said
    assert "unhandled" not in said
    return said


def pid_of(town: Scratch) -> int:
    found = process.holder(town.master.lock)
    assert found
    return found


def test_a_master_that_is_killed_is_started_again(town: Scratch, hands: Typist) -> None:
    for number in (signal.SIGKILL, signal.SIGSEGV):
        before = pid_of(town)
        os.kill(before, number)
        assert process.wait_until(lambda old=before: not process.alive(old), LONG)
        assert process.wait_until(lambda: process.holder(town.master.lock), LONG)
        told = hands.type("moorage master start")
        assert told == f"The master is up, process {pid_of(town)}\n"
        assert pid_of(town) != before
    assert "it starts again in" in town.master.log.read_text()


def test_a_master_that_is_stopped_is_not_started_again(
    town: Scratch, hands: Typist
) -> None:
    assert hands.type("moorage master stop") == "The master is stopped\n"
    assert process.holder(town.master.lock) is None
    assert process.holder(town.master.supervisor) is None
    assert not town.master.pid.exists()
    assert not town.master.socket.exists()
    assert hands.type("moorage master stop") == "No master runs\n"


def test_several_starts_at_once_start_one(town: Scratch, hands: Typist) -> None:
    hands.type("moorage master stop")
    argv = [BIN / "moorage", "master", "start"]
    environ = {**os.environ, **town.environment()}
    starts = [
        subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    told = {start.communicate(timeout=LONG)[0] for start in starts}
    assert told == {f"The master is up, process {pid_of(town)}\n"}
    assert [start.returncode for start in starts] == [0] * 4
    assert int(town.master.pid.read_text()) == pid_of(town)


@pytest.mark.parametrize("left", ["an agent", "nobody", "garbage", "nothing"])
def test_what_the_pid_file_says_is_not_believed(
    town: Scratch, hands: Typist, left: str
) -> None:
    agent = int(town.node("node1").pid.read_text())
    words = {
        "an agent": f"{agent}\n",
        "nobody": "4194303\n",
        "garbage": "x",
        "nothing": "",
    }
    before = pid_of(town)
    town.master.pid.write_text(words[left])
    told = hands.type("moorage master start")
    assert told == f"The master is up, process {before}\n"
    assert hands.ask("gnt-node list -o name")
    hands.type("moorage master stop")
    assert not process.alive(before)
    assert process.alive(agent)


def test_a_start_beside_one_in_the_foreground_leaves_it_alone(
    town: Scratch, hands: Typist
) -> None:
    """As under systemd: nobody supervises it, and it is the master all the same."""
    hands.type("moorage master stop")
    argv = process.command("master", "run", "--dir", str(town.master.root))
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as own:
        try:
            assert process.wait_until(lambda: answers(town.master), LONG)
            told = hands.type("moorage master start")
            assert told == f"The master is up, process {own.pid}\n"
            assert hands.ask("gnt-node list -o name")
            said = refused(hands, "moorage master run")
            assert "a master serves" in said
            assert hands.ask("gnt-node list -o name")
            assert hands.type("moorage master stop") == "The master is stopped\n"
            assert own.wait(LONG) == 0
        finally:
            own.kill()


def test_a_stop_lets_a_job_end(hands: Typist) -> None:
    hands.type("gnt-debug delay --submit 1")
    number = max(job["id"] for job in hands.ask("gnt-job list -o id"))
    hands.type("moorage master stop")
    hands.type("moorage master start")
    hands.type(f"gnt-job wait {number}")
    (job,) = hands.ask(f"gnt-job list -o id,status,summary {number}")
    assert job == {"id": number, "status": "success", "summary": ["TEST_DELAY(1)"]}


def version_of_copy(town: Scratch) -> int:
    """Return how many commits the copy on the other node has; -1 if there is none."""
    path = StateCopy(town.node("node2").run / "state").path
    return inspect(path, live=True).version if path else -1


def test_what_a_job_does_while_the_master_stops_is_copied(
    town: Scratch, hands: Typist
) -> None:
    """It is told as done; a candidate that takes over must know it."""
    assert process.wait_until(lambda: version_of_copy(town) >= 0, LONG)
    hands.type("gnt-debug delay --submit 5")
    hands.type("moorage master stop")
    assert version_of_copy(town) == inspect(town.master.store, live=False).version


BROKEN_COPIES = """
from moorage.cli.moorage import main
from moorage.copies import Replication

appoint, rounds = Replication._appoint, iter(range({rounds}))

def broken(copies):
    if next(rounds, None) is None:
        raise ValueError("a defect")
    appoint(copies)

Replication._appoint = broken
main()
"""


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_master_that_could_copy_no_more_ends(
    town: Scratch, hands: Typist, rounds: int
) -> None:
    """At its start, or later; else what it tells as done would be nowhere else."""
    hands.type("moorage master stop")
    program = BROKEN_COPIES.format(rounds=rounds)
    argv = [sys.executable, "-c", program, "master", "run", "--dir"]
    tag = [BIN / "gnt-node", "add-tags", "node2", "looked-at"]
    environ = {**os.environ, **town.environment()}
    log = town.path / "broken.log"
    with (
        log.open("w") as said,
        subprocess.Popen([*argv, str(town.master.root)], stderr=said) as own,
    ):
        try:
            if rounds:
                assert process.wait_until(lambda: answers(town.master), LONG)
                assert hands.ask("gnt-node list -o name")
                with subprocess.Popen(tag, env=environ) as client:
                    assert own.wait(LONG) == master.BROKEN
                    client.kill()
            assert own.wait(LONG) == master.BROKEN
        finally:
            own.kill()
    assert "ValueError: a defect" in log.read_text()
    assert ("serves at" in log.read_text()) == bool(rounds)


# -- what is there instead of a store -------------------------------------------------


@pytest.fixture
def away(town: Scratch, hands: Typist) -> Iterator[Path]:
    """Take the store away while the master is stopped; it comes back."""
    hands.type("moorage master stop")
    kept = town.master.root.with_name("kept")
    town.master.store.rename(kept)
    yield kept
    kept.rename(town.master.store)


def test_a_store_that_is_away_is_no_reason_for_a_new_cluster(
    town: Scratch, hands: Typist, away: Path
) -> None:
    keys = {path: path.read_bytes() for path in town.master.keys.iterdir()}
    said = refused(hands, "moorage master start")
    assert f"{town.master.store} is not there, but the cluster's keys are" in said
    assert "gnt-cluster init" not in said
    said = refused(hands, "gnt-cluster init --token x again")
    assert "there is a cluster in" in said
    refused(hands, "gnt-cluster destroy --yes-do-it")
    assert {path: path.read_bytes() for path in town.master.keys.iterdir()} == keys
    assert away.exists()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty: mount it, or put a copy in its place"),
        (b"no database, but some words" * 100, "is damaged: file is not a database"),
    ],
)
def test_a_damaged_store_is_said_to_be_so(
    town: Scratch, hands: Typist, away: Path, data: bytes, says: str
) -> None:
    assert away.exists()
    town.master.store.write_bytes(data)
    for line in ("moorage master start", "moorage master run"):
        said = refused(hands, line)
        assert says in said
    refused(hands, "gnt-cluster init --token x again")
    refused(hands, "gnt-cluster destroy --yes-do-it")
    assert town.master.store.read_bytes() == data


def test_a_master_that_waits_for_its_store_is_said_to_run(
    town: Scratch, hands: Typist, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands.type("moorage master stop")
    monkeypatch.setattr(master_process, "_START", 15.0)  # SQLite itself waits for 5
    with closing(sqlite3.connect(town.master.store)) as other:
        other.execute("BEGIN EXCLUSIVE")
        said = "the master runs, process .*, and serves nobody yet: .* database is lock"
        with pytest.raises(Failed, match=said):
            master_process.start(town.master)
    assert process.wait_until(lambda: answers(town.master), LONG)


@pytest.fixture
def keyless(town: Scratch, hands: Typist) -> Iterator[None]:
    """Stop the master, and take the cluster's keys away."""
    hands.type("moorage master stop")
    kept = town.master.root.with_name("kept-keys")
    town.master.keys.rename(kept)
    yield
    kept.rename(town.master.keys)


@pytest.mark.usefixtures("keyless")
def test_keys_that_are_away_are_said_to_be_so(town: Scratch, hands: Typist) -> None:
    with town.master.log.open("a") as log:
        log.write("words of an earlier master\n")
    said = refused(hands, "moorage master start")
    assert f"the cluster's keys in {town.master.keys} cannot be read" in said
    assert "an earlier master" not in said
    refused(hands, "gnt-cluster destroy --yes-do-it")


@pytest.mark.usefixtures("keyless")
def test_a_refusal_is_the_last_that_a_master_says(town: Scratch, hands: Typist) -> None:
    """However many knock meanwhile: who starts it is shown the end of its log."""
    over = Event()

    def knock() -> None:
        while not over.is_set():
            with suppress(OSError), socket.socket(socket.AF_UNIX) as door:
                door.connect(str(town.master.socket))
                door.sendall(b"{")

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(knock)
        try:
            said = [refused(hands, "moorage master run") for _ in range(3)]
        finally:
            over.set()
    assert all("cannot be read" in one and "pending" not in one for one in said)


# -- an interrupted beginning ---------------------------------------------------------


@pytest.mark.parametrize("sign", ["founding", "keys/ca.key", "state.sqlite"])
def test_a_cluster_whose_making_was_interrupted(tmp_path: Path, sign: str) -> None:
    at = tmp_path / "c"
    HANDS.type(f"moorage up {at} --nodes 1 --hypervisor sim --bare")
    try:
        bare = devcluster.read(at)
        hands = Typist(bare.environment(), io.StringIO())
        _interrupted(bare, sign)
        if bare.master.founding.exists():
            for line in ("moorage master start", "gnt-cluster init --token x demo"):
                said = refused(hands, line)
                assert "the making of the cluster" in said
                assert "gnt-cluster destroy --yes-do-it" in said
        else:
            hands.type("moorage master start")
        hands.type("gnt-cluster destroy --yes-do-it")
        assert not bare.master.keys.exists()
        token = bare.node("node1").token
        assert process.wait_until(token.exists, LONG)
        hands.type(f"gnt-cluster init --token {token.read_text().strip()} demo")
        assert hands.ask("gnt-node list -o name") == [{"name": "node1"}]
    finally:
        devcluster.down(at)


def _interrupted(bare: Scratch, sign: str) -> None:
    """Kill the making of a cluster when a file of it has appeared."""
    token = devcluster.token(bare, "node1")
    argv = [BIN / "gnt-cluster", "init", "--token", token, "demo"]
    with subprocess.Popen(argv, env={**os.environ, **bare.environment()}) as making:
        seen = (bare.master.root / sign).exists
        assert process.wait_until(lambda: seen() or making.poll() is not None, LONG)
        making.kill()


def test_an_init_that_fails_removes_what_it_made(tmp_path: Path) -> None:
    at = tmp_path / "c"
    HANDS.type(f"moorage up {at} --nodes 1 --hypervisor sim --bare")
    try:
        bare = devcluster.read(at)
        hands = Typist(bare.environment(), io.StringIO())
        token = devcluster.token(bare, "node1")
        os.kill(int(bare.node("node1").pid.read_text()), signal.SIGKILL)
        refused(hands, f"gnt-cluster init --token {token} demo")
        assert not bare.master.root.exists()
    finally:
        devcluster.down(at)
