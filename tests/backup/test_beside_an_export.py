# SPDX-License-Identifier: BSD-2-Clause
"""What comes while an export is written waits until it is whole."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.jobs import Job
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

TURNS = 300
"""Turns of the loop in which a job that waits for nobody is over."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    """Return the harbour: older exports of web3 and of disk user are there."""
    found = await harbour(tmp_path)
    yield found
    await found.stop()


async def beside(
    cluster: SimCluster, export: dict[str, Any], other: dict[str, Any]
) -> tuple[Job, Job]:
    """Run an export; in the middle of it come with another request.

    Returns
    -------
    Both jobs, when they are over. Nothing of the second one was done before that.
    """
    came, seen = list[int](), list[str]()

    async def come(name: str) -> None:
        if came or not name.startswith("before dump"):
            return
        came.append(await cluster.engine.submit([other]))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        seen.append(cluster.engine.job(came[0]).ops[0].status)

    cluster.extra_point = come
    first = await cluster.finished(await cluster.engine.submit([export]))
    assert seen == ["waiting"]
    return first, await cluster.finished(came[0])


LIVE = {"OP_ID": "OP_BACKUP_EXPORT", "instance_name": "web1", "shutdown": False}
DOWN = {"OP_ID": "OP_BACKUP_EXPORT", "instance_name": "web3"}
ALONE = {"OP_ID": "OP_DISK_EXPORT", "disk": "user", "target_node": "node3"}
OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "detach": (LIVE, {"OP_ID": "OP_DISK_DETACH", "disk": "data1"}),
    "convert": (
        LIVE,
        {"OP_ID": "OP_DISK_CONVERT", "disk": "data1", "disk_template": "sharedfile"},
    ),
    "remove": (DOWN, {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web3"}),
    "start": (DOWN, {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web3"}),
    "the same again": (DOWN, DOWN),
    "remove the export": (
        DOWN,
        {"OP_ID": "OP_BACKUP_REMOVE", "instance_name": "web3"},
    ),
    "import it": (
        DOWN,
        {
            "OP_ID": "OP_INSTANCE_CREATE",
            "mode": "import",
            "src_path": "web3",
            "instance_name": "again",
            "pnode": "node3",
            "src_node": "node3",
        },
    ),
    "remove the disk": (ALONE, {"OP_ID": "OP_DISK_REMOVE", "disk": "user"}),
    "attach the disk": (
        ALONE,
        {"OP_ID": "OP_DISK_ATTACH", "disk": "user", "instance_name": "web1"},
    ),
    "remove the export of the disk": (
        ALONE,
        {"OP_ID": "OP_BACKUP_REMOVE", "instance_name": "disk+user"},
    ),
}


@pytest.mark.parametrize(("export", "other"), OTHERS.values(), ids=list(OTHERS))
async def test_it_waits(
    cluster: SimCluster, export: dict[str, Any], other: dict[str, Any]
) -> None:
    jobs = await beside(cluster, export, other)
    assert [job.ops[0].error for job in jobs] == [None, None]
