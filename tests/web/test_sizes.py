# SPDX-License-Identifier: BSD-2-Clause
"""No page is too large, whatever there is to be told: 300 kB before compression.

Objects are those that a client would tell; the page is made of them as the door does.
"""

from functools import partial

import pytest

from moorage.api.luxi_messages import error_to_wire
from moorage.api.rapi.roles import Role, User
from moorage.client import Field, Table
from moorage.errors import BadInput, NotFound
from moorage.web import deeds, forms, jobs, objects
from moorage.web.answers import html
from moorage.web.forms import Told, _few
from moorage.web.kinds import DISK, GROUP, INSTANCE, JOB
from moorage.web.serving import wish
from moorage.web.values import cell
from moorage.web.visit import Visit

ANNA = User("anna", Role.WRITE)
LARGEST = 300_000
LONG = "a-long-name-of-something.example.org"


class Client:
    """Tells of a job, or a disk's story, as long as they can be.

    Attributes
    ----------
    wrong
        What came of its operations, as the master tells it.
    status
        The job's.
    """

    wrong = ()
    status = "running"

    async def jobs(self, numbers, fields):
        stamp = [0, 0]
        step = {"what": f"do {LONG} to {LONG}", "node": LONG, "state": "done"}
        row = {
            "id": 1,
            "status": self.status,
            "summary": [f"INSTANCE_CREATE({LONG})"] * 1000,
            "oplog": [[(at, stamp, "message", "x" * 5000) for at in range(1000)]],
            "tasks": [[step] * 20] * (0 if self.wrong else 1000),
            "received_ts": stamp,
            "opstatus": ["error"] * len(self.wrong),
            "opresult": self.wrong,
        }
        return [[row.get(one) for one in fields]] * len(numbers)

    async def query(self, *_):
        return Table([], [])

    async def story(self, _uuid):
        changed = {"instance": [LONG, LONG], "params": [{LONG: LONG}, {LONG: LONG}]}
        event = {"time": 0.0, "what": f"give it to {LONG}", "job": 7, "by": LONG}
        return {"events": [{**event, "changed": changed}] * 1000, "left_out": 5}


def visit(*wrong, **path):
    client = Client()
    client.wrong = list(wrong) * 1000

    def refused(*_):
        return ""

    return Visit(client, "anna", "write", "", partial(wish, ANNA), refused, path)


async def test_a_job_of_thousands_of_steps_and_a_long_log():
    told = html(await jobs.shown(visit(name="1"))).text
    assert len(told) < LARGEST
    assert "And 19600 more." in told
    assert "and 990 more" in told


async def test_a_look_at_thousands_of_steps():
    step = {"what": f"do {LONG}", "node": LONG, "final": False}
    looked = visit([step] * 20, name="1")
    looked.client.status = "success"
    told = html(await jobs.shown(looked)).text
    assert len(told) < LARGEST
    assert "And 19600 more." in told.split("What would be done")[1]


async def test_a_job_whose_words_are_as_long_as_requests_may_be():
    """Whoever may submit one names what is not there: others look at it, too."""
    words = "x" * 1_000_000
    assert len(jobs.named([f"INSTANCE_REMOVE({words})"] * 9)) < 2_000
    summary = cell(JOB, Field("summary", "Summary", "other", ""), 0, [words])
    assert len(summary.text) < 1_100
    refused = error_to_wire(NotFound(f"there is no instance '{words}'", hint=words))
    shown = html(await jobs.shown(visit(refused, name="1"))).text
    assert len(shown) < LARGEST
    assert "And 990 more." in shown


async def test_a_form_for_many_that_is_filled_in_at_length():
    deed = deeds.named("instance", "add-tags")
    names = [f"web{number}" for number in range(200)]
    told = [Told(one, (), BadInput("x" * 60_000)) for one in names]
    words = {"tags": ["x" * 60_000]}
    page = await forms._page(visit(), deed, names, words, told)
    assert len(html(page).text) < LARGEST
    assert page.values["commands"][-1] == "# and the same for 199 more"


async def test_a_disk_with_a_long_story():
    told = await objects._disk(visit(), {"uuid": "d"})
    assert (len(told["story"]), told["more"]) == (200, 800)
    assert sum(len(str(one)) for one in told["story"]) < LARGEST / 2


@pytest.mark.parametrize(
    ("kind", "field"),
    [(GROUP, "pinst_list"), (INSTANCE, "tags"), (DISK, "nodes"), (JOB, "summary")],
)
def test_a_list_of_thousands(kind, field):
    shown = cell(kind, Field(field, field, "other", ""), 0, [LONG] * 10_200)
    assert len(shown.pieces) == 41
    assert shown.text.endswith("and 10,160 more")


def test_what_would_be_done_to_two_hundred_objects():
    steps = [{"what": f"do {LONG}", "node": LONG}] * 30
    found = list(_few([Told(LONG, steps)] * 200))
    assert sum(len(one.steps) for one in found) <= jobs.STEPS
    assert all(len(one.steps) + one.left == 30 for one in found)
