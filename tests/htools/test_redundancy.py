# SPDX-License-Identifier: BSD-2-Clause
"""Survival: losing a node, by placing and not by counting."""

from itertools import product

import pytest

from moorage.htools import (
    Allocate,
    Asking,
    Disk,
    Rules,
    Searcher,
    balance,
    check,
    is_redundant,
    keeps_redundancy,
    load,
    place,
    sample,
    summed,
    survive,
    unlosable,
)
from moorage.htools.constants import Fail
from moorage.htools.placement.allocate import targets, try_allocate
from moorage.htools.placement.space import Size, model
from moorage.htools.survival.keeping import Keeper
from moorage.htools.survival.n1 import Guard


@pytest.mark.requirement("S2-01", "S2-07")
def test_a_cluster_with_room_elsewhere_is_redundant(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    state = load(make(nodes, [some_inst("a", 0, 2048), some_inst("b", 1, 2048)])).state
    assert is_redundant(state)
    assert summed(check(state)).gn1_fail == 0


@pytest.mark.requirement("S2-01", "S2-07")
def test_who_cannot_restart_is_named_with_the_reason(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [some_inst("big", 0, 6000), some_inst("other", 1, 3000)]
    state = load(make(nodes, insts)).state
    found = survive(state, 0, thorough=True)
    assert not found
    assert found.stranded == (0,)
    reasons = found.restarts[0].reasons
    assert [(one.node, one.fail) for one in reasons] == [(1, Fail.MEMORY)]
    assert summed(check(state)).gn1_fail == len(unlosable(state)) == 2


@pytest.mark.requirement("S2-05")
def test_offcuts_do_not_add_up(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    insts = [some_inst("big", 0, 6000)]
    insts += [some_inst(f"half{at}", at, 4000) for at in (1, 2)]
    state = load(make(nodes, insts)).state
    free = sum(state.nodes[at].unallocated for at in (1, 2))
    assert free > 6000  # by counting it would fit
    assert not survive(state, 0)


@pytest.mark.requirement("S2-01")
def test_nobody_restarts_on_an_offline_node(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1", offline=True)]
    state = load(make(nodes, [some_inst("a", 0)])).state
    assert not survive(state, 0)


@pytest.mark.requirement("S2-03")
def test_an_instance_restarts_only_where_all_its_disks_reach(
    make, some_node, some_inst
):
    nodes = [some_node(f"n{at}") for at in range(5)]
    near = some_inst("near", 0, 5000, reach=frozenset({0, 1, 2}))
    fill = [some_inst(f"f{at}", at, 4000) for at in (1, 2)]
    state = load(make(nodes, [near, *fill])).state
    assert not survive(state, 0)
    wide = some_inst("near", 0, 5000, reach=frozenset({0, 1, 4}))
    state = load(make(nodes, [wide, *fill])).state
    assert survive(state, 0).restarts[0].node == 4


@pytest.mark.requirement("S2-03")
def test_a_pool_on_three_of_five_nodes_counts_those_alone(
    make, some_node, some_inst, unit
):
    pool = (unit("ext", "nas", None, None),)
    nodes = [some_node(f"n{at}", units=pool if at < 3 else ()) for at in range(5)]
    insts = [some_inst("a", 0, 5000, template="ext")]
    insts[0] = some_inst("a", 0, 5000, template="ext", disks=(_disk("nas"),))
    insts += [
        some_inst(f"f{at}", at, 4000, template="ext", disks=(_disk("nas"),))
        for at in (1, 2)
    ]
    state = load(make(nodes, insts)).state
    found = survive(state, 0, thorough=True)
    reasons = {one.node: one.constraint for one in found.restarts[0].reasons}
    assert reasons == {1: "memory", 2: "memory", 3: "no such unit", 4: "no such unit"}


def _disk(key: str) -> Disk:
    return Disk(1024, unit=("ext", key))


def _exhaustive(state, lost: int) -> bool:
    """Say whether any assignment of the lost node's instances fits."""
    people = [state.insts[at] for at in state.nodes[lost].primaries]
    others = [n.idx for n in state.nodes if n.idx != lost and not n.offline]
    for homes in product(others, repeat=len(people)):
        left = {at: state.nodes[at].unallocated for at in others}
        for inst, home in zip(people, homes, strict=True):
            left[home] -= inst.mem if inst.uses_mem else 0
        if all(free > 0 for at, free in left.items() if at in homes):
            return True
    return not people


@pytest.mark.requirement("S2-01")
@pytest.mark.parametrize("seed", range(60))
def test_survival_is_never_claimed_where_exhaustive_search_finds_none(seed):
    shape = sample.Shape(
        kind="shared", nodes=2 + seed % 4, instances=6, fill=0.6, oddity=0.0
    )
    state = load(sample.cluster(seed, shape)).state
    for node in state.nodes:
        if len(node.primaries) > 6:
            continue
        if survive(state, node.idx):
            assert _exhaustive(state, node.idx)


@pytest.mark.requirement("S2-02", "S2-04")
def test_an_allocation_that_breaks_survival_is_refused_with_its_reason(
    make, some_node, some_inst
):
    nodes = [some_node("n0"), some_node("n1")]
    state = load(make(nodes, [some_inst("a", 0, 4000)])).state
    asked = Allocate(some_inst("new", -1, 5000), 1)
    found = place(state, asked, Asking())
    assert found.best is None
    assert found.failures[Fail.N1] == 1
    assert place(state, asked, Asking(capacity=False)).best is not None


@pytest.mark.requirement("S2-11")
def test_only_the_nodes_named_are_considered(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    state = load(make(nodes, [some_inst("a", 0)])).state
    asked = Allocate(some_inst("new", -1), 1, restrict=("n0",))
    found = place(state, asked, Asking())
    assert found.best is not None
    assert found.best.nodes == (0,)


@pytest.mark.requirement("S2-13")
def test_the_second_of_two_allocations_is_checked_against_the_first(
    make, some_node, some_inst
):
    nodes = [some_node(f"n{at}") for at in range(3)]
    state = load(make(nodes, [])).state
    asked = Allocate(some_inst("new", -1, 4000), 1)
    fits = 0
    while (found := place(state, asked, Asking())).best is not None:
        state = state.with_new(found.best.moved)
        fits += 1
    assert fits == 4
    assert is_redundant(state)


def _broken_prefixes(plan) -> int:
    state, count = plan.start, 0
    for step in plan.steps:
        state = state.after(step.moved)
        count += not is_redundant(state)
    return count


@pytest.mark.requirement("S2-02", "S2-08")
def test_every_prefix_of_a_plan_stays_redundant():
    checked = 0
    for seed in range(80):
        shape = sample.Shape(
            kind="shared", nodes=4, instances=10, fill=0.7, oddity=0.0, uneven=True
        )
        state = load(sample.cluster(seed, shape)).state
        if not state.has_shared or not is_redundant(state):
            continue
        plan = balance(state, search=Searcher().best_step, allowed=keeps_redundancy)
        assert _broken_prefixes(plan) == 0
        kept = balance(state, search=Searcher().best_step, allowed=Keeper())
        assert [step.move for step in kept.steps] == [step.move for step in plan.steps]
        checked += bool(plan.steps)
    assert checked > 10


@pytest.mark.requirement("S2-14")
@pytest.mark.parametrize("seed", range(20))
def test_every_door_gives_the_same_answer(seed):
    state = load(sample.cluster(seed)).state
    by_check = summed(check(state)).gn1_fail
    by_losing = [node.idx for node in state.nodes if not survive(state, node.idx)]
    assert by_check == len(by_losing)
    assert unlosable(state) == by_losing
    assert is_redundant(state) == (not by_losing)


@pytest.mark.requirement("S2-02")
def test_rules_say_whether_redundancy_is_kept():
    assert Rules().keep_redundancy


@pytest.mark.requirement("S2-06")
def test_shared_storage_is_no_part_of_the_older_check(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    shared = load(make(nodes, [some_inst("a", 0, 6000), some_inst("b", 1, 6000)])).state
    health = summed(check(shared))
    assert (health.n1_fail, health.gn1_fail) == (0, 2)


@pytest.mark.requirement("S2-06")
def test_mirrored_instances_without_room_to_fail_over_fail_the_older_check(
    make, some_node, some_inst
):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 6000, template="drbd", secondary=1),
        some_inst("b", 1, 6000, template="drbd", secondary=0),
    ]
    assert summed(check(load(make(nodes, insts)).state)).n1_fail == 2


@pytest.mark.requirement("S2-01", "S2-11")
@pytest.mark.parametrize("kind", ["drbd", "shared", "mixed"])
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_guard_that_follows_a_filling_agrees_with_losing_every_node(kind, seed):
    shape = sample.Shape(kind=kind, nodes=5, instances=25, fill=0.6)
    state = load(sample.cluster(seed, shape)).state
    guard = Guard()
    template = "drbd" if kind == "drbd" else "ext"
    new = model(state, Size(2048, 1024, 1), template, 1)
    places = targets(state, 2 if kind == "drbd" else 1, Asking())
    while True:
        assert guard(state) == all(survive(state, at) for at in state.view)
        named = new.copy(idx=len(state.insts))
        found = try_allocate(state, named, places)
        if found.best is None:
            break
        state = state.with_new(found.best.moved)
