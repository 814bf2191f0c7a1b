# SPDX-License-Identifier: BSD-2-Clause
"""Instance policies: set, inherited, kept to, and the named way around them."""

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.testing.cluster import ClusterBuilder, SimCluster

SPEC = {
    "memory-size": 1024,
    "cpu-count": 1,
    "disk-size": 64,
    "disk-count": 1,
    "nic-count": 0,
    "spindle-use": 1,
}


def bounds(**most):
    changed = {name.replace("_", "-"): value for name, value in most.items()}
    return [{"min": dict.fromkeys(SPEC, 0), "max": SPEC | changed}]


@pytest.fixture
async def sim(tmp_path):
    builder = ClusterBuilder(2).node("far1", "far").node("far2", "far")
    cluster = await SimCluster.start(tmp_path, builder)
    yield cluster
    await cluster.stop()


async def add(sim, name, **more):
    fields = {"disk_template": "ext", "disks": [{"size": 64, "provider": "san"}]}
    fields |= {"instance_name": name, "group_name": "default"} | more
    return await sim.run("OP_INSTANCE_CREATE", **fields)


async def refused(sim, name, words, **more):
    with pytest.raises(BadInput, match=words) as caught:
        await add(sim, name, **more)
    assert "--ignore-ipolicy" in caught.value.hint


async def test_the_default_takes_small_disks_and_no_card_and_refuses_the_huge(sim):
    await add(sim, "small")
    await refused(sim, "huge", "memory-size 614400 is not", beparams={"memory": 614400})
    more = {"beparams": {"memory": 40_000}}
    await refused(sim, "big", "is not in 128..32768", **more)
    await add(sim, "big", **more, ignore_ipolicy=True)


async def test_a_group_inherits_and_covers_the_policy(sim):
    set_cluster = {"minmax": bounds(), "std": SPEC}
    await sim.run("OP_CLUSTER_SET_PARAMS", ipolicy=set_cluster)
    large = {"beparams": {"memory": 2048}}
    await refused(sim, "web", "node group default: memory-size 2048", **large)
    await refused(sim, "web", "node group far", **large, group_name="far")
    own = {"minmax": bounds(memory_size=4096), "vcpu-ratio": 1.5}
    await sim.run("OP_GROUP_SET_PARAMS", group_name="far", ipolicy=own)
    assert sim.config.group("far").ipolicy == own
    # Nobody names a node: only the group that takes it is chosen.
    assert await add(sim, "web", **large, group_name=None) in (["far1"], ["far2"])
    await sim.run(
        "OP_GROUP_SET_PARAMS", group_name="far", ipolicy={"minmax": "default"}
    )
    assert sim.config.group("far").ipolicy == {"vcpu-ratio": 1.5}
    await refused(sim, "web2", "node group far", **large, group_name="far")


async def test_a_size_that_is_newer_than_a_policy_has_its_default_bounds(tmp_path):
    """Somebody set the policy before there was the size: that must refuse nobody."""
    (pair,) = bounds()
    for side in pair.values():
        del side["spindle-use"]
    builder = ClusterBuilder(2)
    group = builder.objects["default"]
    builder.objects["default"] = replace(group, ipolicy={"minmax": [pair]})
    sim = await SimCluster.start(tmp_path, builder)
    await add(sim, "web")
    await refused(sim, "big", "memory-size 2048", beparams={"memory": 2048})
    many = {"beparams": {"spindle_use": 13}}
    await refused(sim, "wide", "spindle-use 13 is not in 1..12", **many)
    other = {"group_name": "default", "ipolicy": {"vcpu-ratio": 2}}
    await sim.run("OP_GROUP_SET_PARAMS", **other)
    await sim.stop()


async def test_templates_cards_and_processors_are_bounded(sim):
    policy = {"minmax": bounds(), "std": SPEC, "disk-templates": ["sharedfile"]}
    await sim.run("OP_CLUSTER_SET_PARAMS", ipolicy=policy)
    words = "disk template ext is not among sharedfile"
    await refused(sim, "web", words, pnode="node1", group_name=None)
    shared = {"disk_template": "sharedfile", "disks": [{"size": 64}]}
    await refused(sim, "web", "cpu-count 2", **shared, beparams={"vcpus": 2})
    await refused(sim, "web", "nic-count 1", **shared, nics=[{}])
    await refused(sim, "web", "disk-count 2", **shared | {"disks": [{"size": 9}] * 2})
    await refused(sim, "web", "disk-size 65", **shared | {"disks": [{"size": 65}]})
    await add(sim, "web", **shared)


