# SPDX-License-Identifier: BSD-2-Clause
"""Balancing, placing and filling: the fast search and the plain one agree."""

from dataclasses import replace
from itertools import pairwise

import pytest

from moorage.htools import (
    Allocate,
    Asking,
    Rules,
    Searcher,
    answer,
    balance,
    evacuate,
    is_redundant,
    load,
    place,
    reasons,
    sample,
    smallest_change,
)
from moorage.htools.constants import Fail
from moorage.htools.export import saved
from moorage.htools.grid import COMPILED
from moorage.htools.placement import kernel_search as placing
from moorage.htools.placement import shrinking
from moorage.htools.placement.allocate import targets
from moorage.htools.placement.requests import Relocate, newcomer
from moorage.htools.placement.space import Filling, Safety, Size, fill, model
from moorage.htools.plans.balancing import best_step
from moorage.htools.plans.plan import job_sets, shell

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")


def _moves(plan):
    return [(step.before.idx, step.move, step.score) for step in plan.steps]


@needs_kernel
@pytest.mark.parametrize("seed", range(60))
def test_the_fast_search_finds_the_same_plan_to_the_digit(seed):
    state = load(sample.cluster(seed, replace(sample.Shape(), oddity=0.1))).state
    view = state.group_view(0)
    rules = Rules(max_steps=6)
    assert _moves(balance(view, rules, search=Searcher().best_step)) == _moves(
        balance(view, rules, search=best_step)
    )


@needs_kernel
@pytest.mark.parametrize("seed", range(60))
def test_fast_placing_finds_the_same_place_to_the_digit(seed, monkeypatch):
    fleet = sample.cluster(seed, sample.Shape(kind="mixed", oddity=0.0, fill=0.7))
    state = load(fleet).state
    like = fleet.instances[seed % len(fleet.instances)]
    count = 2 if like.template == "drbd" else 1
    asked = Allocate(like._replace(name="new", primary=-1, secondary=-1), count)
    fast = place(state, asked, Asking(capacity=False))
    monkeypatch.setattr(placing, "COMPILED", False)
    plain = place(state, asked, Asking(capacity=False))
    assert fast.log == plain.log
    assert fast.failures == plain.failures
    assert (fast.best and fast.best.nodes) == (plain.best and plain.best.nodes)


def test_a_plan_lowers_the_score_at_every_step():
    state = load(sample.cluster(4, sample.Shape(oddity=0.0))).state
    plan = balance(state, search=Searcher().best_step)
    scores = [plan.first_score, *(step.score for step in plan.steps)]
    assert plan.steps
    assert all(a > b for a, b in pairwise(scores))


def test_members_of_a_job_set_touch_different_nodes():
    state = load(sample.cluster(4, sample.Shape(nodes=8, oddity=0.0))).state
    plan = balance(state, search=Searcher().best_step)
    sets = job_sets(plan.steps)
    assert [step for one in sets for step in one] == plan.steps
    assert "echo jobset 1," in shell(sets, state.nodes)


def test_a_saved_plan_is_as_consistent_as_its_start():
    loaded = load(sample.cluster(4, sample.Shape(oddity=0.0)))
    end = balance(loaded.state, search=Searcher().best_step).end
    again = load(saved(end))
    assert again.warnings == loaded.warnings
    assert [node.unallocated for node in again.state.nodes] == [
        node.unallocated for node in end.nodes
    ]


@pytest.mark.requirement("S0-12")
def test_the_target_of_a_migration_is_chosen_at_run_time(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    state = load(make(nodes, [some_inst("a", 0, 512), some_inst("b", 1, 4096)])).state
    found = answer(state, Relocate(0, 1, (0,)), Asking())
    assert found.success
    assert found.result == ["n2"]
    assert found.state.insts[0].p == 2


@pytest.mark.requirement("S0-12")
def test_mirrored_instances_fail_over_to_their_secondary(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(2)]
    insts = [some_inst("a", 0, template="drbd", secondary=1)]
    state = load(make(nodes, insts)).state
    found = evacuate(state, [0], "primary-only")
    assert not found.stuck
    assert (found.away[0].inst.p, found.away[0].inst.s) == (1, 0)


@pytest.mark.requirement("S2-10")
def test_filling_is_the_allocation_step_again_and_again():
    fleet = sample.cluster(
        2, sample.Shape(kind="shared", nodes=4, instances=3, oddity=0.0)
    )
    state = load(fleet).state
    places = targets(state, 1, Asking(), [0])
    size = model(state, Size(2048, 1024, 1), "sharedfile", 1)
    filled = fill(state, size, Filling(places, Safety()))
    row = fleet.instances[0]._replace(
        name="new", mem=2048, disk=1024, vcpus=1, spindle_use=1
    )
    row = row._replace(template="sharedfile", tags=(), disks=size.disks)
    count, after = 0, state
    while (found := place(after, Allocate(row, 1), Asking())).best is not None:
        after, count = after.with_new(found.best.moved), count + 1
    assert len(filled.new) == count > 0
    assert is_redundant(filled.state)


@pytest.mark.parametrize("what", ["memory", "disk"])
def test_the_smallest_change_makes_it_fit_and_one_less_does_not(
    make, some_node, some_inst, what
):
    nodes = [some_node("n0"), some_node("n1")]
    state = load(make(nodes, [some_inst("a", 0, 1000)])).state
    big = {"memory": {"mem": 9000}, "disk": {"template": "plain", "disk": 200000}}
    asked = Allocate(some_inst("new", -1, **big[what]), 1)

    def fits(here, one):
        return place(here, one, Asking(capacity=False)).best is not None

    change = smallest_change(state, asked, fits)
    assert change is not None
    assert change.what == what

    def less(by):
        inst = asked.inst
        if what == "memory":
            return replace(asked, inst=inst._replace(mem=inst.mem - by))
        disk = inst.disks[0]._replace(size=inst.disks[0].size - by)
        return replace(asked, inst=inst._replace(disk=inst.disk - by, disks=(disk,)))

    assert fits(state, less(change.by))
    assert not fits(state, less(change.by - 1))


def test_every_refusal_has_a_name_and_numbers(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    state = load(make(nodes, [])).state
    row = some_inst("new", -1, 9000)
    found = place(state, Allocate(row, 1), Asking())
    told = reasons(state, newcomer(state, row), found)
    assert [reason.nodes for reason in told] == [("n0",), ("n1",)]
    assert told[0].constraint == "memory"
    assert told[0].facts["unallocated"] == 8192
    assert "asked 9000" in told[0].sentence()


@pytest.mark.requirement("S2-09")
@pytest.mark.parametrize("fail", list(Fail))
@pytest.mark.parametrize("size", [(0, 0, 0, 0), (64, 256, 1, 1), (130, 5000, 7, 3)])
def test_shrinkings_are_those_that_stepping_finds(make, some_node, size, fail):
    mem, disk, cpu, spindles = size
    state = load(make([some_node("n0")], [])).state
    first = model(state, Size(mem, disk, cpu, spindles), "plain", 1)
    stepped, one = [], first
    while (smaller := shrinking.shrunk(one, fail)) is not None:
        stepped.append(one)
        one = smaller
    found = shrinking.Shrinkings(first, fail)
    assert list(map(vars, found)) == list(map(vars, stepped))
