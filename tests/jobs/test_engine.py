# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: states, order, dependencies, ends, and what the next master makes of them."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, NotFound, WrongState
from moorage.jobs import Job
from moorage.jobs.job import decode, encode
from moorage.testing.cluster import SimCluster
from moorage.testing.state_snapshot import picture

GROW_A = {"OP_ID": "OP_DISK_GROW", "disk": "a", "amount": 8}
GROW_B = {"OP_ID": "OP_DISK_GROW", "disk": "b", "amount": 8}
START = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web"}
NONSENSE = {"OP_ID": "OP_DISK_GROW", "disk": "nobody", "amount": 8}


async def turns(count: int = 200) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def held_up(cluster: SimCluster, *opcodes: dict[str, Any]) -> int:
    """Submit a job whose first step hangs on its way to the node."""
    number = await cluster.engine.submit(list(opcodes))

    async def hang(name: str) -> None:
        if name.startswith("before "):
            cluster.nodes.hold = cluster.nodes.hold or asyncio.Event()

    cluster.extra_point = hang
    await turns()
    return number


def let_go(cluster: SimCluster) -> None:
    async def go(_name: str) -> None:
        pass

    cluster.extra_point = go
    if cluster.nodes.hold:
        cluster.nodes.hold.set()
    cluster.nodes.hold = None


def states(job: Job) -> list[str]:
    return [op.status for op in job.ops]


# -- states and ends ---------------------------------------------------------------


async def test_a_job_of_two_operations_runs_them_in_order(cluster: SimCluster) -> None:
    number = await cluster.engine.submit([GROW_A, GROW_B])
    job = await cluster.finished(number)
    assert (job.status, states(job)) == ("success", ["success", "success"])
    assert job.ops[0].summary == "DISK_GROW(a)"
    begun = job.ops[0].exec_timestamp
    assert None not in (job.start_timestamp, begun, job.end_timestamp)
    assert cluster.config.disk("a").size == 1032


async def test_what_follows_a_failure_is_not_begun(cluster: SimCluster) -> None:
    job = await cluster.finished(await cluster.engine.submit([NONSENSE, GROW_B]))
    assert states(job) == ["error", "error"]
    assert job.ops[1].error["message"] == "an earlier operation failed"
    assert cluster.config.disk("b").size == 1024


async def test_a_refused_request_writes_nothing_but_its_job(
    cluster: SimCluster,
) -> None:
    before = cluster.config
    error = await cluster.refused("OP_DISK_GROW", disk="a", amount=-8)
    assert isinstance(error, BadInput)
    assert cluster.config is before


async def test_bad_words_are_refused_before_there_is_a_job(cluster: SimCluster) -> None:
    for opcode in ({"OP_ID": "OP_NONSENSE"}, GROW_A | {"colour": "red"}, {}):
        with pytest.raises(BadInput):
            await cluster.engine.submit([opcode])
    with pytest.raises(BadInput, match="at least one"):
        await cluster.engine.submit([])
    assert cluster.engine.jobs == {}


async def test_a_drained_queue_takes_no_jobs(cluster: SimCluster) -> None:
    await cluster.engine.queue.drain(draining=True)
    with pytest.raises(WrongState, match="drained"):
        await cluster.engine.submit([GROW_A])


async def test_a_waiting_job_says_so(cluster: SimCluster) -> None:
    first = await held_up(cluster, GROW_A)
    second = await cluster.engine.submit([GROW_A])
    await turns()
    assert cluster.engine.job(first).status == "running"
    assert cluster.engine.job(second).status == "waiting"
    rows = {row["name"]: row for row in cluster.engine.locks.rows()}
    assert rows["disk/a"]["owner"] == [first]
    assert rows["disk/a"]["pending"] == [second]
    let_go(cluster)
    assert (await cluster.finished(second)).status == "success"
    assert cluster.config.disk("a").size == 1040