async def test_a_change_keeps_to_it_and_old_sins_are_forgiven(sim):
    await add(sim, "web", beparams={"memory": 2048})
    await sim.run("OP_CLUSTER_SET_PARAMS", ipolicy={"minmax": bounds(), "std": SPEC})
    change = {"instance_name": "web", "beparams": {"vcpus": 2}}
    error = await sim.refused("OP_INSTANCE_SET_PARAMS", **change)
    assert "cpu-count 2 is not in 0..1" in error.message
    assert "memory" not in error.message
    await sim.run("OP_INSTANCE_SET_PARAMS", **change, ignore_ipolicy=True)
    grow = {"instance_name": "web", "disk": 0, "amount": 64}
    error = await sim.refused("OP_INSTANCE_GROW_DISK", **grow)
    assert "disk-size 128 is not in 0..64" in error.message
    await sim.run("OP_INSTANCE_GROW_DISK", **grow, ignore_ipolicy=True)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"colour": 1}, "no part 'colour'"),
        ({"minmax": []}, "a list of min and max"),
        ({"minmax": [{"min": SPEC}]}, "has min and max"),
        ({"minmax": [{"min": SPEC | {"cpu-count": 9}, "max": SPEC}]}, "above the max"),
        ({"minmax": [{"min": SPEC, "max": SPEC | {"x": 1}}]}, "nothing else"),
        ({"std": SPEC | {"cpu-count": 99}}, "outside of all bounds"),
        ({"vcpu-ratio": "many"}, "vcpu-ratio is a number"),
        ({"disk-templates": []}, "at least one"),
        ({"disk-templates": ["floppy"]}, "no disk template 'floppy'"),
        ({"vcpu-ratio": float("nan")}, "vcpu-ratio is a number"),
        ({"spindle-ratio": float("inf")}, "spindle-ratio is a number"),
        ({"minmax": [{"min": SPEC, "max": SPEC | {"cpu-count": 2**40}}]}, "is 0 to"),
    ],
)
async def test_what_is_no_policy_is_refused(sim, policy, words):
    error = await sim.refused("OP_CLUSTER_SET_PARAMS", ipolicy=policy)
    assert isinstance(error, BadInput)
    assert words in error.message


async def test_only_the_cluster_has_a_standard(sim):
    fields = {"group_name": "far", "ipolicy": {"std": SPEC}}
    error = await sim.refused("OP_GROUP_SET_PARAMS", **fields)
    assert "has no part 'std'" in error.message
    made = {"group_name": "new", "ipolicy": {"minmax": bounds()}}
    await sim.run("OP_GROUP_ADD", **made)
    assert sim.config.group("new").ipolicy == {"minmax": bounds()}


async def test_those_outside_of_a_new_policy_are_named(sim):
    await add(sim, "big", beparams={"memory": 2048})
    narrow = {"ipolicy": {"minmax": bounds(), "std": SPEC}}
    await sim.run("OP_CLUSTER_SET_PARAMS", **narrow)
    said = [entry[3] for entry in sim.engine.job(2).ops[0].log]
    told = "the new policy of node group default is broken by big"
    assert said == [f"Warning: {told}; they stay as they are"]
    found = (await sim.run("OP_CLUSTER_VERIFY"))["warnings"]
    (one,) = (one for one in found if one["object"] == "instance big")
    assert one["message"].endswith("group default: memory-size 2048 is not in 0..1024")
    wide = {"minmax": bounds(memory_size=4096)}
    await sim.run("OP_GROUP_SET_PARAMS", group_name="default", ipolicy=wide)
    assert (await sim.run("OP_CLUSTER_VERIFY"))["warnings"] == []
    tight = {"group_name": "default", "ipolicy": {"minmax": "default"}}
    await sim.run("OP_GROUP_SET_PARAMS", **tight)
    said = [entry[3] for entry in sim.engine.job(6).ops[0].log]
    assert len(said) == 1
    assert "is broken by big" in said[0]
