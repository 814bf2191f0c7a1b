# SPDX-License-Identifier: BSD-2-Clause
"""Leaving nodes: the kernel finds the same refuges as trying every move."""

from random import Random

import pytest

from moorage.htools import evacuate, load, sample
from moorage.htools.grid import COMPILED
from moorage.htools.loader import Reading
from moorage.htools.placement import evacuation_kernel
from moorage.htools.placement.evacuation import MODES

pytestmark = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")
KINDS = ("drbd", "mixed", "shared")


def _crowd(seed, kind):
    """Return a cluster with a node offline, clashing tags and hardly any room."""
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    fill = draw.choice((0.4, 0.7, 0.9))
    shape = sample.Shape(kind=kind, nodes=6, instances=24, oddity=0.0, fill=fill)
    fleet = sample.cluster(seed, shape)
    tags = [(f"service:{draw.randrange(5)}",) for _ in fleet.instances]
    rows = [i._replace(tags=t) for i, t in zip(fleet.instances, tags, strict=True)]
    gone = ("node002.example.com",) if draw.random() < 0.5 else ()
    how = Reading(exclusion_tags=("service",), offline=gone)
    return load(fleet.replaced(instances=tuple(rows)), how).state


def _told(done):
    places = [(away.inst.idx, away.inst.p, away.inst.s) for away in done.away]
    return places, [away.moves for away in done.away], done.stuck


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_refuges_are_those_that_trying_every_move_finds(
    seed, kind, mode, force, monkeypatch
):
    state = _crowd(seed, kind)
    leaving = [*state.nodes[2].primaries, *state.nodes[2].secondaries]
    fast = _told(evacuate(state, leaving, mode, force=force))
    monkeypatch.setattr(evacuation_kernel, "COMPILED", False)
    assert fast == _told(evacuate(state, leaving, mode, force=force))


def test_whoever_is_named_twice_moves_twice(monkeypatch):
    state = _crowd(1, "drbd")
    leaving = [*state.nodes[1].primaries] * 2
    fast = _told(evacuate(state, leaving, "all"))
    monkeypatch.setattr(evacuation_kernel, "COMPILED", False)
    assert fast == _told(evacuate(state, leaving, "all"))