@pytest.mark.requirement("S3-50")
async def test_jobs_on_two_detached_disks_run_at_the_same_time(
    cluster: SimCluster,
) -> None:
    reached, gate = [], asyncio.Event()

    async def wait(name: str) -> None:
        reached.append(name)
        await gate.wait()

    cluster.extra_point = wait
    numbers = [await cluster.engine.submit([one]) for one in (GROW_A, GROW_B)]
    await turns()
    assert len(reached) == 2
    owners = {row["name"]: row["owner"] for row in cluster.engine.locks.rows()}
    assert [owners["disk/a"], owners["disk/b"]] == [[one] for one in numbers]
    gate.set()
    for number in numbers:
        assert (await cluster.finished(number)).status == "success"


async def test_the_urgent_one_goes_first(cluster: SimCluster) -> None:
    first = await held_up(cluster, GROW_A)
    late = await cluster.engine.submit([GROW_A | {"priority": 10}])
    soon = await cluster.engine.submit([GROW_A | {"priority": -10}])
    await turns()
    let_go(cluster)
    ended = []
    for number in (first, late, soon):
        task = cluster.engine._running[number]
        task.add_done_callback(lambda _, number=number: ended.append(number))
    await cluster.finished(late)
    await turns(2)
    assert ended == [first, soon, late]


async def test_the_log_has_numbers_that_rise(cluster: SimCluster) -> None:
    cluster.nodes.nodes["node1"].machine.refuse = lambda _, command: command.argv[
        0
    ].endswith("setinfo")
    fields = {"size": 8, "dev_type": "ext", "provider": "san"}
    number = await cluster.submit(
        "OP_INSTANCE_SET_PARAMS",
        instance_name="web",
        disks=[["add", "-1", fields], ["add", "-1", fields]],
    )
    job = await cluster.finished(number)
    serials = [entry[0] for entry in job.ops[0].log]
    assert serials == sorted(set(serials))
    assert len(serials) == 2
    assert all("setinfo" in entry[3] for entry in job.ops[0].log)
    assert list(job.ops[0].passed.values()) == ["failed", "failed"]


async def test_progress_is_a_value(cluster: SimCluster) -> None:
    number = await held_up(cluster, GROW_A)
    told = cluster.engine.queue.progress_of(number)
    assert told
    assert (told["done"], told["unit"]) == (0, "tasks")
    assert told["note"].startswith("attach disk a on ")
    let_go(cluster)
    await cluster.finished(number)
    assert cluster.engine.queue.progress_of(number) is None


async def test_waiting_for_a_change(cluster: SimCluster) -> None:
    number = await held_up(cluster, GROW_A)
    assert not await cluster.engine.queue.changed(number, 0.001)
    change = asyncio.create_task(cluster.engine.queue.changed(number, 5))
    await turns(2)
    let_go(cluster)
    assert await change


async def test_archived_jobs_are_gone(cluster: SimCluster) -> None:
    number = await cluster.engine.submit([GROW_A])
    assert not await cluster.engine.queue.archive(number)
    await cluster.finished(number)
    assert await cluster.engine.queue.archive(number)
    with pytest.raises(NotFound):
        cluster.engine.job(number)
    assert ("job", str(number)) not in cluster.store.records


# -- dependencies ------------------------------------------------------------------


async def test_a_job_waits_for_the_one_that_it_depends_on(cluster: SimCluster) -> None:
    first = await held_up(cluster, GROW_A)
    second = await cluster.engine.submit([GROW_B | {"depends": [[first, ["success"]]]}])
    await turns()
    assert cluster.engine.job(second).status == "queued"
    let_go(cluster)
    assert (await cluster.finished(second)).status == "success"


async def test_a_job_is_not_run_when_the_other_failed(cluster: SimCluster) -> None:
    first = await cluster.engine.submit([NONSENSE])
    second = await cluster.engine.submit([GROW_B | {"depends": [[first, ["success"]]]}])
    job = await cluster.finished(second)
    assert job.status == "canceled"
    assert cluster.config.disk("b").size == 1024
    third = await cluster.engine.submit([GROW_B | {"depends": [[first, ["error"]]]}])
    assert (await cluster.finished(third)).status == "success"


