# SPDX-License-Identifier: BSD-2-Clause
"""A scratch cluster that is there: its note, what its shell needs, and its end.

:mod:`devcluster` starts one, and loads all that founds a cluster.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from moorage.errors import Failed

from . import cleanup, process, scratch_note
from .paths import MasterPlaces, NodePlaces


class Scratch(Struct, frozen=True, kw_only=True):
    """A scratch cluster, as its directory keeps it.

    Attributes
    ----------
    hypervisor
        ``kvm``, ``fake`` or ``sim``.
    network
        The first three parts of its nodes' addresses.
    guest
        Directory of the tiny guest's kernel; empty without ``kvm``.
    """

    root: str
    nodes: int
    hypervisor: str
    network: str
    guest: str = ""

    @property
    def path(self) -> Path:
        """The cluster's directory."""
        return Path(self.root)

    @property
    def master(self) -> MasterPlaces:
        """The master's directory."""
        return MasterPlaces(self.path / "master")

    @property
    def names(self) -> list[str]:
        """Names of the nodes; the first one is the master's."""
        return [f"node{number}" for number in range(1, self.nodes + 1)]

    def node(self, name: str) -> NodePlaces:
        """Return a node's directory."""
        return NodePlaces(self.path / name)

    def address(self, name: str) -> str:
        """Return a node's address."""
        return f"{self.network}.{self.names.index(name) + 1}"

    def environment(self) -> dict[str, str]:
        """Return the variables by which commands find the cluster."""
        found = {
            "MOORAGE_DIR": str(self.master.root),
            "MOORAGE_SOCKET": str(self.master.root / "luxi.sock"),
            "MOORAGE_TOKENS": self.root,
            "PATH": f"{programs()}:{os.environ.get('PATH', '')}",
        }
        return found | ({"MOORAGE_GUEST": self.guest} if self.guest else {})


def programs() -> str:
    """Return the directory of the programs that belong to this Python."""
    return str(Path(sys.executable).parent)


def read(root: Path) -> Scratch:
    """Return the scratch cluster of a directory; see :func:`scratch_note.read`."""
    note = root / "scratch.json"
    return scratch_note.read(note, Scratch, "cluster", hint=f"moorage up {root}")


def shell(scratch: Scratch) -> str:
    """Return the environment as shell commands."""
    return scratch_note.shell(scratch.environment())


def lose_power(scratch: Scratch, name: str) -> int:
    """Kill all that runs on a node, at once, as a power loss does.

    Returns the number of processes that were killed. Their memory is gone; what the
    node wrote stays, but for what a real machine keeps in ``/run``.
    """
    killed = 0
    while pids := list(cleanup.processes(scratch.path, f"/{name}")):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        gone = process.wait_until(lambda: not any(map(process.alive, pids)), 60.0)
        if not gone:
            raise Failed(f"a process of {name} does not die: {pids}")
    for record in (scratch.path / "run-loop" / name).glob("*"):
        ask = ["losetup", "--detach", record.read_text().strip()]
        subprocess.run(ask, capture_output=True, check=False)
    for volatile in ("run-loop", "run-qsd"):
        shutil.rmtree(scratch.path / volatile / name, ignore_errors=True)
    for volatile in ("held", "kvm"):
        shutil.rmtree(scratch.node(name).run / volatile, ignore_errors=True)
    return killed


def down(root: Path) -> None:
    """End a scratch cluster: no process, loop device or file of it is left.

    Raises
    ------
    NotFound
        If there is none in that directory.
    """
    scratch = read(root)
    path = scratch.path
    process.end_all(cleanup.processes(path), patience=5.0)
    while left := list(cleanup.processes(path)):
        process.end_all(left, patience=0.0)
    cleanup.free_loops(path)
    shutil.rmtree(path)
