# SPDX-License-Identifier: BSD-2-Clause
"""Crashes while a node joins: it is in the cluster, or it waits to be let in.

The master and the agent are processes; the nodes are simulated.
"""

import io
import os
import signal
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from support.sampling import EVERY_OTHER, sampled

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Scratch]:
    """Return a cluster of one node, and an agent that waits to be let in."""
    at = tmp_path / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim --bare")
        found = devcluster.read(at)
        Typist(found.environment(), io.StringIO()).type(
            "gnt-cluster init --node-name node1 demo"
        )
        yield found
    finally:
        if at.exists():
            devcluster.down(at)


def kill(pid_file: Path) -> None:
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(pid), 30)


def moments(bare: Scratch) -> dict[str, Path]:
    """Return files whose appearance tells how far the node has come."""
    node = bare.node("node2")
    return {
        "when it was asked": node.token,
        "when it knows the cluster": node.keys / "ca.pem",
        "when it has joined": node.keys / "node.pem",
        "when it serves": node.serving,
    }


MOMENTS = (
    "when it was asked",
    "when it knows the cluster",
    "when it has joined",
    "when it serves",
)
MISHAPS = sampled(list(product(MOMENTS, ("master", "agent", "both"))), EVERY_OTHER)


@pytest.mark.parametrize(("moment", "victims"), MISHAPS)
def test_a_crash_in_the_middle_can_be_repeated(
    bare: Scratch, moment: str, victims: str
) -> None:
    hands = Typist(bare.environment(), io.StringIO())
    token = devcluster.token(bare, "node2")
    hands.type(f"gnt-node add --submit --token {token} node2")
    there = moments(bare)[moment]
    process.wait_until(there.exists, 30)
    if victims != "agent":
        kill(bare.master.pid)
    if victims != "master":
        kill(bare.node("node2").pid)
        devcluster.start_agent(bare, "node2")
    if victims != "agent":
        hands.type("moorage master start")

    def over() -> bool:
        jobs = hands.ask("gnt-job list -o status")
        return all(job["status"] in ("success", "error", "canceled") for job in jobs)

    assert process.wait_until(over, 90)
    names = [node["name"] for node in hands.ask("gnt-node list -o name")]
    if names == ["node1"]:
        assert process.wait_until(bare.node("node2").token.exists, 30)
        hands.type(f"gnt-node add --token {devcluster.token(bare, 'node2')} node2")
    assert process.wait_until(
        lambda: all(one["mtotal"] for one in hands.ask("gnt-node list -o mtotal")), 30
    )
    assert len(hands.ask("gnt-node list -o name")) == 2
