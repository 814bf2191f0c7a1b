# SPDX-License-Identifier: BSD-2-Clause
"""Three masters over a real etcd, one of which leads, and what happens to that one."""

import json
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import clocks
import pytest
from askers import Asker, History
from checker import Obeyed
from clocks import Wall
from etcd_ways import Way

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_messages import encode_request
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from support.etcd_members import Members
from support.masters import kill, on, places

NAMES = ("node1", "node2", "node3")
OBJECTS = tuple(f"i{number}" for number in range(8))
"""Instances; a disk is called as one of them, and ``d``."""
FIRST = 128
"""Memory of the instances at first, in MiB."""
LEASE = 2
LONG = 60.0
_TRIES = 3
"""How often a lead may go by itself, as on a busy machine, while its clock jumps."""

_LATE = 5
"""Clients that ask a master while it stands still."""


@dataclass(frozen=True)
class Blow:
    """What happens to the master that leads.

    Attributes
    ----------
    master
        ``kill``. Or ``stop``: no connection is closed, as when a machine loses its
        power; it goes on later. Or ``cut``: its ways to etcd let nothing through.
    member
        What etcd's leader gets at the same moment.
    wall
        Whether the wall clock of the master's node jumps before, by hours, ahead and
        back; it stays as wrong.
    start
        Whether who is killed starts again with another monotonic clock.
    """

    master: str
    member: signal.Signals | None = None
    wall: bool = False
    start: bool = False


BLOWS = {
    "stop": Blow("stop"),
    "wall clock, cut": Blow("cut", wall=True),
    "kill, other monotonic clock": Blow("kill", start=True),
    "cut": Blow("cut"),
    "kill": Blow("kill"),
    "kill both": Blow("kill", signal.SIGKILL),
    "kill, stop member": Blow("kill", signal.SIGSTOP),
    "kill both, other monotonic clocks": Blow("kill", signal.SIGKILL, start=True),
    "wall clock, stop": Blow("stop", wall=True),
}


