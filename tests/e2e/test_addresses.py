# SPDX-License-Identifier: BSD-2-Clause
"""A cluster over IPv6: tokens, joining, migration and where everybody is told to go.

Master and agents are processes, on this machine's loopback address; guests are fake.
"""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import process
from moorage.daemons.agent import Settings, write_settings
from moorage.daemons.paths import NodePlaces
from moorage.model.token import from_text, to_text

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as found:
        return int(found.getsockname()[1])


class Six(Typist):
    """Who types in a cluster of two nodes that know IPv6 alone."""

    def __init__(self, path: Path) -> None:
        self.nodes = [NodePlaces(path / name) for name in ("one", "two")]
        environ = {
            "MOORAGE_DIR": str(path / "master"),
            "MOORAGE_SOCKET": str(path / "master" / "luxi.sock"),
            "MOORAGE_NODE_DIR": str(self.nodes[0].root),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        super().__init__(environ, io.StringIO())
        self.agents = [self._start(places) for places in self.nodes]
        for places in self.nodes:
            assert process.wait_until(places.token.exists, 60)

    def _start(self, places: NodePlaces) -> "subprocess.Popen[bytes]":
        settings = Settings(address="::1", port=free_port(), hypervisor="fake")
        write_settings(places, settings)
        with places.log.open("wb") as log:
            return subprocess.Popen(
                [BIN / "moorage", "agent", places.root], stdout=log, stderr=log
            )

    def close(self) -> None:
        self._run("moorage master stop", shown=False)
        for agent in self.agents:
            agent.terminate()
            agent.wait(30)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Six]:
    """Return a cluster whose first node is the agent of "this machine"."""
    path = tmp_path_factory.mktemp("six")
    path.chmod(0o700)
    found = Six(path)
    try:
        found.type(
            "gnt-cluster init --primary-ip-version 6 --enabled-hypervisors fake six"
        )
        yield found
    finally:
        found.close()


def test_the_first_node_is_the_agent_of_this_machine(six: Six) -> None:
    """No token is typed: who may read the agent's file may have its token."""
    (row,) = six.ask("gnt-node list -o name,pip,sip")
    assert row["name"].partition(".")[0] == socket.gethostname().partition(".")[0]
    assert (row["pip"], row["sip"]) == ("::1", "::1")
    assert six.ask("gnt-cluster info")["primary_ip_version"] == 6


def test_an_address_that_is_typed_is_the_one_that_is_used(six: Six) -> None:
    """The token says where nobody is; in brackets, as names or as they are."""
    token = six.nodes[1].token
    off = from_text(token.read_text())
    nowhere = "0.0.0.0"  # noqa: S104 - what a token must not say
    wrong = to_text(type(off)(nowhere, off.port, off.fingerprint, off.secret))
    said = six.refused(f"gnt-node add --token {wrong} node2.example.com")
    assert "no node is reached at 0.0.0.0: give its address with --primary-ip" in said
    six.type(f"gnt-node add -p [::1] --token {wrong} node2.example.com")
    rows = six.ask("gnt-node list -o pip,mfree")
    assert [row["pip"] for row in rows] == ["::1", "::1"]
    assert all(row["mfree"] for row in rows)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gnt-node modify -s 0.0.0.0 node2", "no node is reached at 0.0.0.0"),
        ("gnt-node modify -s fe80::1 node2", "needs the name of an interface"),
        ("gnt-node modify -s no.such.invalid node2", "is the name of no address"),
        ("gnt-node add -p ff02::1 --token x node3", "that is no token"),
    ],
)
def test_addresses_that_are_none_are_refused(six: Six, line: str, words: str) -> None:
    assert words in six.refused(line)


def test_a_guest_migrates_by_the_secondary_network(six: Six) -> None:
    six.type("gnt-node modify -s localhost node2")
    rows: Any = six.ask("gnt-node list -o name,sip node2")
    assert rows[0]["sip"] in ("127.0.0.1", "::1")
    six.type("gnt-instance add -t diskless --no-nics -n node2 -B memory=128M web1")
    master = six.look("gnt-cluster getmaster").strip()
    six.type(f"gnt-instance migrate -f -n {master} web1")
    (row,) = six.ask("gnt-instance list -o pnode,status web1")
    assert row == {"pnode": master, "status": "running"}
