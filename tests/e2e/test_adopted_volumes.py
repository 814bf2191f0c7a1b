# SPDX-License-Identifier: BSD-2-Clause
"""Whoever dies, and wherever: a volume that was there before its disk is there after.

Each request is tried with a master that dies at every point, and with an agent that is
killed at every command, and each of these with a later step that fails and without.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.machine import NAMED

pytestmark = pytest.mark.memory

MINE = {"size": 64, "dev_type": "ext", "name": "mine"}
BAD = {"size": 64, "dev_type": "ext", "provider": "plainsan", "name": "bad"}
REUSED = {**MINE, "provider": "named", "reuse_data": "True"}
ADOPTED = {**MINE, "provider": "namedlist", "adopt": "mine"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "modify": (
        "OP_INSTANCE_SET_PARAMS",
        {
            "instance_name": "web1",
            "disks": [["add", "-1", REUSED], ["add", "-1", BAD]],
        },
    ),
    "modify running": (
        "OP_INSTANCE_SET_PARAMS",
        {
            "instance_name": "up1",
            "disks": [["add", "-1", ADOPTED], ["add", "-1", BAD]],
        },
    ),
    "instance": (
        "OP_INSTANCE_CREATE",
        {"instance_name": "web2", "pnode": "node1", "disks": [ADOPTED, REUSED | BAD]},
    ),
    "disk": (
        "OP_DISK_ADD",
        {
            "name": "mine",
            "disk_template": "ext",
            "provider": "named",
            "size": 64,
            "params": {"reuse_data": True},
        },
    ),
    "convert": ("OP_DISK_CONVERT", {"disk": "mine", "disk_template": "sharedfile"}),
    "clone": ("OP_DISK_CLONE", {"disk": "mine", "new_name": "copy"}),
    "snapshot": ("OP_DISK_SNAPSHOT", {"disk": "mine", "new_name": "copy"}),
}
FAILS = pytest.mark.parametrize(
    "fails",
    [
        "create",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("", "attach")),
    ],
)
"""The script that fails for the other disk, and for the adopted one where it is run."""
HAS_DISK = {"convert", "clone", "snapshot"}


async def started(directory: Path, what: str) -> SimCluster:
    """Return a cluster with a volume of somebody's, adopted before where need be."""
    cluster = await SimCluster.start(
        directory, ClusterBuilder().instance("web1").instance("up1")
    )
    for node in cluster.nodes.nodes.values():
        node.machine.installed += NAMED
    provider = "san" if what == "snapshot" else "named"
    volume = {"size": 64, "provider": provider, "data": "precious"}
    cluster.nodes.san.volumes["mine"] = volume
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="up1")
    if what in HAS_DISK:
        known = {"name": "mine", "disk_template": "ext", "provider": provider}
        await cluster.run("OP_DISK_ADD", **known, size=64, adopt="mine")
    return cluster


def watched(
    cluster: SimCluster, fails: str, then: Callable[[str, int], None] | None = None
) -> list[str]:
    """Let the scripts that make other disks fail; return the commands that are run."""
    ran: list[str] = []

    def refuse(node: str, command: Command) -> bool:
        program = PurePosixPath(command.argv[0])
        ran.append(program.name)
        if then:
            then(node, len(ran) - 1)
        whose = program.parent.name
        return program.name == fails and (whose == "plainsan" or fails == "attach")

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = refuse
    return ran


def kept(cluster: SimCluster) -> None:
    assert cluster.nodes.san.volumes["mine"]["data"] == "precious"


@FAILS
@pytest.mark.parametrize("what", REQUESTS)
async def test_a_master_that_dies(tmp_path: Path, what: str, fails: str) -> None:
    op_id, fields = REQUESTS[what]
    for point in count():
        cluster = await started(tmp_path / f"{point}", what)
        watched(cluster, fails)
        cluster.crash_at = len(cluster.points) + point
        try:
            await cluster.finished(await cluster.submit(op_id, **fields))
        except Crash:
            await cluster.crash()
        else:
            kept(cluster)
            await cluster.stop()
            return
        cluster.crash_at = None
        await cluster.boot()
        for number in list(cluster.engine.jobs):
            await cluster.finished(number)
        kept(cluster)
        await cluster.stop()


@FAILS
@pytest.mark.parametrize("what", REQUESTS)
async def test_an_agent_that_is_killed(tmp_path: Path, what: str, fails: str) -> None:
    op_id, fields = REQUESTS[what]
    for at in count():
        cluster = await started(tmp_path / f"{at}", what)

        def kill(
            node: str, number: int, at: int = at, it: SimCluster = cluster
        ) -> None:
            if number == at:
                it.nodes.kill_agent(node)

        ran = watched(cluster, fails, kill)
        await cluster.finished(await cluster.submit(op_id, **fields))
        kept(cluster)
        await cluster.stop()
        if len(ran) <= at:
            return
