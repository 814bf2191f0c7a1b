# SPDX-License-Identifier: BSD-2-Clause
"""Jobs that were put away: how they are listed and told, and for how long."""

from collections.abc import Iterator
from typing import Any

import pytest

from .harbour import Harbour, harbour


@pytest.fixture
def at(typed: Any) -> Iterator[Harbour]:
    with harbour(typed) as found:
        yield found


def rows(at: Harbour, line: str) -> list[list[str]]:
    return [one.split(":") for one in at.types(f"{line} --separator=:").splitlines()]


def test_an_archived_job_is_told_and_listed_where_it_is_asked_for(at: Harbour) -> None:
    at.types("gnt-cluster modify --max-running-jobs=7")
    at.types("gnt-cluster modify --max-running-jobs=8")
    before = at.types("gnt-job info 1")
    at.types("gnt-job archive 1")
    assert at.types("gnt-job info 1") == before
    assert [row[0] for row in rows(at, "gnt-job list --no-headers")] == ["2"]
    shown = rows(at, "gnt-job list --archived")
    assert [(row[0], row[-1]) for row in shown] == [
        ("ID", "Archived"),
        ("1", "Y"),
        ("2", "N"),
    ]
    assert rows(at, "gnt-job list --no-headers -o id,archived 1") == [["1", "Y"]]
    assert [row[1] for row in rows(at, "gnt-job list --no-headers 1 2")] == [
        "success",
        "success",
    ]
    assert "Output from job 1 follows" in at.types("gnt-job watch 1")
    assert "job 3 is not known" in at.refuses("gnt-job info 3")


def test_who_wants_no_archive_has_none(at: Harbour) -> None:
    at.types("gnt-cluster modify --job-retention=0")
    at.types("gnt-cluster modify --max-running-jobs=7")
    at.types("gnt-job autoarchive all")
    assert rows(at, "gnt-job list --no-headers --archived") == []
    assert "job 1 is not known" in at.refuses("gnt-job info 1")
    at.types("gnt-cluster modify --job-retention=4w")
    told = at.types("gnt-cluster info")
    assert "  seconds that archived jobs are kept: 2419200\n" in told
    assert "is no time" in at.refuses("gnt-cluster modify --job-retention=soon")


def test_each_of_several_jobs_is_told_what_became_of_it(at: Harbour) -> None:
    for number in (5, 6, 7):
        at.types(f"gnt-cluster modify --max-running-jobs={number}")
    told = at.refuses("gnt-job archive 1 999 2")
    assert told == "job 999 is not known Archived 2 jobs, and 1 not"
    assert [row[0] for row in rows(at, "gnt-job list --no-headers")] == ["3"]
    assert "nothing was changed" in at.refuses("gnt-job archive 999")
    at.types("gnt-cluster modify --job-retention=0")
    shown = rows(at, "gnt-job list --no-headers --archived")
    assert [row[0] for row in shown] == ["3", "4"]