async def test_an_archived_job_is_one_that_is_over(cluster: SimCluster) -> None:
    first = await cluster.engine.submit([GROW_A])
    await cluster.finished(first)
    await cluster.engine.queue.archive(first)
    second = await cluster.engine.submit([GROW_B | {"depends": [[first, ["success"]]]}])
    assert (await cluster.finished(second)).status == "success"


async def test_a_job_that_another_one_waits_for_is_not_archived(
    cluster: SimCluster,
) -> None:
    """Else nobody knows, when the other is to run, that this one has failed."""
    first = await held_up(cluster, GROW_A)
    failed = await cluster.engine.submit([NONSENSE])
    await cluster.finished(failed)
    wanted = [[first, ["success"]], [failed, ["success"]]]
    third = await cluster.engine.submit([GROW_B | {"depends": wanted}])
    assert not await cluster.engine.queue.archive(failed)
    let_go(cluster)
    assert (await cluster.finished(third)).status == "canceled"
    fourth = await cluster.engine.submit([NONSENSE])
    wanted = [[first, ["success"]], [fourth, ["success"]]]
    assert await cluster.engine.queue.archive(failed)
    assert await cluster.engine.queue.archive(first)
    fifth = await cluster.engine.submit([GROW_B | {"depends": wanted}])
    assert (await cluster.finished(fifth)).status == "canceled"
    told = [entry[3] for entry in cluster.engine.job(fifth).ops[0].log]
    assert told == [f"Not run: job {fourth} ended as error"]


# -- cancel ------------------------------------------------------------------------


async def test_a_queued_job_is_canceled_at_once(cluster: SimCluster) -> None:
    first = await held_up(cluster, GROW_A)
    second = await cluster.engine.submit([GROW_B | {"depends": [[first, []]]}])
    await turns()
    assert await cluster.engine.cancel(second) == (True, f"Job {second} canceled")
    assert cluster.engine.job(second).status == "canceled"
    let_go(cluster)


async def test_a_job_that_waits_for_locks_is_canceled_at_once(
    cluster: SimCluster,
) -> None:
    await held_up(cluster, GROW_A)
    second = await cluster.engine.submit([GROW_A])
    await turns()
    assert await cluster.engine.cancel(second) == (True, f"Job {second} canceled")
    rows = {row["name"]: row for row in cluster.engine.locks.rows()}
    assert rows["disk/a"]["pending"] == []
    let_go(cluster)


async def test_a_running_job_that_is_canceled_is_undone(cluster: SimCluster) -> None:
    before = await picture(cluster)
    number = await held_up(cluster, START)
    told = await cluster.engine.cancel(number)
    assert told == (True, f"Job {number} will be canceled; what it began is undone")
    assert cluster.engine.job(number).status == "canceling"
    let_go(cluster)
    job = await cluster.finished(number)
    assert job.status == "canceled"
    assert (await picture(cluster)).differences(before) == []


async def test_what_has_no_way_back_is_not_canceled(cluster: SimCluster) -> None:
    number = await cluster.engine.submit([{"OP_ID": "OP_DISK_REMOVE", "disk": "a"}])

    async def cancel(name: str) -> None:
        if name.startswith("during remove"):
            await cluster.engine.cancel(number)

    cluster.extra_point = cancel
    job = await cluster.finished(number)
    assert job.status == "success"
    assert "vol-a" not in cluster.nodes.san.volumes


async def test_a_finished_job_is_not_canceled(cluster: SimCluster) -> None:
    number = await cluster.engine.submit([GROW_A])
    await cluster.finished(number)
    done, sentence = await cluster.engine.cancel(number)
    assert not done
    assert sentence == f"Job {number} is no longer waiting in the queue"


# -- dry run -----------------------------------------------------------------------


