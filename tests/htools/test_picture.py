# SPDX-License-Identifier: BSD-2-Clause
"""Pictures of plans: one document, well-formed, escaped, true to the state."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from importlib import import_module
from types import SimpleNamespace

import pytest

from moorage.cli.htools.drawing import origin
from moorage.htools import Rules, balance, load, sample
from moorage.htools.formats import text as text_format
from moorage.htools.metrics import measure, score, weigh
from moorage.htools.placement.allocate import Asking, targets
from moorage.htools.placement.space import Filling, Size, fill, model
from moorage.htools.plans.balancing import Plan
from moorage.htools.plans.plan import commands
from moorage.pictures import bars, scenes
from moorage.pictures.balancing import balancing
from moorage.pictures.document import Origin, document
from moorage.pictures.filling import filling
from moorage.pictures.nodes import CHOSEN

ORIGIN = Origin("hbal -t cluster.data", "cluster.data")
HTML = dict.fromkeys(("link", "script", "img", "iframe", "object", "embed", "base"))


def balancing_page(plan, origin):
    return document(balancing(plan), origin)


def filling_page(state, few, filled, size, origin):
    return document(filling(state, few, filled, size), origin)


class Outside(HTMLParser):
    """Collects whatever a document would fetch or run."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag in HTML:
            self.found.append(tag)
        for name, value in attrs:
            fetches = name in ("src", "href", "srcset", "data") or name.startswith("on")
            if fetches or "url(" in (value or ""):
                self.found.append((tag, name, value))


def parsed(page):
    """Return the root of a page, once it is known to be sound."""
    reader = Outside()
    reader.feed(page)
    assert reader.found == []
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src &#39;none&#39;" in page
    assert "http:" not in page
    assert "https:" not in page
    assert page.isascii()
    return ET.fromstring(page)  # noqa: S314 - our own text


def words(element):
    return "".join(element.itertext())


def table(root, kind):
    """Return the cells of a table's body, row by row."""
    rows = root.iterfind(f".//table[@class='{kind}']/tbody/tr")
    return [[words(cell) for cell in row] for row in rows]


def start_of(seed=1, **shape):
    wanted = sample.Shape(**({"oddity": 0.0, "nodes": 4, "instances": 16} | shape))
    return load(sample.cluster(seed, wanted)).state


def plan_of(state, **rules):
    return balance(state, Rules(keep_redundancy=False, **rules))


def idle(state):
    return Plan(state, state, score(state.seen), score(state.seen), [])


def room(state, mem=2048, template="plain"):
    """Return two fillings that place two and any number of instances."""
    inst = model(state, Size(mem, 1024, 1), template, 1)
    places = targets(state, 1, Asking())
    few, all_of_them = (
        fill(state, inst, Filling(places, None, limit=limit)) for limit in (2, None)
    )
    return few, all_of_them, Size(mem, 1024, 1)


def test_names_cannot_break_out(make, some_node, some_inst):
    bad = "<b>&\"'</style><script>alert(1)</script>"
    nodes = [some_node(f"n{at}{bad}") for at in range(3)]
    insts = [some_inst(f"i{at}\x00{bad}", 0) for at in range(4)]
    plan = plan_of(load(make(nodes, insts)).state)
    assert plan.steps
    root = parsed(balancing_page(plan, Origin(bad, bad, bad)))
    assert f"n0{bad}" in [row[0] for row in table(root, "numbers")]
    assert f"i0\N{REPLACEMENT CHARACTER}{bad}" in words(root)


def test_the_same_plan_gives_the_same_bytes():
    pages = {balancing_page(plan_of(start_of()), ORIGIN) for _ in range(2)}
    assert len(pages) == 1


def test_the_numbers_are_those_of_the_state():
    plan = plan_of(start_of())
    root = parsed(balancing_page(plan, ORIGIN))
    expected = []
    for at in plan.start.view:
        for name, state in (("before", plan.start), ("after", plan.end)):
            node = state.nodes[at]
            numbers = [len(node.primaries), len(node.secondaries)]
            numbers += [int(node.mem_total), int(node.mem_total) - node.unallocated]
            numbers += [node.reserved, int(node.disk_total)]
            numbers += [int(node.disk_total) - node.disk_free]
            numbers += [node.cpu_limit, node.cpu_used]
            expected.append([node.alias, name, *map(str, numbers)])
    assert table(root, "numbers") == expected


def test_bars_say_how_full_they_are_and_for_whom():
    plan = plan_of(start_of())
    root = parsed(balancing_page(plan, ORIGIN))
    node, end = plan.start.nodes[0], plan.end.nodes[0]
    used = [100 * (1 - one.unallocated / one.mem_total) for one in (node, end)]
    told = f"{node.alias} memory: before {used[0]:.0f}%, after {used[1]:.0f}%"
    titles = [words(title) for title in root.iterfind(".//svg/title")]
    assert told in titles
    drawings = root.findall(".//svg[@role='img']")
    assert all(one.find("desc") is not None for one in drawings)


