# SPDX-License-Identifier: BSD-2-Clause
"""Masters die while storage refuses to undo a job: no volume gets out of sight."""

from pathlib import Path
from typing import Any

import pytest

from moorage.model import Disk
from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster

NEW = {"name": "new", "disk_template": "ext", "provider": "san", "size": 8}


async def made(directory: Path) -> SimCluster:
    """Return a cluster of which an instance has two disks."""
    cluster = await SimCluster.start(directory, ClusterBuilder(2).instance("web"))
    for name in ("a", "b"):
        await cluster.run("OP_DISK_ADD", **NEW | {"name": name})
        await cluster.run("OP_DISK_ATTACH", disk=name, instance_name="web")
    return cluster


def refuse(cluster: SimCluster, *scripts: str) -> None:
    def refused(_node: str, command: Command) -> bool:
        return command.argv[0].endswith(scripts)

    for node in cluster.nodes.nodes.values():
        node.machine.refuse = refused


async def ended(cluster: SimCluster, number: int, second: int) -> None:
    """Let the next master die, too, some points on, and another one end the job."""
    await cluster.crash()
    cluster.crash_at = len(cluster.points) + second
    await cluster.boot()
    try:
        await cluster.finished(number)
    except Crash:
        await cluster.crash()
        cluster.crash_at = None
        await cluster.boot()
        await cluster.finished(number)


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [("/remove", "/detach"), ("/attach", "/remove")])
@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("OP_DISK_ADD", NEW),
        ("OP_INSTANCE_REMOVE", {"instance_name": "web"}),
        ("OP_DISK_DETACH", {"disk": "a"}),
    ],
    ids=["add", "remove", "detach"],
)
async def test_every_volume_has_a_record(
    op: str, fields: dict[str, Any], scripts: tuple[str, ...], tmp_path: Path
) -> None:
    cluster = await made(tmp_path / "whole")
    refuse(cluster, *scripts)
    begin = len(cluster.points)
    await cluster.finished(await cluster.submit(op, **fields))
    points = cluster.points[begin:]
    await cluster.stop()
    for at, point in enumerate(points):
        for second in (0, 1, 4):
            cluster = await made(tmp_path / f"{at}-{second}")
            refuse(cluster, *scripts)
            cluster.crash_at = begin + at
            number = await cluster.submit(op, **fields)
            with pytest.raises(Crash):
                await cluster.finished(number)
            await ended(cluster, number, second)
            known = {disk.logical_id[1] for disk in cluster.config.all(Disk)}
            assert set(cluster.nodes.san.volumes) <= known, (point, second)
            for disk in cluster.config.all(Disk):
                tried = f"after remove disk {disk.name} on" in point
                assert disk.quarantine or not tried, (point, second)
            await cluster.stop()
