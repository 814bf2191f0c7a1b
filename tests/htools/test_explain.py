# SPDX-License-Identifier: BSD-2-Clause
"""Every no has a name and numbers, and the smallest change that makes it a yes."""

import json
from dataclasses import replace
from random import Random

import pytest

from moorage.htools import (
    Asking,
    Disk,
    Group,
    InstanceRow,
    Policy,
    Spec,
    load,
    sample,
)
from moorage.htools.explain.explain import place
from moorage.htools.placement.requests import (
    Allocate,
    answer,
)
from moorage.htools.policy import DEFAULT
from moorage.htools.survival.n1 import unlosable
from support.sampling import SEED

UNCHECKED = Asking(capacity=False)
LVM = ("lvm-vg", "xenvg")

# -- each constraint by its name -------------------------------------------------------


def _new(mem=1024, size=1024, **more):
    disks = more.pop("disks", (Disk(size),))
    row = {"template": "plain", "disks": disks}
    disk = sum(one.size for one in disks)
    return InstanceRow("new", mem, disk, more.pop("vcpus", 1), **(row | more))


def _policy(**more):
    low, high = DEFAULT.ranges[0]
    return DEFAULT._replace(ranges=((low, high._replace(**more)),))


def _unit(unit, free, kind="lvm-vg", key="xenvg"):
    return (unit(kind, key, free),)


CASES = {
    "memory": ({}, {"mem": 9000}, {"asked": 9000, "unallocated": 8192}),
    "disk": ({"disk_free": 500}, {}, {"asked": 1024, "free": 500}),
    "cpu": ({"cpus": 1.0}, {"vcpus": 5}, {"asked": 5, "used": 1, "limit": 4.0}),
    "spindle ratio": (
        {"spindles": 1, "policy": DEFAULT._replace(spindle_ratio=2.0)},
        {"spindle_use": 3},
        {"asked": 3, "used": 0.0, "limit": 2.0},
    ),
    "spindles": (
        {"exclusive": True, "spindles_free": 2},
        {"disks": (Disk(1024, 3),)},
        {"asked": 3, "free": 2},
    ),
    "policy memory": ({}, {"mem": 100}, {"asked": 100, "allowed": [[128, 32768]]}),
    "policy disk size": (
        {},
        {"size": 2000000},
        {"asked": 2000000, "allowed": [[1024, 1048576]]},
    ),
    "policy vcpus": ({}, {"vcpus": 9}, {"asked": 9, "allowed": [[1, 8]]}),
    "policy spindles": (
        {},
        {"spindle_use": 13},
        {"asked": 13, "allowed": [[1, 12]]},
    ),
    "policy disk count": (
        {"policy": _policy(disks=2)},
        {"disks": (Disk(1024),) * 3},
        {"asked": 3, "allowed": [[1, 2]]},
    ),
    "policy template": (
        {"policy": DEFAULT._replace(templates=("drbd", "ext"))},
        {},
        {"asked": "plain", "allowed": ["drbd", "ext"]},
    ),
    "unit": (
        {"units": (LVM, 500)},
        {"disks": (Disk(300), Disk(300)), "policy": _policy()},
        {"disk": "1", "unit": "lvm-vg/xenvg", "asked": 300, "free": 200},
    ),
    "no such unit": (
        {"units": (("lvm-vg", "other"), 500)},
        {"disks": (Disk(1024, unit=LVM),)},
        {"disk": "0", "unit": "lvm-vg/xenvg", "units here": ["lvm-vg/other"]},
    ),
    "pool": (
        {"units": (("ext", "nas"), 500)},
        {"template": "ext", "disks": (Disk(1024, unit=("ext", "nas")),)},
        {"pool": "ext/nas", "asked": 1024, "free": 500},
    ),
    "exclusion tags": (
        {},
        {"tags": ("service:web",)},
        {"tags": ["service:web"], "held by": ["old"]},
    ),
    "reach": ({}, {"reach": frozenset({1})}, {"disks usable from": ["n1"]}),
}
_ANY = Policy(
    ranges=((Spec(*[0] * 6), Spec(*[2**40] * 6)),),
    standard=DEFAULT.standard,
    templates=DEFAULT.templates,
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)


