# SPDX-License-Identifier: BSD-2-Clause
"""Submitting, following, planning: what every changing command does."""

import argparse
import json
from io import StringIO
from typing import Any

import pytest

from moorage.api.luxi_messages import error_to_wire
from moorage.cli.command import Call, Finished
from moorage.cli.dry_run import plan_lines
from moorage.cli.follow import Follower, follow
from moorage.cli.gnt_disk import PROGRAM
from moorage.cli.progress import ProgressBar, amount
from moorage.cli.terminal import Terminal
from moorage.client import Change, Client, Socket
from moorage.errors import CommandFailed, Conflict, Failed, NoCapacity, NotFound

LOG = [[1, [86400, 0], "message", "attach disk data1 on node2"]]


def script(*changes: Any) -> Any:
    """Return answers of WaitForJobChange, one after the other."""
    left = iter(changes)

    def answer(*_args: Any) -> Any:
        change = next(left)
        if isinstance(change, BaseException):
            raise change
        return change

    return answer


def test_the_log_goes_to_stdout_once(master, typed) -> None:
    master.answers["WaitForJobChange"] = script([["running"], LOG], [["success"], LOG])
    assert typed("gnt-disk detach data1") == (
        0,
        "Fri Jan  2 00:00:00 1970 attach disk data1 on node2\nDetached disk data1\n",
        "",
    )


def test_a_list_of_messages_is_several_lines(master, typed) -> None:
    master.logs = [[1, [0, 0], "message-list", ["one", "two"]]]
    assert "1970 one\ntwo\n" in typed("gnt-disk detach data1").out


def test_a_job_that_does_not_move_says_what_it_waits_for(master, typed) -> None:
    master.answers["WaitForJobChange"] = script(
        [["queued"], []],
        "nochange",
        "nochange",
        [["waiting"], []],
        "nochange",
        [["success"], []],
    )
    assert typed("gnt-disk detach data1").err == (
        "Job 1 is waiting in queue\nJob 1 is trying to acquire all necessary locks\n"
    )
    waits = [args for method, args in master.calls if method == "WaitForJobChange"]
    assert [args[4] for args in waits] == [85.0, 2.0, 85.0, 85.0, 2.0, 85.0]


def test_submit_prints_the_number_and_does_not_wait(master, typed) -> None:
    assert typed("gnt-disk detach --submit data1") == (0, "", "JobID: 1\n")
    assert [method for method, _ in master.calls] == ["SubmitJobOnce"]


def test_print_jobid(typed) -> None:
    assert typed("gnt-disk detach --print-jobid data1").err == "JobID: 1\n"


def test_common_options_are_part_of_the_opcode(master, typed) -> None:
    typed("gnt-disk detach --priority high --reason 'move it' data1")
    ((_, [_, (op,)]),) = [call for call in master.calls if call[0] == "SubmitJobOnce"]
    assert op["priority"] == -10
    assert [(source, text) for source, text, _ in op["reason"]] == [
        ("gnt:user", "move it"),
        ("gnt:client:gnt-disk", "detach"),
    ]


def test_json_tells_job_and_result(master, typed) -> None:
    master.result, master.logs = "uuid-1", LOG
    screen = typed("gnt-disk add -t ext -p san -s 1G --json data1")
    assert json.loads(screen.out) == {
        "job": 1,
        "status": "success",
        "result": "uuid-1",
    }
    assert "attach disk data1 on node2" in screen.err


# -- failures --------------------------------------------------------------------------


def test_a_refused_job_reads_as_in_ganeti(master, typed) -> None:
    master.result = NoCapacity("pool nas1 has 12 GiB free", hint="gnt-storage info")
    assert typed("gnt-disk grow data1 20G") == (
        1,
        "",
        (
            "Failure: prerequisites not met for this operation:\n"
            "error type: insufficient_resources, error details:\n"
            "pool nas1 has 12 GiB free\n"
            "hint: gnt-storage info\n"
            "code: no-capacity · nothing was changed\n"
        ),
    )


def test_a_failed_job_says_where_to_look(master, typed) -> None:
    master.result = CommandFailed("External storage's grow script failed")
    assert typed("gnt-disk grow data1 20G") == (
        1,
        "",
        (
            "Failure: command execution error:\n"
            "External storage's grow script failed\n"
            "code: command-failed · gnt-job info 1 says what was undone\n"
        ),
    )


def test_a_refusal_at_submission_reads_the_same(master, typed) -> None:
    master.answers["SubmitJobOnce"] = NotFound(
        "disk 'x' is not known", hint="gnt-disk list"
    )
    screen = typed("gnt-disk detach x")
    assert screen.status == 1
    assert "error type: unknown_entity, error details:\ndisk 'x'" in screen.err


def test_a_canceled_job_is_a_failure(master, typed) -> None:
    master.answers["WaitForJobChange"] = [["canceled"], []]
    master.answers["QueryJobs"] = [["canceled", [""], ["canceled"], [None]]]
    screen = typed("gnt-disk detach x")
    assert (screen.status, "job 1 was canceled" in screen.err) == (1, True)
    assert "nothing was changed" in screen.err


