# SPDX-License-Identifier: BSD-2-Clause
"""The kernel against its definitions: the plain search, and itself uncompiled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.htools import (
    Allocate,
    Asking,
    Rules,
    Searcher,
    balance,
    evacuate,
    load,
    place,
    sample,
    survive,
)
from moorage.htools.constraints.violation import Violation
from moorage.htools.grid import COMPILED
from moorage.htools.kernel import columns
from moorage.htools.metrics import score
from moorage.htools.moves import apply
from moorage.htools.placement import evacuation_kernel, kernel_search
from moorage.htools.placement.requests import newcomer
from moorage.htools.plans.balancing import best_step, candidates, movers
from moorage.htools.plans.search import supported
from moorage.htools.survival.kernel_losses import Losses

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")
KINDS = ("drbd", "shared", "mixed")
ODD = [(), ("exclusive",), ("units",), ("exclusive", "units")]
"""What is not on every cluster; tags, reach and planned instances come with oddity."""


def _view(seed, kind, odd, **sizes):
    """Return a small cluster; some are as they should be, some are odd all over."""
    shape = sample.Shape(
        **({"kind": kind, "nodes": 7, "instances": 25} | sizes),
        oddity=0.2 * (seed % 3),
        uneven=seed % 2 == 0,
        **dict.fromkeys(odd, True),
    )
    fleet = sample.cluster(seed, shape)
    if shape.exclusive:
        fleet = fleet.replaced(instances=tuple(map(_counted, fleet.instances)))
    return load(fleet).state.group_view(0)


def _counted(inst):
    """Return an instance that says how many spindles it needs, as it must."""
    disks = (disk._replace(spindles=disk.spindles or 1) for disk in inst.disks)
    return inst._replace(disks=tuple(disks))


def _plan(view, rules, search):
    plan = balance(view, rules, search=search)
    return [(step.before.idx, step.move, step.score) for step in plan.steps]


def _gains(view, rules):
    """Return what the plain definition makes of every move that gains."""
    now, found = score(view.seen), {}
    for inst in movers(view, rules):
        for move in candidates(view, inst, rules):
            moved = apply(view.nodes, inst, move, force=rules.force)
            if not isinstance(moved, Violation):
                after = score(view.after(moved).seen)
                if after < now:
                    found[moved.inst.idx, moved.inst.p, moved.inst.s] = after
    return found


@needs_kernel
@pytest.mark.parametrize("odd", ODD, ids="+".join)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_search_knows_every_move_that_gains_and_no_other(seed, kind, odd):
    view = _view(seed, kind, odd)
    rules = Rules(force=seed % 4 == 3, evacuate=seed % 5 == 4)
    seen = {}

    def refuse(state, moved):
        seen[moved.inst.idx, moved.inst.p, moved.inst.s] = score(
            state.after(moved).seen
        )
        return False

    assert Searcher().best_step(view, rules, score(view.seen), refuse) is None
    assert seen == _gains(view, rules)


@needs_kernel
@pytest.mark.requirement("S4-10", "S2-03")
@pytest.mark.parametrize("odd", ODD, ids="+".join)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_the_plan_is_that_of_the_plain_search_to_the_digit(seed, kind, odd):
    view = _view(seed, kind, odd)
    rules = Rules(max_steps=5)
    fast = _plan(view, rules, Searcher().best_step)
    assert fast == _plan(view, rules, best_step)


@needs_kernel
@pytest.mark.requirement("S2-01", "S2-03")
@pytest.mark.parametrize("odd", ODD, ids="+".join)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_losing_a_node_ends_as_the_plain_simulation_does(seed, kind, odd):
    view = _view(seed, kind, odd, fill=0.75)
    losses = Losses(view)
    for at in view.view:
        assert losses.survives(at) is bool(survive(view, at))


def _placed(state, row, count):
    found = place(state, Allocate(row, count), Asking())
    refused = {(one.nodes, one.reason) for one in found.refusals}
    best = found.best and (found.best.nodes, found.best.score)
    return best, found.successes, found.failures, refused


@needs_kernel
@pytest.mark.requirement("S4-03", "S4-09", "S2-03")
@pytest.mark.parametrize("odd", ODD, ids="+".join)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_new_instance_goes_where_trying_every_place_puts_it(
    seed, kind, odd, monkeypatch
):
    state = _view(seed, kind, odd)
    like = state.fleet.instances[seed]
    row = like._replace(name="new", primary=-1, secondary=-1, forthcoming=False)
    count = 2 if like.template == "drbd" else 1
    assert kernel_search.Placer.knows(state, newcomer(state, row), None)
    fast = _placed(state, row, count)
    monkeypatch.setattr(kernel_search, "COMPILED", False)
    assert fast == _placed(state, row, count)


def _evacuated(state, mode):
    node = state.nodes[1]
    done = evacuate(state, [*node.primaries, *node.secondaries], mode)
    moves = [
        (away.inst.idx, away.inst.p, away.inst.s, away.moves) for away in done.away
    ]
    return moves, done.stuck


@needs_kernel
@pytest.mark.requirement("S4-03")
@pytest.mark.parametrize("odd", ODD, ids="+".join)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_evacuating_ends_where_trying_every_node_does(seed, kind, odd, monkeypatch):
    state = _view(seed, kind, odd)
    mode = ("all", "primary-only", "secondary-only")[seed % 3]
    assert evacuation_kernel.Refuges.of(state, 0, state.nodes[1].primaries, force=False)
    fast = _evacuated(state, mode)
    monkeypatch.setattr(evacuation_kernel, "COMPILED", False)
    assert fast == _evacuated(state, mode)


@needs_kernel
def test_the_kernel_models_all_of_these_clusters():
    views = [_view(at, KINDS[at % 3], ODD[at // 3 % 4]) for at in range(120)]
    assert all(supported(view, Rules()) for view in views)


SOURCE_ONLY = """
import sys
from importlib.machinery import FileFinder, SourceFileLoader

