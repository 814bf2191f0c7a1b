# SPDX-License-Identifier: BSD-2-Clause
"""A cluster of three nodes: two on this machine, and one whose power can be cut."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from emulated import NODE, Machine
from msgspec import json as packed

from moorage.api.luxi import LuxiClient
from moorage.daemons import cleanup, process
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import CommandFailed, MoorageError
from moorage.testing.foreign import run, until

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
AGENT, MASTER = f"{NODE}/agent", f"{NODE}/master"
LUXI = 1812
"""The port at which the emulated node's master is reached from here."""
FORWARD, LOOK = (HERE / f"inside_{name}.py" for name in ("forward", "look"))


class Door:
    """A socket here that leads to the master of the emulated node."""

    def __init__(self, path: Path, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._to = address
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        work = asyncio.start_unix_server(self._link, str(path))
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _link(self, up: asyncio.StreamReader, on: asyncio.StreamWriter) -> None:
        try:
            reach = asyncio.open_connection(self._to, LUXI)
            down, back = await asyncio.wait_for(reach, 3.0)
        except (OSError, TimeoutError):
            on.transport.abort()
            return
        await asyncio.gather(_pipe(up, back), _pipe(down, on))


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.transport.abort()


class Village:
    """The cluster. Looks like a yard to clients and to those who compare.

    Attributes
    ----------
    leader
        The node whose master leads.
    machine
        The node whose power can be cut, ``node2``.
    """

    def __init__(self, built: Path, home: Path) -> None:
        self.home = home
        self.leader = "node1"
        self.scratch = SimpleNamespace(names=["node1", "node2", "node3"], nodes=3)
        self.truth = SimpleNamespace(kept=None, provider="", instance={})
        number = os.getpid() % 60000
        network = f"10.{130 + number // 250 % 100}.{number % 250}"
        self._bridge, self._tap = f"mrgc{os.getpid()}", f"mrgd{os.getpid()}"
        self.addresses = {"node1": f"{network}.1", "node3": f"{network}.3"}
        self.files = home / "files"
        self.files.mkdir(mode=0o700)
        self._wire()
        address = f"{network}.2"
        self.machine = Machine(built, home / "node2", self._tap, "node2", address)
        self._door = Door(home / "luxi2.sock", address)

    def _wire(self) -> None:
        run("ip", "link", "add", self._bridge, "type", "bridge")
        for address in self.addresses.values():
            run("ip", "addr", "add", f"{address}/24", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        run("ip", "tuntap", "add", self._tap, "mode", "tap")
        run("ip", "link", "set", self._tap, "master", self._bridge, "up")

    def close(self) -> None:
        """End everything; the files stay."""
        self.machine.cut_power()
        while left := list(cleanup.processes(self.home)):
            for pid in left:
                process.end(pid, patience=1.0)
        for link in (self._tap, self._bridge):
            subprocess.run(["ip", "link", "del", link], check=False)

    # -- making it ------------------------------------------------------------------

    def found(self) -> None:
        """Make the cluster of the three."""
        tokens = {}
        for name in ("node1", "node3"):
            self.start_agent(name)
            tokens[name] = NodePlaces(self.home / name).token
        self.machine.boot()
        self.machine.run(f"mkdir -m 700 {AGENT} {MASTER} {NODE}/files")
        text = self._settings(self.machine.address).decode()
        self.machine.run(f"echo '{text}' > {AGENT}/agent.json; sync")
        self.start_agent("node2")
        tokens["node2"] = self.home / "node2.token"
        tokens["node2"].touch(mode=0o600)
        tokens["node2"].write_text(self.machine.run(f"cat {AGENT}/join-token"))
        given = ["--enabled-hypervisors=fake", "-N", "link=", "-B", "memory=128M"]
        given += [f"--file-storage-dir={self.files}", "--token-file"]
        self.must("gnt-cluster", "init", *given, str(tokens["node1"]), "village")
        for name in ("node2", "node3"):
            word = ("--token-file", str(tokens[name]))
            self.must("gnt-node", "add", *word, name)

    def _settings(self, address: str) -> bytes:
        paths = self.home / "file-storage-paths"
        told = {"address": address, "hypervisor": "fake"}
        return packed.encode(told | {"file_storage_paths": str(paths)})

    def start_agent(self, node: str) -> None:
        """Start a node's agent, and wait until it serves or waits to be let in."""
        if node == "node2":
            self._start_inside()
            return
        places = NodePlaces(self.home / node)
        if not places.settings.exists():
            (self.home / "file-storage-paths").write_text(f"{self.files}\n")
            places.root.mkdir(mode=0o700)
            places.settings.write_bytes(self._settings(self.addresses[node]))
        process.spawn(["agent", str(places.root)], places.log, places.pid)
        until(places.token.exists, f"the agent of {node} does not come up")

    def _start_inside(self) -> None:
        """Mount what the node needs, and start its agent."""
        inside = self.machine
        paths = f"{self.home}/file-storage-paths"
        inside.run(
            f"mkdir -p {self.files}; mount -o bind {NODE}/files {self.files}; "
            f"echo {self.files} > {paths}; chmod 755 {self.home}; "
            f"cd {AGENT}; rm -f join-token serving run/fake/*.json"
        )
        forward = (sys.executable, "-S", str(FORWARD), str(LUXI), f"{MASTER}/luxi.sock")
        inside.begin("/tmp/forward.log", *forward)
        program = (sys.executable, "-m", "moorage.cli.moorage", "agent", AGENT)
        inside.begin(f"{AGENT}/agent.log", *program)
        wait = f"for n in $(seq 3000); do [ -e {AGENT}/serving ] && exit; "
        wait += f"[ -e {AGENT}/join-token ] && exit; sleep 0.2; done; "
        inside.run(f"{wait} tail -20 {AGENT}/agent.log; exit 1", 900.0)

    # -- asking ---------------------------------------------------------------------

    def places(self, node: str) -> MasterPlaces:
        """Return where a master of this machine is."""
        return MasterPlaces(self.home / f"master-{node}")

    def luxi(self, timeout: float = 60.0, node: str = "") -> LuxiClient:
        """Return a connection to the master."""
        if (node or self.leader) == "node2":
            return LuxiClient(str(self.home / "luxi2.sock"), timeout)
        root = self.places(node or self.leader).root
        return LuxiClient(str(root / "luxi.sock"), timeout)

    def answers(self) -> bool:
        """Whether a master answers."""
        try:
            with self.luxi(5.0) as luxi:
                luxi.query("node", ["name"])
        except (MoorageError, OSError):
            return False
        return True

    def rows(self, what: str, *fields: str) -> list[dict[str, Any]]:
        """Return what the cluster says of all its objects of a kind."""
        with self.luxi() as luxi:
            _, rows = luxi.query(what, fields)
        return [
            dict(zip(fields, (value for _, value in row), strict=True)) for row in rows
        ]

    def command(self, *argv: str, on: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program of the product on a node; on the master's, unless told."""
        node = on or self.leader
        if node == "node2":
            return self._inside(*argv)
        root = self.places(node).root
        told = {
            "MOORAGE_DIR": str(root),
            "MOORAGE_SOCKET": str(root / "luxi.sock"),
            "MOORAGE_NODE_DIR": str(self.home / node),
        }
        return subprocess.run(
            [str(BIN / argv[0]), *argv[1:]],
            env={**os.environ, **told},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def _inside(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program on the emulated node."""
        told = f"MOORAGE_DIR={MASTER} MOORAGE_SOCKET={MASTER}/luxi.sock "
        told += f"MOORAGE_NODE_DIR={AGENT}"
        line = f"{told} {BIN / argv[0]} {' '.join(argv[1:])} 2>&1"
        try:
            return subprocess.CompletedProcess(argv, 0, self.machine.run(line), "")
        except CommandFailed as error:
            return subprocess.CompletedProcess(argv, 1, "", error.message)

    def must(self, *argv: str) -> None:
        """Run one that has to end well."""
        done = self.command(*argv)
        said = done.stdout + done.stderr
        late = "it may still be starting" in said and self.wait_answer()
        assert done.returncode == 0 or late, said

    # -- looking from outside -------------------------------------------------------

    def look(self) -> dict[str, Any]:
        """Return what is on the emulated node's disk."""
        where = f"{AGENT} {MASTER} {NODE}/files"
        told = self.machine.run(f"{sys.executable} -S {LOOK} {where}")
        return dict(json.loads(told))

    def stored_jobs(self) -> dict[int, dict[str, Any]]:
        """Return the jobs as the leader's store has them, without asking it."""
        if self.leader == "node2":
            return jobs_of(self.look()["store"])
        where = f"file:{self.places(self.leader).store}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=10)) as base:
            ask = "SELECT name, value FROM records WHERE kind = 'job'"
            rows = base.execute(ask).fetchall()
        return {
            int(name): json.loads(value) for name, value in rows if name.isdecimal()
        }

    def master_pids(self, node: str) -> list[int]:
        """Return the processes that lead on a node of this machine."""
        places = self.places(node)
        found = (process.holder(one) for one in (places.supervisor, places.lock))
        return [pid for pid in found if pid]

    def lose_master(self, node: str) -> None:
        """Kill a master of this machine."""
        for pid in self.master_pids(node):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.master_pids(node), f"the master on {node} does not die")

    def scripts_running(self) -> list[str]:
        """Return nothing: there are no scripts here."""
        return []

    def wait_answer(self, seconds: float = 600.0) -> bool:
        """Wait until a master answers; return whether one does."""
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True


def jobs_of(said: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Return jobs as a store has them, from what :meth:`Village.look` says."""
    found = said.get("jobs") or {}
    return {
        int(name): {"ops": [{"status": one} for one in states]}
        for name, states in found.items()
    }
