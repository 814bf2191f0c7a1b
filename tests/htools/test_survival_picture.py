# SPDX-License-Identifier: BSD-2-Clause
"""The picture of survival: everybody is in it once, and nothing outside its box."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from drawings import BAD, assert_inside, parsed, titles, words
from moorage.cli.htools import hcheck
from moorage.htools import load, sample
from moorage.htools.formats import text
from moorage.htools.survival.certificate import certify
from moorage.pictures.losses import losses
from moorage.pictures.survival import ALONE, ROWS, TOLD, one_of, survival


def certificate(seed, **shape):
    wanted = sample.Shape(**({"oddity": 0.0} | shape)) if shape else None
    return certify(load(sample.cluster(seed, wanted)).state)


@pytest.mark.parametrize("seed", range(12))
def test_each_loss_is_in_the_picture_once(seed):
    found = certificate(seed)
    root = parsed(survival(found, address="/lose?it="))
    assert_inside(root)
    every = losses(found)
    for one in every:
        away = ", offline or drained already" if one.away else ""
        assert titles(root).count(f"{one.name}{away}: {one.verdict}") == 1
    rows = root.findall(".//table[@class='fates losses']/tbody/tr")
    told = {words(row[0]): [words(cell) for cell in row[2:]] for row in rows}
    assert len(rows) == min(ROWS, len(every))
    for one in every:
        away = " offline or drained" if one.away else ""
        figures = told.get(one.name + away)
        down = len(one.down)
        numbers = [len(one.fates), len(one.fates) - down, down, len(one.data_lost)]
        assert figures is None or figures == [str(number) for number in numbers]


@pytest.mark.parametrize("seed", range(12))
def test_everybody_who_is_concerned_has_one_lane_and_one_row(seed):
    found = certificate(seed)
    for one in losses(found):
        root = parsed(one_of(losses(found), one.key))
        assert_inside(root)
        rows = [row for row in root.findall(".//table/tbody/tr") if len(row) == 5]
        told = [(words(row[1]), words(row[2])) for row in rows]
        expected = [(fate.instance, fate.node or "stays down") for fate in one.fates]
        assert told == expected[:ROWS]
        if len(one.fates) <= ALONE:
            lanes = sorted(title.split()[0] for title in titles(root))
            assert lanes == sorted(fate.instance for fate in one.fates)


def test_who_stays_down_is_told_with_the_reason(make, some_node, some_inst):
    nodes = [some_node(f"n{at}") for at in range(3)]
    insts = [some_inst("big", 0, 6000), some_inst("small", 0, 100)]
    insts += [some_inst(f"other{at}", at, 3000) for at in (1, 2)]
    found = certify(load(make(nodes, insts)).state)
    picture = one_of(losses(found), "node/n0")
    assert picture.lead == "1 of 2 instances restart, 1 would stay down."
    root = parsed(picture)
    (row,) = (row for row in root.iter("tr") if "big" in words(row))
    assert "stays down" in words(row)
    assert "memory (asked 6000 MiB" in words(row)
    assert (
        survival(found).lead
        == "1 of 3 nodes cannot be lost: 1 instance would stay down."
    )


def test_names_full_of_markup_do_no_harm(make, some_node, some_inst):
    nodes = [some_node(f"n{at}{BAD}") for at in range(2)]
    found = certify(load(make(nodes, [some_inst(f"i{BAD}", 0, template="ext")])).state)
    root = parsed(survival(found, address="/lose?it="))
    assert f"n0{BAD}: 1 restarts" in titles(root)
    assert root.find(".//script") is None
    links = [a.get("href") for a in root.iter("a")]
    assert all(re.fullmatch(r"/lose\?it=[\w/%.~-]+", link) for link in links)
    root = parsed(one_of(losses(found), losses(found)[0].key))
    assert any(title.startswith(f"i{BAD} ") for title in titles(root))


def test_a_loss_that_there_is_not():
    assert one_of(losses(certificate(1, nodes=2, instances=4)), "node/nobody") is None


def test_three_hundred_nodes_are_small_enough():
    found = certificate(2, nodes=300, instances=1500, kind="shared", groups=3)
    picture = survival(found, address="/ui/survival?lost=")
    assert len(picture.body) < 300_000
    assert len(titles(parsed(picture))) == len(losses(found))


@pytest.fixture
def cluster(make, some_node, some_inst, tmp_path):
    """Write a cluster that cannot lose one of its nodes."""
    path, nodes = tmp_path / "c.data", [some_node("n0"), some_node("n1")]
    insts = [some_inst("a", 0, 5000), some_inst("b", 1, 4000)]
    path.write_text(text.dump(make(nodes, insts)))
    return path


def run(*given):
    return hcheck.main([str(word) for word in given])


@pytest.mark.parametrize("style", ["--survive", "--survive=json"])
def test_hcheck_draws_what_it_says(style, cluster, tmp_path, capsys):
    assert run("-t", cluster, style) == 1
    before = capsys.readouterr()
    path = tmp_path / "p.html"
    assert run("-t", cluster, style, "--html", path) == 1
    after = capsys.readouterr()
    line = f"The picture has been written to file '{path}'\n"
    assert after.out + after.err == before.out + before.err + line
    assert json.loads(after.out) if "json" in style else after.out.endswith(line)
    root = ET.fromstring(path.read_text())  # noqa: S314 - our own text
    assert "2 of 2 nodes cannot be lost" in words(root)
    heads = [words(head) for head in root.iter("h2")]
    assert heads == ["If n0 is lost", "If n1 is lost"][:TOLD]


def test_hcheck_says_that_a_picture_needs_the_certificate(cluster, tmp_path, capsys):
    path = tmp_path / "p.html"
    assert run("-t", cluster, "--html", path) == 1
    told = "Error: --html draws what --survive says: both are needed\n"
    assert capsys.readouterr().err == told
    assert not path.exists()
