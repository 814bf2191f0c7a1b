# SPDX-License-Identifier: BSD-2-Clause
"""A master's chores: a defect in one of them does not end it for good."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.api import deeds
from moorage.api.query import Sources
from moorage.daemons import chores, pauses
from moorage.protocol import ListOldObjects
from moorage.testing.cluster import SimCluster


async def test_a_chore_that_broke_is_begun_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = []

    async def chore() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            raise ValueError("a defect")

    with caplog.at_level(logging.ERROR):
        await chores.kept_up(chore, again=0.0)
    assert begun == [0, 1, 2]
    told = [record.getMessage() for record in caplog.records]
    assert told == ["a chore of the master broke: it begins again"] * 2


async def test_nodes_are_told_once_though_old_jobs_cannot_be_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await SimCluster.start(tmp_path)
    call, told = cluster.nodes.call, list[str]()
    over, every = asyncio.Event(), asyncio.Event()
    tries: list[None] = []

    async def listening(node: Any, verb: Any, *more: Any) -> Any:
        told.extend([node.name] if isinstance(verb, ListOldObjects) else [])
        if len({*told}) == len(cluster.config.online()):
            every.set()
        return await call(node, verb, *more)

    async def broken(*_: Any) -> None:
        tries.append(None)
        if len(tries) == 3:
            over.set()
        raise ValueError("a defect")

    monkeypatch.setattr(cluster.nodes, "call", listening)
    monkeypatch.setattr(deeds, "archive_old", broken)
    monkeypatch.setattr(chores.kept_up, "__defaults__", (0.0,))
    at = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    begun = chores.begun(at)
    async with asyncio.timeout(60):
        await over.wait()
        await every.wait()
    for one in begun:
        one.cancel()
    assert sorted(told) == sorted({*told})
    assert told
    await cluster.stop()


async def test_garbage_is_looked_for_when_no_job_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or after an hour of jobs: nobody waits for it often, and it is not left lying."""
    seen = iter([*[{7}] * 3, {}, {}, *[{7}] * 24, {}])
    told: list[object] = []

    def working(_queue: object) -> Iterator[object]:
        told.append(next(seen))
        return cast("Iterator[object]", told[-1])

    queue = type("Queue", (), {"working": property(working)})()
    at = cast("Sources", SimpleNamespace(engine=SimpleNamespace(queue=queue)))
    swept: list[int] = []
    monkeypatch.setattr(pauses, "sweep", lambda **_: swept.append(len(told)))
    with suppress(RuntimeError):  # when there is nothing more to be seen
        await chores.sweep_when_idle(at, look=0.0)
    assert swept == [4, 5, 17, 29, 30]


def test_looking_for_garbage_is_a_chore() -> None:
    assert chores.sweep_when_idle in chores._CHORES
