# SPDX-License-Identifier: BSD-2-Clause
"""The kernel against its definitions: the plain search, and itself uncompiled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.htools import Rules, Searcher, load, sample
from moorage.htools.balancing import candidates, movers
from moorage.htools.grid import COMPILED
from moorage.htools.kernel import columns
from moorage.htools.metrics import score
from moorage.htools.moves import apply
from moorage.htools.words import Fail

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")
KINDS = ("drbd", "shared", "mixed")


def _gains(view, rules):
    """Return what the plain definition makes of every move that gains."""
    now, found = score(view.seen), {}
    for inst in movers(view, rules):
        for move in candidates(view, inst, rules):
            moved = apply(view.nodes, inst, move, force=rules.force)
            if not isinstance(moved, Fail):
                after = score(view.after(moved).seen)
                if after < now:
                    found[moved.inst.idx, moved.inst.p, moved.inst.s] = after
    return found


@needs_kernel
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_the_search_knows_every_move_that_gains_and_no_other(kind, seed):
    shape = sample.Shape(kind=kind, nodes=7, instances=25, oddity=0.15 * (seed % 3))
    view = load(sample.cluster(seed, shape)).state.group_view(0)
    rules = Rules(force=seed % 4 == 3)
    seen = {}

    def refuse(state, moved):
        seen[moved.inst.idx, moved.inst.p, moved.inst.s] = score(
            state.after(moved).seen
        )
        return False

    assert Searcher().best_step(view, rules, score(view.seen), refuse) is None
    assert seen == _gains(view, rules)


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
from moorage.htools import Rules, Searcher, balance, grid, load, sample, search

sys.stderr.write(str(grid.COMPILED))
search.COMPILED = True  # slow, but it works
for seed in range(3):
    fleet = sample.cluster(seed, sample.Shape(nodes=6, instances=20, oddity=0.05))
    state = load(fleet).state.group_view(0)
    plan = balance(state, Rules(max_steps=3), search=Searcher().best_step)
    print([(step.before.name, step.move.verb, step.score.hex()) for step in plan.steps])
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