def test_who_leaves_and_who_arrives_carries_the_number_of_the_step():
    plan = plan_of(start_of())
    root = parsed(balancing_page(plan, ORIGIN))
    said = [words(title) for title in root.iterfind(".//g/title")]
    for number, step in enumerate(plan.steps, 1):
        if step.before.p != step.moved.inst.p:
            moved = [one for one in said if one.startswith(step.before.alias + " ")]
            assert any(one.endswith(f"in step {number}") for one in moved)


def test_every_step_is_listed_with_its_commands():
    plan = plan_of(start_of())
    rows = table(parsed(balancing_page(plan, ORIGIN)), "steps")
    assert [row[1] for row in rows] == [str(n + 1) for n in range(len(plan.steps))]
    told = ["; ".join(commands(step, plan.start.nodes)) for step in plan.steps]
    assert [row[-1] for row in rows] == told


def test_the_metrics_add_up_to_the_score():
    plan = plan_of(start_of(nodes=6, instances=30))
    rows = table(parsed(balancing_page(plan, ORIGIN)), "metrics")
    for column, state in ((1, plan.start), (2, plan.end)):
        total = sum(float(row[column]) for row in rows)
        assert total == pytest.approx(weigh(measure(state.seen)), abs=0.001)


@pytest.mark.parametrize("seed", range(25))
def test_any_cluster_can_be_drawn(seed):
    state = load(sample.cluster(seed)).state
    for _, view in state.split():
        page = balancing_page(plan_of(view, max_steps=4), ORIGIN)
        parsed(page)
        assert not re.search(r"\b(nan|inf)\b", page)
    page = filling_page(state, *room(state), ORIGIN)
    parsed(page)
    assert not re.search(r"\b(nan|inf)\b", page)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", sample.KINDS)
def test_the_parts_of_a_bar_add_up(seed, kind):
    state = start_of(seed, kind=kind, uneven=True)
    scene = scenes.Scene("now", state)
    for at in state.view:
        for bar in (
            scenes.memory(scene, at),
            scenes.cpu(scene, at),
            scenes.disk(scene, at),
        ):
            assert sum(part.amount for part in bar.parts) == bar.used


def test_a_drawing_keeps_inside_its_frame():
    parts = tuple(bars.Part(bars.STAYS, 7.0, f"i{at}") for at in range(20))
    bar = bars.Bar("now", parts, 140.0, 100.0, 30.0, str)
    frame = bars.Frame()
    root = ET.fromstring(bars.drawing("n", [bar], frame))  # noqa: S314
    ends = [float(r.get("x")) + float(r.get("width")) for r in root.iter("rect")]
    assert max(ends) <= frame.room + 0.1
    assert words(root.find(".//text[@class='share short']")) == "140%!"


def test_a_node_that_fails_n1_says_so(make, some_node, some_inst):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 5000, template="drbd", secondary=1),
        some_inst("b", 1, 4000, template="drbd", secondary=0),
    ]
    root = parsed(balancing_page(idle(load(make(nodes, insts)).state), ORIGIN))
    rows = [row[0] for row in table(root, "nodes")]
    assert ["N+1 fails" in row for row in rows] == [True, True]
    assert ["cannot be lost" in row for row in rows] == [True, True]


@pytest.mark.requirement("S4-13", "S4-14")
def test_shared_storage_is_shown_once_and_unknown_is_not_zero(
    make, some_node, some_inst, unit
):
    units = (unit("ext", "san", 2048, 4096), unit("rbd", "ceph", None, None))
    local = (unit("lvm-vg", "xenvg", 1024, 4096),)
    nodes = [some_node(f"n{at}", units=(*units, *local)) for at in range(3)]
    state = load(make(nodes, [some_inst("a", 0)])).state
    root = parsed(balancing_page(idle(state), ORIGIN))
    found = root.findall(".//section")
    pools = next(one for one in found if words(one.find("h2")) == "Shared storage")
    rows = [[words(cell) for cell in row] for row in pools.iterfind(".//tbody/tr")]
    assert rows == [
        ["ext san", "3", "4.0G", "2.0G", "50%", "none known"],
        ["rbd ceph", "3", "unknown", "unknown", "unknown", "none known"],
    ]
    titles = [words(title) for title in root.iterfind(".//svg/title")]
    assert "n1 lvm-vg xenvg: before 75%, after 75%" in titles


def test_many_nodes_are_a_selection():
    state = start_of(nodes=1000, instances=3000, kind="shared")
    page = balancing_page(idle(state), ORIGIN)
    root = parsed(page)
    assert len(table(root, "nodes")) == CHOSEN
    assert "60 of 1,000 nodes" in words(root)
    assert len(page) < 300_000


def test_eighty_nodes_have_a_row_each():
    state = start_of(nodes=80, instances=1000)
    page = balancing_page(idle(state), ORIGIN)
    assert len(table(parsed(page), "nodes")) == 80
    assert len(page) < 300_000


