# SPDX-License-Identifier: BSD-2-Clause
"""Storage units: formats, fit, metric."""

from math import sqrt

import pytest

from moorage.errors import BadInput
from moorage.htools import Allocate, Asking, Disk, load, place, pools, sample
from moorage.htools.formats import iallocator, text
from moorage.htools.metrics import measure, spread
from moorage.htools.placement.allocate import targets
from moorage.htools.placement.space import Filling, Size, fill, model
from moorage.htools.units import Units

LVM = ("lvm-vg", "xenvg")


def _plain(some_inst, name, at, *sizes, unit=LVM):
    disks = tuple(Disk(size, unit=unit) for size in sizes)
    return some_inst(name, at, template="plain", disk=sum(sizes), disks=disks)


@pytest.mark.requirement("S4-01")
def test_a_disk_keeps_the_unit_it_wants_when_it_moves(make, some_node, some_inst, unit):
    nodes = [some_node("n0", units=(unit(*LVM, 9000),))]
    state = load(make(nodes, [_plain(some_inst, "a", 0, 4096)])).state
    assert state.insts[0].wants == ((LVM, 4096),)
    assert state.insts[0].moved(0, -1).wants == ((LVM, 4096),)


@pytest.mark.requirement("S4-01")
def test_a_disk_without_a_wish_goes_by_its_template(make, some_node, some_inst, unit):
    nodes = [some_node("n0", units=(unit(*LVM, 9000), unit("drbd8", "xenvg", 5)))]
    insts = [_plain(some_inst, "a", 0, 4096, unit=None)]
    assert load(make(nodes, insts)).state.insts[0].wants == ((LVM, 4096),)


@pytest.mark.requirement("S4-01")
def test_two_units_of_one_type_leave_the_choice_open(make, some_node, some_inst, unit):
    nodes = [some_node("n0", units=(unit(*LVM, 9000), unit("lvm-vg", "other", 9)))]
    insts = [_plain(some_inst, "a", 0, 4096, unit=None)]
    with pytest.raises(BadInput, match="several of type lvm-vg"):
        load(make(nodes, insts))


@pytest.mark.requirement("S4-02")
def test_a_unit_listed_twice_is_an_error():
    line = "n1|1|0|1|1|1|1|N|u|1||N|0|1|1.0|1,2,lvm-vg,x;3,4,lvm-vg,x"
    with pytest.raises(BadInput, match="listed once only"):
        text.parse(f"g|u|preferred|\n\n{line}\n\n\n", "f")


@pytest.mark.requirement("S4-03", "S4-04")
@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ((10240,), True),  # the room exactly
        ((10241,), False),
        ((6144, 6144), False),  # the first takes its room before the second
        ((6144, 4096), True),
    ],
)
def test_disks_settle_one_after_the_other(
    make, some_node, some_inst, unit, sizes, fits
):
    nodes = [some_node("n0", units=(unit(*LVM, 10240),))]
    disks = tuple(Disk(size, unit=LVM) for size in sizes)
    wanted = Allocate(some_inst("a", -1, disks=disks, template="plain"), 1)
    found = place(load(make(nodes, [])).state, wanted, Asking(capacity=False))
    assert (found.best is not None) == fits
    assert fits or found.reasons[0].constraint == "unit"


@pytest.mark.requirement("S4-05", "S4-06")
def test_units_in_the_allocator_message():
    value = iallocator.jsontext.parse(
        '[{"sunit": ["drbd8", "xenvg"], "free": 5, "total": 9},'
        ' {"sunit": ["ext", "nas", "fast"], "free": null, "total": null}]',
        "f",
    )
    first, second = iallocator.units(value)
    assert (first.name, first.free, first.total) == (("drbd8", "xenvg"), 5, 9)
    assert not first.shared
    assert second.name == ("ext", "nas", "fast")
    assert second.free is None
    assert second.shared


@pytest.mark.requirement("S4-07")
def test_units_in_text_make_the_round_trip():
    line = "n1|8192|0|8192|99|9|4|N|u|1||N|0|1|1.0"
    units = "5,9,lvm-vg,xenvg;?,?,ext,nas,fast"
    source = f"g|u|preferred||\n\n{line}|{units};\n{line.replace('n1', 'n2')}\n\n\n"
    fleet = text.parse(source, "f")
    assert text.parse(text.dump(fleet), "f") == fleet
    assert f"|{units}\n" in text.dump(fleet)
    assert fleet.nodes[1].units is None
    with pytest.raises(BadInput, match="line 3, column 16"):
        text.parse(source.replace("nas,fast;", "nas;;"), "f")


@pytest.mark.requirement("S4-08")
def test_without_the_field_nothing_changes():
    fleet = sample.cluster(3)
    assert all(node.units is None for node in load(fleet).state.nodes)
    assert all(not inst.wants for inst in load(fleet).state.insts)


@pytest.mark.requirement("S4-09")
@pytest.mark.parametrize(
    ("rooms", "disk_free", "fits"),
    [
        ((10240, 10240), 20480, False),  # the sum does not help
        ((20480, 0), 100, True),  # nor does a small sum hinder
    ],
)
def test_only_the_matching_unit_counts(  # noqa: PLR0917 - fixtures
    make, some_node, some_inst, unit, rooms, disk_free, fits
):
    units = (unit(*LVM, rooms[0]), unit("lvm-vg", "slow", rooms[1]))
    nodes = [some_node("n0", units=units, disk_free=disk_free)]
    state = load(make(nodes, [])).state
    asked = Allocate(_plain(some_inst, "new", -1, 15360), 1)
    found = place(state, asked, Asking(capacity=False))
    assert (found.best is not None) == fits


