# SPDX-License-Identifier: BSD-2-Clause
"""Instances that are placed by what nodes said lately: fewer questions, same care."""

import asyncio
from collections import Counter

import pytest

from moorage.errors import NoCapacity
from moorage.jobs.operation import Ask
from moorage.jobs.recent import Recent
from moorage.protocol import GetFacts
from moorage.testing.cluster import ClusterBuilder, SimCluster

NODES = 6
LARGE = 40_000
"""MiB of an instance of which a node takes one."""


class Clock:
    """A clock that is put forward; who sleeps by it does so until some time."""

    def __init__(self, now):
        self.now = now
        self.until = 0.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        if self.now > self.until:
            raise TimeoutError

    async def renew(self, recent, until):
        """Let nodes be asked again until some time."""
        self.until = until
        with pytest.raises(TimeoutError):
            await recent.renew()


@pytest.fixture
async def sim(tmp_path):
    found = await SimCluster.start(tmp_path, ClusterBuilder(NODES))
    yield found
    await found.stop()


@pytest.fixture
def clock(sim):
    """Return the clock of the cluster."""
    sim.clock = Clock(1000.0)
    return sim.clock


def request(name, memory=128, **more):
    fields = {"instance_name": name, "disk_template": "diskless", **more}
    return fields | {"beparams": {"memory": memory}, "ignore_ipolicy": True}


async def add(sim, name, memory=128, **more):
    """Add an instance; return its node, and the nodes that were asked for facts."""
    before = len(sim.nodes.calls)
    [node, *_] = await sim.run("OP_INSTANCE_CREATE", **request(name, memory, **more))
    calls = sim.nodes.calls[before:]
    return node, [asked for asked, verb in calls if verb == "facts"]


def fill(sim, node):
    """Let somebody else take all the memory of a node."""
    machine = sim.nodes.nodes[node].machine
    machine.busy = lambda: machine.size


async def renewed(sim):
    """Let nodes be asked again for a while; return those that are."""
    before = len(sim.nodes.calls)
    chore = asyncio.create_task(sim.engine.recent.renew())
    for _ in range(2000):
        await asyncio.sleep(0)
    chore.cancel()
    return {node for node, _ in sim.nodes.calls[before:]}


def facts(node):
    """Return the question that those who choose ask."""
    return Ask(node, GetFacts(brief=True))


async def test_only_who_is_chosen_or_was_changed_is_asked_again(sim):
    first, asked = await add(sim, "a")
    assert len(asked) == NODES
    second, asked = await add(sim, "b")
    assert set(asked) == {first, second}
    third, asked = await add(sim, "c")
    assert set(asked) == {second, third}


@pytest.mark.parametrize("more", [{}, {"ignore_capacity": True}])
async def test_who_has_no_room_any_more_is_not_chosen(sim, more):
    """It is found out before anything is done, and another node takes it."""
    await add(sim, "a")
    for node in sim.nodes.nodes:
        if node not in ("node3", "node5"):
            fill(sim, node)
    node, asked = await add(sim, "b", LARGE, **more)
    assert node in ("node3", "node5")
    assert set(asked) == set(sim.nodes.nodes)


async def test_no_refusal_rests_on_what_was_said_earlier(sim):
    for node in sim.nodes.nodes:
        fill(sim, node)
    refused = await sim.refused("OP_INSTANCE_CREATE", **request("a", LARGE))
    assert isinstance(refused, NoCapacity)
    for node in ("node4", "node5"):
        sim.nodes.nodes[node].machine.busy = lambda: 0
    node, _ = await add(sim, "a", LARGE)
    assert node in ("node4", "node5")


async def test_what_was_said_two_minutes_ago_is_asked_again(sim, clock):
    await add(sim, "a")
    clock.now += 119
    assert len((await add(sim, "b"))[1]) < NODES
    clock.now += 2
    assert len((await add(sim, "c"))[1]) == NODES


async def test_a_clock_that_is_put_back_makes_nothing_younger(sim, clock):
    await add(sim, "a")
    clock.now -= 500
    assert len((await add(sim, "b"))[1]) == NODES


async def test_nodes_are_asked_now_and_then_as_long_as_somebody_chooses(sim, clock):
    await add(sim, "a")
    assert await renewed(sim) == set()
    clock.now += 60
    assert await renewed(sim) == set(sim.nodes.nodes)
    clock.now += 100
    assert len((await add(sim, "b"))[1]) < NODES
    clock.now += 3700
    assert await renewed(sim) == set()


