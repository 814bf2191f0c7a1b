# SPDX-License-Identifier: BSD-2-Clause
"""Moves that are refused explain themselves."""

from random import Random

import pytest

from moorage.htools import (
    Asking,
    Disk,
    Group,
    InstanceRow,
    Rules,
    Searcher,
    answer,
    balance,
    is_redundant,
    keeps_redundancy,
    load,
    sample,
)
from moorage.htools.explain.answer import explain
from moorage.htools.explain.capacity import explain_full
from moorage.htools.explain.no_move import explain_balance
from moorage.htools.export import saved
from moorage.htools.metrics import score
from moorage.htools.moves import Move
from moorage.htools.placement.allocate import targets, try_allocate
from moorage.htools.placement.requests import (
    Allocate,
    AllocateSecondary,
    ChangeGroup,
    MultiAllocate,
    NodeEvacuate,
    Relocate,
    newcomer,
)
from moorage.htools.placement.space import Filling, Safety, Size, fill, model

UNCHECKED = Asking(capacity=False)


def _told(fleet, request, asking=UNCHECKED):
    """Return what is said about each instance that a request leaves out."""
    state = load(fleet).state
    told = explain(state, request, answer(state, request, asking), asking)
    return {one.name: one.sentences() for one in told}


# -- hail's other requests -------------------------------------------------------------


def test_a_relocation_says_why_each_node_does_not_do(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1"), some_node("n2", offline=True)]
    fleet = make(nodes, [some_inst("a", 0, 5000), some_inst("b", 1, 4000)])
    assert _told(fleet, Relocate(0, 1, (0,))) == {
        "a": [
            "n1: memory (asked 5000 MiB, unallocated 4192 MiB)",
            "n2: offline or drained",
            "it fits with 809 MiB more free memory on n1",
        ]
    }


def test_a_failover_says_why_the_secondary_does_not_do(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 5000, template="drbd", secondary=1),
        some_inst("b", 1, 4000),
    ]
    assert _told(make(nodes, insts), NodeEvacuate((0,), "primary-only")) == {
        "a": [
            "n1: memory (asked 5000 MiB, unallocated 4192 MiB)",
            "it fits with 809 MiB more free memory on n1",
        ]
    }


def test_a_new_secondary_is_refused_by_name(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(2)] + [some_node("n2", disk_free=10)]
    insts = [some_inst("a", 0, 500, template="drbd", secondary=1)]
    assert _told(make(nodes, insts), NodeEvacuate((0,), "secondary-only")) == {
        "a": [
            "n2: disk (asked 1024 MiB, free 10 MiB)",
            "n1: being left itself",
            "it fits with 1015 MiB more free disk on n2",
        ]
    }


