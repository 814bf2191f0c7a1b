# SPDX-License-Identifier: BSD-2-Clause
"""Guests on two nodes, each in a network namespace of its own, that ping each other.

Both namespaces have a bridge *br0* for guests, and a cable between the two; the master
reaches the agents over another bridge.
"""

import asyncio
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from moorage.cli.tour.steps import KERNEL
from moorage.cli.tour.typist import Typist
from moorage.daemons import cleanup, process
from moorage.testing.guest import Guest
from moorage.testing.guest_image import build

pytestmark = pytest.mark.real

BUILT = Path(__file__).parents[2] / ".build" / "guest"
BIN = Path(sys.executable).parent
HUB, NET = "mrgnethub", "10.213.7"
_SETTLING = 8000
"""Milliseconds that a guest may be out of reach besides."""
SPACES = ("mrgnet1", "mrgnet2")


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


def veth(name: str, peer: str, space: str, *at: str) -> None:
    """Lay a cable from here, or a namespace, to another one."""
    words = ("link", "add", name, "type", "veth", "peer", "name", peer)
    ip(*at, *words, "netns", space)


def inside_space(space: str, *words: str) -> str:
    run = ["ip", "netns", "exec", space, *words]
    return subprocess.check_output(run, text=True)


class Street(Typist):
    """A cluster of two nodes with networks of their own."""

    def __init__(self, path: Path) -> None:
        environ = {
            "MOORAGE_DIR": str(path / "master"),
            "MOORAGE_SOCKET": str(path / "luxi.sock"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        super().__init__(environ, io.StringIO())
        self.path = path
        self.agents: list[subprocess.Popen[bytes]] = []
        self.made: list[tuple[str, ...]] = []
        """What takes away that this run made, and no other run."""

    # -- the network ------------------------------------------------------------------

    def lay(self) -> None:
        """Make the namespaces, their bridges, and the cables."""
        ip("link", "add", HUB, "type", "bridge")
        self.made.append(("link", "del", HUB))
        ip("addr", "add", f"{NET}.254/24", "dev", HUB)
        ip("link", "set", HUB, "up")
        for number, space in enumerate(SPACES, 1):
            ip("netns", "add", space)
            self.made.append(("netns", "del", space))
            veth(f"mrgm{number}", "eth0", space)
            ip("link", "set", f"mrgm{number}", "master", HUB, "up")
            at = ("-n", space)
            ip(*at, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            for words in (("eth0", "up"), ("lo", "up")):
                ip(*at, "link", "set", *words)
            ip(*at, "link", "add", "br0", "type", "bridge")
            ip(*at, "link", "set", "br0", "up")
        one, two = SPACES
        veth("wire", "wire", two, "-n", one)
        for space in SPACES:
            ip("-n", space, "link", "set", "wire", "master", "br0", "up")

    def start_agents(self) -> None:
        for number, space in enumerate(SPACES, 1):
            node = self.path / f"node{number}"
            node.mkdir(mode=0o700)
            (self.path / "etc").mkdir(exist_ok=True)
            settings = {
                "address": f"{NET}.{number}",
                "network_scripts": str(self.path / "etc"),
            }
            (node / "agent.json").write_bytes(json.encode(settings))
            words = ["ip", "netns", "exec", space, BIN / "moorage", "agent", node]
            with (self.path / f"{node.name}.log").open("wb") as log:
                made = subprocess.Popen(words, stdout=log, stderr=log)
            self.agents.append(made)
        for number in (1, 2):
            token = self.token(number)
            assert process.wait_until(token.exists, 180), token

    def token(self, number: int) -> Path:
        return self.path / f"node{number}" / "join-token"

    def found(self) -> None:
        self.type(
            "gnt-cluster init -B memory=128M,vcpus=1 --node-name node1 "
            f"--token-file {self.token(1)} street"
        )
        self.type(f"gnt-node add --token-file {self.token(2)} node2")

    def end(self) -> None:
        for pid in list(cleanup.processes(self.path)):
            process.end(pid, patience=2.0)
        for agent in self.agents:
            agent.kill()
            agent.wait()
        for words in reversed(self.made):
            ip(*words, check=False)

    # -- guests -----------------------------------------------------------------------

    def add(self, name: str, node: str, net: str) -> None:
        kernel = KERNEL.format(BUILT)
        self.type(
            f"gnt-instance add -t diskless -n {node} --net {net} -H {kernel} {name}"
        )

    def inside(self, name: str, command: str) -> str:
        (row,) = self.ask(f"gnt-instance list -o uuid,pnode {name}")
        channel = self.path / row["pnode"] / "run" / "kvm" / row["uuid"] / "channel"

        async def run() -> str:
            async with Guest(channel) as guest:
                return await guest.run(command)

        return asyncio.run(run())


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    build(BUILT)
    with tempfile.TemporaryDirectory(prefix="street-") as path:
        made = Street(Path(path))
        try:
            made.lay()
            made.start_agents()
            made.found()
            yield made
        finally:
            made.end()


def addressed(street: Street, name: str, address: str, card: str = "eth0") -> None:
    street.inside(
        name, f"ip addr add {address}/24 dev {card}; ip link set {card} up; sleep 0.2"
    )


def test_guests_ping_each_other_while_one_migrates(street: Any) -> None:
    street.type("gnt-network add --network=192.0.2.0/28 --gateway=192.0.2.14 lan")
    street.type("gnt-network connect -N mode=bridged,link=br0 lan default")
    for name, node in (("here", "node1"), ("there", "node2")):
        street.add(name, node, "0:network=lan,ip=pool")
    rows = street.ask("gnt-instance list -o name,nic.ip/0,nic.mac/0")
    ips = {row["name"]: row["nic.ip/0"] for row in rows}
    assert set(ips.values()) == {"192.0.2.1", "192.0.2.2"}
    for name, address in ips.items():
        addressed(street, name, address)
    ping = f"ping -c 3 -i 0.2 -W 5 {ips['there']}"
    assert " 0% packet loss" in street.inside("here", ping)
    street.inside(
        "here", f"(ping -i 0.2 {ips['there']} >/tmp/pings 2>&1; echo) >/dev/null 2>&1 &"
    )
    began = time.monotonic()
    moved = json.decode(street.type("gnt-instance migrate -f --json there"))["result"]
    took = 1000 * (time.monotonic() - began)  # a busy machine is slow in all of it
    assert " 0% packet loss" in street.inside("here", ping)
    street.inside("here", "kill -INT $(pidof ping); sleep 0.3")
    told = street.inside("here", "cat /tmp/pings")
    sent, received = map(int, re.findall(r"(\d+) packets", told)[:2])
    lost = 200 * (sent - received)  # milliseconds
    assert lost <= moved["downtime_ms"] + max(_SETTLING, took), (moved, told)
    assert received > 5
    assert "tap" not in inside_space("mrgnet2", "ls", "/sys/class/net")
    assert street.ask("gnt-cluster verify")["errors"] == []


def test_cards_are_plugged_connected_anew_and_unplugged(street: Any) -> None:
    """Both guests are those of the test before, or new ones."""
    street.type("gnt-network add --network=198.51.100.0/28 back")
    street.type("gnt-network connect -N mode=bridged,link=br0 back")
    for name, node in (("left", "node1"), ("right", "node2")):
        street.add(name, node, "0:link=br0")
        street.type(f"gnt-instance modify --net add:network=back,ip=pool {name}")
    (left, right) = street.ask("gnt-instance list -o nic.ip/1,nic.mac/1 left right")
    for name, row in (("left", left), ("right", right)):
        wait = "while ! ip link show eth1 >/dev/null 2>&1; do usleep 50000; done"
        street.inside(name, wait)
        addressed(street, name, row["nic.ip/1"], "eth1")
        assert row["nic.mac/1"] in street.inside(
            name, "cat /sys/class/net/eth1/address"
        )
    ping = f"ping -c 2 -i 0.2 -W 5 {right['nic.ip/1']}"
    assert " 0% packet loss" in street.inside("left", ping)
    street.type("gnt-instance migrate -f left")
    assert " 0% packet loss" in street.inside("left", ping)
    street.type("gnt-instance modify --net 0:remove left")
    assert street.inside("left", "ls /sys/class/net").split() == ["eth1", "lo"]
    taps = [one for one in members("mrgnet2") if one.startswith("tap")]
    assert len(taps) == 2 + len(street.ask("gnt-instance list -o name 'there'"))
    street.type("gnt-instance shutdown --timeout 0 left right")


def test_a_guest_is_not_heard_in_its_neighbours_name(street: Any) -> None:
    """Nor after a migration; honest packets are heard all the time."""
    street.type("gnt-network add --network=203.0.113.64/28 held")
    street.type("gnt-network connect -N mode=bridged,link=br0,filter=ip held default")
    for name, node in (("honest", "node1"), ("liar", "node2")):
        street.add(name, node, "0:network=held,ip=pool")
    honest, liar = street.ask("gnt-instance list -o nic.ip/0,nic.mac/0 honest liar")
    for name, row in (("honest", honest), ("liar", liar)):
        addressed(street, name, row["nic.ip/0"])
    forged = "203.0.113.77"  # nobody's, so that nobody else answers for it
    street.inside("liar", f"ip addr add {forged}/24 dev eth0")
    mine, short = (f"ping -c 2 -W {n} {honest['nic.ip/0']}" for n in (5, 1))

    def check() -> None:
        assert " 0% packet loss" in street.inside("liar", mine)
        lost = street.inside("honest", f"ping -c 1 -W 1 {forged}; true")
        assert "100% packet loss" in lost
        lost = street.inside("liar", f"{short} -I {forged}; true")
        assert "100% packet loss" in lost
        other = (
            "ip link set eth0 down; ip link set eth0 address {}; ip link set eth0 up"
        )
        street.inside("liar", other.format("aa:00:00:00:00:99"))
        lost = street.inside("liar", f"{short}; true")
        assert "100% packet loss" in lost
        street.inside("liar", other.format(liar["nic.mac/0"]))
        assert " 0% packet loss" in street.inside("liar", mine)

    check()
    street.type("gnt-instance migrate -f liar")
    check()
    assert "tap" not in inside_space("mrgnet2", "nft", "list", "ruleset")
    street.type("gnt-instance shutdown --timeout 0 honest liar")
    assert "tap" not in inside_space("mrgnet1", "nft", "list", "ruleset")


def members(space: str) -> list[str]:
    return inside_space(space, "ls", "/sys/class/net/br0/brif").split()


def test_a_routed_guest_is_reached_through_its_node(street: Any) -> None:
    street.add("far", "node1", "0:mode=routed,ip=203.0.113.9")
    street.inside(
        "far",
        "ip addr add 203.0.113.9/32 dev eth0; ip link set eth0 up; "
        f"ip route add {NET}.0/24 dev eth0",
    )
    ping = ("busybox", "ping", "-c", "2", "-i", "0.2", "-W", "5", "203.0.113.9")
    assert " 0% packet loss" in inside_space("mrgnet1", *ping)
    street.type("gnt-instance migrate -f far")
    assert " 0% packet loss" in inside_space("mrgnet2", *ping)
    assert "203.0.113.9" not in inside_space("mrgnet1", "ip", "route")
    street.type("gnt-instance remove -f far")
    assert "203.0.113.9" not in inside_space("mrgnet2", "ip", "route")


def test_a_script_connects_cards_instead(street: Any) -> None:
    """A guest with a card of another make, and a node that lacks the bridge."""
    script = street.path / "etc" / "kvm-ifup-custom"
    script.write_text(
        "#!/bin/sh -e\nip link set $INTERFACE master br0 up\n"
        f"echo $INSTANCE $MODE $LINK $NETWORK_NAME >> {street.path}/told\n"
    )
    script.chmod(0o755)
    try:
        street.add("scripted", "node1", "0:link=br0,mac=aa:00:00:00:00:77")
        told = (street.path / "told").read_text()
        assert told == "scripted bridged br0\n"
        street.type("gnt-instance remove -f scripted")
    finally:
        script.unlink()
    kernel = KERNEL.format(BUILT)
    said = street.refused(
        f"gnt-instance add -t diskless -n node1 --net 0:link=br9 -H {kernel} lost"
    )
    assert "node1: it has no bridge br9" in said
