# SPDX-License-Identifier: BSD-2-Clause
"""Operations on nodes: what they are for, and emptying them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, NotFound, Unreachable, WrongState
from moorage.jobs import Commit, View
from moorage.model import GuestState, Instance, load
from moorage.model.token import Token, to_text
from moorage.ops.node.add import NodeAdd
from moorage.ops.node.remove import NodeRemove
from moorage.ops.node.residents import guests_on
from moorage.ops.node.set_params import NodeSetParams
from moorage.protocol import TellMasters
from moorage.testing.cluster import ClusterBuilder, SimCluster


def guest(uuid: str, state: str = "running") -> GuestState:
    return GuestState(uuid=uuid, name=uuid, state=state, memory=128, vcpus=1)


def built() -> ClusterBuilder:
    builder = ClusterBuilder(nodes=3)
    builder.instance("web1", "node2", admin_state="up")
    builder.instance("web2", "node2")
    return builder


@pytest.fixture
async def sim(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await SimCluster.start(tmp_path, built())
    cluster.nodes.san.guests["node2 web1"] = {"state": guest("web1")}
    yield cluster
    await cluster.stop()


async def opcodes(sim: SimCluster, result: dict) -> list[tuple[str, str, str]]:
    jobs = [await sim.finished(number) for taken, number in result["jobs"] if taken]
    ops = [job.ops[0].input for job in jobs]
    return [(op["OP_ID"], op["instance_name"], op["target_node"]) for op in ops]


# -- emptying ----------------------------------------------------------------------


@pytest.mark.requirement("S0-14")
async def test_migrate_moves_what_runs(sim):
    fields = {"node_name": "node2", "target_node": "node3"}
    result = await sim.run("OP_NODE_MIGRATE", **fields)
    assert await opcodes(sim, result) == [("OP_INSTANCE_MIGRATE", "web1", "node3")]
    assert sim.config.instance("web1").primary_node == "node3"


async def test_a_job_that_follows_finds_an_instance_by_its_new_name(tmp_path):
    builder = ClusterBuilder(nodes=3)
    builder.objects["42"] = Instance(uuid="42", name="web3", primary_node="node2")
    cluster = await SimCluster.start(tmp_path, builder)
    begun, done = asyncio.Event(), asyncio.Event()

    async def slow(point: str) -> None:
        if point.startswith("before record web3"):
            begun.set()
            await done.wait()

    cluster.extra_point = slow
    rename = await cluster.submit(
        "OP_INSTANCE_RENAME", instance_name="web3", new_name="web9"
    )
    await begun.wait()
    fields = {"node_name": "node2", "remote_node": "node3"}
    result = await cluster.run("OP_NODE_EVACUATE", **fields)
    done.set()
    await cluster.finished(rename)
    job = await cluster.finished(result["jobs"][0][1])
    assert (job.status, job.ops[0].summary) == ("success", "INSTANCE_FAILOVER(web3)")
    assert cluster.config.instance("web9").primary_node == "node3"
    await cluster.stop()


@pytest.mark.requirement("S0-14")
async def test_evacuate_migrates_what_runs_and_fails_over_what_does_not(sim):
    fields = {"node_name": "node2", "remote_node": "node3"}
    result = await sim.run("OP_NODE_EVACUATE", mode="all", **fields)
    assert await opcodes(sim, result) == [
        ("OP_INSTANCE_MIGRATE", "web1", "node3"),
        ("OP_INSTANCE_FAILOVER", "web2", "node3"),
    ]
    assert sim.config.instances_on(sim.config.node("node2")) == []
    again = await sim.run("OP_NODE_EVACUATE", **fields)
    assert again == {"jobs": [], "names": [], "stayed": {}}


@pytest.mark.requirement("S0-14")
async def test_a_node_that_is_off_is_failed_over(sim):
    sim.nodes.nodes["node2"].lose_power()
    fields = {"node_name": "node2", "target_node": "node1"}
    for op_id in ("OP_NODE_FAILOVER", "OP_NODE_MIGRATE"):
        error = await sim.refused(op_id, **fields)
        assert isinstance(error, WrongState)
        assert "gnt-node modify --offline=yes node2" in error.hint
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    error = await sim.refused("OP_NODE_MIGRATE", **fields)
    assert error.hint == "gnt-node failover node2"
    evacuated = {"node_name": "node2", "remote_node": "node1", "dry_run": True}
    plan = await sim.run("OP_NODE_EVACUATE", **evacuated)
    assert [(step["what"], step["node"]) for step in plan] == [
        ("submit a job: INSTANCE_FAILOVER(web1)", "node1"),
        ("submit a job: INSTANCE_FAILOVER(web2)", "node1"),
    ]
    assert len(sim.config.instances_on(sim.config.node("node2"))) == 2
    result = await sim.run("OP_NODE_FAILOVER", **fields)
    assert len(await opcodes(sim, result)) == 2
    assert sim.config.instances_on(sim.config.node("node2")) == []


@pytest.mark.requirement("S0-13", "S0-14")
@pytest.mark.parametrize(
    ("op_id", "word"),
    [
        ("OP_NODE_MIGRATE", "target_node"),
        ("OP_NODE_FAILOVER", "target_node"),
        ("OP_NODE_EVACUATE", "remote_node"),
    ],
)
async def test_a_target_is_needed_that_takes_instances(sim, op_id, word):
    def refused(**fields):
        return sim.refused(op_id, node_name="node2", **fields)

    error = await refused(**{word: "node3", "iallocator": "hail"})
    assert isinstance(error, BadInput)
    assert error.message == "Do not specify both, iallocator and target node"
    assert isinstance(await refused(iallocator="dice"), NotFound)
    assert isinstance(await refused(**{word: "node2"}), BadInput)
    await sim.run("OP_NODE_SET_PARAMS", node_name="node3", drained=True)
    assert isinstance(await refused(**{word: "node3"}), WrongState)
    assert len(sim.engine.jobs) == 5


@pytest.mark.requirement("S0-14")
@pytest.mark.parametrize("target", ["node3", None])
async def test_one_instance_that_cannot_leave_does_not_keep_the_others(
    tmp_path, target
):
    builder = built().disk("loc", "file", logical_id=("loop", "/l/x"), nodes=("node2",))
    builder.instance("stuck", "node2", ("loc",))
    sim = await SimCluster.start(tmp_path, builder)
    fields = {"node_name": "node2", "remote_node": target}
    result = await sim.run("OP_NODE_EVACUATE", **fields)
    assert [name for name, _, _ in await opcodes(sim, result)] == [
        "OP_INSTANCE_FAILOVER",
        "OP_INSTANCE_FAILOVER",
    ]
    assert result["names"] == ["web1", "web2"]
    why = "disk loc of template 'file' stays on its node"
    assert result["stayed"] == {"stuck": why}
    told = [entry[3] for entry in sim.engine.job(1).ops[0].log]
    assert told == [f"Warning: instance stuck stays on node node2: {why}"]
    error = await sim.refused("OP_NODE_EVACUATE", **fields)
    assert error.message == f"no instance can leave node node2: stuck: {why}"
    nobody = await sim.run("OP_NODE_EVACUATE", mode="secondary-only", **fields)
    assert nobody["jobs"] == []
    error = await sim.refused("OP_NODE_EVACUATE", mode="up", **fields)
    assert isinstance(error, BadInput)
    await sim.stop()


# -- offline and back --------------------------------------------------------------


async def test_saying_that_a_node_is_off_waits_for_nobody(sim):
    sim.nodes.nodes["node2"].lose_power()
    await sim.engine.locks.acquire(
        77, NodeRemove(node_name="node2").locks(view(sim)), 0
    )
    result = await sim.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    assert result == [["offline", True], ["master_candidate", False]]
    assert sim.config.node("node2").offline
    sim.engine.locks.release(77)


def view(sim: SimCluster) -> View:
    return View(sim.config)


async def test_a_node_that_runs_guests_is_not_off(sim):
    error = await sim.refused("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    assert "it answers, and runs web1" in error.message
    assert "gnt-node evacuate" in error.hint
    sim.nodes.calls.clear()
    fields = {"node_name": "node2", "offline": True, "force": True}
    await sim.run("OP_NODE_SET_PARAMS", **fields)
    assert sim.config.node("node2").offline
    assert sim.nodes.calls == []


async def test_the_master_stays_on(sim):
    for flag in ("offline", "drained"):
        error = await sim.refused(
            "OP_NODE_SET_PARAMS", node_name="node1", **{flag: True}
        )
        assert isinstance(error, WrongState)
        assert "is the master" in error.message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([], ""),
        ([guest("web1")], ""),
        ([guest("web3")], "runs web3, which belongs elsewhere"),
        ([guest("gone", "paused")], "runs gone"),
        ([guest("web3", "moved")], ""),
        (Unreachable("no route"), "gives no answer (no route)"),
        (Unreachable("no trust", hint="mend it", silent=False), "(no trust)"),
    ],
)
def test_a_node_comes_back_alone(answer, words):
    builder = ClusterBuilder(1).node("node2", offline=True)
    builder.instance("web1", "node2").instance("web3", "node1")
    config = load(1, builder.objects.values())
    operation = NodeSetParams(node_name="node2", offline=False)
    (question,) = operation.questions(View(config))
    seen = View(config, {question: answer})
    assert list(operation.locks(seen)) == []
    if words:
        with pytest.raises(WrongState) as caught:
            operation.check(seen)
        assert words in caught.value.message
        assert "gnt-node modify --offline=no node2" in caught.value.hint
        if "no trust" in words:
            assert caught.value.hint.startswith("mend it, then: ")
    else:
        operation.check(seen)
        (task,) = operation.tasks(seen)
        assert task.what == "change node node2"


async def test_a_node_is_asked_before_it_comes_back(sim):
    node = {"node_name": "node2"}
    sim.nodes.nodes["node2"].lose_power()
    await sim.run("OP_NODE_SET_PARAMS", offline=True, **node)
    error = await sim.refused("OP_NODE_SET_PARAMS", offline=False, **node)
    assert "gives no answer" in error.message
    sim.nodes.nodes["node2"].boot()
    sim.nodes.san.guests["node2 gone"] = {"state": guest("gone")}
    error = await sim.refused("OP_NODE_SET_PARAMS", offline=False, **node)
    assert "runs gone, which belongs elsewhere" in error.message
    del sim.nodes.san.guests["node2 gone"]
    await sim.run("OP_NODE_SET_PARAMS", offline=False, **node)
    assert not sim.config.node("node2").offline


def test_a_node_that_is_let_in_again_is_known_by_its_new_key_alone() -> None:
    """And by no key to lead with: what it had may be in other hands."""
    builder = ClusterBuilder(1).node("node2", pins=("a" * 64, "b" * 64))
    had = replace(builder.objects["node2"], master_certs=("a certificate",))
    builder.objects["node2"] = had
    view = View(load(1, builder.objects.values()))
    operation = NodeAdd(node_name="node2", readd=True)
    with pytest.raises(BadInput) as caught:
        operation.check(view)
    assert "when its directory keys is emptied" in caught.value.hint
    token = to_text(Token("10.0.0.2", 1811, "c" * 64, "secret"))
    tasks = NodeAdd(node_name="node2", readd=True, token=token).tasks(view)
    recorded, let_in, *told = tasks
    assert isinstance(recorded, Commit)
    ((_, node),) = recorded.change["put"]
    assert list(node["pins"]) == ["c" * 64]
    assert not node.get("master_certs")
    assert not let_in.final
    assert [type(one.do) for one in told] == [TellMasters, TellMasters]


async def test_roles_and_parameters(sim):
    def modify(**fields):
        return sim.run("OP_NODE_SET_PARAMS", node_name="node3", **fields)

    def refused(**fields):
        return sim.refused("OP_NODE_SET_PARAMS", node_name="node3", **fields)

    changed = await modify(drained=True)
    assert changed == [["drained", True], ["master_candidate", False]]
    assert isinstance(await refused(master_candidate=True), WrongState)
    assert await modify(drained=False) == [
        ["drained", False],
        ["master_candidate", True],
    ]
    await modify(master_candidate=True, ndparams={"spindle_count": 1}, powered=False)
    assert sim.config.node("node3").ndparams == {"spindle_count": 1}
    assert isinstance(await refused(), BadInput)
    assert isinstance(await refused(offline=True, drained=True), BadInput)
    await modify(offline=True)
    assert isinstance(await refused(drained=True), WrongState)  # a node has one role
    await modify(offline=False, drained=True)
    node = sim.config.node("node3")
    assert (node.offline, node.drained, node.master_candidate) == (False, True, False)
    error = await sim.refused(
        "OP_NODE_SET_PARAMS", node_name="node1", master_candidate=False
    )
    assert isinstance(error, WrongState)


# -- removing ----------------------------------------------------------------------


async def test_an_empty_node_leaves(sim):
    await sim.run("OP_NODE_REMOVE", node_name="node3")
    assert [n.name for n in sim.config.nodes_in(sim.config.group("default"))] == [
        "node1",
        "node2",
    ]


async def test_a_node_in_use_stays(sim):
    error = await sim.refused("OP_NODE_REMOVE", node_name="node2")
    assert "still has 2 instances: web1, web2" in error.message
    error = await sim.refused("OP_NODE_REMOVE", node_name="node1")
    assert "is the master" in error.message
    sim.nodes.san.guests["node3 web1"] = {"state": guest("web1", "incoming")}
    error = await sim.refused("OP_NODE_REMOVE", node_name="node3")
    assert "still runs web1" in error.message
    sim.nodes.nodes["node3"].lose_power()
    error = await sim.refused("OP_NODE_REMOVE", node_name="node3")
    assert "gnt-node modify --offline=yes node3" in error.hint
    await sim.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True)
    await sim.run("OP_NODE_REMOVE", node_name="node3")


def test_a_node_that_holds_data_stays():
    builder = ClusterBuilder(2)
    builder.disk("loc", "file", logical_id=("loop", "/l/x"), nodes=("node2",))
    config = load(1, builder.objects.values())
    operation = NodeRemove(node_name="node2")
    node = config.node("node2")
    with pytest.raises(WrongState, match="data of 1 disk, one is loc"):
        operation.check(View(config, {guests_on(node): []}))
