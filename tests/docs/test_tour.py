# SPDX-License-Identifier: BSD-2-Clause
"""The page of the tour shows its steps, and a tour that differs is noticed."""

from pathlib import Path

import tour

from moorage.cli.tour.steps import STEPS

HERE = (Path(tour.CLUSTER), Path(tour.CHECKOUT, ".build", "guest"))


def test_the_page_shows_all_steps():
    said = [(step.__doc__ or "").splitlines()[0].rstrip(".") for step in STEPS]
    assert tour.titles(tour.record()) == said
    assert f"All {len(STEPS)} steps hold" in tour.record()


def test_a_tour_is_the_one_that_is_shown():
    assert tour.differences(tour.record(), *HERE) == []


def test_a_line_that_differs_is_told():
    told = tour.record()
    changed = told.replace("web2 sees 192 MiB", "web2 sees 128 MiB")
    assert [one for one in tour.differences(changed, *HERE) if "MiB" in one] == [
        "-web2 sees 192 MiB",
        "+web2 sees 128 MiB",
    ]
    less = told.replace("       Cluster tour is made\n", "")
    assert "-Cluster tour is made" in tour.differences(less, *HERE)


def test_what_is_drawn_anew_may_differ():
    other = (
        tour.record()
        .replace("946 ms", "12 ms")
        .replace("946 and 571", "12 and 13")
        .replace("252.0G", "1.0T")
        .replace("tcg (", "kvm (")
    )
    assert other != tour.record()
    assert tour.differences(other, *HERE) == []


def test_the_first_page_shows_lines_of_the_tour():
    page = (tour.ROOT / "README.md").read_text()
    excerpt = page.partition("```text\n")[2].partition("```")[0].splitlines()
    assert len(excerpt) > 8
    lines = iter(tour.record().splitlines())
    assert [one for one in excerpt if one not in lines] == []
