# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - repeatable draws, not secret
"""Longer plans: pairs of moves, and the same placement in fewer moves."""

from functools import cache
from random import Random

import pytest

from moorage.htools import (
    Plan,
    Rules,
    Searcher,
    Unit,
    balance,
    compacted,
    is_redundant,
    keeps_redundancy,
    load,
    look_ahead,
    sample,
    total_cost,
)
from moorage.htools.constraints.violation import Violation
from moorage.htools.grid import COMPILED
from moorage.htools.inst import NOWHERE
from moorage.htools.metrics import score
from moorage.htools.moves import FA, F, Move, R, apply
from moorage.htools.plans.balancing import candidates, legal_step, movers
from moorage.htools.plans.compact import direct
from moorage.htools.plans.lookahead import beam_width
from moorage.htools.plans.plan import involved, job_sets
from moorage.htools.plans.steps import careful, newly_short, short_nodes

SEEDS = range(1, 46)


def greedy(state, rules=None):
    rules = rules or Rules()
    search = Searcher().best_step
    allowed = keeps_redundancy if rules.keep_redundancy else None
    return balance(state, rules, search=search, allowed=allowed)


def ahead(state, rules=None, **more):
    rules = rules or Rules()
    allowed = keeps_redundancy if rules.keep_redundancy else None
    return look_ahead(state, rules, allowed=allowed, **more)


def parts(seeds, shape=None, dress=None):
    """Yield the groups of random clusters that somebody lives in."""
    for seed in seeds:
        fleet = sample.cluster(seed, shape)
        state = load(dress(fleet, seed) if dress else fleet).state
        yield from (view for _, view in state.split() if view.insts)


@cache
def cases():
    """Return (state, greedy plan, longer plan) of many random groups."""
    return [(state, greedy(state), ahead(state)) for state in parts(SEEDS)]


def places(state):
    return [(inst.p, inst.s) for inst in state.insts]


def walk(plan, rules=None):
    """Yield (state, step, state after it), each move made anew."""
    state = plan.start
    for step in plan.steps:
        inst = state.insts[step.before.idx]
        assert (inst.p, inst.s) == (step.before.p, step.before.s)
        moved = apply(state.nodes, inst, step.move, force=bool(rules and rules.force))
        assert not isinstance(moved, Violation)
        after = state.after(moved)
        yield state, step, after
        state = after
    assert places(state) == places(plan.end)


def check_prefixes(plan, rules=None):
    """Assert that every step is legal, true, and as safe as what was before it."""
    redundant = is_redundant(plan.start)
    for state, step, after in walk(plan, rules):
        assert score(after.seen) == pytest.approx(step.score, abs=1e-9)
        online = {node.idx for node in state.seen if not node.offline}
        if online.issuperset(step.before.nodes):
            assert not newly_short(state, step.moved)
        still = is_redundant(after)
        assert still or not redundant
        redundant = still
    assert plan.last_score == pytest.approx(score(plan.end.seen), abs=1e-9)


def planned(state, *moves):
    """Return the plan of some moves: (instance, verb, target)."""
    steps, end = [], state
    for at, verb, target in moves:
        step = legal_step(end, at, Move(verb, target), Rules())
        assert step is not None
        steps.append(step)
        end = end.after(step.moved)
    return Plan(state, end, score(state.seen), score(end.seen), steps)


@pytest.fixture
def swap(make, some_node, some_inst):
    """Return two nodes with two instances each, the large ones on the first."""
    sizes = [(0, 2048), (0, 2048), (1, 1024), (1, 1024)]
    insts = [some_inst(f"i{at}", *size) for at, size in enumerate(sizes)]
    return load(make([some_node("n0"), some_node("n1")], insts)).state


# -- pairs -----------------------------------------------------------------------------


def test_a_pair_gains_where_no_single_move_does(swap):
    assert not greedy(swap).steps
    plan = ahead(swap)
    assert [step.before.name for step in plan.steps] in (["i0", "i2"], ["i2", "i0"])
    assert plan.steps[0].score > plan.first_score > plan.last_score
    assert [node.unallocated for node in plan.end.seen] == [5120, 5120]
    check_prefixes(plan)


@pytest.mark.slow
@pytest.mark.requirement("S2-08")
def test_looking_ahead_never_ends_above_the_greedy_plan():
    better = 0
    for _, alone, plan in cases():
        assert plan.last_score <= alone.last_score
        assert [s.move for s in plan.steps[: len(alone.steps)]] == [
            s.move for s in alone.steps
        ]
        better += plan.last_score < alone.last_score - 0.009
        check_prefixes(plan)
    assert better >= 10


@pytest.mark.parametrize(
    "rules",
    [
        Rules(max_steps=3),
        Rules(disk_moves=False),
        Rules(inst_moves=False),
        Rules(restricted=True),
        Rules(evacuate=True),
        Rules(force=True),
        Rules(keep_redundancy=False),
    ],
)
def test_the_rules_hold_for_pairs_too(rules):
    for state in parts(range(1, 20)):
        plan = ahead(state, rules)
        assert plan.last_score <= greedy(state, rules).last_score
        assert not 0 <= rules.max_steps < len(plan.steps)
        for now, step, _ in walk(plan, rules):
            inst = now.insts[step.before.idx]
            assert vars(inst) in map(vars, movers(now, rules))
            assert step.move in candidates(now, inst, rules)


