# SPDX-License-Identifier: BSD-2-Clause
"""Parallel commands on a cluster of processes: master, agents, a socket.

The hypervisor is the fake one, so nothing here needs root or QEMU; the memory is that
of this machine, which each agent reports as its own.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
PATH = {"PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Scratch]:
    at = tmp_path / "c"
    try:
        Typist(PATH, io.StringIO()).type(f"moorage up {at} --nodes 3 --hypervisor fake")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


def told(town: Scratch, line: str) -> str:
    environ = {**os.environ, **PATH, **town.environment()}
    done = subprocess.run(
        line.split(), env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.requirement("S2-13")
def test_five_adds_at_once_are_as_five_in_a_row(town: Scratch) -> None:
    """Each wants most of a node, so three nodes hold two that can lose a node."""
    rows = json.loads(told(town, "gnt-node list --json -o name,mtotal,mnode,mfree"))
    room = min(min(row["mtotal"] - row["mnode"], row["mfree"]) for row in rows)
    environ = {**os.environ, **PATH, **town.environment()}
    words = "gnt-instance add -t diskless --no-nics --ignore-ipolicy --no-install"
    adds = [
        subprocess.Popen(
            [*words.split(), "-B", f"memory={room * 7 // 10}M", f"w{number}"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(5)
    ]
    said = [add.communicate()[0] for add in adds]
    assert sum(add.returncode == 0 for add in adds) == 2, said
    homes = json.loads(told(town, "gnt-instance list --json -o name,pnode"))
    assert len({row["pnode"] for row in homes}) == 2
    assert "No problem found" in told(town, "gnt-cluster verify")