@pytest.fixture
def case(make, some_node, some_inst, unit):
    """Return a cluster whose node n0 refuses a newcomer, and the newcomer."""

    def made(name):
        node, inst, facts = CASES[name]
        node, inst = dict(node), dict(inst)
        policy = node.pop("policy", _ANY if name == "unit" else DEFAULT)
        inst.pop("policy", None)
        if "units" in node:
            (kind, key), free = node["units"]
            node["units"] = (unit(kind, key, free),)
        nodes = [some_node("n0", **node), some_node("n1", offline=True)]
        old = some_inst("old", 0, 0, tags=("service:web",), status="ADMIN_down")
        fleet = make(nodes, [old], tags=("htools:iextags:service",))
        group = fleet.groups[0]._replace(policy=policy)
        return fleet.replaced(groups=(group,)), Allocate(_new(**inst), 1), facts

    return made


@pytest.mark.parametrize("name", CASES)
def test_a_constraint_goes_by_its_name_and_numbers(case, name):
    fleet, asked, facts = case(name)
    found = place(load(fleet).state, asked, UNCHECKED)
    assert found.best is None
    first = found.reasons[0]
    assert (first.nodes, first.constraint) == (("n0",), name)
    assert first.facts.items() >= facts.items()
    assert json.loads(json.dumps(first.values()))["constraint"] == name


@pytest.mark.requirement("S2-11")
def test_nodes_that_were_not_even_tried_say_why(make, some_node):
    nodes = [some_node("n0"), some_node("n1"), some_node("n2", offline=True)]
    fleet = make(nodes, []).replaced(
        groups=(Group("default", "u", "unallocable", networks=("lan",)),)
    )
    asked = Allocate(_new(networks=("wan",)), 2, restrict=("n0",))
    told = place(load(fleet).state, asked, UNCHECKED).reasons
    assert [one.sentence() for one in told] == [
        "group default: unallocable",
        "group default: networks (not connected to wan)",
        "n2: offline or drained",
        "group default: restricted (to n0)",
        "group default: too few nodes (usable n0, needed 2)",
    ]


@pytest.mark.requirement("S2-04")
def test_a_place_that_survival_refuses_names_whom_it_strands(
    make, some_node, some_inst
):
    nodes = [some_node("n0"), some_node("n1")]
    state = load(make(nodes, [some_inst("a", 0, 4000)])).state
    found = place(state, Allocate(some_inst("new", -1, 5000), 1))
    lost = next(one for one in found.reasons if one.nodes == ("n1",))
    assert lost.constraint == "n+1"
    assert lost.facts["losing"] == "n0"
    assert lost.facts["strands"] == ["a"]
    assert lost.sentence() == (
        "n1: n+1 (losing n0 would strand a: "
        "n1: memory (asked 4000 MiB, unallocated 3192 MiB))"
    )


@pytest.mark.requirement("S2-04")
def test_what_cannot_be_lost_already_stops_nobody(make, some_node, some_inst, unit):
    """An offline node with second copies is the state after every node's death."""
    units = (unit("drbd8", "xenvg", 90000), unit("sharedfile", "/s", 90000))
    mirrored = some_inst("m", 1, 4000, secondary=0, template="drbd")
    nodes = [some_node(f"n{at}", offline=at == 0, units=units) for at in range(4)]
    state = load(make(nodes, [mirrored])).state
    assert unlosable(state) == [1]
    found = place(state, Allocate(some_inst("new", -1, 500), 1))
    assert found.best is not None
    # What can be lost must stay so: n3 takes 5000 MiB of n2's, and not 3000 besides.
    full = [mirrored, some_inst("a", 2, 5000), some_inst("b", 1, 2500)]
    state = load(make(nodes, full)).state
    assert 2 not in unlosable(state)
    found = place(state, Allocate(some_inst("new", -1, 3500), 1))
    assert [one.facts["losing"] for one in found.reasons if "losing" in one.facts]


