# SPDX-License-Identifier: BSD-2-Clause
"""Whether a guest runs elsewhere is asked once for all starts of a moment."""

from collections import Counter
from copy import deepcopy

import pytest

from moorage.errors import Unreachable, WrongState
from moorage.jobs.operation import Sought
from moorage.jobs.whereabouts import Whereabouts
from moorage.model import GuestState, Node
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.units import Mib

NODES = 6
WEB1 = {"instance_name": "web1"}
TO_IMAGES = {"disk_template": "sharedfile"}
MODIFY = "OP_INSTANCE_SET_PARAMS"
STARTUP, SHUTDOWN = "OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN"
WEBS = tuple(f"web{number}" for number in range(1, 9))
OTHERS = {f"node{number}": 1 for number in range(2, NODES + 1)}
MOMENT = 31.0
"""Seconds after which what nodes said counts no more."""
MET = 11.0
"""Seconds after which a node knows its master."""


class Clock:
    """A clock that is put forward."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def sim(tmp_path, clock):
    """Return a cluster that knows its master: eight instances are down on node1."""
    builder = ClusterBuilder(NODES)
    for web in (*WEBS, "far"):
        home = "node2" if web == "far" else "node1"
        builder.disk(f"d-{web}", last_node=home)
        builder.instance(web, home, (f"d-{web}",), os="debian")
    found = SimCluster(tmp_path)
    found.clock = clock
    await found.make(builder)
    for web in (*WEBS, "far"):
        size = {"size": 1024, "provider": "san", "data": ""}
        found.nodes.san.volumes[f"vol-d-{web}"] = size
    await met(found, clock)
    yield found
    await found.stop()


async def met(sim, clock):
    """Let all nodes hear the master, and some seconds pass."""
    await sim.run("OP_CLUSTER_VERIFY")
    clock.now += MET


def asked(sim, since):
    """Return how often each node was asked for its guests, or for one of another's."""
    calls = sim.nodes.calls[since:]
    about = Counter(node for node, verb in calls if verb == "guests")
    alone = Counter(node for node, verb in calls if verb == "guest")
    assert set(alone) <= {"node1", "node2"}, "nobody but its home is asked for one"
    return about


async def start(sim, web="web1"):
    """Start an instance; return how often each node was asked for its guests."""
    since = len(sim.nodes.calls)
    await sim.run(STARTUP, instance_name=web)
    return asked(sim, since)


def stray(sim, web, node, state="running"):
    """Let somebody else start a guest on a node."""
    disk = sim.config.instance(web).disks[0]
    told = {"uuid": web, "name": web, "state": state, "memory": 128, "vcpus": 1}
    sim.nodes.san.guests[f"{node} {web}"] = {"state": told | {"disks": [disk]}}


def end(sim, web, node):
    """Let a guest end by itself."""
    del sim.nodes.san.guests[f"{node} {web}"]


async def refused(sim, web, node):
    """Start an instance, which is refused because its guest runs on a node."""
    error = await sim.refused(STARTUP, instance_name=web)
    assert isinstance(error, WrongState)
    assert f"instance {web} runs on node {node}, " in error.message


async def test_the_starts_of_a_moment_ask_each_node_once(sim):
    jobs = [{"OP_ID": STARTUP, "instance_name": web} for web in WEBS]
    since = len(sim.nodes.calls)
    assert await sim.at_once(*jobs) == []
    assert asked(sim, since) == OTHERS


async def test_the_next_start_asks_nobody_again(sim):
    assert await start(sim, "web1") == OTHERS
    assert await start(sim, "web2") == {}
    assert await start(sim, "web3") == {}


@pytest.mark.parametrize(
    ("op_id", "more"),
    [
        ("OP_INSTANCE_ACTIVATE_DISKS", {}),
        ("OP_INSTANCE_FAILOVER", {"target_node": "node2"}),
        ("OP_INSTANCE_SET_PARAMS", {"pnode": "node2"}),
    ],
)
async def test_who_else_must_know_shares_what_was_said(sim, op_id, more):
    await start(sim, "web1")
    since = len(sim.nodes.calls)
    calls = sim.nodes.calls
    await sim.run(op_id, instance_name="web2", **more)
    assert not [node for node, verb in calls[since:] if verb == "guests"]


