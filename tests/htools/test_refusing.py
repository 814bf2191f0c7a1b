# SPDX-License-Identifier: BSD-2-Clause
"""A refusal is explained by the very check that refused."""

from dataclasses import replace
from random import Random

import pytest

from moorage.htools import Asking, Disk, InstanceRow, Reading, Rules, Unit, load, sample
from moorage.htools.moves import apply
from moorage.htools.placement.requests import Allocate, newcomer
from moorage.htools.plans.balancing import candidates
from moorage.htools.why.explain import place
from moorage.htools.why.refusing import why_move, why_place
from moorage.htools.words import Fail


def _harsh(draw, fleet):
    """Return a newcomer that many nodes refuse, for many reasons."""
    like = draw.choice(fleet.instances)
    sizes = [draw.choice((500, 1024, 5000, 300000, 2000000)) for _ in range(2)]
    spindles = draw.choice((None, 0, 1, 9))
    return replace(
        like,
        name="new",
        primary=-1,
        secondary=-1,
        mem=draw.choice((64, 512, 4096, 16384, 40000)),
        vcpus=draw.choice((0, 1, 4, 30)),
        spindle_use=draw.choice((0, 1, 6, 20)),
        disk=sum(sizes),
        disks=tuple(Disk(size, spindles) for size in sizes),
        forthcoming=draw.random() < 0.1,
    )


@pytest.mark.parametrize("block", range(4))
def test_a_place_is_refused_by_the_check_that_is_named(block):
    refused = 0
    for seed in range(block * 40, block * 40 + 40):
        draw = Random(seed)  # noqa: S311
        fleet = sample.cluster(seed)
        state = load(fleet, Reading(min_disk=draw.choice((0.0, 0.4)))).state
        row = _harsh(draw, fleet)
        inst = newcomer(state, row)
        found = place(state, Allocate(row, 2 if row.template == "drbd" else 1))
        for refusal in found.refusals:
            why = why_place(state, inst, refusal.nodes)
            assert (why and why.fail) == (
                None if refusal.reason is Fail.N1 else refusal.reason
            )
            refused += 1
        if found.best is not None:
            assert why_place(state, inst, found.best.nodes) is None
    assert refused > 100


@pytest.mark.parametrize("block", range(4))
def test_a_move_is_refused_by_the_check_that_is_named(block):
    seen = set()
    for seed in range(block * 25, block * 25 + 25):
        draw = Random(seed)  # noqa: S311
        state = load(sample.cluster(seed)).state
        force = draw.random() < 0.3
        for inst in state.people:
            for move in candidates(state, inst, Rules()):
                done = apply(state.nodes, inst, move, force=force)
                why = why_move(state, inst, move, force=force)
                assert (why and why.fail) == (done if isinstance(done, Fail) else None)
                seen.add(why and why.constraint)
    assert len(seen) > 4


UNCHECKED = Asking(capacity=False)
FAST, SLOW, MIRROR, NAS = (
    ("lvm-vg", "fast"),
    ("lvm-vg", "slow"),
    ("drbd8", "xenvg"),
    ("ext", "nas"),
)


def _with_units(draw, fleet):
    """Return the cluster with storage units, and disks that want them."""
    nodes = [replace(node, units=_units(draw)) for node in fleet.nodes]
    wants = {"plain": (FAST, SLOW), "drbd": (MIRROR,)}
    insts = []
    for inst in fleet.instances:
        kinds = wants.get(inst.template, (NAS,))
        template = inst.template if inst.template in wants else "ext"
        disks = tuple(Disk(inst.disk // 2, unit=draw.choice(kinds)) for _ in range(2))
        insts.append(replace(inst, template=template, disks=disks))
    return fleet.replaced(nodes=tuple(nodes), instances=tuple(insts))


def _units(draw):
    units = [
        Unit(name, draw.choice((0, 9000, 90000)), 100000)
        for name in (FAST, SLOW, MIRROR)
        if draw.random() < 0.8
    ]
    pool = Unit(NAS, draw.choice((None, 5000)), None, shared=True)
    return (*units, pool) if draw.random() < 0.8 else tuple(units)


@pytest.mark.requirement("S4-03", "S4-04")
def test_a_storage_unit_that_refuses_is_named():
    seen = set()
    for seed in range(80):
        draw = Random(seed)  # noqa: S311
        shape = sample.Shape("mixed", 4, 10, fill=0.4, oddity=0.0)
        fleet = _with_units(draw, sample.cluster(seed, shape))
        state = load(fleet, Reading(min_disk=draw.choice((0.0, 0.1)))).state
        seen |= _refused_moves(state)
        name = draw.choice((FAST, SLOW, NAS))
        disks = (Disk(draw.choice((1024, 20000, 200000)), unit=name),)
        template = "ext" if name == NAS else "plain"
        row = InstanceRow("new", 512, disks[0].size, 1, template=template, disks=disks)
        inst = newcomer(state, row)
        for refusal in place(state, Allocate(row, 1), UNCHECKED).refusals:
            why = why_place(state, inst, refusal.nodes)
            assert why is not None
            assert why.fail is refusal.reason
            seen.add(why.constraint)
    assert seen >= {"unit", "unit floor", "no such unit", "pool", "memory"}


def _refused_moves(state):
    found = set()
    for inst in state.people:
        for move in candidates(state, inst, Rules()):
            done = apply(state.nodes, inst, move)
            why = why_move(state, inst, move)
            assert (why and why.fail) == (done if isinstance(done, Fail) else None)
            found |= {why.constraint} if why else set()
    return found
