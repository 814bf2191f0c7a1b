# SPDX-License-Identifier: BSD-2-Clause
"""Allocators that are programs: what they are told, and what is made of their words."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from allocating import MIRRORED, SAN, Shelf, add, asks, home, needs_hail
from moorage.errors import AllocatorFailed, BadInput, NoCapacity, NotFound
from moorage.model import Instance
from moorage.node.extensions.allocators import Allocators
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster


async def test_an_allocator_chooses_the_node(sim: SimCluster, programs: Shelf) -> None:
    programs.names("mine", "node3")
    assert await add(sim, "web1", "mine") == ["node3"]
    assert home(sim, "web1") == "node3"


async def test_who_is_primary_and_who_secondary(
    sim: SimCluster, programs: Shelf
) -> None:
    for number, pair in enumerate((("node4", "node2"), ("node2", "node4"))):
        programs.names("mine", *pair)
        assert await add(sim, f"db{number}", "mine", **MIRRORED) == [*pair]


@needs_hail
@pytest.mark.parametrize("kind", [SAN, MIRRORED, {"disk_template": "diskless"}])
async def test_ganetis_hail_places_instances(
    sim: SimCluster, programs: Shelf, kind: dict[str, Any]
) -> None:
    programs.ganetis("theirs")
    fields = {"disks": [], **kind}
    for number in range(4):
        await add(sim, f"web{number}", "theirs", **fields)
    homes = {home(sim, f"web{number}") for number in range(4)}
    assert len(homes) == 4


async def test_what_it_is_told(sim: SimCluster, programs: Shelf) -> None:
    await add(sim, "old", pnode="node2", tags=["a"])
    programs.names("mine", "node3")
    await add(sim, "web1", "mine", tags=["x"], group_name="default")
    told = programs.seen("mine")
    assert told["version"] == 2
    assert told["request"] == {
        "type": "allocate",
        "name": "web1",
        "tags": ["x"],
        "vcpus": 1,
        "memory": 1024,
        "spindle_use": 1,
        "disk_template": "ext",
        "disk_space_total": 64,
        "os": "",
        "hypervisor": "kvm",
        "disks": told["request"]["disks"],
        "nics": told["request"]["nics"],
        "required_nodes": 1,
        "restrict-to-nodes": ["node1", "node2", "node3", "node4"],
        "group_name": "default",
    }
    assert told["instances"]["old"]["nodes"] == ["node2"]
    assert told["nodes"]["node2"]["i_pri_memory"] == 1024
    assert told["nodegroups"]["default"]["name"] == "default"


@pytest.mark.requirement("S2-12")
async def test_with_opportunistic_locking_nodes_are_named_and_none_is_off(
    sim: SimCluster, programs: Shelf
) -> None:
    await sim.run("OP_NODE_SET_PARAMS", node_name="node4", drained=True)
    programs.names("mine", "node3")
    await add(sim, "web1", "mine", opportunistic_locking=True)
    told = programs.seen("mine")
    assert told["request"]["restrict-to-nodes"] == ["node1", "node2", "node3"]
    assert not any(node["offline"] for node in told["nodes"].values())


async def test_the_clusters_default_is_asked(sim: SimCluster, programs: Shelf) -> None:
    programs.names("mine", "node3")
    await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator="mine")
    assert await add(sim, "web1") == ["node3"]
    assert await add(sim, "web2", ".") == ["node3"]
    await add(sim, "web3", "hail")
    assert home(sim, "web3") != "node3"
    assert await add(sim, "web4", pnode="node1") == ["node1"]


async def test_a_default_that_is_not_there_is_refused(
    sim: SimCluster, programs: Shelf
) -> None:
    programs.names("mine", "node3")
    with pytest.raises(NotFound, match="has no allocator 'other'; there is mine"):
        await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator="other")
    await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator="mine")
    with pytest.raises(BadInput, match=r"'\.' is the cluster's default already"):
        await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator=".")
    with pytest.raises(BadInput, match="is no name of an allocator"):
        await sim.run("OP_CLUSTER_SET_PARAMS", default_iallocator="../mine")


LIES = {
    "no JSON": ("echo some garbage", "printed is not JSON; it ends with: some garbage"),
    "no object": ("echo '[1]'", "no JSON object"),
    "too deep": ("head -c 9000 /dev/zero | tr '\\0' '['", "printed is not JSON"),
    "nothing": (":", "printed is not JSON; it ends with: nothing"),
    "no success": ("""echo '{"info": "", "result": []}'""", "lacks 'success'"),
    "odd success": (
        """echo '{"success": 1, "info": "", "result": []}'""",
        "lacks 'success'",
    ),
    "no result": ("""echo '{"success": true, "info": ""}'""", "lacks 'result'"),
    "odd result": (
        """echo '{"success": true, "info": "", "result": {"a": 1}}'""",
        "not of the shape",
    ),
    "unknown node": (
        """echo '{"success": true, "info": "", "result": ["mars"]}'""",
        "there is no such node",
    ),
    "too many": (
        """echo '{"success": true, "info": "", "result": ["node1", "node2"]}'""",
        "names 2 nodes for instance web1, which needs 1",
    ),
    "drained": (
        """echo '{"success": true, "info": "", "result": ["node4"]}'""",
        "not one of those that it may be on",
    ),
}


@pytest.mark.parametrize("lie", LIES)
async def test_what_makes_no_sense_is_refused(
    sim: SimCluster, programs: Shelf, lie: str
) -> None:
    await sim.run("OP_NODE_SET_PARAMS", node_name="node4", drained=True)
    text, told = LIES[lie]
    programs.shell("mine", text)
    before = sim.config.serial_no
    with pytest.raises(AllocatorFailed, match=told):
        await add(sim, "web1", "mine")
    assert sim.config.serial_no == before


async def test_what_is_too_long_is_not_read(sim: SimCluster, programs: Shelf) -> None:
    programs.shell("mine", "head -c 9000000 /dev/zero | tr '\\0' '['")
    with pytest.raises(
        AllocatorFailed, match="allocator 'mine' printed more than 8 MiB"
    ):
        await add(sim, "web1", "mine")


async def test_a_short_request_makes_no_long_message(sim: SimCluster) -> None:
    """What would be read is a job's result: it stands in the store and its copies."""
    wish = {"mode": "multi-allocate", "name": "new", "nics": [{"mac": "a" * 5000}]}
    with pytest.raises(BadInput, match="longer than 1 MiB"):
        await sim.run("OP_TEST_ALLOCATOR", **wish, count=1000)
    assert await sim.run("OP_TEST_ALLOCATOR", **wish, count=10)