@pytest.mark.parametrize(
    ("op_id", "more"),
    [("OP_INSTANCE_REINSTALL", {}), ("OP_INSTANCE_RENAME", {"new_name": "new"})],
)
async def test_no_script_writes_to_the_disks_of_a_guest_that_runs_elsewhere(
    sim, op_id, more
):
    stray(sim, "web1", "node3")
    error = await sim.refused(op_id, instance_name="web1", **more)
    assert isinstance(error, WrongState)
    assert "instance web1 runs on node node3, " in error.message


@pytest.mark.parametrize(
    ("op_id", "more"),
    [
        ("OP_DISK_CONVERT", {"disk": "d-web1", **TO_IMAGES}),
        ("OP_DISK_DETACH", {"disk": "d-web1"}),
        (MODIFY, WEB1 | TO_IMAGES),
        (MODIFY, {**WEB1, "disks": [["remove", {}]]}),
        (MODIFY, {**WEB1, "disks": [["detach", {}]]}),
        ("OP_INSTANCE_MOVE", {**WEB1, "target_node": "node2"}),
        ("OP_INSTANCE_RECREATE_DISKS", WEB1),
        ("OP_INSTANCE_REMOVE", WEB1),
        ("OP_INSTANCE_REMOVE", {**WEB1, "ignore_failures": True}),
        ("OP_BACKUP_EXPORT", {**WEB1, "remove_instance": True}),
    ],
)
async def test_nothing_is_done_to_the_disks_of_a_guest_that_runs_elsewhere(
    sim, op_id, more
):
    """A state that was restored, and is older, may say that it is down here."""
    stray(sim, "web1", "node3")
    volumes = dict(sim.nodes.san.volumes)
    error = await sim.refused(op_id, **more)
    assert isinstance(error, WrongState)
    assert "instance web1 runs on node node3, " in error.message
    assert "its disks are in use there" in error.message
    assert sim.nodes.san.volumes == volumes


async def test_disks_may_come_and_change_whoever_runs_the_guest(sim):
    since = len(sim.nodes.calls)
    await sim.run(MODIFY, **WEB1, beparams={"vcpus": 2})
    await sim.run(MODIFY, **WEB1, disks=[["modify", 0, {"mode": "ro"}]])
    assert asked(sim, since) == {}


async def test_after_a_moment_all_are_asked_again(sim, clock):
    await start(sim, "web1")
    clock.now += MOMENT
    stray(sim, "web2", "node3")
    await refused(sim, "web2", "node3")
    assert await start(sim, "web3") == {}


async def test_a_node_that_was_ordered_something_is_asked_anew(sim):
    await start(sim, "web1")
    assert await start(sim, "far") == {"node1": 1}
    assert await start(sim, "web2") == {"node2": 1}
    stray(sim, "web3", "node2")
    await sim.run("OP_DISK_ADD", size=64, provider="san", disk_template="ext",
                  node="node2", name="new")  # fmt: skip
    await refused(sim, "web3", "node2")


async def test_a_node_whose_record_changed_is_asked_anew(sim):
    await start(sim, "web1")
    for offline in (True, False):
        await sim.run("OP_NODE_SET_PARAMS", node_name="node4", offline=offline)
    stray(sim, "web2", "node4")
    await refused(sim, "web2", "node4")


async def test_a_guest_that_ran_elsewhere_is_found_and_looked_for_again(sim):
    """No refusal rests on what was said earlier."""
    stray(sim, "web2", "node3")
    await start(sim, "web1")
    await refused(sim, "web2", "node3")
    end(sim, "web2", "node3")
    assert await start(sim, "web2") == {"node3": 1}


