# SPDX-License-Identifier: BSD-2-Clause
"""A stolen node is not the master: what its directory is good for, before and after.

One cluster serves all tests here: each leaves it as it was, but for the last one.
What else each thief can do is in `test_what_thieves_can.py`.
"""

import io
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import json

import thief
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority, _signed
from moorage.protocol import MakeMasterRequest, MakeRequest, WantLead

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
THREE = ["node1", "node2", "node3"]
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """Return a cluster of a master, two candidates, and a node that is none."""
    at = tmp_path_factory.mktemp("thefts") / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 4 --hypervisor sim")
        found = devcluster.read(at)
        assert process.wait_until(lambda: _led(found) == THREE, 60)
        yield found
    finally:
        if at.exists():
            devcluster.down(at)


@pytest.fixture
def hands(town: Scratch) -> Typist:
    return Typist(town.environment(), io.StringIO())


def _records(town: Scratch, kind: str) -> list[dict[str, object]]:
    with closing(sqlite3.connect(town.master.root / "state.sqlite")) as store:
        query = "SELECT value FROM records WHERE kind = ?"
        return [json.decode(one) for (one,) in store.execute(query, (kind,))]


def _led(town: Scratch) -> list[object]:
    """Return the nodes that have a key to lead with, the one that is on record."""
    found = []
    for node in _records(town, "node"):
        own = town.node(str(node["name"])).run / "state" / "keys" / "own.pem"
        if not own.exists() or not node["master_certs"]:
            continue
        held = tls.pem(tls.load_certificate(own.read_bytes())).decode()
        if [held] == node["master_certs"]:
            found.append(node["name"])
    return sorted(found, key=str)


def _term(town: Scratch) -> int:
    return int((town.node("node1").run / "fence" / "term").read_text())


