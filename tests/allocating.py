# SPDX-License-Identifier: BSD-2-Clause
"""Allocators for tests: programs in a directory that everybody may look into."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.node.extensions.allocators import Allocators
from moorage.testing.cluster import ClusterBuilder, SimCluster

SAN = {"disk_template": "ext", "disks": [{"size": 64, "provider": "san"}]}
MIRRORED = {"disk_template": "drbd", "disks": [{"size": 64}]}
HAIL = Path("/usr/lib/ganeti/iallocators/hail")
"""Ganeti's own, of Debian's package ganeti-htools."""
needs_hail = pytest.mark.skipif(
    not HAIL.exists(), reason="ganeti-htools is not installed"
)


class Shelf:
    """A directory of allocators.

    Attributes
    ----------
    path
        The directory. Guests' users, as whom allocators run, can read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = path / "seen"
        self._seen.mkdir(mode=0o777)
        self._seen.chmod(0o777)

    def program(self, name: str, text: str, mode: int = 0o755) -> Path:
        """Put a program there."""
        found = self.path / name
        found.write_text(text)
        found.chmod(mode)
        return found

    def shell(self, name: str, text: str) -> None:
        """Put a shell script there; its first word is the message's path."""
        self.program(name, f"#!/bin/sh\n{text}\n")

    def ganetis(self, name: str) -> None:
        """Put Ganeti's hail there: it goes by its own name, so it is called by it."""
        self.shell(name, f'exec {HAIL} "$@"')

    def says(self, name: str, answer: Any) -> None:
        """Put an allocator there that answers the same to everybody."""
        self.shell(
            name, f"cp $1 {self._seen}/{name}\ncat <<'END'\n{json.dumps(answer)}\nEND"
        )

    def names(self, name: str, *nodes: str) -> None:
        """Put an allocator there that names the same nodes to everybody."""
        self.says(name, {"success": True, "info": "chosen", "result": list(nodes)})

    def moves(self, name: str, moved: dict[str, list[str]], *failed: str) -> None:
        """Put an allocator there that sends instances to nodes."""
        gone = [[one, "default", nodes] for one, nodes in moved.items()]
        stuck = [[one, "it is bound"] for one in failed]
        self.says(name, {"success": True, "info": "", "result": [gone, stuck, []]})

    def seen(self, name: str) -> Any:
        """Return the message that an allocator got last."""
        return json.loads((self._seen / name).read_text())


@contextmanager
def shelf() -> Iterator[Shelf]:
    """Yield a directory for allocators that root's runner will trust."""
    place = Path(tempfile.mkdtemp(prefix="allocators."))
    place.chmod(0o755)
    try:
        yield Shelf(place)
    finally:
        shutil.rmtree(place)


async def asks(tmp_path: Path, programs: Shelf, builder: ClusterBuilder) -> SimCluster:
    """Start a cluster whose master finds the programs."""
    sim = await SimCluster.start(tmp_path, builder)
    sim.nodes.nodes["node1"].machine.allocators = Allocators([programs.path])
    return sim


async def add(sim: SimCluster, name: str, who: str | None = None, **more: Any) -> Any:
    """Add an instance where an allocator says; return its nodes."""
    fields = SAN | {"instance_name": name, "beparams": {"memory": 1024}} | more
    return await sim.run("OP_INSTANCE_CREATE", iallocator=who, **fields)


def home(sim: SimCluster, name: str) -> str:
    """Return the name of an instance's primary node."""
    return sim.config.instance(name).primary_node