async def test_a_migration_that_was_cut_off_and_goes_on_by_itself_is_found(sim):
    """What waits for a guest on another node may be that guest a moment later."""
    stray(sim, "web1", "node5", "incoming")
    assert await start(sim, "web1") == OTHERS
    await sim.run(SHUTDOWN, instance_name="web1")
    assert await start(sim, "web2") == {}
    stray(sim, "web1", "node5")
    await refused(sim, "web1", "node5")


async def test_a_new_master_asks_for_itself_and_keeps_nothing_at_first(sim, clock):
    """What the former one ordered last may have been on its way meanwhile."""
    await start(sim, "web1")
    await sim.crash()
    stray(sim, "web2", "node3")
    await sim.boot()
    await refused(sim, "web2", "node3")
    assert await start(sim, "web3") == OTHERS
    stray(sim, "web4", "node6")
    await refused(sim, "web4", "node6")
    await met(sim, clock)
    assert await start(sim, "web5") == OTHERS
    assert await start(sim, "web6") == {}


async def test_a_restored_state_starts_nothing_that_has_moved_since(sim, clock):
    await start(sim, "web1")
    older = deepcopy(sim.store)
    await sim.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node4")
    for _ in range(3):  # its term must be a later one, as a restore makes it
        await sim.crash()
        sim.store = older
        await sim.boot()
    assert sim.config.instance("web1").primary_node == "node1"
    await refused(sim, "web1", "node4")
    await met(sim, clock)
    await refused(sim, "web1", "node4")


async def test_a_silent_node_is_asked_each_time_and_keeps_nobody_down(sim):
    sim.nodes.nodes["node3"].powered = False
    await start(sim, "web1")
    await start(sim, "web2")
    sim.nodes.nodes["node3"].boot()
    stray(sim, "web3", "node3")
    await refused(sim, "web3", "node3")


# -- by itself -------------------------------------------------------------------------


class Town:
    """Two nodes, and how often each was asked."""

    def __init__(self):
        self.asked = Counter()
        self.guests = {"a": [], "b": []}

    async def __call__(self, questions):
        [question] = questions
        self.asked[question.node] += 1
        found = self.guests[question.node]
        return [found if isinstance(found, Exception) else list(found)]


def host(uuid):
    address = {"primary_ip": "192.0.2.1", "secondary_ip": "192.0.2.1"}
    return Node(uuid=uuid, name=uuid, group="default", **address)


@pytest.fixture
def town():
    return Town()


@pytest.fixture
async def places(town, clock):
    """Return what is known of two nodes that know their master."""
    found = Whereabouts(clock, town)
    for node in "ab":
        found.met(node)
    clock.now += MET
    return found


SOUGHT = Sought("web", "c", tuple(map(host, "abc")))


async def test_an_order_whose_answer_was_lost_is_in_doubt_for_as_long_as_it_may_last(
    places, town, clock
):
    places.ordered("a", doubt=3600.0)
    for number in (1, 2, 3):
        assert await places.find(SOUGHT) == {}
        assert town.asked == {"a": number, "b": 1}
    town.guests["a"] = [
        GuestState(uuid="web", name="web", state="running", memory=Mib(1), vcpus=1)
    ]
    assert await places.find(SOUGHT) == {"a": "running"}
    town.guests["a"] = []
    clock.now += 3601.0
    for _ in range(2):
        assert await places.find(SOUGHT) == {}
    assert town.asked == {"a": 5, "b": 2}


async def test_an_order_that_ends_while_its_node_is_asked_has_it_asked_again(
    places, town
):
    answer = town.__call__

    async def ask(questions):
        found = await answer(questions)
        if questions[0].node == "a" and town.asked["a"] == 1:
            places.ordered("a")
        return found

    places._ask = ask
    for _ in range(3):
        assert await places.find(SOUGHT) == {}
    assert town.asked == {"a": 2, "b": 1}


async def test_a_node_that_gives_no_answer_is_left_out(places, town):
    town.guests["b"] = Unreachable("it is off")
    assert await places.find(SOUGHT) == {}
    assert await places.find(SOUGHT) == {}
    assert town.asked == {"a": 1, "b": 2}