def test_room_counts_what_was_placed():
    state = start_of(kind="plain")
    few, filled, size = room(state)
    root = parsed(filling_page(state, few, filled, size, ORIGIN))
    heads = [words(head) for head in root.iter("h2")]
    assert heads[:2] == [
        "Tiered: 2 instances",
        f"Standard: {len(filled.new)} instances",
    ]
    rows = table(root, "metrics")
    assert [row[:4] for row in rows] == [
        ["2", "2.0G", "1.0G", "1"],
        [str(len(filled.new)), "2.0G", "1.0G", "1"],
    ]
    stops = [(row[1], row[2]) for row in table(root, "stops")]
    counted = [(fail.value, str(count)) for fail, count in filled.reasons if count]
    assert stops[-len(counted) :] == counted


def test_a_node_without_anything_can_be_drawn(make, some_node, some_inst):
    empty = {"mem_total": 0.0, "disk_total": 0.0, "disk_free": 0, "cpus": 0.0}
    nodes = [some_node("n0"), some_node("n1", free=0, **empty), some_node("n2")]
    state = load(make(nodes, [some_inst("a", 0), some_inst("b", 1)])).state
    page = balancing_page(idle(state), ORIGIN)
    assert [len(row) for row in table(parsed(page), "nodes")] == [4, 4, 4]
    assert not re.search(r'"[^" ]*(nan|inf)[^" ]*"', page)


def test_a_cluster_that_fails_already_is_not_filled(
    make, some_node, some_inst, tmp_path
):
    nodes = [some_node("n0"), some_node("n1")]
    insts = [
        some_inst("a", 0, 5000, template="drbd", secondary=1),
        some_inst("b", 1, 4000, template="drbd", secondary=0),
    ]
    path, picture = tmp_path / "c.data", tmp_path / "p.html"
    path.write_text(text_format.dump(make(nodes, insts)))
    assert run("hspace", "-t", path, "--html", picture) == 0
    said = words(parsed(picture.read_text()))
    assert "N+1 fails already on 2 nodes" in said
    assert "--accept-existing-errors" in said


def test_several_groups_are_told_apart():
    state = start_of(nodes=6, groups=2, kind="shared")
    root = parsed(filling_page(state, *room(state, template="ext"), ORIGIN))
    heads = [words(head) for head in root.iterfind(".//th[@scope='rowgroup']")]
    assert heads == ["Group group-00", "Group group-01"]


def test_the_origin_holds_what_was_typed_but_no_password():
    state = start_of()
    options = SimpleNamespace(rapi="https://me:secret@master:5080")
    typed = ["-m", options.rapi, "--html", "a.html", "-C", "--html=b.html"]
    found = origin("hbal", typed, options, state)
    assert found.command == "hbal -m https://master:5080 -C"
    assert found.name == "https://master:5080"


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.data"
    shape = sample.Shape(nodes=4, instances=12, oddity=0.0)
    path.write_text(text_format.dump(sample.cluster(1, shape)))
    return path


def run(program, *given):
    return import_module(f"moorage.cli.htools.{program}").main([str(w) for w in given])


@pytest.mark.parametrize("program", ["hbal", "hspace"])
def test_only_a_last_line_is_added(program, cluster, tmp_path, capsys):
    assert run(program, "-t", cluster) == 0
    before = capsys.readouterr()
    path = tmp_path / "p.html"
    assert run(program, "-t", cluster, "--html", path) == 0
    after = capsys.readouterr()
    line = f"The picture has been written to file '{path}'\n"
    assert (after.out, after.err) == (before.out + line, before.err)
    first = path.read_text()
    parsed(first)
    assert run(program, "-t", cluster, f"--html={tmp_path / 'q.html'}") == 0
    assert (tmp_path / "q.html").read_text() == first


def test_what_machines_read_stays_as_it_is(cluster, tmp_path, capsys):
    path = tmp_path / "p.html"
    assert run("hspace", "-t", cluster, "--machine-readable", "--html", path) == 0
    said = capsys.readouterr()
    assert said.out.endswith("HTS_OK=1\n")
    assert "The picture has been written" in said.err


@pytest.mark.parametrize("program", ["hbal", "hspace"])
def test_a_file_that_cannot_be_written_is_one_sentence(
    program, cluster, tmp_path, capsys
):
    path = tmp_path / "none" / "p.html"
    assert run(program, "-t", cluster, "--html", path) == 1
    said = capsys.readouterr()
    assert said.err == f"Error: cannot write {path}: No such file or directory\n"


@pytest.mark.parametrize("instances", [0, 1])
def test_a_cluster_with_nothing_to_do_has_a_picture(instances, tmp_path, capsys):
    path, shape = tmp_path / "c.data", sample.Shape(nodes=1, instances=instances)
    path.write_text(text_format.dump(sample.cluster(3, shape)))
    assert run("hbal", "-t", path, "--html", tmp_path / "p.html") == 0
    assert "has been written" in capsys.readouterr().out
    assert "Nothing to do" in words(parsed((tmp_path / "p.html").read_text()))
