# SPDX-License-Identifier: BSD-2-Clause
"""The kernel weighs what the table of metrics says, and knows which is which."""

from random import Random

import pytest

from moorage.htools import (
    Allocate,
    Asking,
    Rules,
    Searcher,
    balance,
    incremental_score,
    load,
    metrics,
    place,
    sample,
)
from moorage.htools.constants import Fail
from moorage.htools.grid import COMPILED
from moorage.htools.kernel import columns
from moorage.htools.metrics import SPREAD, SUM, Metric, Share
from moorage.htools.placement import kernel_search
from moorage.htools.plans.balancing import best_step

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")


def test_the_kernel_knows_the_metrics_that_are_no_share_of_columns():
    named = {
        columns.G_UNSAFE: "n1_cnt",
        columns.G_OFF_ALL: "offline_all_cnt",
        columns.G_OFF_PRI: "offline_pri_cnt",
        columns.G_TAGS: "pri_tags_score",
        columns.G_APART: "location_score",
        columns.G_DOMAINS: "location_exclusion_score",
    }
    plain = enumerate(metrics.METRICS)
    assert named == {at: m.name for at, m in plain if m.share is None}
    assert metrics.METRICS[columns.G_RESERVED].name == "reserved_mem_rtotal"


KINDS = "drbd", "shared", "mixed"


def _view(seed, kind, oddity=0.2, fill=0.5):
    shape = sample.Shape(
        kind=kind,
        nodes=6,
        instances=24,
        oddity=oddity,
        fill=fill,
        units=seed % 2 == 0 and oddity > 0,
    )
    return load(sample.cluster(seed, shape)).state.group_view(0)


def _plan(view, search):
    plan = balance(view, Rules(max_steps=4), search=search)
    found = [(step.before.idx, step.move, step.score) for step in plan.steps]
    return plan.first_score, found


def _is_planned_otherwise(seed, kind, table, monkeypatch):
    """Assert that a table makes another plan, and the same on both ways."""
    usual = _plan(_view(seed, kind), Searcher().best_step)
    monkeypatch.setattr(metrics, "METRICS", table)
    fast = _plan(_view(seed, kind), Searcher().best_step)
    assert fast == _plan(_view(seed, kind), best_step)
    assert fast != usual


@needs_kernel
@pytest.mark.parametrize("seed", range(8))
def test_other_weights_make_other_plans_and_the_same_on_both_ways(seed, monkeypatch):
    draw = Random(seed)  # noqa: S311
    table = [
        metric._replace(weight=draw.choice((0.1, 0.7, 3.0)))
        for metric in metrics.METRICS
    ]
    _is_planned_otherwise(seed, KINDS[seed % 3], tuple(table), monkeypatch)


MORE = {
    "spread": Metric(
        "primaries_cv",
        2.0,
        SPREAD,
        "spread of primaries for each processor",
        lambda node: len(node.primaries) / node.cpus,
        Share(columns.MAINS, (columns.CPUS,), columns.I_REAL),
    ),
    "sum": Metric(
        "vcpu_total",
        3.0,
        SUM,
        "virtual processors for each real one",
        lambda node: node.cpu_used / node.cpus,
        Share(columns.CPU, (columns.CPUS,), columns.I_CPU),
    ),
    "sum of copies": Metric(
        "copies_total",
        700.0,
        SUM,
        "second copies, by memory",
        lambda node: len(node.secondaries) / node.mem_total,
        Share(columns.COPIES, (columns.MEM,), copy=columns.I_REAL),
    ),
}


@needs_kernel
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("added", MORE)
def test_a_new_metric_is_an_entry_of_the_table(added, seed, monkeypatch):
    table = (*metrics.METRICS, MORE[added])
    _is_planned_otherwise(seed, "drbd", table, monkeypatch)


@needs_kernel
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("added", MORE)
def test_a_new_metric_counts_for_new_instances(added, seed, monkeypatch):
    table = (*metrics.METRICS, MORE[added])
    for module in (metrics, incremental_score):
        monkeypatch.setattr(module, "METRICS", table)
    state = _view(seed, KINDS[seed % 3], oddity=0.0, fill=0.2)
    like = state.fleet.instances[seed]
    row = like._replace(name="new", mem=128, tags=(), primary=-1, secondary=-1)
    request = Allocate(row, 2 if row.template == "drbd" else 1)
    fast = place(state, request, Asking()).best
    monkeypatch.setattr(kernel_search, "COMPILED", False)
    slow = place(state, request, Asking()).best
    assert (fast.nodes, fast.score) == (slow.nodes, slow.score)


def test_the_kernel_counts_refusals_by_every_word():
    numbers = {f"NO_{fail.name}": number for number, fail in enumerate(Fail, 1)}
    known = {name: at for name, at in vars(columns).items() if name.startswith("NO_")}
    assert known == numbers


def test_two_metrics_of_the_same_are_not_taken_for_one(monkeypatch):
    """The kernel has one place for each: in silence, the first would not count."""
    twin = MORE["spread"]._replace(name="twin")
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, MORE["spread"], twin))
    with pytest.raises(ValueError, match="metrics primaries_cv and twin are one"):
        _plan(_view(0, "drbd"), Searcher().best_step)
