# SPDX-License-Identifier: BSD-2-Clause
"""What is written of a job at each step, and what is found again."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.jobs import journal
from moorage.jobs.job import RUNNING, SUCCESS, Job, Op, encode_tasks
from moorage.jobs.journal import JOB, TASKS, Journal
from moorage.jobs.secrets import forget
from moorage.jobs.task import Run
from moorage.model.commits import Write
from moorage.protocol import EnrolNode, GetFacts
from moorage.store import Damaged, MemoryStore
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster

TOKEN = "t0ken" * 9
MIGRATE = {"instance_name": "web", "target_node": "node2"}


class Counted(MemoryStore):
    """A store that counts the bytes written, by the kinds of their records."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[str, list[int]] = {}

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        for (kind, _), value in writes:
            if value is not None:
                self.written.setdefault(kind, []).append(len(value))
        return await super().commit(writes, expected=expected)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    disks = ("a", "b", "c", "d")
    builder = ClusterBuilder().instance("web", disks=disks)
    for name in disks:
        builder.disk(name)
    cluster = SimCluster(tmp_path, store=Counted())
    await cluster.make(builder)
    for name in disks:
        volume = {"size": 1024, "provider": "san", "data": ""}
        cluster.nodes.san.volumes[f"vol-{name}"] = volume
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web")
    yield cluster
    await cluster.stop()


async def test_a_step_writes_little_and_the_tasks_once(cluster: SimCluster) -> None:
    store = cluster.store
    assert isinstance(store, Counted)
    store.written.clear()
    await cluster.run("OP_INSTANCE_MIGRATE", **MIGRATE)
    (tasks,) = store.written[TASKS]
    steps = store.written[JOB]
    assert len(steps) > 10
    assert max(steps) < tasks / 5
    assert sum(steps) < 2 * tasks


async def test_what_a_former_version_left_whole_goes_on_over_two_deaths(
    cluster: SimCluster,
) -> None:
    cluster.crash_at = len(cluster.points) + 8
    number = await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE)
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    job = cluster.recorded(number)
    assert job.status == RUNNING
    assert job.ops[0].tasks
    cluster.record(job)
    assert (TASKS, f"{number}.0") not in cluster.store.records
    cluster.crash_at = len(cluster.points) + 2
    await cluster.boot()
    with pytest.raises(Crash):
        await cluster.finished(number)
    await cluster.crash()
    assert (TASKS, f"{number}.0") in cluster.store.records
    cluster.crash_at = None
    await cluster.boot()
    ended = await cluster.finished(number)
    assert ended.ops[0].tasks == job.ops[0].tasks
    assert cluster.config.instance("web").primary_node in ("node1", "node2")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web", target_node="node3")


async def test_what_is_put_away_takes_its_tasks_along(cluster: SimCluster) -> None:
    number = await cluster.submit("OP_INSTANCE_MIGRATE", **MIGRATE)
    job = await cluster.finished(number)
    assert (TASKS, f"{number}.0") in cluster.store.records
    assert await cluster.engine.queue.archive(number)
    kinds = {kind for kind, name in cluster.store.records if name.startswith("2")}
    assert not kinds & {JOB, TASKS}
    (put_away,) = (await cluster.engine.queue.archived.jobs([number])).values()
    assert encode_tasks(put_away.ops[0].tasks) == encode_tasks(job.ops[0].tasks)


def written(keeper: Journal, job: Job) -> dict[str, bytes]:
    """Let a job be written; return the records, by their kinds."""
    found = {kind: value for (kind, _), value in keeper.writes(job) if value}
    keeper.note(job)
    return found


def test_tasks_are_written_again_without_what_they_let_in() -> None:
    enrol = Run(what="", node="n", do=EnrolNode(token=TOKEN))
    job = Job(id=1, ops=[Op(input={}, status=RUNNING, tasks=[enrol])])
    keeper = Journal()
    assert TOKEN.encode() in written(keeper, job)[TASKS]
    job.ops[0].status = SUCCESS
    forget(job)
    assert TOKEN.encode() not in written(keeper, job)[TASKS]
    forget(job)
    assert written(keeper, job).keys() == {JOB}


def test_what_was_not_written_is_written_the_next_time() -> None:
    look = Run(what="", node="n", do=GetFacts())
    job = Job(id=1, ops=[Op(input={}, tasks=[look]), Op(input={})])
    keeper = Journal()
    assert {kind for (kind, _), _ in keeper.writes(job)} == {JOB, TASKS}
    assert written(keeper, job).keys() == {JOB, TASKS}
    assert written(keeper, job).keys() == {JOB}
    job.ops[0].tasks = [replace(look, what="another")]
    records = written(keeper, job)
    stored = {JOB: {"1": records[JOB]}, TASKS: {"1.0": records[TASKS]}}
    assert journal.read(stored) == [job]
    assert [key for key, _ in keeper.drops(job)] == [(JOB, "1"), (TASKS, "1.0")]


def test_tasks_that_are_none_are_said_to_be_so() -> None:
    job = Job(id=7, ops=[Op(input={})])
    records = {JOB: {"7": written(Journal(), job)[JOB]}, TASKS: {"7.0": b'{"a": 1}'}}
    with pytest.raises(Damaged, match="the record of job 7's tasks"):
        journal.read(records)
