# SPDX-License-Identifier: BSD-2-Clause
"""Three masters over a real etcd, one of which leads, and what happens to that one."""

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from checker import Obeyed
from etcd_ways import Way

from moorage.api.luxi import LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from support.etcd_members import Members
from support.masters import on, places

NAMES = ("node1", "node2", "node3")
OBJECTS = ("i0", "i1", "i2")
"""Instances; a disk is called as one of them, and ``d``."""
FIRST = 128
"""Memory of the instances at first, in MiB."""
LEASE = 2
LONG = 60.0
MEMBER = {"kill both": signal.SIGKILL, "kill, stop member": signal.SIGSTOP}
"""What etcd's leader gets, when the master that leads is killed."""
EVENTS = ("stop", "cut", "kill", *MEMBER)
"""``stop``: no connection is closed, as when a machine loses its power; it goes on
later. ``cut``: the master's ways to etcd let nothing through."""


class Town:
    """Three masters over three members of etcd, each with ways of its own there."""

    def __init__(self, path: Path, etcd: Members) -> None:
        self.etcd = etcd
        ports = [urlsplit(url).port or 0 for url in etcd.clients]
        self.ways = {name: [Way(port) for port in ports] for name in NAMES}
        words = [sys.executable, str(Path(__file__).parent / "eye.py"), process.WORD]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(process, "command", lambda *more: [*words, *more])
            self.scratch = devcluster.up(path, nodes=3, hypervisor="sim", bare=True)
        self.hands = Typist(self.scratch.environment(), io.StringIO())

    def found(self) -> None:
        """Make the cluster, its masters, and what clients change."""
        file = self._settings("node1", {"prefix": "/demo", "lease": LEASE})
        shared = "--shared-file-storage-dir=/shared"
        self.hands.type(
            f"gnt-cluster init --store {file} {shared} --node-name node1 demo"
        )
        for one in OBJECTS:
            words = "-t diskless --no-nics --no-start --no-install -n node1"
            self.hands.type(f"gnt-instance add {words} -B memory={FIRST}M {one}")
            self.hands.type(f"gnt-disk add -t sharedfile -s 1M {one}d")
        for name in NAMES[1:]:
            self.hands.type(f"gnt-node add {name}")
            key = self.scratch.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, LONG)
        given = json.loads(self.scratch.master.etcd.read_text())
        for name in NAMES[1:]:
            file = self._settings(name, given)
            on(self.scratch, name).type(f"moorage master wait --store {file}")

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
            on(self.scratch, name)._run("moorage master stop", shown=False)
        devcluster.down(self.scratch.path)
        for way in (way for ways in self.ways.values() for way in ways):
            way.close()

    def strike(self, event: str) -> Callable[[], None]:
        """Let something happen to who leads; return what mends it."""
        name = self.leader()
        member = self.etcd.leader() if event in MEMBER else None
        pid = process.holder(places(self.scratch, name).lock)
        assert pid
        if event == "cut":
            for way in self.ways[name]:
                way.cut()
        else:
            os.kill(pid, signal.SIGSTOP if event == "stop" else signal.SIGKILL)
        if member is not None:
            self.etcd.signal(member, MEMBER[event])

        def mend() -> None:
            for way in self.ways[name]:
                way.mend()
            if event == "stop":
                os.kill(pid, signal.SIGCONT)
            if member is not None:
                self._again(member, MEMBER[event])

        return mend

    def _again(self, member: int, what: signal.Signals) -> None:
        if what == signal.SIGKILL:
            self.etcd.start(member)
        else:
            self.etcd.signal(member, signal.SIGCONT)
        self.etcd.wait()
