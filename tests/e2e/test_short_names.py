# SPDX-License-Identifier: BSD-2-Clause
"""Machines by short names and in any letter case, in commands and over LUXI."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return who types in a cluster whose machines have long names."""
    at = tmp_path_factory.mktemp("names") / "c"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    hands = Typist({"PATH": path}, io.StringIO())
    try:
        hands.type(f"moorage up {at} --nodes 2 --hypervisor sim --bare")
        scratch = devcluster.read(at)
        hands = Typist(scratch.environment(), io.StringIO())
        given = "--shared-file-storage-dir=/srv/s -B memory=128M,vcpus=1"
        token = devcluster.token(scratch, "node1")
        hands.type(
            f"gnt-cluster init {given} --token {token} --node-name "
            "node1.example.com demo"
        )
        token = devcluster.token(scratch, "node2")
        hands.type(f"gnt-node add --token {token} Node2.Example.COM")
        for name in ("web1.example.com", "web2.example.com", "web2.example.org"):
            hands.type(f"gnt-instance add -t diskless --no-nics -n node2 {name}")
        hands.scratch = scratch  # type: ignore[attr-defined]
        yield hands
    finally:
        if at.exists():
            devcluster.down(at)


def test_short_names_work_in_every_place(harbour: Any) -> None:
    (row,) = harbour.ask("gnt-instance list -o name,pnode WEB1")
    assert row == {"name": "web1.example.com", "pnode": "node2.example.com"}
    rows = harbour.ask("gnt-instance list -o name web2.example.org web1")
    assert [one["name"] for one in rows] == ["web2.example.org", "web1.example.com"]
    assert "web1.example.com" in harbour.look("gnt-instance info web1")
    harbour.type("gnt-instance migrate -f -n Node1 web1")
    harbour.type("gnt-instance shutdown web1")
    harbour.type("gnt-instance modify -B memory=256M Web1")
    harbour.type("gnt-instance startup web1")
    harbour.type("gnt-instance add-tags web1 blue")
    assert harbour.look("gnt-instance list-tags web1").strip() == "blue"
    harbour.type("gnt-node modify --drained=yes node2")
    harbour.type("gnt-node modify --drained=no NODE2")
    assert "node2.example.com" in harbour.look("gnt-node info node2")
    harbour.type("gnt-cluster verify")


def test_short_names_over_luxi(harbour: Any) -> None:
    path = harbour.scratch.environment()["MOORAGE_SOCKET"]
    with LuxiClient(path) as luxi:
        found = luxi.call("QueryInstances", ["web1"], ["name"], False)
        assert found == [["web1.example.com"]]
        _, rows = luxi.query("node", ["name"], ["|", ["==", "name", "node2"]])
        assert rows == [[(0, "node2.example.com")]]


def test_what_is_short_for_two_is_refused(harbour: Any) -> None:
    said = harbour.refused("gnt-instance shutdown web2")
    assert "2 instances are called 'web2' for short" in said
    assert "web2.example.com or web2.example.org" in said
    assert "called 'web2' for short" in harbour.refused("gnt-instance list web2")


def test_a_hint_never_names_another_machine(harbour: Any) -> None:
    said = harbour.refused("gnt-instance startup web3.example.com")
    assert "web3.example.com' is not known" in said
    assert "did you mean" not in said
    said = harbour.refused("gnt-instance startup wbe1.example.com")
    assert "did you mean web1.example.com?" in said