async def test_one_that_fails_says_why(sim: SimCluster, programs: Shelf) -> None:
    programs.shell("mine", "echo oh dear >&2; exit 3")
    with pytest.raises(AllocatorFailed, match=r"exited with exit code 3.*oh dear"):
        await add(sim, "web1", "mine")
    programs.says("mine", {"success": False, "info": "", "result": []})
    with pytest.raises(NoCapacity, match="instance web1: it does not say why"):
        await add(sim, "web1", "mine")
    with pytest.raises(NotFound, match="there is no allocator 'yours'"):
        await add(sim, "web1", "yours")
    with pytest.raises(BadInput, match="at most 80 letters"):
        await add(sim, "web1", "x" * 81)


async def test_what_it_says_obeys_no_terminal(sim: SimCluster, programs: Shelf) -> None:
    told = "full\u001b]0;evil\u0007 of\nlines"
    programs.says("mine", {"success": False, "info": told, "result": []})
    with pytest.raises(NoCapacity) as caught:
        await add(sim, "web1", "mine")
    assert caught.value.message.isprintable()
    assert "finds no place for instance web1: full" in caught.value.message


async def test_a_place_without_room_is_refused(
    sim: SimCluster, programs: Shelf
) -> None:
    programs.names("mine", "node3")
    big = {"beparams": {"memory": 30_000}}
    await add(sim, "web1", "mine", **big)
    await add(sim, "web2", "mine", **big)
    with pytest.raises(NoCapacity, match=r"web3: node3: (memory|n\+1)"):
        await add(sim, "web3", "mine", **big)


async def test_a_place_that_strands_others_is_refused(
    tmp_path: Path, programs: Shelf
) -> None:
    sim = await asks(tmp_path, programs, ClusterBuilder(2))
    programs.names("mine", "node2")
    big = {"beparams": {"memory": 31_000}}
    await add(sim, "web1", pnode="node1", **big)
    await add(sim, "web2", "mine", beparams={"memory": 20_000})
    with pytest.raises(NoCapacity, match="web3: node2: "):
        await add(sim, "web3", "mine", beparams={"memory": 20_000})
    await sim.stop()


@pytest.mark.requirement("S2-13")
async def test_two_at_a_time_never_break_n_plus_1_together(
    sim: SimCluster, programs: Shelf
) -> None:
    programs.names("mine", "node3")
    programs.names("yours", "node3")
    big = SAN | {"beparams": {"memory": 30_000}}
    jobs = [
        await sim.submit(
            "OP_INSTANCE_CREATE", instance_name=f"web{number}", iallocator=who, **big
        )
        for number, who in enumerate(("mine", "yours", "mine", "yours"))
    ]
    done = await asyncio.gather(*(sim.finished(job) for job in jobs))
    assert [job.status for job in done].count("success") == 2
    assert len(sim.config.instances_on(sim.config.node("node3"))) == 2


async def test_one_that_is_overtaken_is_asked_again(
    sim: SimCluster, programs: Shelf
) -> None:
    """It names the node that is free in what it reads; others take it meanwhile."""
    programs.program(
        "least",
        "#!/usr/bin/python3\n"
        "import json, sys\n"
        "told = json.load(open(sys.argv[1]))\n"
        "free = {n: v['total_memory'] - v['i_pri_memory']"
        " for n, v in told['nodes'].items()}\n"
        "best = max(sorted(free), key=free.get)\n"
        "print(json.dumps({'success': True, 'info': '', 'result': [best]}))\n",
    )
    big = SAN | {"beparams": {"memory": 30_000}}
    jobs = [
        await sim.submit(
            "OP_INSTANCE_CREATE", instance_name=f"web{n}", iallocator="least", **big
        )
        for n in range(4)
    ]
    done = await asyncio.gather(*(sim.finished(job) for job in jobs))
    assert [job.status for job in done] == ["success"] * 4
    assert {home(sim, f"web{n}") for n in range(4)} == {f"node{n}" for n in range(1, 5)}


