# SPDX-License-Identifier: BSD-2-Clause
"""Upgrading: a store of the version before, and daemons that start anew at work."""

import io
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from moorage import __version__
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.node.certificates.authority import Authority
from moorage.store.migrations import kept

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
PATH = {"PATH": f"{BIN}:{os.environ['PATH']}"}
FORMER = Path(__file__).parents[1] / "store" / "format_1.sql"


def test_the_master_of_the_version_before_is_followed_by_this_one(
    tmp_path: Path,
) -> None:
    """Its store is changed, with a copy, and the job that it was at is taken up."""
    places = MasterPlaces(tmp_path / "master")
    places.keys.mkdir(mode=0o700, parents=True)
    places.root.chmod(0o700)
    Authority.make(places.keys, "scratch")
    with closing(sqlite3.connect(places.store)) as database:
        database.executescript(FORMER.read_text())
    places.store.chmod(0o600)
    told = {"MOORAGE_DIR": str(places.root), "MOORAGE_SOCKET": str(places.socket)}
    hands = Typist(PATH | told, io.StringIO())
    try:
        hands.type("moorage master start")
        assert len(hands.ask("gnt-disk list -o name")) == 2
        assert hands.ask("gnt-instance list -o name") == [{"name": "web1"}]
        rows = hands.ask("gnt-job list -o id,status")
        assert {one["id"]: one["status"] for one in rows}[13] == "error"
        assert hands.type("moorage master check").startswith("No problem found")
        assert kept(places.store, 1).exists()
        # Its nodes are long gone: what is left to do is told of each.
        assert hands.refused("gnt-cluster upgrade") == ""
    finally:
        hands.type("moorage master stop")


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Scratch]:
    at = tmp_path / "c"
    try:
        Typist(PATH, io.StringIO()).type(f"moorage up {at} --nodes 2 --hypervisor fake")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


def test_daemons_start_anew_while_guests_run_and_jobs_go_on(town: Scratch) -> None:
    hands = Typist(town.environment(), io.StringIO())
    add = "gnt-instance add -t sharedfile --disk 0:size=1m --no-install"
    for number in (1, 2):
        hands.type(f"{add} -n node{number} web{number}")
    before = guests(town)
    assert len(before) == 2
    for name in town.names:  # the agents, one after the other, each at work
        hands.type(f"gnt-debug delay --submit --no-master -n {name} 2")
        assert process.wait_until(lambda: running(hands), 60)
        pid = process.running(town.node(name).pid, "moorage")
        assert pid
        process.end(pid, patience=30.0)
        devcluster.start_agent(town, name)
    hands.type("gnt-instance migrate --submit -f web1")
    hands.type("moorage master stop")  # and the master, between two steps
    hands.type("moorage master start")
    assert process.wait_until(lambda: ended(hands), 120)
    rows = hands.ask("gnt-job list -o id,summary,status,opresult")
    assert {one["status"] for one in rows} == {"success"}, rows
    rows = hands.ask("gnt-instance list -o name,status,pnode")
    assert [(one["status"], one["pnode"]) for one in rows] == [
        ("running", "node2"),
        ("running", "node2"),
    ]
    assert guests(town)["web2"] == before["web2"]  # nobody touched it
    told = hands.type("gnt-cluster upgrade")
    assert f"The master runs {__version__}" in told
    assert "All 2 nodes are as they should be" in told
    assert json.loads(hands.type("gnt-cluster verify --json"))["errors"] == []


def guests(town: Scratch) -> dict[str, bytes]:
    """Return what is on record of each guest's process, by its name."""
    files = [
        path
        for name in town.names
        for path in (town.node(name).run / "fake").rglob("*")
        if path.is_file()
    ]
    found = {}
    for path in files:
        for name in ("web1", "web2"):
            if name.encode() in path.read_bytes():
                found[name] = path.read_bytes()
    return found


def running(hands: Typist) -> bool:
    return "running" in {one["status"] for one in hands.ask("gnt-job list -o status")}


def ended(hands: Typist) -> bool:
    rows = hands.ask("gnt-job list -o status")
    return all(one["status"] in ("success", "error", "canceled") for one in rows)