async def test_a_dry_run_shows_the_tasks_and_changes_nothing(
    cluster: SimCluster,
) -> None:
    before = await picture(cluster)
    commands = len(cluster.nodes.nodes["node1"].machine.ran)
    told = await cluster.run("OP_DISK_REMOVE", disk="a", dry_run=True)
    assert [(task["what"], task["final"]) for task in told] == [
        ("detach disk a on node1", False),
        ("remove disk a on node1", True),
        ("forget disk a", False),
    ]
    assert {task["node"] for task in told} == {"node1", "master"}
    assert (await picture(cluster)).differences(before) == []
    assert len(cluster.nodes.nodes["node1"].machine.ran) == commands


async def test_a_dry_run_refuses_what_would_be_refused(cluster: SimCluster) -> None:
    error = await cluster.refused("OP_DISK_GROW", disk="a", amount=0, dry_run=True)
    assert isinstance(error, BadInput)


# -- the next master ---------------------------------------------------------------


async def test_queued_jobs_run_under_the_next_master(cluster: SimCluster) -> None:
    first = await held_up(cluster, GROW_A)
    second = await cluster.engine.submit([GROW_A])
    await turns()
    hold, cluster.nodes.hold = cluster.nodes.hold, None
    await cluster.crash()
    let_go(cluster)
    await cluster.boot()
    assert hold
    hold.set()
    assert (await cluster.finished(first)).status == "error"  # undone
    assert (await cluster.finished(second)).status == "success"
    assert cluster.config.disk("a").size == 1032
    assert await cluster.engine.submit([GROW_B]) == second + 1


async def test_the_next_master_knows_a_priority_that_was_changed(
    cluster: SimCluster,
) -> None:
    await held_up(cluster, GROW_A)
    late = await cluster.engine.submit([GROW_A])
    await turns()
    assert await cluster.engine.change_priority(late, -7)
    hold, cluster.nodes.hold = cluster.nodes.hold, None
    await cluster.crash()
    let_go(cluster)
    await cluster.boot()
    assert hold
    hold.set()
    assert (await cluster.finished(late)).priority == -7
    assert not await cluster.engine.change_priority(late, 0)


async def test_what_was_begun_has_its_locks_before_what_was_queued(
    cluster: SimCluster,
) -> None:
    """Job 1 waits in the queue; job 2, begun, must come first."""
    second = await held_up(cluster, GROW_A)
    job = cluster.engine.job(second)
    queued = Job(id=0, ops=[decode(encode(job)).ops[0]])
    queued.ops[0].status, queued.ops[0].tasks, queued.ops[0].locks = "queued", [], []
    cluster.record(queued)
    late, cluster.nodes.hold = cluster.nodes.hold, None
    await cluster.crash()
    let_go(cluster)
    assert late
    late.set()
    await cluster.nodes.settle()
    order = []

    async def note(name: str) -> None:
        order.append(name)

    cluster.extra_point = note
    await cluster.boot()
    await cluster.finished(0)
    await cluster.finished(second)
    assert order[0].startswith("before undoing")


async def test_a_master_starts_although_two_jobs_hold_one_lock(
    cluster: SimCluster,
) -> None:
    number = await held_up(cluster, GROW_A)
    copy = decode(encode(cluster.engine.job(number)))
    copy.id = number + 1
    cluster.record(copy)
    late, cluster.nodes.hold = cluster.nodes.hold, None
    await cluster.crash()
    let_go(cluster)
    assert late
    late.set()
    await asyncio.wait_for(cluster.boot(), 120)
    for one in (number, copy.id):
        assert (await cluster.finished(one)).finished
    assert cluster.engine.locks.rows() == []


async def test_a_journal_that_makes_no_sense_ends_the_job_and_frees_its_locks(
    cluster: SimCluster,
) -> None:
    number = await held_up(cluster, GROW_A)
    job = decode(encode(cluster.engine.job(number)))
    job.ops[0].tasks = [replace(task, node="gone") for task in job.ops[0].tasks[:1]]
    cluster.record(job)
    late, cluster.nodes.hold = cluster.nodes.hold, None
    await cluster.crash()
    let_go(cluster)
    assert late
    late.set()
    await cluster.boot()
    job = await cluster.finished(number)
    assert job.status == "error"
    assert job.ops[0].error["message"] == "node 'gone' is not known"
    assert cluster.engine.locks.rows() == []
