# SPDX-License-Identifier: BSD-2-Clause
"""Pictures in the browser: what the planner says, pools by nodes, a disk's walk."""

import asyncio
import re
import time
from functools import partial
from itertools import count
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import json

from browsing import Browser
from moorage.api.cluster_info import cluster_info
from moorage.api.rapi.roles import Role, User
from moorage.errors import Failed, WrongState
from moorage.web.answers import html
from moorage.web.drawn.apart import Apart
from moorage.web.drawn.moving import Mover, moves
from moorage.web.drawn.planner import Planner
from moorage.web.serving import wish
from moorage.web.visit import Visit

ANNA = User("anna", Role.WRITE)
POOL = {
    "pool_name": "fast",
    "disk_template": "ext",
    "provider": "san",
    "groups": ["default"],
}


async def test_what_each_loss_would_do_and_each_tile_leads_to_its_loss(browser):
    page = await browser.open("/ui/survival")
    assert page.status == 200
    assert "Any one of 3 nodes can be lost." in page.words
    leads = set(re.findall(r'href="(/ui/survival\?lost=[^"]+)"', page.text))
    assert "/ui/survival?lost=node/node1" in leads
    for one in leads:
        assert (await browser.open(one)).status == 200
    one = await browser.open("/ui/survival?lost=node/node1")
    assert "The one instance restarts." in one.words
    assert "web1 restarts with its disks on node" in one.text
    assert "hcheck -L --survive" in one.words


async def test_a_loss_and_a_group_that_there_are_not(browser):
    for address in ("survival?lost=node/nobody", "balance?group=none", "walk?disk=x"):
        assert (await browser.open(f"/ui/{address}")).status == 404
    assert (await browser.open("/ui/walk")).status == 400


async def test_how_the_cluster_would_be_balanced(browser):
    cluster = browser.door.cluster
    for number in (3, 4, 5):
        disk = {"size": 1024, "provider": "san", "name": f"root{number}"}
        await cluster.run(
            "OP_INSTANCE_CREATE",
            instance_name=f"web{number}",
            disk_template="ext",
            disks=[disk],
            pnode="node1",
            no_install=True,
        )
    page = await browser.open("/ui/balance?group=default")
    assert "take the score from" in page.words
    assert re.search(r"migrate (-f )?-n node[23] web\d", page.words)
    assert "hbal -L -G default -C" in page.words
    assert "hbal -L -G default -X" in page.words
    stale = await browser.post("/ui/balance", {**page.hidden, "looked": "x"})
    assert stale.status == 400
    assert "this plan is not known any more: nothing was done" in stale.text
    before = len(cluster.engine.jobs)
    eye = Browser(browser.door)
    await eye.sign_in("eye")
    seen = await eye.open("/ui/balance")
    assert "this takes operate" in seen.words
    assert "Do these steps" not in seen.words
    refused = await eye.fill(seen, "/ui/balance")
    assert refused.status == 403
    done = await browser.fill(page, "/ui/balance")
    again = await browser.fill(page, "/ui/balance")  # a second click makes nothing
    made = sorted(cluster.engine.jobs)[before:]
    assert f"gnt-job list {' '.join(map(str, made))}" in done.words
    assert re.findall(r"/ui/job/(\d+)", again.text) == [str(one) for one in made]
    for number in made:
        await cluster.finished(number)
    done = await browser.open(f"/ui/moves?jobs={','.join(map(str, made))}")
    assert "All of them succeeded." in done.words
    named = map(cluster.config.instance, (f"web{number}" for number in range(1, 6)))
    homes = {cluster.config.home(one).name for one in named}
    assert homes == {"node1", "node2", "node3"}
    assert "Do these steps" not in (await browser.open("/ui/balance")).words
    for odd in ("", "x", "999", "1,,2"):
        assert (await browser.open(f"/ui/moves?jobs={odd}")).status == 404


class Refusing:
    """A master that takes one job, and is drained then."""

    async def submit(self, *_, key):
        if not key.endswith("-0"):
            raise WrongState("the job queue is drained: it takes no jobs")
        return 7

    async def jobs(self, numbers, _fields):
        return [(one, "success", ["INSTANCE_MIGRATE(web1)"], None) for one in numbers]


