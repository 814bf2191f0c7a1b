# SPDX-License-Identifier: BSD-2-Clause
"""Keys and certificates of a cluster of processes: stolen, renewed, and of long ago.

The nodes are simulated, their agents and the master are not.
"""

import asyncio
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.model import Change, Node, successor
from moorage.store import ConfigStore, SqliteStore

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
ROGUE = """
import asyncio, sys
from pathlib import Path
from moorage.node.certificates import tls

async def meet(reader, writer):
    heard = await reader.read(1000)
    if heard:
        print("heard", heard, flush=True)
    writer.close()

async def serve():
    context = tls.serving(Path(sys.argv[1]))
    await asyncio.start_server(meet, sys.argv[2], int(sys.argv[3]), ssl=context)
    print("serves", flush=True)
    await asyncio.sleep(600)

asyncio.run(serve())
"""


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Scratch]:
    at = tmp_path / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


@pytest.fixture
def hands(town: Scratch) -> Typist:
    return Typist(town.environment(), io.StringIO())


def verified(hands: Typist) -> list[str]:
    """Return what verify warns of; it fails when there are errors.

    How far the copies of the state are, which follow by themselves, is left out.
    """
    found = hands.ask("gnt-cluster verify")
    told = [one["message"] for one in found["warnings"]]
    return [one for one in told if "copy of the state" not in one]


def all_ended(hands: Typist) -> bool:
    jobs = hands.ask("gnt-job list -o status")
    return all(job["status"] in ("success", "error", "canceled") for job in jobs)


