# SPDX-License-Identifier: BSD-2-Clause
"""A cluster of real processes, what can be broken of it, and its files."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import rooms
from msgspec.structs import replace
from proxy import Proxies
from truth import Files, Qemu

from moorage.api.luxi import LuxiClient
from moorage.daemons import bootstrap, cleanup, process
from moorage.daemons import devcluster as scratches
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.errors import MoorageError
from moorage.model.token import from_text, to_text

INSIDE = 1812
"""The port at which agents truly listen."""
FINISHED = ("success", "error", "canceled")


class Yard:
    """A scratch cluster whose agents are reached through proxies.

    Parameters
    ----------
    guest
        Directory of the tiny guest, for real guests; else they are fakes.
    slow
        Longest pause of the slow provider's scripts, in ms.

    Attributes
    ----------
    truth
        What is really there.
    kills
        How many masters and agents were killed; a master and its supervisor are one.
    leader
        The node whose master leads, or is to.
    """

    over_etcd = False
    """Whether the state is in etcd, and masters on other nodes wait."""
    store = ""
    """What says where in etcd; empty for a file of SQLite's."""

    def __init__(self, root: Path, *, nodes: int, slow: int, guest: str = "") -> None:
        self.scratch: Scratch = scratches.up(
            root / "c",
            nodes=nodes,
            hypervisor="kvm" if guest else "fake",
            guest=guest,
            bare=True,
        )
        self.leader = self.scratch.names[0]
        self.kills: Counter[str] = Counter()
        os.environ.update(self.scratch.environment())
        try:
            self._begin()
        except BaseException:
            self.end()
            raise
        self.truth: Files | Qemu = (
            Qemu(self.scratch) if guest else Files(self.scratch, slow)
        )

    def _begin(self) -> None:
        """Put proxies before the agents, and make the cluster of them."""
        addresses = {name: self.scratch.address(name) for name in self.scratch.names}
        self._behind_proxies()
        self.proxies = Proxies(addresses, scratches.PORT, INSIDE)
        self._found()

    def _behind_proxies(self) -> None:
        """Let the agents listen at another port than the one that they are known by."""
        for name in self.scratch.names:
            places = self.scratch.node(name)
            process.end(int(places.pid.read_text()))
            settings = json.loads(places.settings.read_text())
            places.settings.write_text(json.dumps(settings | {"port": INSIDE}))
            if rooms.there():
                for path in (places.run, places.run / "state", self.places(name).root):
                    rooms.mount(path)
            scratches.start_agent(self.scratch, name)

    def _found(self) -> None:
        """Make the cluster; its nodes are known by the proxies' port."""
        tokens = {
            name: to_text(
                replace(
                    from_text(scratches.token(self.scratch, name)), port=scratches.PORT
                )
            )
            for name in self.scratch.names
        }
        first, *others = self.scratch.names
        settings = scratches.cluster_settings(self.scratch) | {"node_name": first}
        bootstrap.init(
            "chaos", settings=settings, token=tokens[first], store=self.store
        )
        for name in others:
            with self.luxi() as luxi:
                add = {"OP_ID": "OP_NODE_ADD", "node_name": name, "token": tokens[name]}
                job = luxi.submit_job([add])
                state: list[Any] = [None]
                while state[0] not in FINISHED:
                    change = luxi.wait_for_job_change(job, ["status"], (state, None), 5)
                    state = state if change == "nochange" else change[0]
                assert state[0] == "success", state

    def close(self) -> None:
        """End everything."""
        self.end()
        self.proxies.close()
        rooms.unmount(self.scratch.path)
        scratches.down(self.scratch.path)

    def end(self) -> None:
        """End all processes; the files stay."""
        while left := list(cleanup.processes(self.scratch.path)):
            for pid in left:
                process.end(pid, patience=2.0)

    # -- asking the cluster -------------------------------------------------------

    def places(self, node: str) -> MasterPlaces:
        """Return the directory of the master of a node, while it has one."""
        if node == self.scratch.names[0]:
            return self.scratch.master
        return MasterPlaces(self.scratch.path / f"master-{node}")

    def luxi(self, timeout: float = 60.0, node: str = "") -> LuxiClient:
        """Return a connection to the master, or to what is left of one on a node."""
        root = self.places(node or self.leader).root
        return LuxiClient(str(root / "luxi.sock"), timeout)

    def answers(self) -> bool:
        """Whether a master answers."""
        try:
            with self.luxi(2.0) as luxi:
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
        root = self.places(node).root
        told = {
            "MOORAGE_DIR": str(root),
            "MOORAGE_SOCKET": str(root / "luxi.sock"),
            "MOORAGE_NODE_DIR": str(self.scratch.node(node).root),
        }
        return subprocess.run(
            [str(Path(sys.executable).parent / argv[0]), *argv[1:]],
            env={**os.environ, **self.scratch.environment(), **told},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    # -- breaking it --------------------------------------------------------------

    def master_pids(self, node: str = "") -> list[int]:
        """Return the processes of the master, a supervisor's included."""
        root = self.places(node or self.leader).root
        return list(_processes("master", str(root)))

    def agent_pid(self, node: str) -> int | None:
        return process.holder(self.scratch.node(node).lock)

    def kill_master(self, *, whole: bool) -> None:
        """Kill the master, with or without the supervisor that starts it again."""
        one = process.holder(self.places(self.leader).lock)
        self.kill(masters=self.master_pids() if whole else [one] if one else [])

    def kill(self, *nodes: str, masters: Collection[int] = ()) -> None:
        """Kill the agents of some nodes, and a master, at one moment; count them."""
        agents = [pid for pid in map(self.agent_pid, nodes) if pid]
        _kill(*masters, *agents)
        self.kills.update(masters=bool(masters), agents=len(agents))

    def lose(self, node: str) -> None:
        """Kill master and agent of a node at one moment."""
        self.kill(node, masters=self.master_pids(node))

    def start_master(self) -> None:
        """Start it; a master that is there already is left alone."""
        for _ in range(20):
            done = self.command("moorage", "master", "start")
            if done.returncode == 0:
                return
            time.sleep(0.5)
        raise AssertionError(f"the master does not start: {done.stderr}")

    def start_agent(self, node: str) -> None:
        scratches.start_agent(self.scratch, node)

    @contextmanager
    def stopped(self, pids: list[int]) -> Iterator[None]:
        """Let processes stand still for a while."""
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Let no write of the master reach a file, as on a full file system."""
        self._limit_files(0)
        try:
            yield
        finally:
            self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, most: int) -> None:
        """Limit the files of all of the master; who was begun since has it, too."""
        limited: set[int] = set()
        while left := set(self.master_pids()) - limited:
            for pid in left:
                with suppress(ProcessLookupError):
                    both = (most, resource.RLIM_INFINITY)
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, both)
            limited |= left

    # -- looking from outside -----------------------------------------------------

    def held(self) -> dict[tuple[str, str], int]:
        """Return the epoch of every disk that an agent holds, by node and uuid."""
        found = {}
        for node in self.scratch.names:
            for path in (self.scratch.node(node).run / "held").iterdir():
                if not path.name.startswith("."):
                    found[node, path.name] = int(json.loads(path.read_text())["epoch"])
        return found

    def fences(self) -> dict[str, int]:
        """Return every fence of every node."""
        found = {}
        for node in self.scratch.names:
            for path in (self.scratch.node(node).run / "fence").iterdir():
                with suppress(FileNotFoundError):  # it was forgotten, or is a draft
                    words = path.read_text().split() if path.name[0] != "." else []
                    if words and words[0].isdecimal():
                        found[f"{node}/{path.name}"] = int(words[0])
        return found

    def stored_jobs(self) -> dict[int, dict[str, Any]]:
        """Return the jobs as the SQLite file has them, without asking the master."""
        jobs = self._records(self.leader, "job")
        return {int(one): json.loads(job) for one, job in jobs if one.isdecimal()}

    def awaited(self, node: str) -> list[str]:
        """Return the candidates (uuids) that have all which a node's master told."""
        return [name for name, _ in self._records(node, "copy")]

    def _records(self, node: str, kind: str) -> list[tuple[str, bytes]]:
        where = f"file:{self.places(node).store}?mode=ro"
        with closing(sqlite3.connect(where, uri=True, timeout=10)) as base:
            (sound,) = base.execute("PRAGMA integrity_check").fetchone()
            assert sound == "ok", sound
            ask = "SELECT name, value FROM records WHERE kind = ?"
            return base.execute(ask, (kind,)).fetchall()

    def scripts_running(self) -> list[str]:
        """Return the provider's scripts that are under way."""
        there = f"{self.truth.scripts.parent}/"
        return [line for _, line in _argvs() if there in line]


def _argvs() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield int(entry.parent.name), line


def _processes(word: str, directory: str) -> Iterator[int]:
    for pid, line in _argvs():
        words = line.split()
        if word in words and directory in words and "python" in words[0]:
            yield pid


def _kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert process.wait_until(lambda: not any(map(process.alive, pids)), 10)