def test_a_pair_moves_who_came_back_only_if_it_may(make, some_node, some_inst):
    nodes = [some_node("gone", offline=True), some_node("n1"), some_node("n2")]
    insts = [some_inst("small", 0, 1000), some_inst("large", 0, 6000)]
    insts += [some_inst("one", 1, 2000), some_inst("two", 2, 7000)]
    insts[1] = insts[1]._replace(vcpus=30)
    state = load(make(nodes, insts)).state
    for evacuate, moved in ((False, ["small", "small", "large"]), (True, ["small"])):
        plan = ahead(state, Rules(evacuate=evacuate, keep_redundancy=False))
        assert [step.before.name for step in plan.steps] == moved


def test_a_pair_must_gain_enough(swap):
    gain = ahead(swap).first_score - ahead(swap).last_score
    assert ahead(swap, Rules(min_gain=gain * 0.99)).steps
    assert not ahead(swap, Rules(min_gain=gain * 1.01)).steps
    assert not ahead(swap, Rules(max_steps=1)).steps


def test_a_move_that_harms_is_no_half_of_a_pair(swap):
    seen = []

    def refused(state, moved):
        seen.append(moved.inst.name)
        return len(state.nodes[0].primaries) == 2 and moved.inst.name != "i0"

    plan = look_ahead(swap, allowed=refused)
    assert {"i0", "i1"} <= set(seen)
    assert not plan.steps


def test_callers_hear_of_each_step_once(swap):
    told, turned = [], []
    plan = ahead(
        swap, told=lambda step, n: told.append((n, step)), turned=turned.append
    )
    assert told == list(enumerate(plan.steps, 1))
    assert [one.last_score for one in turned] == [plan.first_score]
    for state, _, plan in cases():
        told.clear()
        ahead(state, told=lambda step, n: told.append((n, step.move)))
        assert told == list(enumerate((step.move for step in plan.steps), 1))


def test_the_beam_gets_narrower_with_more_instances(swap):
    def width(insts):
        shape = sample.Shape(nodes=6, instances=insts, oddity=0.0)
        return beam_width(load(sample.cluster(1, shape)).state, Rules())

    widths = [width(20), width(200), width(1000)]
    assert widths == sorted(widths, reverse=True)
    assert (widths[0] > widths[-1] >= 64) if COMPILED else set(widths) == {16}
    assert ahead(swap, beam=1).last_score <= greedy(swap).last_score


def test_a_node_is_short_when_a_move_takes_the_memory_it_needs(
    make, some_node, some_inst
):
    nodes = [some_node(f"n{at}") for at in range(3)]
    kept = {"template": "drbd", "secondary": 1}
    insts = [some_inst("a", 0, 4000, **kept), some_inst("b", 2, 4500)]
    state = load(make(nodes, insts)).state
    assert not state.nodes[1].fails_n1
    moved = apply(state.nodes, state.insts[1], Move(FA, 1), force=True)
    assert newly_short(state, moved) == {1}
    assert not careful()(state, moved)
    assert careful(excused={1})(state, moved)
    after = state.after(moved)
    assert not newly_short(after, moved._replace(nodes=(after.nodes[1],)))
    # One that was short already is nobody's fault.
    less = after.nodes[1].copy(mem_inst=after.nodes[1].mem_inst + 1)
    assert not newly_short(after, moved._replace(nodes=(less,)))


# -- fewer moves -----------------------------------------------------------------------


@pytest.mark.requirement("S2-08")
def test_compacted_plans_end_alike_and_are_safe_at_every_step():
    saved = 0
    for _, *plans in cases():
        for plan in plans:
            short = compacted(plan)
            saved += len(plan.steps) - len(short.steps)
            if len({step.before.idx for step in plan.steps}) == len(plan.steps):
                assert short is plan
            assert len(short.steps) <= len(plan.steps)
            assert places(short.end) == places(plan.end)
            # With an unknown need of spindles the way there leaves its traces.
            if all(
                one.total_spindles is not None for one in plan.end.people
            ) or not any(node.exclusive for node in plan.end.seen):
                assert short.last_score == pytest.approx(plan.last_score, abs=1e-9)
            check_prefixes(short)
    assert saved >= 30


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(force=True),
        Rules(restricted=True),
        Rules(disk_moves=False),
        Rules(inst_moves=False, keep_redundancy=False),
    ],
)
def test_any_plan_can_be_compacted(rules):
    """Random walks, which no sensible planner would take."""
    saved = 0
    for number, state in enumerate(parts(range(1, 40))):
        plan = _drifted(state, rules, Random(number))
        short = compacted(plan, rules)
        saved += len(plan.steps) - len(short.steps)
        assert len(short.steps) <= len(plan.steps)
        assert places(short.end) == places(plan.end)
        assert short_nodes(state, short.steps) <= short_nodes(state, plan.steps)
        for now, step, _ in walk(short, rules):
            assert step.move in candidates(now, now.insts[step.before.idx], rules)
    assert saved >= 10