@pytest.mark.requirement("S4-10")
def test_one_unit_a_node_gives_the_old_metric(make, some_node, unit):
    free = (1000, 30000, 77777)
    old = [some_node(f"n{i}", disk_free=room) for i, room in enumerate(free)]
    new = [
        some_node(f"n{i}", disk_free=room, units=(unit(*LVM, room),))
        for i, room in enumerate(free)
    ]
    assert measure(load(make(old, [])).state.nodes) == measure(
        load(make(new, [])).state.nodes
    )


@pytest.mark.requirement("S4-10", "S4-11")
def test_the_metric_is_the_mean_over_units_of_those_who_have_them(
    make, some_node, unit
):
    nodes = [
        some_node("n0", units=(unit(*LVM, 0, 100), unit("lvm-vg", "ssd", 10, 100))),
        some_node("n1", units=(unit(*LVM, 100, 100),)),
        some_node("n2", units=(unit("lvm-vg", "ssd", 30, 100),)),
    ]
    state = load(make(nodes, [])).state
    assert spread([0.0, 1.0]) == 0.5
    assert measure(state.nodes)[1] == pytest.approx((0.5 + sqrt(0.01)) / 2)


@pytest.mark.requirement("S4-10", "S4-14")
def test_units_of_unknown_room_are_no_part_of_the_metric(make, some_node, unit):
    """However many providers are installed, the spread of the rest weighs the same."""
    unknown = tuple(unit("ext", name, None, None) for name in "abc")
    nodes = [
        some_node("n0", units=(unit(*LVM, 20, 100), *unknown)),
        some_node("n1", units=(*unknown, unit(*LVM, 100, 100))),
    ]
    state = load(make(nodes, [])).state
    assert measure(state.nodes)[1] == pytest.approx(0.4)
    only = [some_node(f"n{at}", units=unknown) for at in range(2)]
    assert measure(load(make(only, [])).state.nodes)[1] == 0.0


@pytest.mark.requirement("S4-06")
def test_a_volume_group_is_two_units_with_one_room(make, some_node, some_inst, unit):
    """What a mirrored disk and its metadata take, a plain one cannot have."""
    node = some_node("n0", units=(unit(*LVM, 3000), unit("drbd8", "xenvg", 3000)))
    held = Units.of(node.units)
    wants = ((("drbd8", "xenvg"), 1000), (LVM, 500), (("drbd8", "other"), 9))
    assert held.taken(wants).free == (1500, 1500)
    assert held.taken(wants).released(wants).free == (3000, 3000)
    state = load(make([node, some_node("n1", units=node.units)], [])).state

    def fits(*disks):
        row = some_inst("new", -1, template="plain", disks=disks)
        return place(state, Allocate(row, 1), Asking(capacity=False)).best is not None

    plain, mirrored = Disk(1436, unit=LVM), Disk(1436, unit=("drbd8", "xenvg"))
    assert fits(plain, mirrored)  # and 128 MiB of metadata
    assert not fits(Disk(1437, unit=LVM), mirrored)


@pytest.mark.requirement("S4-13")
def test_shared_storage_counts_once(make, some_node, unit):
    nodes = [
        some_node(f"n{at}", units=(unit("rbd", "pool", 50, 80), unit(*LVM, 5, 9)))
        for at in range(5)
    ]
    shared, local = pools(make(nodes, []))
    assert (shared.free, shared.total, len(shared.nodes)) == (50, 80, 5)
    assert (local.free, local.total) == (25, 45)


@pytest.mark.requirement("S4-13")
def test_a_new_disk_must_fit_a_shared_pool(make, some_node, some_inst, unit):
    nodes = [some_node(f"n{at}", units=(unit("rbd", "p", 5000),)) for at in range(2)]
    state = load(make(nodes, [])).state

    def fits(size):
        row = some_inst(
            "new", -1, template="rbd", disks=(Disk(size, unit=("rbd", "p")),)
        )
        return place(state, Allocate(row, 1), Asking(capacity=False)).best is not None

    assert fits(5000)
    assert not fits(5001)


@pytest.mark.requirement("S4-13", "S2-10")
@pytest.mark.parametrize("template", ["sharedfile", "ext"])
@pytest.mark.parametrize(
    ("free", "count"), [(10 * 4096, 10), (10 * 4096 - 1, 9), (None, 40)]
)
def test_filling_stops_when_the_pool_is_full(
    make, some_node, unit, template, free, count
):
    nodes = [
        some_node(f"n{at}", cpus=64.0, units=(unit(template, "p", free, 10**6),))
        for at in range(5)
    ]
    state = load(make(nodes, [])).state
    how = Filling(targets(state, 1, Asking()), None, 40)
    done = fill(state, model(state, Size(128, 4096, 1), template, 1), how)
    assert len(done.new) == count


@pytest.mark.requirement("S4-13")
def test_of_several_pools_nobody_can_tell_which_one_is_meant(make, some_node, unit):
    units = (unit("ext", "nas", 4096), unit("ext", "san", 4096))
    state = load(make([some_node("n0", units=units)], [])).state
    assert model(state, Size(128, 4096, 1), "ext", 1).wants == ((None, 4096),)


@pytest.mark.requirement("S4-14")
def test_unknown_capacity_is_not_zero(make, some_node, some_inst, unit):
    nodes = [
        some_node(f"n{at}", units=(unit("ext", "nas", None, None),)) for at in (0, 1)
    ]
    disk = Disk(10**6, unit=("ext", "nas"))
    state = load(make(nodes, [some_inst("a", 0, template="ext", disks=(disk,))])).state
    assert pools(state.fleet)[0].free is None
    assert measure(state.nodes)[1] == 0.0
    new = some_inst("new", -1, template="ext", disks=(disk,))
    assert place(state, Allocate(new, 1), Asking()).best is not None