async def test_steps_that_the_master_refuses_are_not_taken_for_done():
    mover = Mover()
    told = Visit(Refusing(), "anna", "write", "", partial(wish, ANNA), None)
    step = [{"OP_ID": "OP_INSTANCE_MIGRATE", "depends": []}]
    told.form = {"looked": [mover.offered(told, "default", [step] * 3)["looked"]]}
    address = urlsplit((await mover.run(told)).address)
    told.query = parse_qs(address.query)
    shown = html(await moves(told)).text
    assert "1 of 3 steps are done" in shown
    assert "The master has refused 2 of them" in shown
    assert "All of them succeeded" not in shown
    for odd in ("x", "-1", "9" * 9, "0"):
        told.query = {"jobs": ["7"], "of": [odd]}
        assert "All of them succeeded" in html(await moves(told)).text


async def test_pools_by_nodes(browser):
    cluster = browser.door.cluster
    nothing = await browser.open("/ui/pools-by-nodes")
    assert "There is no storage pool" in nothing.words
    await cluster.run("OP_STORAGE_POOL_ADD", **POOL)
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True, force=True)
    page = await browser.open("/ui/pools-by-nodes")
    assert "fast: ext san; 0 disks" in page.text
    assert "node1, fast: reached" in page.text
    assert "node3, fast: no answer" in page.text


async def test_the_walk_of_a_disk(browser):
    cluster = browser.door.cluster
    await cluster.run("OP_DISK_ATTACH", disk="data1", instance_name="web2")
    await cluster.run("OP_DISK_DETACH", disk="data1")
    page = await browser.open("/ui/walk?disk=data1")
    assert "It belongs to nobody." in page.words
    assert "1 instance" in page.words
    assert 'href="/ui/instance/web2"' in page.text
    assert re.search(r'href="/ui/job/\d+"', page.text)
    await cluster.run("OP_DISK_REMOVE", disk="data1")
    gone = await browser.open("/ui/walk?disk=data1")
    assert "It is gone" in gone.words


async def test_pictures_fit_the_policy_of_the_page(browser):
    for name in ("survival", "balance", "pools-by-nodes", "walk?disk=data1"):
        page = await browser.open(f"/ui/{name}")
        assert 'href="/ui/static/pictures.css?' in page.text
        assert " style=" not in page.text
        assert "<style" not in page.text
        assert not re.search(r"\son\w+=", page.text)
    style = await browser.open("/ui/static/pictures.css")
    assert style.text.count(".pic ") > 50


class Told:
    """A client of a cluster that has nothing yet; it counts what it is asked."""

    def __init__(self, info):
        self.info, self.asked = info, 0

    async def query(self, *_args):
        """Refuse nobody."""

    async def call(self, method, *_args):
        self.asked += 1
        return {"data": []} if method == "Query" else self.info


async def test_a_certificate_is_kept_for_twenty_times_what_it_took(door):
    info = json.decode(json.encode(cluster_info(door.cluster.config, None)))
    at = count()  # it takes one second, and serves for twenty
    planner, client = Planner(lambda: float(next(at))), Told(info)

    def visit(user, role="read"):
        return Visit(client, user, role, "", None, None)

    await planner.survival(visit("anna"))
    once = client.asked
    for user in ("anna", "bert") * 10:  # who has the same role is told the same
        page = await planner.survival(visit(user))
    assert client.asked == once
    assert "There is no node. As of " in page.values["picture"].lead
    await planner.survival(visit("anna"))
    assert client.asked == 2 * once
    await planner.survival(visit("anna", "write"))
    assert client.asked == 3 * once


async def test_many_are_planned_for_in_a_process_and_asked_about_once(door):
    """Who asks the same meanwhile waits for it."""
    door.pages._planner._apart = Apart(many=0)
    browsers = [Browser(door) for _ in range(3)]
    for one in browsers:
        await one.sign_in()
    pages = await asyncio.gather(*(one.open("/ui/survival") for one in browsers))
    assert all("Any one of 3 nodes can be lost." in one.words for one in pages)
    assert len({one.words for one in pages}) == 1  # as of the same moment


async def test_a_planner_that_is_stopped_leaves_nobody_waiting():
    """Nor does it begin with what waited: the door would not end before that does."""
    apart = Apart(many=0)
    told = asyncio.create_task(apart.plan(sleepy, {"instances": {"data": [1]}}))
    while not apart._running:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)
    apart.close()
    with pytest.raises(Failed):
        await told
    with pytest.raises(Failed, match="the door is closing"):
        await apart.plan(sleepy, {"instances": {"data": [1]}})


def sleepy(_answers):
    time.sleep(600)
