# SPDX-License-Identifier: BSD-2-Clause
"""How often a node is asked, for how long, and who is told meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import CommandFailed, Unreachable
from moorage.model import Change, successor
from moorage.node.calling.client import CONNECT
from moorage.protocol import patience
from moorage.testing.cluster import SimCluster

GROW_A = {"OP_ID": "OP_DISK_GROW", "disk": "a", "amount": 8}
GROW_B = {"OP_ID": "OP_DISK_GROW", "disk": "b", "amount": 8}
RENAME = {"disk": "a", "name": "blue"}


async def until(claim: Callable[[], Any]) -> None:
    """Let the others run until a claim is true."""
    for _ in range(2000):
        if claim():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def said(cluster: SimCluster, number: int) -> list[str]:
    (op,) = cluster.engine.job(number).ops
    return [entry[3] for entry in op.log]


def before_each(
    cluster: SimCluster, verb: str, do: Callable[[Any], Awaitable[object]]
) -> None:
    """Let something happen before a node gets a verb; what it raises is the answer."""
    call = cluster.nodes.call

    async def heard(node: Any, asked: Any, *more: Any) -> Any:
        if type(asked).__name__ == verb:
            await do(asked)
        return await call(node, asked, *more)

    cluster.nodes.call = heard  # type: ignore[method-assign]


def rests(cluster: SimCluster) -> list[float]:
    """Let nobody wait before a node is asked again; return how long they would."""
    found = list[float]()

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    cluster.engine._asker._sleep = sleep
    return found


async def mark_offline(cluster: SimCluster) -> None:
    off = successor(cluster.config.node("node1"), 1.0, offline=True)
    await cluster.config_store.commit(Change((off,)))


async def test_a_silent_node_is_asked_less_and_less_often(cluster: SimCluster) -> None:
    node, asker = cluster.nodes.nodes["node1"], cluster.engine._asker
    pauses, stuck = list[float](), list[set[int]]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        stuck.append(set(asker.stuck))
        node.powered = len(pauses) == 6

    async def look(name: str) -> None:
        if name == "before remove disk a on node1":
            node.powered = False
        if name == "before forget disk a":
            stuck.append(set(asker.stuck))

    asker._sleep = sleep
    cluster.extra_point = look
    number = await cluster.submit("OP_DISK_REMOVE", disk="a")
    assert (await cluster.finished(number)).status == "success"
    assert pauses == [1, 2, 4, 8, 10, 10]
    assert stuck == [{number}] * 6 + [set()]
    (line,) = said(cluster, number)
    assert line.startswith("Waiting for node node1 (")
    assert line.endswith(
        "; if it is powered off, type: gnt-node modify --offline=yes node1"
    )


async def test_a_node_that_is_marked_offline_is_waited_for_no_longer(
    cluster: SimCluster,
) -> None:
    """At once: the next attempt may be ten seconds away. Meanwhile others cancel."""
    asker, gate = cluster.engine._asker, asyncio.Event()

    async def look(name: str) -> None:
        if name == "before remove disk a on node1":
            cluster.nodes.nodes["node1"].powered = False
        if name.startswith("before ") and "disk b" in name:
            await gate.wait()

    async def never(_seconds: float) -> None:
        await asyncio.Event().wait()

    asker._sleep = never
    cluster.extra_point = look
    number = await cluster.submit("OP_DISK_REMOVE", disk="a")
    await until(lambda: number in asker.stuck)
    other = await cluster.submit("OP_DISK_SET_PARAMS", disk="b", name="blue")
    await until(lambda: cluster.engine.job(other).status == "running")
    assert (await cluster.engine.cancel(other))[0]
    assert not (await cluster.engine.cancel(number))[0]
    gate.set()
    assert (await cluster.finished(other)).status == "canceled"
    await mark_offline(cluster)
    (op,) = (await cluster.finished(number)).ops
    assert op.error["message"] == "node node1 is marked offline"
    assert cluster.config.disk("a").quarantine


async def test_a_node_that_is_marked_offline_is_not_tried_again(
    cluster: SimCluster,
) -> None:
    async def look(name: str) -> None:
        if name.startswith("before note the owner of disk "):
            await mark_offline(cluster)

    slept, cluster.extra_point = rests(cluster), look
    number = await cluster.submit("OP_DISK_SET_PARAMS", **RENAME)
    assert (await cluster.finished(number)).status == "success"
    assert any("node node1 is marked offline" in line for line in said(cluster, number))
    assert slept == []


@pytest.mark.parametrize("heard", [False, True])
async def test_who_may_have_heard_the_first_call_is_not_said_to_have_got_none(
    cluster: SimCluster, heard: bool
) -> None:
    """Its answer was lost; it did not get those that followed, and then it is off."""
    asked = list[str]()

    async def fail(verb: Any) -> None:
        asked.append(verb.disk.name)
        raise Unreachable("it was told to", sent=heard and len(asked) == 1)

    async def rest(_seconds: float) -> None:
        if len(asked) == 3:
            await mark_offline(cluster)

    before_each(cluster, "GrowDisk", fail)
    cluster.engine._asker._sleep = rest
    number = await cluster.submit("OP_DISK_GROW", disk="a", amount=8)
    (op,) = (await cluster.finished(number)).ops
    assert len(asked) == 3
    assert op.error["facts"]["sent"] is heard


@pytest.mark.parametrize(
    ("failures", "canceled", "asked"), [(2, False, 3), (9, False, 3), (9, True, 1)]
)
async def test_what_may_fail_is_tried_three_times(
    cluster: SimCluster, failures: int, canceled: bool, asked: int
) -> None:
    tried, pauses = list[str](), rests(cluster)

    async def fail(verb: Any) -> None:
        tried.append(verb.text)
        if canceled:
            await cluster.engine.cancel(number)
        if len(tried) <= failures:
            raise CommandFailed("it was told to")

    before_each(cluster, "NoteDisk", fail)
    number = await cluster.submit("OP_DISK_SET_PARAMS", **RENAME)
    job = await cluster.finished(number)
    assert len(tried) == asked
    assert pauses == [1.0, 2.0][: asked - 1]
    assert job.status == ("canceled" if canceled else "success")
    warned = failures > 2 and not canceled
    assert any(line.startswith("Warning: ") for line in said(cluster, number)) is warned


async def test_a_cancel_gives_up_the_calls_of_no_other_job(cluster: SimCluster) -> None:
    gate, sent = asyncio.Event(), list[str]()

    async def wait(verb: Any) -> None:
        sent.append(verb.disk.name)
        await gate.wait()

    before_each(cluster, "AttachDisk", wait)
    first, second = [await cluster.engine.submit([one]) for one in (GROW_A, GROW_B)]
    await until(lambda: sorted(sent) == ["a", "b"])
    assert (await cluster.engine.cancel(first))[0]
    assert (await cluster.finished(first)).status == "canceled"
    gate.set()
    assert (await cluster.finished(second)).status == "success"
    assert [cluster.config.disk(name).size for name in ("a", "b")] == [1024, 1032]


async def test_the_log_says_what_is_undone_and_who_has_the_lock(
    cluster: SimCluster,
) -> None:
    await cluster.run("OP_DISK_SET_PARAMS", **RENAME)
    cluster.engine.queue._patience = 0.0
    gate = asyncio.Event()
    before_each(cluster, "DetachDisk", lambda _: gate.wait())
    machine = cluster.nodes.nodes["node1"].machine
    machine.refuse = lambda _, command: command.argv[0].endswith("/grow")
    first = await cluster.engine.submit([GROW_A | {"disk": "blue"}])
    second = await cluster.engine.submit([GROW_A | {"disk": "blue"}])
    still = "Still waiting for node node1: undoing attach disk blue on node1"
    await until(lambda: still in said(cluster, first))
    await until(lambda: said(cluster, second))
    assert f"Waiting for the lock of disk blue: job {first}" in said(cluster, second)
    machine.refuse = lambda _, __: False
    gate.set()
    assert (await cluster.finished(first)).status == "error"
    assert (await cluster.finished(second)).status == "success"


@pytest.mark.parametrize("off", [False, True])
async def test_nobody_rests_before_what_is_given_up(
    cluster: SimCluster, off: bool
) -> None:
    """Neither for a job that is cancelled meanwhile, nor for a node that is off."""
    tried, resting = list[str](), asyncio.Event()

    async def fail(verb: Any) -> None:
        tried.append(verb.text)
        raise Unreachable("it was told to", sent=True)

    async def sleep(_seconds: float) -> None:
        resting.set()
        await asyncio.Event().wait()

    before_each(cluster, "NoteDisk", fail)
    cluster.engine._asker._sleep = sleep
    number = await cluster.submit("OP_DISK_SET_PARAMS", **RENAME)
    ended = asyncio.create_task(cluster.finished(number))
    await resting.wait()
    if off:
        node = cluster.config.node("node1")
        gone = replace(node, offline=True, serial_no=node.serial_no + 1)
        await cluster.config_store.commit(Change((gone,)))
    else:
        await cluster.engine.cancel(number)
    job = await asyncio.wait_for(ended, 5)
    assert job.status == ("success" if off else "canceled")
    assert len(tried) == 1


@pytest.mark.parametrize(("sent", "runs"), [(True, 1), (False, 5)])
async def test_a_script_that_may_have_run_is_not_run_again(
    cluster: SimCluster, sent: bool, runs: int
) -> None:
    """One that ends its agent, say: it would end the next one, too."""
    ran = list[str]()

    async def fail(verb: Any) -> None:
        ran.append(verb.script)
        raise Unreachable("the connection broke", sent=sent)

    before_each(cluster, "RunScript", fail)
    rests(cluster)
    asked = {"command": "restart-all", "nodes": ["node1"]}
    await cluster.run("OP_RESTRICTED_COMMAND", **asked)
    assert ran == ["restart-all"] * runs


@pytest.mark.parametrize(
    "silent",
    [[True] * 3, [False] * 5, [False] * 3 + [True]],
    ids=["silent", "breaking off", "first one, then the other"],
)
async def test_a_machine_that_is_silent_is_no_agent_that_is_started_anew(
    cluster: SimCluster, silent: list[bool]
) -> None:
    """Each try takes half a minute there, and the job has its locks and its slot."""
    tried = list[str]()

    async def fail(verb: Any) -> None:
        tried.append(verb.text)
        how = silent[len(tried) - 1]
        raise Unreachable("it was told to", sent=False, silent=how)

    before_each(cluster, "NoteDisk", fail)
    rests(cluster)
    await cluster.run("OP_DISK_SET_PARAMS", **RENAME)
    assert len(tried) == len(silent)


def test_who_is_waited_for_how_long() -> None:
    """As the module says: the numbers of two layers, multiplied."""
    connections = 3 * CONNECT + sum(patience.CONNECTION)
    attempts, rests = len(patience.ATTEMPT) + 1, sum(patience.ATTEMPT)
    assert round(connections) == 16
    assert round(attempts * connections + rests) == 51
    assert round(sum(patience.AGENT_AWAY)) == 6
    assert round(attempts * sum(patience.AGENT_AWAY) + rests) == 20
    assert round(sum(patience.BROKEN_OFF)) == 15