@pytest.mark.parametrize("who", ["mine", "hail"])
async def test_lost_disks_are_made_anew_elsewhere(
    sim: SimCluster, programs: Shelf, who: str
) -> None:
    await add(sim, "db", pnode="node1", snode="node2", start=False, **MIRRORED)
    await sim.run("OP_NODE_SET_PARAMS", node_name="node2", drained=True)
    programs.names("mine", "node3", "node4")
    fields = {"instance_name": "db", "iallocator": who}
    await sim.run("OP_INSTANCE_RECREATE_DISKS", **fields)
    (disk,) = sim.config.disks_of(sim.config.instance("db"))
    assert "node2" not in disk.nodes
    assert home(sim, "db") == disk.nodes[0]
    if who == "mine":
        assert disk.nodes == ("node3", "node4")
    both = await sim.refused("OP_INSTANCE_RECREATE_DISKS", nodes=["node1"], **fields)
    assert isinstance(both, BadInput)


async def test_an_import_goes_where_it_says(sim: SimCluster, programs: Shelf) -> None:
    await add(sim, "web1", pnode="node1")
    await sim.run("OP_BACKUP_EXPORT", instance_name="web1", target_node="node2")
    programs.names("mine", "node3")
    fields = {"mode": "import", "src_path": "web1", "iallocator": "mine"}
    await sim.run("OP_INSTANCE_CREATE", instance_name="web2", **fields)
    assert home(sim, "web2") == "node3"
    told = programs.seen("mine")["request"]
    assert (told["name"], told["memory"], told["disk_template"]) == (
        "web2",
        1024,
        "ext",
    )


async def test_several_are_made_at_once(sim: SimCluster, programs: Shelf) -> None:
    programs.names("mine", "node3")
    told = await sim.run(
        "OP_INSTANCE_MULTI_ALLOC",
        iallocator="mine",
        instances=[SAN | {"instance_name": f"web{n}"} for n in range(2)],
    )
    for _, job in told["jobs"]:
        assert (await sim.finished(job)).status == "success"
    assert {home(sim, f"web{n}") for n in range(2)} == {"node3"}


async def test_one_that_thinks_holds_nobody_else_up(
    sim: SimCluster, programs: Shelf
) -> None:
    flag = programs.path / "seen" / "go"
    programs.shell(
        "slow",
        f"while [ ! -e {flag} ]; do sleep 0.02; done\n"
        """echo '{"success": true, "info": "", "result": ["node3"]}'""",
    )
    job = await sim.submit(
        "OP_INSTANCE_CREATE", instance_name="web1", iallocator="slow", **SAN
    )
    await add(sim, "web2")
    other = await sim.submit(
        "OP_INSTANCE_CREATE", instance_name="web3", iallocator="slow", **SAN
    )
    done, _ = await sim.engine.cancel(other)
    assert done
    flag.touch()
    assert (await sim.finished(job)).status == "success"


async def test_one_that_thinks_is_given_up_with_its_job(
    sim: SimCluster, programs: Shelf
) -> None:
    flag = programs.path / "seen" / "go"
    programs.shell("slow", f"while [ ! -e {flag} ]; do sleep 0.02; done")
    job = await sim.submit(
        "OP_INSTANCE_CREATE", instance_name="web1", iallocator="slow", **SAN
    )
    await asyncio.sleep(0.1)
    async with asyncio.timeout(10):
        done, _ = await sim.engine.cancel(job)
    assert done
    assert sim.engine.job(job).status == "canceled"
    flag.touch()


@pytest.mark.parametrize("hooked", [False, True])
async def test_what_was_chosen_outlives_a_crash(
    tmp_path: Path, programs: Shelf, *, hooked: bool
) -> None:
    """The master dies at each point in turn, and the allocator is gone by then."""
    sim = SimCluster(tmp_path)
    sim.hooked = hooked
    await sim.make(ClusterBuilder(4))
    machine = sim.nodes.nodes["node1"].machine
    for point in count():
        machine.allocators = Allocators([programs.path])
        programs.names("mine", "node3")
        sim.crash_at = len(sim.points) + point
        name = f"web{point}"
        job = await sim.submit(
            "OP_INSTANCE_CREATE", instance_name=name, iallocator="mine", **SAN
        )
        try:
            await sim.finished(job)
        except Crash:
            machine.allocators = Allocators([])
            await sim.crash()
            sim.crash_at = None
            await sim.boot()
            done = await sim.finished(job)
        else:
            break
        if done.status == "success":
            assert home(sim, name) == "node3"
        else:
            assert not sim.config.knows(Instance, name)
        assert sim.engine.locks.rows() == []
    assert point > 3
    await sim.stop()