def test_a_canceled_job_that_did_something_does_not_say_that_it_did_nothing(
    master, typed
) -> None:
    """An operation before it has ended, or what it did cannot be taken back."""
    cause = Failed("the job was canceled")
    kept = Failed(cause.message)
    kept.facts["done_before"] = True
    ends = (["success", "canceled"], cause), (["canceled"] * 2, kept)
    for number, (states, last) in enumerate(ends, 1):
        results = [error_to_wire(last)] * 2
        master.answers["WaitForJobChange"] = [["canceled"], []]
        master.answers["QueryJobs"] = [["canceled", ["", ""], states, results]]
        err = typed("gnt-disk detach x").err
        assert f"job {number} was canceled" in err
        assert f"gnt-job info {number} says what was done before" in err


def test_one_job_of_several_fails(master, typed) -> None:
    full = Conflict("the queue is full")
    master.answers["SubmitJobOnce"] = script(4, full, 4, full)
    screen = typed("gnt-instance startup web1 web2")
    assert screen.status == 1
    assert screen.out == "Waiting for job 4 for web1 ...\n"
    assert "the queue is full" in screen.err
    screen = typed("gnt-instance startup --json web1 web2")
    assert (screen.status, json.loads(screen.out)) == (
        1,
        [
            {"name": "web1", "job": 4, "status": "success", "error": ""},
            {
                "name": "web2",
                "job": None,
                "status": "error",
                "error": "the queue is full",
            },
        ],
    )


def test_the_status_of_a_follower_is_the_jobs(master) -> None:
    said: list[str] = []
    with Client(Socket(master.path), patience=0.0) as client:
        follower = Follower(client, log=said.append, talk=said.append)
        assert follower.follow(1) == "success"
    assert said == []


def test_a_job_that_nobody_knows(master, typed) -> None:
    master.answers["WaitForJobChange"] = lambda *_: None
    assert "job 9 is not known" in typed("gnt-job watch 9").err


def test_a_master_that_restarts_is_waited_for(master) -> None:
    master.answers["WaitForJobChange"] = script(
        [["running"], []], ConnectionError(), ConnectionError(), [["success"], []]
    )
    said: list[str] = []
    pauses: list[float] = []
    with Client(Socket(master.path), patience=0.0) as client:
        follower = Follower(
            client, log=said.append, talk=said.append, pause=pauses.append
        )
        assert follower.follow(7) == "success"
    assert said == ["The master went away; waiting for it (job 7)"]
    assert pauses == [0.5, 0.5]


def test_an_interrupt_detaches_and_says_how_to_come_back(master) -> None:
    class Impatient(Client):
        def change(self, *_: object, **__: object) -> Change:
            raise KeyboardInterrupt

    err = StringIO()
    call = Call(
        PROGRAM,
        PROGRAM.commands[0],
        argparse.Namespace(words=[], json=False),
        Terminal(StringIO(), err, StringIO(), {}),
    )
    vars(call)["client"] = Impatient(Socket(master.path))
    with pytest.raises(Finished) as finished:
        follow(call, 12)
    assert finished.value.status == 130
    assert "Job 12 goes on; come back to it with: gnt-job watch 12" in err.getvalue()


# -- progress and plans ----------------------------------------------------------------


class Bar:
    def __init__(self) -> None:
        self.shown: list[Any] = []

    def show(self, progress: Any) -> None:
        self.shown.append(progress)

    def close(self) -> None:
        self.shown.append("closed")


def test_progress_feeds_the_bar_and_makes_way_for_the_log(master) -> None:
    half = {"done": 512, "total": 1024, "unit": "MiB", "note": "copy disk data1"}
    master.answers["WaitForJobChange"] = script(
        [["running", half], []], [["success", None], LOG]
    )
    bar = Bar()
    with Client(Socket(master.path), patience=0.0) as client:
        Follower(client, log=lambda _: None, talk=print, bar=bar).follow(1)
    assert bar.shown == [half, "closed", None, "closed"]
    assert master.calls[0][1][1] == ["status", "progress"]


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"done": 512, "total": 2048, "unit": "MiB"}, "512M of 2.0G"),
        ({"done": 3, "total": 8, "unit": "blocks"}, "3 of 8 blocks"),
        ({"done": 3, "total": None, "unit": ""}, "3"),
        ({}, "0"),
    ],
)
def test_amount(progress: dict[str, Any], words: str) -> None:
    assert amount(progress) == words


def test_a_real_bar_draws_and_leaves() -> None:
    screen = StringIO()
    bar = ProgressBar(screen)
    bar.show({"done": 1, "total": 2, "unit": "MiB", "note": "copy disk data1"})
    bar.show(None)
    bar.close()
    assert "copy disk data1" in screen.getvalue()


PLAN = [
    {
        "what": "create volume of disk data1",
        "node": "node1",
        "commands": [["/srv/ext/san/create"], ["dd", "if=a b"]],
    },
    {"what": "note disk data1 in the configuration", "node": None, "commands": []},
]


def test_dry_run_shows_the_plan(master, typed, same_screen) -> None:
    master.result = PLAN
    screen = typed("gnt-disk add -t ext -p san -s 1G --dry-run data1")
    assert master.ops[0]["dry_run"] is True
    assert (screen.status, screen.err) == (0, "")
    same_screen("dry-run", screen.out)


def test_dry_run_as_json(master, typed) -> None:
    master.result = PLAN
    screen = typed("gnt-disk detach data1 --dry-run --json")
    assert json.loads(screen.out) == {"plan": PLAN}


def test_an_empty_plan() -> None:
    assert list(plan_lines([])) == ["Nothing would be done."]
