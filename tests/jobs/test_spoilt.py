# SPDX-License-Identifier: BSD-2-Clause
"""A disk that cannot be removed: it stays in sight, and the rest is carried on."""

from moorage.jobs import Job
from moorage.model import Disk
from moorage.testing.cluster import SimCluster

REMOVE = {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web"}


async def removed(cluster: SimCluster, *refused: str, **more: object) -> Job:
    """Remove an instance of the disks a and b, of which storage keeps some."""
    for disk in ("a", "b"):
        await cluster.run("OP_DISK_ATTACH", disk=disk, instance_name="web")
    cluster.nodes.nodes["node1"].machine.refuse = lambda _, command: (
        command.argv[0].endswith("/remove") and command.env["VOL_NAME"] in refused
    )
    number = await cluster.engine.submit([REMOVE | more])
    await cluster.finished(number)
    return cluster.recorded(number)


def became(job: Job) -> dict[str, str]:
    """Return what became of each task that was not done, by what it is."""
    (op,) = job.ops
    assert op.cursor == len(op.tasks) == len(op.results)
    return {op.tasks[at].what: state for at, state in sorted(op.passed.items())}


async def test_the_second_disk_goes_although_the_first_cannot(
    cluster: SimCluster,
) -> None:
    job = await removed(cluster, "vol-a")
    assert job.status == "error"
    assert became(job) == {
        "remove disk a on node1": "failed",
        "forget disk a": "left out",
    }
    (left,) = cluster.config.all(Disk)
    assert (left.name, left.quarantine is not None) == ("a", True)
    assert list(cluster.nodes.san.volumes) == ["vol-a"]


async def test_the_error_is_the_first_one(cluster: SimCluster) -> None:
    job = await removed(cluster, "vol-a", "vol-b")
    assert list(became(job).values()) == ["failed", "left out"] * 2
    error = job.ops[0].error
    assert error
    quarantined = {disk.name: disk.quarantine for disk in cluster.config.all(Disk)}
    assert str(quarantined["a"]).endswith(f"remove disk a on node1: {error['message']}")
    assert str(quarantined["b"]).startswith(f"job {job.id}: remove disk b on node1: ")


async def test_what_may_fail_is_a_warning(cluster: SimCluster) -> None:
    job = await removed(cluster, "vol-b", ignore_failures=True)
    assert job.status == "success"
    log = [entry[3] for entry in job.ops[0].log]
    assert any(line.startswith("Warning: remove disk b on node1: ") for line in log)
    assert any(line.startswith("disk b is quarantined: ") for line in log)
