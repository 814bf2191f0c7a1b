# SPDX-License-Identifier: BSD-2-Clause
"""Placing with the survival check: foreseen and ranked as if all were tried."""

import pytest

from moorage.htools import (
    Allocate,
    Asking,
    Disk,
    Fleet,
    Group,
    InstanceRow,
    NodeRow,
    answer,
    load,
    place,
    sample,
)
from moorage.htools.constraints.violation import Violation
from moorage.htools.grid import COMPILED
from moorage.htools.placement import kernel_search as placing
from moorage.htools.placement.allocate import tally, targets, try_allocate
from moorage.htools.placement.requests import newcomer
from moorage.htools.single_placement import on_nodes
from moorage.htools.survival.n1 import Guard

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")
FILLS = (0.5, 0.65, 0.8)


def _asked(seed, kind, mem):
    """Return a cluster, and an instance like one of its own."""
    shape = sample.Shape(
        kind=kind,
        nodes=6,
        instances=24,
        groups=1 + seed % 2,
        oddity=0.0,
        fill=FILLS[seed % 3],
        uneven=seed % 4 == 0,
    )
    fleet = sample.cluster(seed, shape)
    like = fleet.instances[seed % len(fleet.instances)]
    row = like._replace(name="new", primary=-1, secondary=-1, mem=mem)
    return load(fleet).state, row, 2 if like.template == "drbd" else 1


def _told(found):
    refused = {(one.nodes, one.reason) for one in found.refusals}
    best = found.best and (found.best.nodes, found.best.score)
    return best, found.successes, found.failures, found.log, refused


@needs_kernel
@pytest.mark.requirement("S2-04")
@pytest.mark.parametrize("mem", [512, 4096])
@pytest.mark.parametrize("kind", ["drbd", "mixed", "shared"])
@pytest.mark.parametrize("seed", range(24))
def test_the_best_safe_place_is_that_of_trying_all(seed, kind, mem, monkeypatch):
    state, row, count = _asked(seed, kind, mem)
    fast = _told(place(state, Allocate(row, count), Asking()))
    monkeypatch.setattr(placing, "COMPILED", False)
    monkeypatch.setattr(Guard, "foresee", lambda *_: None)
    assert fast == _told(place(state, Allocate(row, count), Asking()))


@needs_kernel
@pytest.mark.parametrize("kind", ["drbd", "shared"])
@pytest.mark.parametrize("seed", range(12))
def test_the_parts_in_which_places_are_tried_change_nothing(seed, kind, monkeypatch):
    """A thousand nodes are tried some at a time, for others to have their turn."""
    state, row, count = _asked(seed, kind, 2048)
    whole = _told(place(state, Allocate(row, count), Asking()))
    monkeypatch.setattr(placing, "_IN_A_BREATH", 1)
    assert whole == _told(place(state, Allocate(row, count), Asking()))


@pytest.mark.requirement("S2-04")
@pytest.mark.parametrize("seed", range(24))
def test_what_is_foreseen_is_what_losing_every_node_shows(seed):
    state, row, _ = _asked(seed, "drbd", 2048 + 1024 * (seed % 4))
    inst, guard = newcomer(state, row), Guard()
    for p, others in targets(state, 2, Asking()):
        for s in others:
            moved = on_nodes(state, inst, (p, s), force=False)
            if not isinstance(moved, Violation):
                known = guard.foresee(state, inst, (p, s))
                assert known in {None, Guard()(state.placed(moved))}
                assert known is not None or not COMPILED


@needs_kernel
@pytest.mark.parametrize("kind", ["drbd", "shared"])
@pytest.mark.parametrize("seed", range(12))
def test_a_tally_counts_what_allocating_counts(seed, kind, monkeypatch):
    state, row, count = _asked(seed, kind, 8192)
    inst, places = newcomer(state, row), targets(state, count, Asking())
    counts = tally(state, inst, places, Asking(), None)
    found = try_allocate(state, inst, places)
    assert counts[0] == found.successes
    assert counts[1:] == list(found.failures.values())
    monkeypatch.setattr(placing, "COMPILED", False)
    assert counts == tally(state, inst, places, Asking(), None)


def test_exclusive_storage_goes_only_where_the_disks_can_be_used():
    nodes = [
        NodeRow(
            f"node{at}",
            mem_total=8192.0,
            mem_free=8192,
            disk_total=102400.0,
            disk_free=102400,
            cpus=8.0,
            spindles=8,
            spindles_free=8,
            exclusive=True,
        )
        for at in range(3)
    ]
    group = Group("default", "uuid")
    state = load(Fleet((group,), tuple(nodes), ())).state
    disks = (Disk(1024, 1),)
    for at in range(3):
        row = InstanceRow("new", 512, 1024, 1, disks=disks, reach=frozenset({at}))
        found = answer(state, Allocate(row, 1), Asking(capacity=False))
        assert found.result == [f"node{at}"]
