# SPDX-License-Identifier: BSD-2-Clause
"""The page of the tour shows its steps, and a tour that differs is noticed."""

from pathlib import Path

import pytest
import tour

from moorage.cli.tour.cloud_steps import CLOUD_STEPS
from moorage.cli.tour.steps import STEPS

GUEST = Path(tour.CHECKOUT, ".build", "guest")
HERE = (Path(tour.CLUSTER), GUEST)
BOTH = pytest.mark.parametrize(
    ("page", "steps"),
    [(tour.TOUR, STEPS), (tour.CLOUD, CLOUD_STEPS)],
    ids=["cluster", "cloud"],
)


@BOTH
def test_a_page_shows_all_steps(page, steps):
    said = [(step.__doc__ or "").splitlines()[0].rstrip(".") for step in steps]
    assert tour.titles(tour.record(page)) == said
    assert f"All {len(steps)} steps hold" in tour.record(page)


@BOTH
def test_a_tour_is_the_one_that_is_shown(page, steps):
    assert steps
    told = tour.record(page)
    assert tour.differences(told, Path(page.place), GUEST, page) == []


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
