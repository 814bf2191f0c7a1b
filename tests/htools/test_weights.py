# SPDX-License-Identifier: BSD-2-Clause
"""The kernel weighs what the table of metrics says, and knows which is which."""

from dataclasses import replace
from random import Random

import pytest

from moorage.htools import Rules, Searcher, balance, load, metrics, sample
from moorage.htools.grid import COMPILED
from moorage.htools.kernel import columns
from moorage.htools.plans.balancing import best_step

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")


def test_the_kernel_knows_the_metrics_that_are_no_spread():
    named = {
        columns.G_UNSAFE: "n1_cnt",
        columns.G_OFF_ALL: "offline_all_cnt",
        columns.G_OFF_PRI: "offline_pri_cnt",
        columns.G_TAGS: "pri_tags_score",
        columns.G_APART: "location_score",
        columns.G_DOMAINS: "location_exclusion_score",
        columns.G_RESERVED: "reserved_mem_rtotal",
    }
    plain = enumerate(metrics.METRICS)
    assert named == {at: m.name for at, m in plain if m.kind != metrics.SPREAD}
    assert len(metrics.METRICS) == columns.G


@needs_kernel
@pytest.mark.parametrize("seed", range(8))
def test_other_weights_make_other_plans_and_the_same_on_both_ways(seed, monkeypatch):
    draw = Random(seed)  # noqa: S311
    kind = ("drbd", "shared", "mixed")[seed % 3]
    shape = sample.Shape(
        kind=kind, nodes=6, instances=24, oddity=0.2, units=seed % 2 == 0
    )
    view = load(sample.cluster(seed, shape)).state.group_view(0)
    usual = _plan(view, Searcher().best_step)
    table = [
        replace(metric, weight=draw.choice((0.1, 0.7, 3.0)))
        for metric in metrics.METRICS
    ]
    monkeypatch.setattr(metrics, "METRICS", tuple(table))
    fast = _plan(view, Searcher().best_step)
    assert fast == _plan(view, best_step)
    assert fast != usual


def _plan(view, search):
    plan = balance(view, Rules(max_steps=4), search=search)
    found = [(step.before.idx, step.move, step.score) for step in plan.steps]
    return plan.first_score, found