async def test_what_nobody_chooses_by_is_not_asked_again(sim, clock):
    await sim.run("OP_CLUSTER_VERIFY")
    clock.now += 100
    assert await renewed(sim) == set()


async def test_a_node_that_fell_silent_since_is_not_chosen(sim):
    await add(sim, "a")
    job = sim.engine.job(await sim.submit("OP_TEST_DELAY", duration=0.0))
    await sim.finished(job.id)
    for node in sim.nodes.nodes.values():
        if node.name != "node3":
            node.lose_power()
    node, _ = await add(sim, "b")
    assert node == "node3"


async def test_a_node_that_is_back_is_asked_at_once(sim, clock):
    """While it was marked offline, that it was not to be asked stood for its answer."""
    await add(sim, "a", pnode="node1")
    await add(sim, "b")
    await sim.run("OP_NODE_SET_PARAMS", node_name="node5", offline=True)
    clock.now += 61
    assert "node1" in await renewed(sim)
    await sim.run("OP_NODE_SET_PARAMS", node_name="node5", offline=False)
    assert "node5" in (await add(sim, "c"))[1]


async def kept_after(meanwhile, clock):
    """Ask a node, let something happen before it answers; return what is kept."""
    go = asyncio.Event()

    async def ask(_questions):
        await go.wait()
        return ["late"]

    recent = Recent(clock, asyncio.sleep, ask)
    asked = asyncio.create_task(recent.ask([facts("node1")]))
    await asyncio.sleep(0)
    meanwhile(recent)
    go.set()
    await asked
    return recent.answers([facts("node1")])


async def test_an_answer_that_was_under_way_when_something_was_done_is_not_kept():
    clock = Clock(1.0)
    assert await kept_after(lambda _: None, clock) == {facts("node1"): "late"}
    assert await kept_after(lambda recent: recent.changed("node1"), clock) == {}


async def test_an_answer_that_comes_late_counts_from_when_it_was_asked_for():
    clock = Clock(1000.0)
    assert await kept_after(lambda _: setattr(clock, "now", 1121.0), clock) == {}


async def test_an_earlier_answer_does_not_replace_a_later_one():
    slow, first = asyncio.Event(), True

    async def ask(_questions):
        nonlocal first
        if first:
            first = False
            await slow.wait()
            return ["earlier"]
        return ["later"]

    recent = Recent(Clock(1.0), asyncio.sleep, ask)
    one = [facts("node1")]
    task = asyncio.create_task(recent.ask(one))
    await asyncio.sleep(0)
    await recent.ask(one)
    slow.set()
    await task
    assert recent.answers(one) == {one[0]: "later"}


async def test_few_are_asked_again_at_a_time_and_none_ten_minutes_later():
    clock, asked = Clock(0.0), []

    async def ask(questions):
        asked.append(clock.now)
        return [None] * len(questions)

    recent = Recent(clock, clock.sleep, ask)
    for number in range(60):
        await recent.ask([facts(f"node{number}")])
    await clock.renew(recent, until=1500)
    again = Counter(asked[60:])
    assert min(again) >= 60
    assert asked[119] <= 60 + 30
    assert 540 < max(again) <= 600
    assert max(again.values()) <= 3


async def test_what_somebody_chose_by_is_asked_again_for_ten_minutes_more():
    clock, last = Clock(0.0), {}

    async def ask(questions):
        last[questions[0].node] = clock.now
        return ["said"]

    recent = Recent(clock, clock.sleep, ask)
    for node in ("used", "left"):
        await recent.ask([facts(node)])
    await clock.renew(recent, until=500)
    assert recent.answers([facts("used")]) == {facts("used"): "said"}
    await clock.renew(recent, until=1500)
    assert last["left"] < 600
    assert 1000 < last["used"] < 1110


async def test_what_is_forgotten_while_nodes_are_asked_again_is_asked_no_more():
    """A setting of the cluster is changed in the middle of a round among many nodes."""
    clock, asked = Clock(0.0), 0

    async def ask(questions):
        nonlocal asked
        asked += 1
        if asked == 301:
            recent.forget()
        return [None] * len(questions)

    recent = Recent(clock, clock.sleep, ask)
    for number in range(300):
        await recent.ask([facts(f"node{number}")])
    await clock.renew(recent, until=200)
    assert 300 < asked < 320