class Town:
    """Three masters over three members of etcd, each with ways of its own there.

    Attributes
    ----------
    faults
        What masters did wrong while something happened to them.
    """

    def __init__(self, path: Path, etcd: Members, dice: Random) -> None:
        self.etcd = etcd
        self.faults: list[str] = []
        self._dice = dice
        made = clocks.library(path.with_name("wall_clock.so"))
        self.walls = {
            name: Wall(path.with_name(f"{name}.clock"), made) for name in NAMES
        }
        ports = [urlsplit(url).port or 0 for url in etcd.clients]
        self.ways = {name: [Way(port) for port in ports] for name in NAMES}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(process, "command", self._agent)
            self.scratch = devcluster.up(path, nodes=3, hypervisor="sim", bare=True)
        self.hands = self._on("node1")

    def _agent(self, word: str, directory: str) -> list[str]:
        """Return the command of an agent, with its node's clock, that is looked at."""
        clock = self.walls[Path(directory).name].environ
        eye = [sys.executable, str(Path(__file__).parent / "eye.py"), process.WORD]
        return ["env", *(f"{k}={v}" for k, v in clock.items()), *eye, word, directory]

    def _on(self, name: str) -> Typist:
        """Return hands on a node, whose masters have its clock."""
        return on(self.scratch, name, self.walls[name].environ)

    def found(self) -> None:
        """Make the cluster, its masters, and what clients change."""
        file = self._settings("node1", {"prefix": "/demo", "lease": LEASE})
        shared = "--shared-file-storage-dir=/shared"
        self.hands.type(
            f"gnt-cluster init --store {file} {shared} --node-name node1 demo"
        )
        self._furnish()
        for name in NAMES[1:]:
            self.hands.type(f"gnt-node add {name}")
            key = self.scratch.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, LONG)
        given = json.loads(self.scratch.master.etcd.read_text())
        for name in NAMES[1:]:
            file = self._settings(name, given)
            self._on(name).type(f"moorage master wait --store {file}")

    def _furnish(self) -> None:
        nothing = {"disk_template": "diskless", "disks": [], "nics": []}
        given = {"mode": "create", "pnode": "node1", "start": False, **nothing}
        file = {"disk_template": "sharedfile", "size": 1}
        asker = Asker(History(), self.sockets[:1], (), "")
        for one in OBJECTS:
            instance = {"OP_ID": "OP_INSTANCE_CREATE", "no_install": True, **given}
            named = {"instance_name": one, "beparams": {"memory": FIRST}}
            disk = {"OP_ID": "OP_DISK_ADD", "name": f"{one}d", **file}
            for op in (instance | named, disk):
                assert asker.end(asker.connected().submit_job([op])) == "success"
        asker.away()

    def _settings(self, name: str, given: dict[str, object]) -> Path:
        ends = [f"http://127.0.0.1:{way.port}" for way in self.ways[name]]
        file = self.scratch.path / f"etcd-{name}.json"
        file.write_text(json.dumps(given | {"endpoints": ends}))
        return file

    @property
    def sockets(self) -> list[str]:
        """Where masters answer."""
        return [str(places(self.scratch, name).socket) for name in NAMES]

    def leader(self) -> str:
        """Return which master leads, as soon as one does."""
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            for name in NAMES:
                if self._leads(name):
                    return name
            time.sleep(0.05)
        raise AssertionError("nobody leads")

    def _leads(self, name: str) -> bool:
        with LuxiClient(str(places(self.scratch, name).socket), 1.0) as luxi:
            try:
                luxi.query("node", ["name"])
            except Exception:  # noqa: BLE001 - whatever keeps it from an answer
                return False
        return True

    def moved(self, before: int) -> bool:
        """Wait until a node obeys a later term; return whether one does."""
        return process.wait_until(lambda: self.term() > before, LONG)

    def obeyed(self) -> list[Obeyed]:
        """Return what the agents wrote down."""
        found = []
        for name in NAMES:
            text = (self.scratch.node(name).root / "obeyed").read_text()
            for line in text.splitlines():
                at, term = line.split()
                found.append(Obeyed(float(at), int(term), name))
        return found

    def term(self) -> int:
        """Return the newest term that a node has obeyed."""
        ends = []
        for name in NAMES:
            with (self.scratch.node(name).root / "obeyed").open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - 200, 0))
                ends.append(int(file.read().split()[-1]))
        return max(ends)

    def close(self) -> None:
        """End masters and agents, and remove what they wrote."""
        for name in NAMES:
            self._on(name)._run("moorage master stop", shown=False)
        devcluster.down(self.scratch.path)
        for way in (way for ways in self.ways.values() for way in ways):
            way.close()

    def strike(self, blow: Blow) -> Callable[[], None]:
        """Let something happen to who leads; return what mends it."""
        name, pid = self._jumped() if blow.wall else self._led()
        member = self.etcd.leader() if blow.member else None
        words = clocks.other_start(self._dice) if blow.start else []
        if blow.master == "cut":
            mend = self._cut(name, pid)
        elif blow.master == "stop":
            mend = self._stop(name, pid)
        else:
            mend = self._kill(name, pid, words)
        if blow.member is None or member is None:
            return mend
        self.etcd.signal(member, blow.member)
        return partial(self._again, mend, member, blow, words)

    def _cut(self, name: str, pid: int) -> Callable[[], None]:
        for way in self.ways[name]:
            way.cut()

        def mend() -> None:
            if not process.wait_until(lambda: not process.alive(pid), LEASE):
                fault = f"the master on {name} leads on, though it is cut off"
                self.faults.append(fault)
            for way in self.ways[name]:
                way.mend()

        return mend

    def _stop(self, name: str, pid: int) -> Callable[[], None]:
        os.kill(pid, signal.SIGSTOP)
        late = self._asked(name)

        def mend() -> None:
            os.kill(pid, signal.SIGCONT)
            self._judge_late(name, late)

        return mend

    def _kill(self, name: str, pid: int, words: list[str]) -> Callable[[], None]:
        """Kill a master; with its supervisor if it is to start with `words` before."""
        if not words:
            os.kill(pid, signal.SIGKILL)
            return lambda: None
        kill(places(self.scratch, name))

        def mend() -> None:
            self._on(name).type(shlex.join([*words, "moorage", "master", "start"]))

        return mend

    def _led(self) -> tuple[str, int]:
        """Return which master leads, and its process."""
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            name = self.leader()
            pid = process.holder(places(self.scratch, name).lock)
            if pid:
                return name, pid
        raise AssertionError("nobody leads for long")

    def _jumped(self) -> tuple[str, int]:
        """Let the wall clock of who leads jump ahead, which costs no lead, and back.

        Return who leads then, with a clock that is hours behind.
        """
        for _ in range(_TRIES):
            name, pid = self._led()
            self.walls[name].set(clocks.ahead(self._dice))
            kept = not process.wait_until(lambda pid=pid: not process.alive(pid), 1.0)
            self.walls[name].set(-clocks.ahead(self._dice))
            if kept:
                return name, pid
        self.faults.append(f"{_TRIES} masters lost the lead to their wall clock")
        return self._led()

    def _asked(self, name: str) -> list[socket.socket]:
        """Return clients that have asked a master that stands still."""
        request = encode_request("Query", ["instance", ["name"], None])
        links = [socket.socket(socket.AF_UNIX) for _ in range(_LATE)]
        for link in links:
            link.settimeout(LONG)
            link.connect(str(places(self.scratch, name).socket))
            link.sendall(request)
        return links

    def _judge_late(self, name: str, links: list[socket.socket]) -> None:
        """Note it if a master that goes on says a word, though another one leads."""
        said = 0
        for link in links:
            with link, suppress(ConnectionError):
                said += bool(link.recv(1))
        if said:
            self.faults.append(
                f"the master on {name} stood still, and answered {said} times, though "
                "another one led"
            )

    def _again(
        self, mend: Callable[[], None], member: int, blow: Blow, words: list[str]
    ) -> None:
        mend()
        if blow.member == signal.SIGKILL:
            self.etcd.start(member, words)
        else:
            self.etcd.signal(member, signal.SIGCONT)
        self.etcd.wait()