def test_a_lead_that_was_taken_is_told_until_its_key_opens_nothing(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    stolen = thief.of_node(town, "node2", tmp_path / "two")
    own = {"node.key", "node.pem", "own.pem"}
    assert thief.private_keys(tmp_path / "two") <= own
    assert "another master's" in stolen.says("node3", thief.Pause(), _term(town))
    # Or the master would end, again and again, for a node that does not ask for it.
    assert "its own key alone" in stolen.says("node3", WantLead(seconds=60.0), 0)
    found = hands.ask("gnt-cluster verify")
    assert (found["errors"], found["notices"]) == ([], [])
    # What is left: it can take the lead, as it must when the master's machine is gone.
    assert stolen.promised("node3", _term(town) + 1000)
    hands.type("moorage master stop")
    hands.type("moorage master start")  # it claims a higher term, and has node3 back
    told = hands.type("sh -c '! gnt-cluster verify --error-codes'")
    (line,) = [one for one in told.splitlines() if "ERROR" in one]
    assert line.startswith("  - ERROR:ECLUSTERLEAD:cluster::a key of node node2 was ")
    assert "by node3" in line
    found = hands.ask("gnt-cluster verify -I ECLUSTERLEAD")
    assert found["errors"] == []
    (one,) = found["warnings"]
    assert one["hint"].startswith("gnt-node remove node2, if it was stolen; else: ")
    hands.type("gnt-cluster renew-crypto")
    found = hands.ask("gnt-cluster verify")
    assert found["errors"] == []
    (one,) = found["warnings"]
    assert "no node takes its orders now" in one["message"]
    assert found["notices"] == []  # a start of the same master is no change


def test_a_key_that_was_drawn_and_never_used_is_not_the_next_one(
    town: Scratch, hands: Typist
) -> None:
    """Whoever copies a directory copies it, too: the renewal would make it the key."""
    hands.type("gnt-cluster renew-crypto --dry-run")  # or one that was refused
    node = town.node("node2")
    drawn = [
        town.master.keys / "next-master.pem",
        node.run / "state" / "keys" / "next-own.key",
        node.keys / "next.key",
    ]
    true = thief.Thief(town.master.keys, town)
    for asked in (MakeRequest(), MakeMasterRequest()):
        assert true.says("node2", asked, _term(town)) == thief.OBEYED
    stolen = {_pin(one) for one in drawn}
    for one in drawn:
        os.utime(one, (0, 0))
    hands.type("gnt-cluster renew-crypto")
    used = [
        town.master.keys / "master.pem",
        node.run / "state" / "keys" / "own.pem",
        node.keys / "node.pem",
    ]
    assert not any(one.exists() for one in drawn)
    assert stolen.isdisjoint(map(_pin, used))


def _pin(path: Path) -> str:
    return tls.pin(tls.load_key(path).public_key())


def test_a_node_that_was_off_is_told_of_the_masters_when_it_is_back(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    stolen = thief.of_node(town, "node2", tmp_path / "two")
    process.end(int(town.node("node4").pid.read_text()))
    hands.type("gnt-cluster renew-crypto --submit")
    assert process.wait_until(lambda: _led(town) != [], 30)
    devcluster.start_agent(town, "node4")
    assert process.wait_until(lambda: not stolen.known("node4"), 60)
    assert hands.ask("gnt-cluster verify")["errors"] == []


def test_a_cluster_whose_candidates_had_the_masters_key_comes_over_by_itself(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    """Laid out as it was: one authority, whose key each candidate has."""
    hands.type("gnt-instance add -t diskless -o tiny --no-install -n node2 w")
    hands.type("moorage master stop")
    _as_before(town)
    agents = [town.node(name).pid.read_text() for name in town.names]
    old = thief.of_node(town, "node3", tmp_path / "three")
    old.directory = tmp_path / "three" / "run" / "state" / "keys"
    old.own = "master"
    assert old.reads("node2", _term(town) + 1)
    hands.type("moorage master start")
    assert process.wait_until(lambda: _led(town) == THREE, 60)
    others = ["node1", "node2", "node3", "node4"]
    shut = lambda: not any(old.promised(one, 50 + _term(town)) for one in others)  # noqa: E731
    assert process.wait_until(shut, 30)
    for name in ("node2", "node3"):
        kept = town.node(name).run / "state" / "keys"
        assert thief.private_keys(kept) == {"own.pem"}
    assert hands.ask("gnt-cluster verify")["errors"] == []
    (guest,) = hands.ask("gnt-instance list -o name,status")
    assert guest["status"] == "running"
    assert [town.node(name).pid.read_text() for name in town.names] == agents
    hands.type("gnt-instance remove -f w")


def test_a_candidate_that_is_off_when_it_is_removed_keeps_what_opens_nothing(
    town: Scratch, hands: Typist, tmp_path: Path
) -> None:
    stolen = thief.of_node(town, "node2", tmp_path / "two")
    process.end(int(town.node("node2").pid.read_text()))
    hands.type("gnt-node modify --offline=yes node2")
    hands.type("gnt-node remove node2")
    assert process.wait_until(lambda: not stolen.known("node3"), 30)
    assert not stolen.promised("node1", _term(town) + 1000)


def _as_before(town: Scratch) -> None:
    """Lay store and keys as a Moorage did that sent the authority's key along."""
    authority = Authority(town.master.keys)
    key = tls.new_key()
    pair = authority._pair()
    drawn = tls.draft(
        tls.MASTER, tls.common_name(pair[1]), key.public_key(), authority.clock(), 365
    )
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    signed = _signed(drawn, usage, pair)
    keys = town.master.keys
    _each(town, lambda name: process.end(int(town.node(name).pid.read_text())))
    (keys / "master.pem").write_bytes(tls.key_pem(key) + tls.pem(signed))
    for name in town.names:
        node = town.node(name)
        (node.keys / "ca.pem").write_bytes(tls.pem(authority.certificate))
        (node.run / "fence" / "keys").unlink()
        kept = node.run / "state" / "keys"
        if kept.exists():
            for path in kept.iterdir():
                path.unlink()
            if name != "node1":
                for name_ in ("ca.key", "ca.pem", "master.pem"):
                    (kept / name_).write_bytes((keys / name_).read_bytes())
    _each(town, lambda name: devcluster.start_agent(town, name))


def _each(town: Scratch, do: Callable[[str], object]) -> None:
    """Do something with all nodes at the same time; most of it is waiting."""
    with ThreadPoolExecutor(4) as hands:
        list(hands.map(do, town.names))