def test_a_move_off_both_nodes_says_at_which_step_it_ends(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    nodes.append(some_node("n3", disk_free=10))
    insts = [some_inst("a", 0, 500, template="drbd", secondary=1)]
    told = _told(make(nodes, insts), NodeEvacuate((0,), "all"))["a"]
    assert told[:2] == [
        "n2/n3: disk (asked 1024 MiB, free 10 MiB, step second copy)",
        "n3: disk (asked 1024 MiB, free 10 MiB, step copy the data)",
    ]
    assert told[-1] == "it fits with 1015 MiB more free disk on n3"


def test_what_lives_on_one_node_only_says_so(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    fleet = make(nodes, [some_inst("a", 0, template="plain")])
    told = _told(fleet, NodeEvacuate((0,), "all"))["a"]
    assert told[0] == "group default: data on one node only (template plain)"


def test_no_other_group_is_a_reason(make, some_node, some_inst):
    fleet = make([some_node("n0"), some_node("n1")], [some_inst("a", 0)])
    told = _told(fleet, ChangeGroup((0,), ()))["a"]
    assert told[0] == "group default: no other group"


def test_another_group_without_room_names_its_nodes(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("m0")]
    fleet = make(nodes, [some_inst("a", 0, 5000), some_inst("b", 1, 4000)])
    rows = tuple(row._replace(group=at) for at, row in enumerate(fleet.nodes))
    fleet = fleet.replaced(nodes=rows, groups=(*fleet.groups, Group("far", "uuid-2")))
    assert _told(fleet, ChangeGroup((0,), (1,)))["a"] == [
        "m0: memory (asked 5000 MiB, unallocated 4192 MiB)",
        "it fits with 809 MiB more free memory on m0",
    ]


def test_several_newcomers_are_explained_one_by_one(make, some_node, some_inst):
    fleet = make([some_node("n0")], [])
    new = [some_inst(name, -1, 5000) for name in ("first", "second")]
    told = _told(fleet, MultiAllocate(tuple(Allocate(one, 1) for one in new)))
    assert told == {
        "second": [
            "n0: memory (asked 5000 MiB, unallocated 3192 MiB)",
            "it fits with 1809 MiB less memory",
        ]
    }


def test_a_second_copy_without_room_names_the_nodes(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1", disk_free=24)]
    fleet = make(nodes, [some_inst("a", 0, template="plain")])
    assert _told(fleet, AllocateSecondary(0)) == {
        "a": [
            "n1 as secondary: disk (asked 1024 MiB, free 24 MiB)",
            "it fits with 1001 MiB more free disk on n1",
        ]
    }


def test_a_request_that_makes_no_sense_says_so(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    fleet = make(nodes, [some_inst("a", 0, template="drbd", secondary=1)])
    told = _told(fleet, AllocateSecondary(0))
    assert [lines[0] for lines in told.values()] == [
        "the cluster: not possible (Instance already has a secondary)"
    ]


def _requests(draw, fleet):
    some = tuple(draw.sample(range(len(fleet.instances)), min(3, len(fleet.instances))))
    inst = fleet.instances[some[0]]
    leave = inst.secondary if inst.template == "drbd" else inst.primary
    yield Relocate(some[0], 1, (leave,))
    for mode in ("primary-only", "secondary-only", "all"):
        yield NodeEvacuate(some, mode)
    yield ChangeGroup(some, ())
    yield AllocateSecondary(some[0])


@pytest.mark.parametrize("block", range(4))
def test_every_no_comes_with_a_why_and_its_change_holds(block):
    noes = changes = 0
    for seed in range(block * 30, block * 30 + 30):
        draw = Random(seed)  # noqa: S311
        fleet = sample.cluster(seed)
        state = load(fleet).state
        for request in _requests(draw, fleet):
            response = answer(state, request, UNCHECKED)
            told = explain(state, request, response, UNCHECKED)
            if not response.success:
                assert told
            several = isinstance(request, NodeEvacuate | ChangeGroup)
            stuck = response.result[1] if several and response.success else []
            if several:
                assert sorted(one.name for one in told) == sorted(x[0] for x in stuck)
            for one in told if not response.success or stuck else ():
                assert one.reasons
                noes += 1
                if one.change is not None:
                    _holds(fleet, request, one)
                    changes += 1
    assert noes > 50
    assert changes > 3


def _holds(fleet, request, one):
    """Assert that a node's change helps, and one unit less does not."""
    whole = [part.after for part in one.change.parts]
    assert not _stuck(fleet, request, one, whole)
    for at, part in enumerate(one.change.parts):
        less = [*whole[:at], part.after - 1, *whole[at + 1 :]]
        assert _stuck(fleet, request, one, less)


def _stuck(fleet, request, one, amounts):
    for part, by in zip(one.change.parts, amounts, strict=True):
        nodes = list(fleet.nodes)
        at = [row.name for row in fleet.nodes].index(part.node)
        nodes[at] = _more(nodes[at], part.what, by)
        fleet = fleet.replaced(nodes=tuple(nodes))
    found = answer(load(fleet).state, request, UNCHECKED)
    if isinstance(request, NodeEvacuate | ChangeGroup):
        return one.name in [name for name, _ in found.result[1]]
    return not found.success


def _more(node, what, by):
    free = {"spindles_free": node.spindles_free + by} if node.exclusive else {}
    changes = {
        "memory": {"mem_total": node.mem_total + by, "mem_free": node.mem_free + by},
        "disk": {"disk_free": node.disk_free + by},
        "processors": {"cpus": node.cpus + by},
        "spindles": {"spindles": node.spindles + by, **free},
        "online": {"offline": node.offline and not by},
    }
    return node._replace(**changes[what])


# -- balancing -------------------------------------------------------------------------


def test_a_better_move_that_survival_refuses_is_named_with_its_gain():
    checked = 0
    for seed in range(60):
        shape = sample.Shape("shared", 4, 10, fill=0.7, uneven=True, oddity=0.0)
        state = load(sample.cluster(seed, shape)).state
        if not is_redundant(state):
            continue
        end = balance(state, search=Searcher().best_step, allowed=keeps_redundancy).end
        found = explain_balance(end)
        for one in found.refused:
            after = end.after(one.step.moved)
            assert score(end.seen) - score(after.seen) == pytest.approx(one.gain)
            assert one.gain > 0
            if one.finding.constraint == "n+1":
                assert not is_redundant(after)
                checked += 1
        assert found.sentences()
    assert checked > 5


def test_the_plan_that_was_cut_short_says_so():
    shape = sample.Shape("shared", 4, 12, fill=0.4, uneven=True, oddity=0.0)
    state = load(sample.cluster(1, shape)).state
    rules = Rules(keep_redundancy=False)
    first = balance(state, rules._replace(max_steps=1), search=Searcher().best_step)
    found = explain_balance(state, rules)
    assert found.next_step is not None
    assert found.next_step.step.move == first.steps[0].move
    assert found.sentences()[0].startswith("The plan could go on: ")


def test_who_cannot_move_is_told_why(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1"), some_node("n2")]
    insts = [
        some_inst("big", 0, 6000),
        some_inst("b", 1, 4000),
        some_inst("c", 2, 4000),
        some_inst("local", 0, 100, template="plain"),
        some_inst("kept", 0, 100, auto_balance=False),
    ]
    lines = explain_balance(load(make(nodes, insts)).state).sentences()
    assert "  big: memory (n1, n2)" in lines
    assert "  local: disk template plain is never moved" in lines
    assert "  kept: auto_balance is off" in lines


def test_a_better_move_without_room_is_told_with_the_numbers(
    make, some_node, some_inst
):
    nodes = [some_node("n0"), some_node("n1", mem_total=2000.0)]
    insts = [some_inst(f"i{at}", 0, 1990) for at in range(4)]
    found = explain_balance(load(make(nodes, insts)).state, Rules())
    assert found.next_step is not None or found.refused
    nodes[1] = some_node("n1", mem_total=1900.0)
    found = explain_balance(load(make(nodes, insts)).state, Rules())
    best = found.refused[0]
    assert best.step.move == Move("fa", 1)
    assert best.finding.constraint == "memory"
    assert best.finding.facts == {"asked": 1990, "unallocated": 1900}


# -- filling ---------------------------------------------------------------------------


def _takes(fleet, row):
    """Say whether a cluster takes one more, as hspace asks."""
    state = load(fleet).state
    count = 2 if row.template == "drbd" else 1
    safe = None if row.template == "drbd" else Safety()
    places = targets(state, count, Asking())
    return try_allocate(state, newcomer(state, row), places, safe=safe).best is not None


def _changed(fleet, row, parts, amounts):
    for part, amount in zip(parts, amounts, strict=True):
        if part.node:
            nodes = list(fleet.nodes)
            at = [row.name for row in fleet.nodes].index(part.node)
            nodes[at] = _more(nodes[at], part.what, amount)
            fleet = fleet.replaced(nodes=tuple(nodes))
            continue
        names = {"memory": "mem", "vcpus": "vcpus", "spindles": "spindle_use"}
        more = {"disk": amount, "disks": (Disk(amount),)}
        if part.what != "disk":
            more = {names[part.what]: amount}
        row = row._replace(**more)
    return fleet, row


@pytest.mark.requirement("S2-10")
@pytest.mark.parametrize("template", ["drbd", "ext", "plain"])
def test_the_change_lets_one_more_fit(template):
    changes = 0
    for seed in range(25):
        shape = sample.Shape("mixed", 3, 5, fill=0.4, oddity=0.0, uneven=True)
        state = load(sample.cluster(seed, shape)).state
        size = Size(4096, 100000, 1)
        how = Filling(
            targets(state, 2 if template == "drbd" else 1, Asking()), Safety()
        )
        done = fill(state, model(state, size, template, 1), how)
        told = explain_full(done, size, template, 1, how)
        parts = () if told.change is None else told.change.parts
        assert told.reasons
        if not parts or parts[-1].what == "capacity check":
            continue
        row = InstanceRow("more", 4096, 100000, 1, template=template)
        row = row._replace(disks=(Disk(100000),))
        whole = [part.after for part in parts]
        fleet = saved(done.state)
        assert not _takes(fleet, row)
        assert _takes(*_changed(fleet, row, parts, whole))
        for at, part in enumerate(parts):
            step = 1 if not part.node and part.before > part.after else -1
            less = [*whole[:at], part.after + step, *whole[at + 1 :]]
            assert not _takes(*_changed(fleet, row, parts, less))
        changes += 1
    assert changes > 10
