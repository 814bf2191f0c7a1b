# SPDX-License-Identifier: BSD-2-Clause
"""Jobs by what they wait for, and jobs that are put away."""

from typing import Any

import pytest


def rows(*numbers: int) -> list[Any]:
    return [[[0, number]] for number in numbers]


@pytest.fixture
def jobs(master: Any) -> Any:
    master.answers |= {
        "Query": lambda *_: {
            "fields": [{"name": "id", "kind": "number", "title": "ID", "doc": ""}],
            "data": rows(4, 7),
        },
        "CancelJob": lambda number, *_: [True, f"Job {number} canceled"],
        "ChangeJobPriority": lambda number, *_: [True, f"Job {number} changed"],
        "AutoArchiveJobs": lambda *_: [12, 3],
    }
    return master


@pytest.mark.parametrize(
    ("option", "states"),
    [
        ("--queued", ["queued"]),
        ("--waiting", ["waiting"]),
        ("--pending", ["queued", "waiting"]),
        ("--queued --waiting", ["queued", "waiting"]),
    ],
)
@pytest.mark.parametrize("command", ["cancel", "change-priority --priority high"])
def test_jobs_by_what_they_wait_for(
    typed: Any, jobs: Any, option: str, states: list[str], command: str
) -> None:
    screen = typed(f"gnt-job {command} {option} -f")
    assert screen.status == 0, screen.err
    (query,) = [args for method, args in jobs.calls if method == "Query"]
    assert query[2] == ["|", *(["==", "status", state] for state in states)]
    numbers = [args[0] for method, args in jobs.calls if method != "Query"]
    assert numbers == [4, 7]


def test_numbers_and_states_do_not_go_together(typed: Any, jobs: Any) -> None:
    screen = typed("gnt-job cancel --queued 4")
    assert (screen.status, len(jobs.calls)) == (1, 0)
    assert "numbers and --queued do not go together" in screen.err
    assert "no job is named" in typed("gnt-job change-priority --priority low").err


@pytest.mark.parametrize(("word", "age"), [("all", -1), ("6h", 21600), ("90", 90)])
def test_old_jobs_are_put_away(typed: Any, jobs: Any, word: str, age: int) -> None:
    screen = typed(f"gnt-job autoarchive {word}")
    assert screen.out == "Archived 12 jobs, 3 are left\n"
    assert jobs.calls == [("AutoArchiveJobs", [age])]