def source_only(path):
    if not path.endswith("kernel"):
        raise ImportError
    return FileFinder(path, (SourceFileLoader, [".py"]))

sys.path_hooks.insert(0, source_only)
sys.path_importer_cache.clear()
"""
PLANS = """
import sys
from moorage.htools import Rules, Searcher, balance, evacuate, grid, load, sample
from moorage.htools.placement import evacuation_kernel
from moorage.htools.plans import search

sys.stderr.write(str(grid.COMPILED))
search.COMPILED = evacuation_kernel.COMPILED = True  # slow, but it works
for seed in range(3):
    fleet = sample.cluster(seed, sample.Shape(nodes=6, instances=20, oddity=0.05))
    state = load(fleet).state.group_view(0)
    plan = balance(state, Rules(max_steps=3), search=Searcher().best_step)
    print([(step.before.name, step.move.verb, step.score.hex()) for step in plan.steps])
    node = state.nodes[1]
    done = evacuate(state, [*node.primaries, *node.secondaries], "all")
    print([(away.inst.name, away.inst.p, away.inst.s) for away in done.away])
"""


def _run(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stderr, done.stdout


@needs_kernel
def test_uncompiled_it_decides_the_same_to_the_digit():
    compiled, fast = _run(PLANS)
    not_compiled, slow = _run(SOURCE_ONLY + PLANS)
    assert (compiled, not_compiled) == ("True", "False")
    assert slow == fast
    assert slow.count("inst") > 3


def test_the_compiler_is_told_the_same_columns():
    text = Path(columns.__file__).with_suffix(".pxd").read_text()
    told = {name: int(value) for name, value in re.findall(r"    (\w+) = (\d+)", text)}
    named = {
        name: value
        for name, value in vars(columns).items()
        if name.isupper() and isinstance(value, int)
    }
    assert told == named
    for name, value in re.findall(r"#define MOORAGE_(\w+) (\S+)", text):
        assert getattr(columns, name) == float(value)
