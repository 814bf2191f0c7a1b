# SPDX-License-Identifier: BSD-2-Clause
"""gnt-job: lists, details, following, cancelling."""

import json
from typing import Any

import yaml

from moorage.errors import NoCapacity, WrongState


def test_job_list(master, typed) -> None:
    master.answers["Query"] = {
        "fields": [
            {"name": "id", "title": "ID", "kind": "number", "doc": ""},
            {"name": "status", "title": "Status", "kind": "text", "doc": ""},
            {"name": "summary", "title": "Summary", "kind": "other", "doc": ""},
        ],
        "data": [
            [[0, 9], [0, "success"], [0, ["DISK_ADD(data1)"]]],
            [[0, 10], [0, "running"], [0, ["NODE_ADD(n2)", "NODE_ADD(n3)"]]],
        ],
    }
    assert typed("gnt-job list").out == (
        "ID Status  Summary\n"
        " 9 success DISK_ADD(data1)\n"
        "10 running NODE_ADD(n2),NODE_ADD(n3)\n"
    )
    typed("gnt-job list --running")
    assert master.calls[-1][1][2] == ["|", ["==", "status", "running"]]
    typed("gnt-job list --error 12")
    both = ["&", ["|", ["==", "status", "error"]], ["|", ["==", "id", 12]]]
    assert master.calls[-1][1][2] == both


def job(**changes: Any) -> dict[str, Any]:
    return {
        "id": 12,
        "status": "error",
        "received_ts": [86400, 0],
        "start_ts": [86400, 500000],
        "end_ts": [86402, 0],
        "ops": [{"OP_ID": "OP_DISK_GROW", "disk": "data1", "reason": [["a", "b", 1]]}],
        "opstatus": ["error"],
        "opresult": [
            [
                "OpPrereqError",
                ["no room", "x"],
                NoCapacity("no room", hint="h", free=3).to_json(),
            ]
        ],
        "oplog": [[[1, [86400, 0], "message", "look for room"]]],
        "opstart": [[86400, 0]],
        "opexec": [None],
        "opend": [[86402, 0]],
        "tasks": [
            [
                {"what": "grow disk data1", "node": "node1", "state": "undone"},
                {"what": "note its size", "node": "master", "state": "waiting"},
            ]
        ],
        **changes,
    }


def test_job_info(master, typed, same_screen) -> None:
    known = job()
    master.answers["QueryJobs"] = lambda jobs, fields: [
        [known[f] for f in fields] if j == 12 else None for j in jobs
    ]
    screen = typed("gnt-job info 12")
    same_screen("gnt-job-info", screen.out)
    (shown,) = yaml.safe_load(screen.out)
    assert shown["Opcodes"][0]["Error facts"] == {"free": 3}
    assert json.loads(typed("gnt-job info --json 12").out) == [known]
    assert "job 13 is not known" in typed("gnt-job info 12-13").err
    assert "'x' is not a job's number" in typed("gnt-job info x").err


def test_job_watch(master, typed) -> None:
    master.logs = [[1, [0, 0], "message", "hello"]]
    screen = typed("gnt-job watch 12")
    assert (screen.status, screen.out) == (
        0,
        (
            "Output from job 12 follows\n"
            "----------------------\n"
            "Thu Jan  1 00:00:00 1970 hello\n"
        ),
    )
    master.result = WrongState("it is up")
    assert typed("gnt-job watch 12").status == 1


def test_job_wait_is_silent(master, typed) -> None:
    assert typed("gnt-job wait 12 13") == (0, "", "")
    master.result = WrongState("it is up")
    assert typed("gnt-job wait 12") == (1, "", "")


def test_job_cancel(master, typed) -> None:
    master.answers["CancelJob"] = [True, "Job 12 canceled"]
    assert typed("gnt-job cancel 12") == (0, "Job 12 canceled\n", "")
    assert master.calls == [("CancelJob", [12, False])]
    master.answers["CancelJob"] = [False, "Job 12 has finished"]
    code, _, said = typed("gnt-job cancel --kill 12")
    assert (code, "must be confirmed" in said) == (1, True)
    assert "gnt-job cancel --kill --yes-do-it 12" in said
    killing = "gnt-job cancel --kill --yes-do-it 12"
    assert typed(killing) == (1, "", "Job 12 has finished\n")
    assert "no job is named" in typed("gnt-job cancel").err


def test_cancel_every_pending_job(master, typed) -> None:
    master.answers["CancelJob"] = lambda number, _kill: [True, f"Job {number} canceled"]
    column = {"name": "id", "title": "ID", "kind": "number", "doc": ""}
    master.answers["Query"] = {"fields": [column], "data": [[[0, 4]], [[0, 5]]]}
    screen = typed("gnt-job cancel --pending", "yes\n")
    assert screen.out == "Job 4 canceled\nJob 5 canceled\n"


def test_job_priority_and_archive(master, typed) -> None:
    master.answers["ChangeJobPriority"] = [True, "done"]
    master.answers["ArchiveJob"] = lambda number: number == 1
    assert typed("gnt-job change-priority --priority low 3").status == 0
    assert master.calls == [("ChangeJobPriority", [3, 10])]
    assert typed("gnt-job archive 1").status == 0
    assert "job 2 cannot be archived" in typed("gnt-job archive 1-2").err