@contextmanager
def rogue(town: Scratch, keys: Path, name: str) -> Iterator[list[str]]:
    """Serve with stolen keys at a node's address, in its agent's place.

    Yields a list that gets what was said to it, in the end.
    """
    heard: list[str] = []
    process.end(int(town.node(name).pid.read_text()))
    argv = [sys.executable, "-c", ROGUE, str(keys), town.address(name)]
    served = subprocess.Popen(
        [*argv, str(devcluster.PORT)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert served.stdout
        assert served.stdout.readline() == "serves\n"
        yield heard
    finally:
        served.kill()
        said, _ = served.communicate()
        heard += said.splitlines()


def test_a_key_that_was_stolen_is_worth_nothing_once_its_node_was_let_in_anew(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    shutil.copytree(town.node("node2").keys, tmp_path / "stolen")
    hands.type("gnt-node remove node2")
    assert process.wait_until(town.node("node2").token.exists, 60)
    hands.type("gnt-node add node2")
    with rogue(town, tmp_path / "stolen", "node2") as heard:
        (node1, node2) = hands.ask("gnt-node list -o name,mtotal")
        assert node1["mtotal"]
        assert node2["mtotal"] is None
        words = "is not the one that the cluster knows of node2"
        assert words in hands.look("gnt-node info node2")
        (line,) = [
            one["message"]
            for one in json.loads(_failing(town, "gnt-cluster verify --json"))["errors"]
        ]
        assert words in line
        assert "offline=yes" not in line
        said = hands.refused("gnt-node modify --offline=yes node2")
        assert "node node2 is not off" in said
    assert heard == []  # not a word was said to it
    devcluster.start_agent(town, "node2")
    assert process.wait_until(town.node("node2").serving.exists, 60)
    assert verified(hands) == []


def _failing(town: Scratch, line: str) -> str:
    done = subprocess.run(
        line.split(),
        env={**os.environ, **town.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stdout


def pins(town: Scratch) -> list[list[str]]:
    """Return the keys that nodes are known by, from the store."""
    with closing(sqlite3.connect(town.master.root / "state.sqlite")) as store:
        rows = store.execute("SELECT value FROM records WHERE kind = 'node'")
        return sorted(json.loads(value)["pins"] for (value,) in rows)


def test_everything_is_renewed_while_guests_run(town: Scratch, hands: Typist) -> None:
    hands.type("gnt-instance add -t sharedfile --disk 0:size=8M --no-nics -n node2 w")
    first, own = pins(town), (town.master.keys / "master.pem").read_bytes()
    agents = [town.node(name).pid.read_text() for name in town.names]
    said = hands.type("gnt-cluster renew-crypto")
    assert "Renewed the certificates of the master and its nodes" in said
    second = pins(town)
    assert [len(one) for one in second] == [1, 1]
    assert not {*map(tuple, first)} & {*map(tuple, second)}
    assert (town.master.keys / "master.pem").read_bytes() != own
    authority = (town.master.keys / "ca.pem").read_bytes()
    said = hands.type("gnt-cluster renew-crypto --new-cluster-certificate")
    assert "Renewed the authority and all certificates" in said
    assert (town.master.keys / "ca.pem").read_bytes() != authority
    assert verified(hands) == []
    (guest,) = hands.ask("gnt-instance list -o name,status")
    assert guest == {"name": "w", "status": "running"}
    assert [town.node(name).pid.read_text() for name in town.names] == agents
    hands.type("gnt-instance reboot -f w")
    hands.type("moorage master stop")
    hands.type("moorage master start")
    process.end(int(town.node("node2").pid.read_text()))
    devcluster.start_agent(town, "node2")
    assert process.wait_until(lambda: not hands_fail(town), 60)
    assert verified(hands) == []


def hands_fail(town: Scratch) -> bool:
    done = subprocess.run(
        ["gnt-cluster", "verify"],
        env={**os.environ, **town.environment()},
        capture_output=True,
        check=False,
    )
    return done.returncode != 0


@pytest.mark.parametrize("victim", ["master", "agent"])
def test_a_process_that_is_killed_in_the_middle_shuts_nobody_out(
    victim: str, town: Scratch, hands: Typist
) -> None:
    hands.type("gnt-cluster renew-crypto --new-cluster-certificate --submit")
    changing = town.node("node2").keys / "next.key"
    process.wait_until(changing.exists, 30)
    pid_file = town.master.pid if victim == "master" else town.node("node2").pid
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(pid), 30)
    if victim == "agent":
        devcluster.start_agent(town, "node2")
    hands.type("moorage master start")
    assert process.wait_until(lambda: all_ended(hands), 60)
    hands.type("gnt-cluster renew-crypto --new-cluster-certificate")
    assert verified(hands) == []


def test_a_cluster_of_long_ago_gets_keys_that_are_known(
    town: Scratch, hands: Typist
) -> None:
    """Its master gives every node a new one, as soon as it serves."""
    hands.type("moorage master stop")
    asyncio.run(_note_no_keys(town))
    hands.type("moorage master start")

    def known() -> bool:
        return [len(one) for one in pins(town)] == [1, 1]

    assert process.wait_until(known, 60)
    assert process.wait_until(lambda: all_ended(hands), 60)
    assert verified(hands) == []


async def _note_no_keys(town: Scratch) -> None:
    config_store, _ = await ConfigStore.open(SqliteStore(town.master.store))
    nodes = config_store.config.named(Node)
    await config_store.commit(
        Change(tuple(successor(n, n.mtime, pins=()) for n in nodes))
    )
    await config_store.close()


def test_who_let_a_node_in_is_said_on_both_sides(tmp_path: Path) -> None:
    at = tmp_path / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim --bare")
        town = devcluster.read(at)
        hands = Typist(town.environment(), io.StringIO())
        hands.type("gnt-cluster init --node-name node1 demo")
        said = hands.type("gnt-node add node2")
        (word,) = [
            line.rpartition(" ")[2]
            for line in town.node("node2").log.read_text().splitlines()
            if "let in as node2" in line
        ]
        assert len(word) == 64
        assert f"the master whose certificate has the SHA-256 {word}" in said
        assert word in hands.type("gnt-cluster info")
    finally:
        if at.exists():
            devcluster.down(at)