async def test_a_cancelled_job_asks_nobody_anew(sim):
    """It is cancelled while the node that it has chosen is asked."""
    await add(sim, "a")
    asked, ask = [], sim.nodes.ask

    async def slowly(node, calls, term):
        asked.append(node.name)
        if len(asked) == 2:
            await sim.engine.cancel(number)
        return await ask(node, calls, term)

    sim.nodes.ask = slowly
    number = await sim.submit("OP_INSTANCE_CREATE", **request("b"))
    assert (await sim.finished(number)).status == "canceled"
    assert len(asked) == 2
    assert not sim.engine.locks.rows()


async def test_both_nodes_of_a_mirrored_disk_are_those_that_were_chosen(sim):
    await add(sim, "a")
    fields = request("b") | {"disk_template": "drbd", "disks": [{"size": 64}]}
    held = []

    async def look(_name):
        rows = sim.engine.locks.rows()
        held.append({row["name"].removeprefix("node/") for row in rows})

    sim.extra_point = look
    before = len(sim.nodes.calls)
    pair = await sim.run("OP_INSTANCE_CREATE", **fields)
    facts = [n for n, verb in sim.nodes.calls[before:] if verb == "facts"]
    assert len(set(pair)) == 2
    assert set(pair) <= set(facts)
    assert len(set(facts)) < NODES
    assert all(set(pair) <= one for one in held)
    assert all("instance/b" in one for one in held)


async def test_storage_that_was_given_up_is_asked_for_no_more(sim, clock):
    """To ask of a volume mounts it: who took it out of use does not find it again."""
    await add(sim, "a")
    await sim.run("OP_CLUSTER_SET_PARAMS", gluster_storage_dir="/mnt/other")
    clock.now += 100
    assert await renewed(sim) == set()
    assert len((await add(sim, "b"))[1]) == NODES


async def test_a_volume_to_adopt_is_looked_for_on_every_node_each_time(sim):
    path = "/dev/disk/by-id/lun1"
    sim.nodes.san.devices[path] = {"size": 1024, "identity": "wwn-1"}
    for number in (1, 2):
        disk = {"adopt": path, "size": 1024}
        fields = request(f"a{number}") | {"disk_template": "blockdev", "disks": [disk]}
        before = len(sim.nodes.calls)
        await sim.run("OP_INSTANCE_CREATE", **fields)
        asked = {n for n, verb in sim.nodes.calls[before:] if verb == "devices"}
        assert asked == set(sim.nodes.nodes)
        await sim.run("OP_INSTANCE_REMOVE", instance_name=f"a{number}")


async def test_locks_of_nodes_that_were_not_chosen_are_given_back(sim):
    held = []

    async def look(_name):
        rows = sim.engine.locks.rows()
        held.append({row["name"] for row in rows if row["name"].startswith("node/")})

    sim.extra_point = look
    job = await sim.finished(await sim.submit("OP_INSTANCE_CREATE", **request("a")))
    [node] = job.ops[0].result
    uuid = sim.config.node(node).uuid
    # A new master would take those that are on record.
    assert [one.name for one in job.ops[0].locks if one.level == "node"] == [uuid]
    assert held
    assert all(one == {f"node/{uuid}"} for one in held)
    assert not sim.engine.locks.rows()


async def test_twenty_at_once_do_not_overfill_a_node(sim):
    """Six nodes of 64 GiB take one instance of 40 GB each, whoever asks at once."""
    await add(sim, "a", LARGE)
    requests = [
        {"OP_ID": "OP_INSTANCE_CREATE", **request(f"b{n}", LARGE)} for n in range(20)
    ]
    await sim.at_once(*requests)
    homes = [one.primary_node for one in map(sim.config.instance, names(sim))]
    assert len(homes) == len(set(homes))


async def test_a_choice_that_proved_wrong_takes_nothing_from_others(sim):
    """All nodes are asked anew then, one of them slowly; meanwhile others decide."""
    await add(sim, "a")
    for one in sim.nodes.nodes.values():
        one.machine.busy = lambda: 31_440
    asked, anew, go, ask = [], asyncio.Event(), asyncio.Event(), sim.nodes.ask

    async def slowly(node, calls, term):
        asked.append(node.name)
        if len(asked) > NODES:
            anew.set()
            await go.wait()
        return await ask(node, calls, term)

    sim.nodes.ask = slowly
    large = await sim.submit("OP_INSTANCE_CREATE", **request("b", LARGE))
    await anew.wait()
    sim.nodes.ask = ask
    for node in sim.nodes.nodes:
        await add(sim, f"c-{node}", 28_000, pnode=node)
    go.set()
    assert (await sim.finished(large)).status == "error"


def names(sim):
    return [name for kind, name in sim.config.names if kind == "instance"]
