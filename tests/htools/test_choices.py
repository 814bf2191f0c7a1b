# SPDX-License-Identifier: BSD-2-Clause
"""Where memory alone decides who restarts: with storage units and reach, too."""

import pytest

from moorage.disk_templates import FACTS
from moorage.htools import Disk, load, sample, survive, unlosable
from moorage.htools.constants import Mirror
from moorage.htools.fleet import Unit
from moorage.htools.grid import COMPILED
from moorage.htools.kernel_tables import free_choices
from moorage.htools.survival.kernel_losses import Losses

SHARED = ("sharedfile", "/srv/shared")
LOCAL = ("file", "/srv/file")
KINDS = ("local", "shared", "some", "reach")


def dressed(seed: int, kind: str):
    """Return a random shared cluster whose nodes list units, or are not all reached."""
    shape = sample.Shape(
        kind="shared",
        nodes=6,
        instances=18,
        fill=0.75,
        oddity=0.02,
        uneven=seed % 2 == 0,
    )
    fleet = sample.cluster(seed, shape)
    local = Unit(LOCAL, 10**6, 10**6)
    shared = Unit(SHARED, 10**6, 10**6, shared=True)
    nodes, insts = list(fleet.nodes), list(fleet.instances)
    for at, node in enumerate(nodes):
        has = kind != "some" or at != seed % 6
        units = (local,) if kind == "local" or not has else (local, shared)
        nodes[at] = node if kind == "reach" else node._replace(units=units)
    for at, inst in enumerate(insts):
        if kind == "reach" and at % 3 == 0:
            insts[at] = inst._replace(reach=frozenset({0, 1, 2, inst.primary}))
        elif (
            kind in ("shared", "some")
            and FACTS[inst.template].mirror is Mirror.EXTERNAL
        ):
            disks = tuple(Disk(disk.size, unit=SHARED) for disk in inst.disks)
            insts[at] = inst._replace(disks=disks)
    return load(fleet.replaced(nodes=tuple(nodes), instances=tuple(insts))).state


@pytest.mark.requirement("S2-01", "S2-03", "S4-09")
@pytest.mark.parametrize("kind", KINDS)
def test_with_units_and_reach_the_kernel_loses_nodes_as_the_plain_definition(kind):
    decided = stranded = 0
    for seed in range(120):
        state = dressed(seed, kind)
        slow = [at for at in state.view if not survive(state, at)]
        assert unlosable(state) == slow
        stranded += len(slow)
        losses = Losses(state)
        for at in state.view if losses.usable else ():
            losses.survives(at)
            if losses.grid is not None and at in losses.slots:
                place = losses.grid.places[at]
                known = losses.grid.kernel.verdict(losses.slots[at], place)
                assert known in {0, -1 if at in slow else 1}
                decided += known != 0
    assert stranded > 20
    assert decided > 20 or not COMPILED


def test_a_unit_that_may_be_full_leaves_no_free_choice(
    make, some_node, some_inst, unit
):
    nodes = [some_node("n0", units=(unit(*LOCAL, 9000),)), some_node("n1")]
    disks = (Disk(1024, unit=LOCAL),)
    people = [some_inst("a", 0, disks=disks), some_inst("b", 0, disks=())]
    state = load(make(nodes, people)).state
    classes, choices = free_choices(state.seen, state.insts, 3) or ([], [])
    assert list(classes) == [-1, 0, 0]
    assert list(choices) == [1, 1]


def test_a_pool_that_some_nodes_have_leaves_the_choice_of_those(
    make, some_node, some_inst, unit
):
    has, lacks = (unit(*SHARED, 9000),), (unit(*LOCAL, 9000),)
    nodes = [some_node("n0", units=has), some_node("n1", units=lacks)]
    nodes += [some_node("n2", units=has), some_node("n3")]
    disks = (Disk(1024, unit=SHARED),)
    people = [some_inst("a", 0, disks=disks), some_inst("b", 0, disks=())]
    people += [some_inst("c", 0, disks=(), reach=frozenset({0, 1}))]
    state = load(make(nodes, people)).state
    classes, choices = free_choices(state.seen, state.insts, 3) or ([], [])
    assert list(classes) == [1, 0, 2]
    assert list(choices) == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0]