@pytest.mark.requirement("S2-04")
def test_where_no_units_are_told_it_stops_everybody(make, some_node, some_inst):
    """As Ganeti's planner has it of Ganeti's masters; which node it is, is told."""
    nodes = [some_node("n0"), some_node("n1", offline=True)]
    state = load(make(nodes, [some_inst("a", 0, 4000)])).state
    found = place(state, Allocate(some_inst("new", -1, 500), 1))
    assert found.reasons[0].facts["already"] is True
    assert "strands a, with or without this" in found.reasons[0].sentence()
    assert found.change is not None
    assert found.change.sentence() == "it fits with n1 online"


def test_pairs_of_nodes_are_told_once_for_each_role(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1", disk_free=100), some_node("n2")]
    insts = [some_inst("a", 2, 8000)]
    row = some_inst("new", -1, 1000, template="drbd")
    told = place(load(make(nodes, insts)).state, Allocate(row, 2), UNCHECKED).reasons
    assert [one.sentence() for one in told] == [
        "n1 as secondary: disk (asked 1024 MiB, free 100 MiB)",
        "n2 as secondary: memory (asked 1000 MiB, unallocated 192 MiB)",
        "n1 as primary: disk (asked 1024 MiB, free 100 MiB)",
        "n2 as primary: memory (asked 1000 MiB, unallocated 192 MiB)",
    ]


def test_reasons_are_computed_when_they_are_looked_at(make, some_node):
    state = load(make([some_node("n0")], [])).state
    found = place(state, Allocate(_new(), 1), UNCHECKED)
    assert found.told is None
    assert found.change is None
    assert found.told is not None


# -- the smallest change ---------------------------------------------------------------


def _put(fleet, request, part, after):
    """Return cluster and request with one part of a change, made by hand."""
    if part.node:
        return _put_node(fleet, part, after), request
    row, at = request.inst, part.disk or 0
    disks = list(row.disks)
    if part.what == "disk":
        disks[at] = disks[at]._replace(size=after)
    elif part.what == "disks":
        disks = disks[:after]
    elif part.what == "spindles" and any(n.exclusive for n in fleet.nodes):
        disks[at] = disks[at]._replace(spindles=after)
    else:
        names = {"memory": "mem", "vcpus": "vcpus", "spindles": "spindle_use"}
        row = row._replace(**{names[part.what]: after})
    row = row._replace(disks=tuple(disks), disk=sum(one.size for one in disks))
    return fleet, replace(request, inst=row)


def _put_node(fleet, part, by):
    at = [row.name for row in fleet.nodes].index(part.node)
    node = fleet.nodes[at]
    changes = {
        "memory": {"mem_total": node.mem_total + by, "mem_free": node.mem_free + by},
        "disk": {"disk_free": node.disk_free + by},
        "processors": {"cpus": node.cpus + by},
        "spindles": {"spindles": node.spindles + by},
        "online": {"offline": node.offline and not by},
    }
    if node.exclusive:
        changes["spindles"]["spindles_free"] = node.spindles_free + by
    if part.what not in changes:
        units = tuple(
            one._replace(free=one.free + by) if "/".join(one.name) == part.what else one
            for one in node.units
        )
        changes[part.what] = {"units": units}
    nodes = list(fleet.nodes)
    nodes[at] = node._replace(**changes[part.what])
    return fleet.replaced(nodes=tuple(nodes))


def _one_less(part):
    """Return the amount with one unit less of a change; None for none of it."""
    if part.by <= 1:
        return None
    return part.after + (1 if (part.before or 0) > part.after else -1)


def _check_change(fleet, request, asking, change):
    """Assert that a change makes a request fit, and one unit less does not."""
    claims = {part.what for part in change.parts}
    if "restriction" in claims:
        request, asking = (
            replace(request, restrict=None),
            replace(asking, restrict=None),
        )
    if "capacity check" in claims:
        asking = replace(asking, capacity=False)
    parts = [
        one for one in change.parts if one.what not in ("restriction", "capacity check")
    ]

    def fits(amounts):
        here, asked = fleet, request
        for part, amount in zip(parts, amounts, strict=True):
            if amount is not None:
                here, asked = _put(here, asked, part, amount)
        return answer(load(here).state, asked, asking).success

    whole = [part.after for part in parts]
    assert fits(whole), change
    for at, part in enumerate(parts):
        assert not fits([*whole[:at], _one_less(part), *whole[at + 1 :]]), (
            part,
            change,
        )


def _random_request(draw, fleet, odd):
    """Return a request that is too large, or too small, in one way or several."""
    template = draw.choice(("drbd", "drbd", "plain", "ext", "sharedfile"))
    sizes = [draw.choice((1024, 5000)) for _ in range(draw.choice((1, 1, 2, 3)))]
    row = {"mem": draw.choice((1024, 4096)), "vcpus": 1, "spindle_use": 1}
    if odd in ("memory", "both"):
        row["mem"] = draw.choice((20000, 40000, 90000))
    if odd in ("disk", "both"):
        at = draw.randrange(len(sizes))
        sizes[at] = draw.choice((400000, 900000, 2000000))
    row |= {"small": {"mem": 64}, "cpu": {"vcpus": draw.choice((9, 30))}}.get(odd, {})
    row |= {"spindles": {"spindle_use": 20}}.get(odd, {})
    sizes = [1024] * 18 if odd == "count" else sizes
    exclusive = any(node.exclusive for node in fleet.nodes)
    disks = tuple(
        Disk(size, draw.choice((1, 4, 9, None)) if exclusive else None)
        for size in sizes
    )
    row |= {"tags": ("service:0", "service:1")} if draw.random() < 0.1 else {}
    names = [node.name for node in fleet.nodes]
    restrict = tuple(draw.sample(names, 2)) if draw.random() < 0.1 else None
    count = 2 if template == "drbd" else 1
    return Allocate(_new(template=template, disks=disks, **row), count, None, restrict)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize(
    "odd", ["memory", "disk", "both", "cpu", "spindles", "count", "small", "nothing"]
)
def test_the_change_makes_it_fit_and_one_unit_less_does_not(odd, checked):
    changed, enough = 0, 3 if odd == "nothing" else 15
    for seed in Random(f"{SEED} {odd} {checked}").sample(range(45), 45):  # noqa: S311
        if changed > enough:
            break
        draw = Random(f"{seed} {odd} {checked}")  # noqa: S311
        fleet = sample.cluster(seed)
        request = _random_request(draw, fleet, odd)
        asking = Asking(capacity=checked)
        state = load(fleet).state
        if answer(state, request, asking).success:
            continue
        found = place(state, request, asking)
        assert found.reasons
        if found.change is not None:
            _check_change(fleet, request, asking, found.change)
            changed += 1
    assert changed > enough


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("memory", "it fits with 809 MiB less memory"),
        ("disk", "it fits with 525 MiB more free disk on n0"),
        ("cpu", "it fits with 2 fewer vcpus"),
        ("spindle ratio", "it fits with 1 fewer spindle"),
        ("spindles", "it fits with 1 fewer spindle"),
        ("policy memory", "it fits with 28 MiB more memory"),
        ("policy disk size", "it fits with 1897601 MiB less disk"),
        ("policy vcpus", "it fits with 1 fewer vcpu"),
        ("policy spindles", "it fits with 1 fewer spindle"),
        ("policy disk count", "it fits with 1 fewer disk"),
        ("unit", "it fits with 100 MiB less disk 0"),
        ("pool", "it fits with 524 MiB more ext/nas on n0"),
        ("policy template", None),
        ("no such unit", "it fits with n1 online"),
        ("exclusion tags", "it fits with n1 online"),
        ("reach", "it fits with n1 online"),
    ],
)
def test_the_change_of_each_constraint_in_words(case, name, sentence):
    fleet, asked, _ = case(name)
    change = place(load(fleet).state, asked, UNCHECKED).change
    assert (change and change.sentence()) == sentence
    if change is not None and name != "pool":
        _check_change(fleet, asked, UNCHECKED, change)


def test_where_nothing_of_the_request_helps_a_node_must_change(
    make, some_node, some_inst
):
    nodes = [some_node("n0"), some_node("n1")]
    fleet = make(nodes, [some_inst("a", 0, 8100), some_inst("b", 1, 8080)])
    request = Allocate(some_inst("new", -1, 128), 1)
    change = place(load(fleet).state, request, UNCHECKED).change
    assert change is not None
    assert change.sentence() == "it fits with 17 MiB more free memory on n1"
    _check_change(fleet, request, UNCHECKED, change)
