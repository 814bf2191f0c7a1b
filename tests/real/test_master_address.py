# SPDX-License-Identifier: BSD-2-Clause
"""The address that moves with the master, on nodes with networks of their own.

This machine is their neighbour: it has an address on the same bridge, and remembers
which card answered for which address.
"""

import io
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import json

from moorage.cli.tour.typist import Typist
from moorage.daemons import cleanup, process
from moorage.daemons.paths import MasterPlaces

pytestmark = pytest.mark.real

BIN = Path(sys.executable).parent
HUB, NET, NET6 = "mrgmiphub", "10.213.9", "fd5a:213:9:"
SPACES = ("mrgmip1", "mrgmip2")
IP, IP6 = f"{NET}.9", f"{NET6}:9"
DO = """
import asyncio, sys
from moorage.errors import MoorageError
from moorage.model.master_address import MasterAddress
from moorage.node.machine.addresses import KernelAddresses
ip, bits, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
wanted, here = MasterAddress(ip, "eth0", bits), KernelAddresses()
try:
    asyncio.run(here.hold(wanted, seconds) if seconds else here.drop(wanted))
except MoorageError as error:
    sys.exit(str(error))
"""


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def street() -> Iterator[None]:
    """Lay a bridge here, and two namespaces with a card each on it."""
    try:
        ip("link", "add", HUB, "type", "bridge")
        ip("addr", "add", f"{NET}.254/24", "dev", HUB)
        ip("addr", "add", f"{NET6}:254/64", "dev", HUB, "nodad")
        ip("link", "set", HUB, "up")
        for number, space in enumerate(SPACES, 1):
            cable, at = f"mrgmip-{number}", ("-n", space)
            ip("netns", "add", space)
            ip("link", "add", cable, "type", "veth", "peer", "eth0", "netns", space)
            ip("link", "set", cable, "master", HUB, "up")
            ip(*at, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            ip(*at, "link", "set", "eth0", "up")
            ip(*at, "link", "set", "lo", "up")
        yield
    finally:
        for space in SPACES:
            ip("netns", "delete", space, check=False)
        ip("link", "delete", HUB, check=False)


def inside(space: str, *words: str) -> subprocess.CompletedProcess[str]:
    run = ["ip", "netns", "exec", space, *words]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def told(space: str, address: str, bits: int, seconds: int) -> str:
    """Have a machine hold an address, or drop it; return why it does not."""
    words = (sys.executable, "-c", DO, address, str(bits), str(seconds))
    return inside(space, *words).stderr.strip()


def has(space: str, address: str = IP) -> bool:
    return address in ip("-n", space, "-oneline", "addr", "show", "to", address)


def card(space: str) -> str:
    (found,) = json.decode(ip("-n", space, "-json", "link", "show", "dev", "eth0"))
    return str(found["address"])


def remembered(address: str = IP) -> str:
    """Return the card that this machine, a neighbour, thinks has the address."""
    found = json.decode(ip("-json", "neigh", "show", "to", address, "dev", HUB) or "[]")
    return str(found[0].get("lladdr", "")) if found else ""


def reached(address: str = IP) -> bool:
    """Whether a machine says that nobody listens there."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.settimeout(1.0)
        line.connect((address, 9))
        try:
            line.send(b"x")
            line.recv(1)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def within(seconds: float, so: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not so():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_it_ends_by_itself_and_neighbours_follow_it_to_another_machine() -> None:
    (one, two), both = SPACES, {IP: 24, IP6: 64}
    for address, bits in both.items():
        assert told(one, address, bits, 4) == ""
        assert reached(address)
        assert remembered(address) == card(one)
        said = told(two, address, bits, 60)  # no two have it at once
        assert f"{address} is another machine's" in said
        assert not has(two, address)
    for address, bits in both.items():
        # Nobody lives that takes it away.
        assert within(8, lambda address=address: not has(one, address))
        assert told(two, address, bits, 60) == ""
        # And nobody asked who has it now.
        there = card(two)
        assert within(2, lambda ip=address, at=there: remembered(ip) == at)
        assert reached(address)
        assert told(two, address, bits, 0) == ""
        assert not has(two, address)


def test_one_that_somebody_else_has_set_stays() -> None:
    (one, _), place = SPACES, f"{IP}/24"
    ip("-n", one, "addr", "add", place, "dev", "eth0")
    assert "for good, and not by Moorage" in told(one, IP, 24, 3)
    assert told(one, IP, 24, 0) == ""
    assert has(one)
    ip("-n", one, "addr", "del", place, "dev", "eth0")


class Town(Typist):
    """A cluster of two nodes, each in a namespace; masters are reached by sockets."""

    def __init__(self, path: Path, number: int = 1) -> None:
        self.path = path
        self.agents: list[subprocess.Popen[bytes]] = []
        self.master = MasterPlaces(path / f"master{number}")
        environ = {
            "MOORAGE_DIR": str(self.master.root),
            "MOORAGE_SOCKET": str(self.master.root / "luxi.sock"),
            "MOORAGE_NODE_DIR": str(path / f"node{number}"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        super().__init__(environ, io.StringIO())

    def start_agents(self) -> None:
        for number, space in enumerate(SPACES, 1):
            node = self.path / f"node{number}"
            node.mkdir(mode=0o700)
            settings = {"address": f"{NET}.{number}", "hypervisor": "fake"}
            (node / "agent.json").write_bytes(json.encode(settings))
            words = ["ip", "netns", "exec", space, str(BIN / "moorage"), "agent", node]
            with (self.path / f"{node.name}.log").open("wb") as log:
                self.agents.append(subprocess.Popen(words, stdout=log, stderr=log))
        for number in (1, 2):
            assert process.wait_until(self.token(number).exists, 60)

    def token(self, number: int) -> Path:
        return self.path / f"node{number}" / "join-token"


@pytest.fixture
def towns(tmp_path: Path) -> Iterator[tuple[Town, Town]]:
    one, two = Town(tmp_path), Town(tmp_path, 2)
    try:
        one.start_agents()
        yield one, two
    finally:
        for pid in list(cleanup.processes(tmp_path)):
            process.end(pid, patience=2.0)
        for agent in one.agents:
            agent.wait(10)


def test_it_moves_with_the_lead(towns: tuple[Town, Town]) -> None:
    one, two = towns
    make = "gnt-cluster init --enabled-hypervisors fake --node-name node1 --token-file"
    said = one.refused(f"{make} {one.token(1)} --master-netdev br9 --master-ip {IP} t")
    assert "it has no network device br9" in said
    one.type(
        f"{make} {one.token(1)} --master-netdev eth0 --master-netmask 24 "
        f"--master-ip {IP} town"
    )
    assert within(10, reached)
    assert remembered() == card(SPACES[0])
    one.type(f"gnt-node add --token-file {one.token(2)} node2")

    def copied() -> bool:
        rows = one.ask("gnt-node list -o name,copy")
        return {"name": "node2", "copy": "current"} in rows

    assert within(30, copied)
    assert "master netdev: eth0" in one.type("gnt-cluster info")
    two.type("gnt-cluster master-failover --yes-do-it")
    assert within(5, lambda: remembered() == card(SPACES[1]))
    assert not has(SPACES[0])
    assert reached()
    found = json.decode(two.enter("gnt-cluster verify --json || true"))
    assert not [one for one in found["errors"] if one["ecode"] == "EMASTERIP"]
    two.type("gnt-cluster deactivate-master-ip --yes")
    assert not has(SPACES[1])
    two.type("gnt-cluster activate-master-ip")
    assert has(SPACES[1])
    two.type("moorage master stop")
