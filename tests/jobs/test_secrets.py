# SPDX-License-Identifier: BSD-2-Clause
"""A job forgets at its end what let a node in, and never shows it."""

from moorage.jobs.job import ERROR, RUNNING, SUCCESS, Job, Op, encode
from moorage.jobs.secrets import HIDDEN, forget, shown
from moorage.jobs.task import Run
from moorage.protocol import EnrolNode

TOKEN, KEY = "t0ken" * 9, "ab" * 32


def op(status: str) -> Op:
    enrol = Run(what="", node="n", do=EnrolNode(token=TOKEN))
    results = [None, {"port": 8102, "key": KEY}]
    asked = {"OP_ID": "OP_NODE_ADD", "token": TOKEN}
    return Op(input=asked, status=status, tasks=[enrol], results=results)


def test_an_operation_that_has_ended_keeps_no_secret() -> None:
    for status in (SUCCESS, ERROR):
        job = Job(id=1, ops=[op(status)])
        forget(job)
        assert TOKEN.encode() not in encode(job)
        assert KEY.encode() not in encode(job)


def test_one_under_way_does_for_whoever_must_carry_it_on() -> None:
    job = Job(id=1, ops=[op(SUCCESS), op(RUNNING)])
    forget(job)
    assert encode(job).count(TOKEN.encode()) == 2
    assert shown(job.ops[1].input)["token"] == HIDDEN
    assert shown({"a": 1}) == {"a": 1}
