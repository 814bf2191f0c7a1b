# SPDX-License-Identifier: BSD-2-Clause
"""Machines by short names, in any letter case; commands typed on other nodes; consoles.

The master and the agents are processes; the guests are simulated, and say their name.
"""

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster
from moorage.errors import MoorageError, WrongState

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return who types in a cluster whose machines have long names."""
    at = tmp_path_factory.mktemp("names") / "c"
    path = f"{BIN}:{os.environ['PATH']}"
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
    said = harbour.refused("gnt-node add --readd node2")
    assert "can be added with its token only" in said
    said = harbour.refused("gnt-node add --token x node2.example.com")
    assert "that is no token of a node" in said
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


def said_by(line: Any, came: bytes, wanted: bytes) -> bytes:
    """Return what a line says until something was said."""
    line.settimeout(60)
    while wanted not in came:
        data = line.recv(4096)
        assert data, f"the line ended: {came!r}"
        came += data
    return bytes(came)


def test_a_console_goes_through_the_agent_and_makes_no_job(harbour: Any) -> None:
    jobs = len(harbour.ask("gnt-job list"))
    with LuxiClient(harbour.scratch.environment()["MOORAGE_SOCKET"]) as luxi:
        told, line, came = luxi.line("web2.example.org")
        assert told["node"] == "node2.example.com"
        with line:
            line.sendall(b"who\x03ever\n")  # the byte that ends a message of LUXI's
            came = said_by(line, came, b"who\x03ever\n")
            assert came.startswith(b"web2.example.org serial: ")
        told, line, came = luxi.line("web2.example.org", "vnc", "ticket")
        with line:
            said_by(line, came, b"RFB 003.008\n")
            me = f"uid {os.getuid()}, pid {os.getpid()}"
            screen = "the screen of web2.example.org"
            at_master = f"{screen} on node2.example.com is opened by {me}"
            assert at_master in harbour.scratch.master.log.read_text()
            at_node = f"{screen} is opened by {me}, at the master on node1.example.com"
            assert at_node in harbour.scratch.node("node2").log.read_text()
        with pytest.raises(MoorageError, match="instance 'nope' is not known"):
            luxi.line("nope")
    assert len(harbour.ask("gnt-job list")) == jobs


def test_a_guest_that_is_down_has_no_console(harbour: Any) -> None:
    harbour.type("gnt-instance add -t diskless --no-nics -n node2 web4")
    with LuxiClient(harbour.scratch.environment()["MOORAGE_SOCKET"]) as luxi:
        _, line, came = luxi.line("web4")
        with line:
            said_by(line, came, b"serial: ")
            harbour.type("gnt-instance shutdown web4")
        with pytest.raises(WrongState, match="web4 is not running: it has no console"):
            luxi.line("web4")


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_a_node_that_is_not_the_masters_says_which_is(harbour: Any, node: str) -> None:
    directory = harbour.scratch.node(node).root
    environ = {"MOORAGE_NODE_DIR": str(directory), "MOORAGE_SOCKET": ""}
    environ["FORCE_LUXI_SOCKET"] = f"{directory}/no-master.sock"
    there = Typist(harbour.scratch.environment() | environ, io.StringIO())
    told = {
        "node1": "the master does not run: this node, node1.example.com, is its node",
        "node2": "this is not the master node, please connect to node1.example.com",
    }
    for line in (
        "gnt-instance list",
        "gnt-cluster verify",
        "gnt-node info",
        "gnt-job list",
        "gnt-instance startup web1",
        "gnt-instance console nope",
    ):
        assert told[node] in there.refused(line)


def test_a_node_reaches_its_own_guests_without_the_master(harbour: Any) -> None:
    with LuxiClient(str(harbour.scratch.node("node2").socket)) as luxi:
        told, line, came = luxi.line("web2.example.org")
        assert told["node"] == "node2.example.com"
        with line:
            said_by(line, came, b"web2.example.org serial: ")
    by = f"is opened by uid {os.getuid()}, pid {os.getpid()}\n"
    told = f"the console of web2.example.org on node2.example.com {by}"
    assert told in harbour.scratch.node("node2").log.read_text()


def away(harbour: Any, **more: str) -> dict[str, str]:
    """Return the surroundings of somebody on a node that is not the master's."""
    directory = harbour.scratch.node("node1").root
    environ = {"MOORAGE_NODE_DIR": str(directory), "MOORAGE_SOCKET": ""}
    environ["FORCE_LUXI_SOCKET"] = f"{directory}/no-master.sock"
    return {**os.environ, **harbour.scratch.environment(), **environ, **more}


def test_a_ticket_opens_a_console_once_on_any_machine(harbour: Any) -> None:
    """What the master prints is typed where there is no master, and no guest."""
    name = "web1.example.com"
    harbour.type(f"gnt-instance migrate -f -n node2 {name}")
    command = harbour.look(f"gnt-instance console --show-cmd {name}").strip()
    assert command.startswith("MOORAGE_TICKET=")
    first, again = (
        subprocess.run(
            ["sh", "-c", command],
            env=away(harbour),
            input=b"hello\x1dlost",
            capture_output=True,
            timeout=120,
            check=False,
        )
        for _ in range(2)
    )
    assert (first.returncode, again.returncode) == (0, 1)
    assert f"Connected to {name}; Ctrl-] leaves" in first.stderr.decode()
    assert "it was used, or is over" in again.stderr.decode()


def test_a_ticket_is_for_one_guest_only(harbour: Any) -> None:
    command = harbour.look("gnt-instance console --show-cmd web1").strip()
    word = command.split()[0].partition("=")[2]
    there = Typist(away(harbour, MOORAGE_TICKET=word), io.StringIO())
    said = there.refused("gnt-instance console web2.example.org")
    assert "the ticket is for web1.example.com, not for web2.example.org" in said


def test_a_node_that_is_not_the_masters_names_the_way_to_a_console(
    harbour: Any,
) -> None:
    directory = harbour.scratch.node("node2").root
    environ = away(harbour, MOORAGE_NODE_DIR=str(directory))
    said = Typist(environ, io.StringIO()).refused("gnt-instance console nope")
    way = "ssh node1.example.com gnt-instance console --show-cmd nope"
    assert f"{way} prints a command that opens it here" in said


def test_a_screen_is_served_to_viewers_of_this_machine(harbour: Any) -> None:
    """Each viewer has a line of its own; Ctrl-C ends them all.

    It is heard also where the tests themselves were told not to.
    """
    heard = "import signal, os, sys; signal.signal(2, signal.default_int_handler); "
    words = [sys.executable, "-c", heard + "os.execv(sys.argv[1], sys.argv[1:])"]
    words += [BIN / "gnt-instance", "console", "--vnc", "web2.example.org"]
    environ = {**os.environ, **harbour.scratch.environment()}
    with subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serving:
        try:
            assert serving.stdout
            host, _, port = serving.stdout.readline().split()[1].partition("::")
            assert host == "127.0.0.1"
            assert len(serving.stdout.readline().split()[1]) == 8  # the ticket
            viewers = [socket.create_connection((host, int(port))) for _ in range(2)]
            for viewer in viewers:
                said_by(viewer, b"", b"RFB 003.008\n")
            viewers[0].close()
            viewers[1].sendall(b"RFB 003.008\n\1\1")
            said_by(viewers[1], b"", b"web2.example.org")
            viewers[1].close()
        finally:
            serving.send_signal(signal.SIGINT)
            try:
                assert serving.wait(60) == 130
            finally:
                serving.kill()
