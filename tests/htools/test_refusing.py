# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's refusals are those of the chain of named checks, one by one."""

from random import Random

import pytest

from moorage.htools import Asking, Disk, InstanceRow, Reading, Rules, Unit, load, sample
from moorage.htools.constants import Fail, Mirror
from moorage.htools.explain.explain import place
from moorage.htools.grid import (
    COMPILED,
    Grid,
    is_plain,
    movable_spindles,
    plain_nodes,
)
from moorage.htools.kernel import columns
from moorage.htools.moves import FA, F, Move, why_move
from moorage.htools.placement.requests import Allocate, newcomer
from moorage.htools.plans.balancing import candidates
from moorage.htools.plans.search import VERBS
from moorage.htools.single_placement import why_place

needs_kernel = pytest.mark.skipif(not COMPILED, reason="the kernel is not compiled")
ODD = [(), ("exclusive",), ("units",), ("exclusive", "units")]


def _harsh(draw, fleet):
    """Return a newcomer that many nodes refuse, for many reasons."""
    like = draw.choice(fleet.instances)
    sizes = [draw.choice((500, 1024, 5000, 300000, 2000000)) for _ in range(2)]
    spindles = draw.choice((None, 0, 1, 9))
    return like._replace(
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


def _all_verbs(inst):
    return 1 << VERBS.index(FA) if inst.mirror is not Mirror.INTERNAL else 0b111101


def _moves(inst, view):
    """Yield every move of an instance that makes sense, as the kernel counts verbs."""
    others = [at for at in view if at not in (inst.p, inst.s)]
    for number, verb in enumerate(VERBS):
        if _all_verbs(inst) >> number & 1:
            for at in [-1] if verb == F else others:
                yield number, Move(verb, at)


@needs_kernel
@pytest.mark.parametrize("odd", ODD, ids="+".join)
def test_the_kernel_refuses_the_moves_that_the_chain_refuses(odd):
    seen = {}
    for seed in range(12):
        draw = Random(seed)  # noqa: S311
        reading = Reading(min_disk=draw.choice((0.0, 0.2)))
        view = load(_crowded(seed, odd), reading).state.group_view(0)
        for name, done, why in _compared(view, force=draw.random() < 0.3):
            assert done == (why is None), (seed, name, why)
            kind = why and why.constraint
            seen[kind] = seen.get(kind, 0) + 1
    assert seen.pop(None) > 100
    assert len(seen) > 4
    assert sum(seen.values()) > 500


def _compared(view, *, force):
    """Yield each move, whether the kernel allows it, and what the chain says."""
    movers = [inst for inst in view.people if is_plain(inst, set(view.view))]
    movers = [inst for inst in movers if inst.mirror is not Mirror.NONE]
    assert plain_nodes(view)
    assert movable_spindles(view, movers)
    grid = Grid(view, movers, _all_verbs, force=force)
    for place_of, inst in enumerate(movers):
        for verb, move in _moves(inst, view.view):
            if move.target >= 0 and view.nodes[move.target].offline:
                continue
            target = grid.places.get(move.target, -1)
            score = grid.kernel.tries(place_of, verb, [target], -1.0)[0]
            why = why_move(view, inst, move, force=force)
            yield (inst.name, move), score < columns.HUGE, why


def _crowded(seed, odd):
    """Return a cluster on which much is refused, and not everything."""
    shape = sample.Shape(
        kind=("drbd", "shared", "mixed")[seed % 3],
        nodes=6,
        instances=24,
        fill=0.8,
        oddity=0.1 * (seed % 4),
        uneven=seed % 2 == 0,
        **dict.fromkeys(odd, True),
    )
    fleet = sample.cluster(seed, shape)
    disks = [
        tuple(disk._replace(spindles=disk.spindles or 1) for disk in inst.disks)
        for inst in fleet.instances
    ]
    insts = [i._replace(disks=d) for i, d in zip(fleet.instances, disks, strict=True)]
    return fleet.replaced(instances=tuple(insts))


UNCHECKED = Asking(capacity=False)
FAST, SLOW, MIRROR, NAS = (
    ("lvm-vg", "fast"),
    ("lvm-vg", "slow"),
    ("drbd8", "xenvg"),
    ("ext", "nas"),
)


def _with_units(draw, fleet):
    """Return the cluster with storage units, and disks that want them."""
    nodes = [node._replace(units=_units(draw)) for node in fleet.nodes]
    wants = {"plain": (FAST, SLOW), "drbd": (MIRROR,)}
    insts = []
    for inst in fleet.instances:
        kinds = wants.get(inst.template, (NAS,))
        template = inst.template if inst.template in wants else "ext"
        disks = tuple(Disk(inst.disk // 2, unit=draw.choice(kinds)) for _ in range(2))
        insts.append(inst._replace(template=template, disks=disks))
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
    moves = ((i, m) for i in state.people for m in candidates(state, i, Rules()))
    whys = (why_move(state, inst, move) for inst, move in moves)
    return {why.constraint for why in whys if why is not None}
