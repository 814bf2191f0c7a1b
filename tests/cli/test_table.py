# SPDX-License-Identifier: BSD-2-Clause
"""Tables, as scripts written for Ganeti read them."""

import pytest

from moorage.cli.table import Look, table

COLUMNS = [
    {"title": "Node", "kind": "text"},
    {"title": "DTotal", "kind": "unit"},
    {"title": "Off", "kind": "bool"},
    {"title": "Pinst", "kind": "number"},
    {"title": "Tags", "kind": "other"},
]
ROWS = [
    [(0, "node1.example.com"), (0, 512), (0, False), (0, 3), (0, ["a", "b"])],
    [(0, "n2"), (0, 1572864), (0, True), (2, None), (0, [])],
    [(0, "n3"), (4, None), (1, None), (3, None), (0, {"a": 1})],
]


def lines(look: Look) -> list[str]:
    return list(table(COLUMNS, ROWS, look))


def test_for_people() -> None:
    assert lines(Look()) == [
        "Node              DTotal Off Pinst Tags",
        "node1.example.com   512M N       3 a,b",
        "n2                  1.5T Y       ? ",
        "n3                     * ??      - a=1",
    ]


def test_for_programs() -> None:
    assert lines(Look(separator=":")) == [
        "Node:DTotal:Off:Pinst:Tags",
        "node1.example.com:512:N:3:a,b",
        "n2:1572864:Y:?:",
        "n3:*:??:-:a=1",
    ]


def test_missing_values_spelt_out() -> None:
    shown = lines(Look(headers=False, separator="|", verbose=True))
    assert shown[1:] == [
        "n2|1572864|Y|(nodata)|",
        "n3|(offline)|(unknown)|(unavail)|a=1",
    ]


@pytest.mark.parametrize(
    ("units", "size"), [("h", "1.5T"), ("m", "1572864"), ("g", "1536.0"), ("t", "1.5")]
)
def test_units(units: str, size: str) -> None:
    assert lines(Look(separator=":", units=units))[2].split(":")[1] == size


def test_the_last_column_is_padded_only_to_the_left() -> None:
    rows = [[(0, "a"), (0, 7)], [(0, "b"), (0, 1000)]]
    columns = [{"title": "N", "kind": "text"}, {"title": "C", "kind": "number"}]
    assert list(table(columns, rows, Look())) == ["N    C", "a    7", "b 1000"]


def test_an_empty_table_is_its_titles() -> None:
    assert list(table(COLUMNS[:2], [], Look())) == ["Node DTotal"]
    assert list(table(COLUMNS, [], Look(headers=False))) == []


def test_times() -> None:
    columns = [{"title": "When", "kind": "timestamp"}]
    rows = [[(0, 0.5)], [(0, [86400, 5])], [(0, None)]]
    shown = list(table(columns, rows, Look(headers=False)))
    assert shown == ["1970-01-01 00:00:00", "1970-01-02 00:00:00", "-"]
