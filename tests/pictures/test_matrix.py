# SPDX-License-Identifier: BSD-2-Clause
"""Pools by nodes: each pool on each node once, nothing outside, shared room once."""

from random import Random

import pytest

from drawings import BAD, assert_inside, parsed, titles, words
from moorage.pictures.matrix import MOST, Cell, Column, Reach, Row, matrix
from moorage.web.drawn.matrix import drawn_of


def some(seed, nodes=None):
    """Return random columns and rows."""
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    columns = []
    for at in range(draw.randint(1, 6)):
        total = draw.choice((None, 0, 1000, 10**6))
        free = None if total is None else draw.randint(0, total)
        shared = draw.random() < 0.5
        columns.append(Column(f"pool{at}", "ext san", shared, 3, 4000, free, total))
    count = nodes or draw.randint(1, 80)
    rows = [
        Row(f"node{at}", f"g{at * 3 // count}", tuple(cell(draw) for _ in columns))
        for at in range(count)
    ]
    return columns, rows


def cell(draw):
    """Return a random cell; storage may say that more is free than there is."""
    if draw.random() < 0.3:
        return Cell(draw.choice((Reach.NO, Reach.SILENT)))
    free = draw.choice((None, 0, 500, 2000))
    return Cell(Reach.YES, free, draw.choice((None, 1000)))


def squares(root):
    """Return what can be pointed at in cells."""
    return [words(one) for one in root.iterfind(".//svg//rect/title")]


@pytest.mark.parametrize("seed", range(30))
def test_each_pool_is_on_each_node_once(seed):
    columns, rows = some(seed)
    root = parsed(matrix(columns, rows))
    assert_inside(root)
    told = [title.rpartition(": ")[0] for title in squares(root)]
    names = [row.name for row in rows]
    if len(rows) > MOST:
        counts = {row.group: 0 for row in rows}
        for row in rows:
            counts[row.group] += 1
        names = [f"{group}, {many} nodes" for group, many in counts.items()]
    expected = [f"{name}, {one.name}" for name in names for one in columns]
    assert sorted(told) == sorted(expected)
    table = [words(td) for td in root.iterfind(".//table/tbody/tr/td")]
    assert table == [title.rpartition(": ")[2] for title in squares(root)]


@pytest.mark.parametrize("seed", range(5))
def test_three_hundred_nodes_are_added_up_and_that_is_said(seed):
    columns, rows = some(seed, nodes=300)
    picture = matrix(columns, rows)
    assert len(picture.body) < 300_000
    assert "300 nodes are added up by group" in picture.body
    at = 0
    reached = sum(row.cells[at].reach is Reach.YES for row in rows)
    told = [title for title in squares(parsed(picture)) if ", pool0: " in title]
    found = [int(title.rpartition(": ")[2].split(" of ")[0]) for title in told]
    assert sum(found) == reached


def test_a_shared_room_is_filled_once_and_unknown_is_not_zero():
    columns = [
        Column("san", "ext san", True, 2, 2048, 1024, 4096),
        Column("ceph", "rbd", True, 0, 0),
        Column("ssd", "plain", False, 1, 512, 3072, 8192),
    ]
    yes = Cell(Reach.YES, 1024, 4096)
    row = (yes, Cell(Reach.YES), Cell(Reach.YES, 1024, 4096))
    picture = matrix(columns, [Row("n1", "g", row), Row("n2", "g", row)])
    assert picture.lead == "3 pools, 2 nodes; the fullest is san, 75%."
    assert squares(parsed(picture)) == [
        "n1, san: reached",
        "n1, ceph: reached",
        "n1, ssd: 1.0G of 4.0G free",
        "n2, san: reached",
        "n2, ceph: reached",
        "n2, ssd: 1.0G of 4.0G free",
    ]
    heads = titles(parsed(picture))
    assert "san: ext san; 2 disks, 2.0G; 1.0G of 4.0G free" in heads
    assert "ceph: rbd; 0 disks, 0M; room not told" in heads


def test_what_queries_tell_becomes_cells():
    pool = {"name": "p", "template": "plain", "driver": "plain", "groups": ["g"]}
    pool |= {"disk_cnt": 0, "size": 0, "free": 5, "total": 10}
    pool |= {"rooms": {"n1": [5, 10]}}
    known = {"offline": False, "silence": "", "vm_capable": True, "group": "g"}
    nodes = [
        known | {"name": "n1"},
        known | {"name": "n2"},
        known | {"name": "n3", "silence": "it hangs"},
        known | {"name": "n4", "offline": True, "silence": None},
        known | {"name": "n5", "group": "h"},
        known | {"name": "n6", "vm_capable": False},
    ]
    assert squares(parsed(drawn_of([pool], nodes))) == [
        "n1, p: 5M of 10M free",
        "n2, p: not reached",
        "n3, p: no answer",
        "n4, p: no answer",
        "n5, p: not reached",
    ]


def test_names_full_of_markup_do_no_harm():
    columns = [Column(BAD, BAD, True, 1, 1)]
    root = parsed(matrix(columns, [Row(BAD, BAD, (Cell(Reach.YES),))]))
    assert squares(root) == [f"{BAD}, {BAD}: reached"]
    assert root.find(".//script") is None