def _drifted(state, rules, draw):
    steps, end = [], state
    for _ in range(12):
        people = movers(end, rules)
        inst = draw.choice(people[:3]) if people else None
        moves = list(candidates(end, inst, rules)) if inst else []
        step = legal_step(end, inst.idx, draw.choice(moves), rules) if moves else None
        if step is not None:
            steps.append(step)
            end = end.after(step.moved)
    return Plan(state, end, score(state.seen), score(end.seen), steps)


@pytest.fixture
def tight(make, some_node, some_inst):
    """Return two nodes that are nearly full, and two that are not."""
    nodes = [some_node(f"n{at}") for at in range(4)]
    insts = [some_inst("a", 0, 6000), some_inst("b", 1, 6000), some_inst("c", 3, 512)]
    return load(make(nodes, insts)).state


def test_two_moves_become_one(tight):
    plan = planned(tight, (2, FA, 0), (2, FA, 2))
    (step,) = compacted(plan).steps
    assert (step.before.p, step.moved.inst.p) == (3, 2)
    assert step.score == plan.last_score


def test_there_and_back_is_no_move(tight):
    plan = planned(tight, (2, FA, 0), (0, FA, 2), (2, FA, 3))
    (step,) = compacted(plan).steps
    assert step.before.name == "a"
    assert not compacted(planned(tight, (2, FA, 0), (2, FA, 3))).steps


def test_a_detour_that_makes_room_stays(tight):
    plan = planned(tight, (0, FA, 2), (1, FA, 0), (0, FA, 1))
    assert compacted(plan) is plan


def test_what_cannot_be_merged_does_not_hinder_what_can(tight):
    detour, nothing = [(0, FA, 2), (1, FA, 0), (0, FA, 1)], [(2, FA, 2), (2, FA, 3)]
    for moves in ([(2, FA, 0), (2, FA, 3), *detour], [*detour, *nothing]):
        short = compacted(planned(tight, *moves))
        assert [step.before.name for step in short.steps] == ["a", "b", "a"]


def test_one_move_is_found_for_every_place_that_one_reaches():
    for state in parts(range(1, 12)):
        for inst in movers(state, Rules()):
            for move in candidates(state, inst, Rules()):
                moved = apply(state.nodes, inst, move, force=True)
                if not isinstance(moved, Violation):
                    assert direct(inst, moved.inst.p, moved.inst.s) == move


def test_two_new_nodes_are_two_moves(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(4)]
    mirrored = some_inst("a", 0, template="drbd", secondary=1)
    state = load(make(nodes, [mirrored])).state
    assert direct(state.insts[0], 2, 3) is None
    plan = planned(state, (0, R, 2), (0, F, NOWHERE), (0, R, 3))
    short = compacted(plan)
    assert len(short.steps) == 2
    assert places(short.end) == [(2, 3)]


def test_compacting_never_copies_more_disks():
    for state, _, plan in cases():
        before, after = (
            total_cost(one.steps, state.nodes) for one in (plan, compacted(plan))
        )
        assert after.disk <= before.disk


# -- storage units, job sets -----------------------------------------------------------


def _with_units(fleet, seed):
    """Return the fleet with two units a node, neither with much room."""
    draw = Random(seed)

    def units():
        room = draw.choice((4096, 16384, 65536))
        names = (("drbd8", "xenvg"), ("lvm-vg", "other"))
        return tuple(Unit(name, room, room + 65536) for name in names)

    return fleet.replaced(
        nodes=tuple(row._replace(units=units()) for row in fleet.nodes)
    )


def _rooms(state):
    return [room for node in state.seen for room in node.units.free]


@pytest.mark.slow
@pytest.mark.requirement("S4-03", "S4-04")
@pytest.mark.parametrize(("kind", "size"), [("mixed", 16), ("drbd", 25)])
def test_no_prefix_breaks_a_unit(kind, size):
    shape = sample.Shape(kind=kind, nodes=6, instances=size, oddity=0.1, fill=0.6)
    moved = 0
    for state in parts(range(1, 13), shape, _with_units):
        longer = ahead(state)
        for plan in (greedy(state), longer, compacted(longer)):
            moved += len(plan.steps)
            check_prefixes(plan)
            for _, _, after in walk(plan):
                # A unit may be overfull to begin with.
                rooms = zip(_rooms(state), _rooms(after), strict=True)
                assert all(now >= min(0, before) for before, now in rooms)
    assert moved > 10


def test_job_sets_keep_the_order_of_moves_that_share_a_node():
    for _, _, longer in cases():
        plan = compacted(longer)
        sets = job_sets(plan.steps)
        assert [step for some in sets for step in some] == plan.steps
        for some in sets:
            nodes = [at for step in some for at in involved(step)]
            assert len(nodes) == len(set(nodes))
