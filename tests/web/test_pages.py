# SPDX-License-Identifier: BSD-2-Clause
"""Pages as somebody meets them who has no JavaScript: looked at, and worked with."""

import asyncio
import subprocess
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from browsing import Browser
from moorage.client import qfilter
from moorage.errors import NotFound
from moorage.web.kinds import KINDS
from moorage.web.overview import _of_instances
from moorage.web.tables import filter_of


def rows(page):
    """Return the names that a table shows, in order."""
    parts = page.text.split('<th scope="row"')[1:]
    return [part.split("</a>")[0].rsplit(">", 1)[1] for part in parts]


async def test_the_overview_says_in_a_sentence_whether_all_is_well(browser):
    page = await browser.open("/ui")
    assert "All is well: 3 nodes, 1 of 2 instances running." in page.words
    assert "ext san" in page.words
    assert "INSTANCE_CREATE(web2)" in page.words


def test_instances_of_a_lost_node_are_one_thing_that_wants_a_person():
    down = {"status": "ERROR_nodedown", "status.reason": "it does not answer"}
    (one,) = _of_instances([{"name": f"web{at}", **down} for at in range(34)])
    assert one.sentence == "34 instances are ERROR_nodedown."
    query = parse_qs(urlsplit(one.href).query)
    assert query == {"filter": ['status == "ERROR_nodedown"']}
    few = _of_instances([{"name": f"web{at}", **down} for at in range(3)])
    assert [one.href for one in few] == [f"/ui/instance/web{at}" for at in range(3)]


async def test_what_wants_a_person_is_told_and_leads_there(browser):
    cluster = browser.door.cluster
    await cluster.run("OP_NODE_SET_PARAMS", node_name="node3", offline=True, force=True)
    for guest in await cluster.nodes.nodes["node1"].hypervisor.guests():
        await cluster.nodes.nodes["node1"].hypervisor.stop(guest.uuid, 0)
    page = await browser.open("/ui")
    assert "2 things want a person" in page.words
    assert "Node node3 is marked offline." in page.words
    assert "Instance web1 is ERROR_down" in page.words
    assert 'href="/ui/instance/web1"' in page.text


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_has_its_table_and_each_object_its_page(browser, kind):
    cluster = browser.door.cluster
    await cluster.run("OP_NETWORK_ADD", network_name="lan", network="192.0.2.0/28")
    pool = {"pool_name": "fast", "disk_template": "ext", "provider": "san"}
    await cluster.run("OP_STORAGE_POOL_ADD", **pool)
    page = await browser.open(f"/ui/{kind}")
    assert page.status == 200
    leads = page.text.split(f'href="/ui/{kind}/')[1:]
    assert leads
    for one in leads:
        told = await browser.open(f"/ui/{kind}/{one.split(chr(34))[0]}")
        assert told.status == 200
        assert f"/ui/{kind}/" in told.text or f'href="/ui/{kind}"' in told.text


async def test_a_table_filters_sorts_and_says_the_command(browser):
    everybody = await browser.open("/ui/instance")
    assert rows(everybody) == ["web1", "web2"]
    down = await browser.open("/ui/instance?sort=-name")
    assert rows(down) == ["web2", "web1"]
    assert rows(await browser.open("/ui/instance?filter=eb2")) == ["web2"]
    gold = await browser.open("/ui/instance?filter=%22gold%22+in+tags")
    assert rows(gold) == ["web1"]
    assert "gnt-instance list --filter '\"gold\" in tags'" in gold.words
    assert rows(await browser.open("/ui/disk?filter=status+%3D%3D+%22detached%22")) == [
        "data1"
    ]


def read_by_a_shell(word):
    echo = ["bash", "-c", f"printf %s {word}"]
    return subprocess.run(echo, capture_output=True, check=True).stdout.decode()


async def test_a_command_finds_what_the_table_shows(browser):
    """Whatever was typed: a lone word, quotes, and words that a shell would obey."""
    for text, typed in (
        ("eb2", "--filter 'name =~ m/eb2/'"),
        ("status == '\x1b[201~'", r"--filter $'status == \'\x1b[201~\''"),
        ("status == 'running'", "--filter 'status == '\"'\"'running'\"'\"''"),
    ):
        page = await browser.open("/ui/instance?" + urlencode({"filter": text}))
        assert typed in page.words
        told = read_by_a_shell(typed.removeprefix("--filter "))
        assert qfilter.parse(told) == filter_of(KINDS["instance"], text)
    wrong = urlencode({"filter": "x'; reboot; '"})
    page = await browser.open(f"/ui/instance?{wrong}")
    assert page.status == 400
    assert "--filter" not in page.words


async def test_a_filter_that_is_none_says_so(browser):
    page = await browser.open("/ui/instance?filter=status+%3D%3D")
    assert page.status == 400
    assert "cannot be read: it ends where a value after == should be" in page.words
    unknown = await browser.open("/ui/node?filter=height+%3D%3D+1")
    assert unknown.status == 400
    assert "height" in unknown.words


async def test_a_long_table_has_pages(browser):
    cluster = browser.door.cluster
    for number in range(60):
        await cluster.run(
            "OP_DISK_ADD",
            name=f"x{number}",
            size=4,
            disk_template="ext",
            provider="san",
        )
    first = await browser.open("/ui/disk?filter=x")
    assert rows(first)[:3] == ["x0", "x1", "x2"]
    assert len(rows(first)) == 50
    assert len(first.text) < 300_000
    assert "Page 1 of 2" in first.words
    assert rows(await browser.open("/ui/disk?filter=x&page=2"))[-1] == "x59"
    assert rows(await browser.open("/ui/disk?filter=x&page=99"))[-1] == "x59"


async def test_an_object_shows_facts_story_and_what_can_be_done(browser):
    page = await browser.open("/ui/disk/root1")
    assert "attached" in page.words
    assert 'href="/ui/instance/web1"' in page.text
    assert "Story" in page.words
    assert "web1 has it: it must be detached first. Detach" in page.words
    instance = await browser.open("/ui/instance/web1")
    assert "It runs already." in instance.words
    assert "root1" in instance.words


async def test_what_is_not_there_says_so(browser):
    for path in ("/ui/instance/absent", "/ui/job/99", "/ui/job/x", "/ui/nonsense"):
        page = await browser.open(path)
        assert page.status == 404, path
        assert "There is no such page" in page.words


async def test_a_deed_is_shown_before_it_is_done(browser):
    form = await browser.open("/ui/do/disk/attach?on=data1")
    assert "gnt-disk attach data1" in form.words
    before = len(browser.door.cluster.engine.jobs)
    plan = await browser.fill(
        form, "/ui/do/disk/attach", step="look", instance_name="web1"
    )
    assert "give disk data1 to web1, epoch 1" in plan.words
    assert "gnt-disk attach data1 web1" in plan.words
    assert len(browser.door.cluster.engine.jobs) == before + 1
    assert not browser.door.cluster.config.owner(
        browser.door.cluster.config.disk("data1")
    )
    done = await browser.fill(
        plan, "/ui/do/disk/attach", step="do", instance_name="web1"
    )
    assert "DISK_ATTACH(data1)" in done.words
    await browser.door.cluster.finished(before + 2)
    assert "web1" in (await browser.open("/ui/disk/data1")).words
    job = await browser.open(f"/ui/job/{before + 2}")
    assert "success" in job.words
    assert "root by rapi" in job.words


async def test_only_what_was_looked_at_is_done(browser):
    """Also if somebody changes the form beside the plan, or looked at nothing."""
    cluster, path = browser.door.cluster, "/ui/do/disk/snapshot"
    form = await browser.open(f"{path}?on=data1")
    page = await browser.fill(form, path, step="do", new_name="monday")
    assert "nobody has looked at yet: nothing was done" in page.words
    plan = await browser.fill(form, path, step="look", new_name="monday")
    page = await browser.fill(plan, path, step="do", new_name="tuesday")
    assert page.status == 400
    assert "gnt-disk snapshot" in page.words
    assert "tuesday" in page.words
    with pytest.raises(NotFound):
        cluster.config.disk("monday")
    await browser.fill(page, path, step="do", new_name="tuesday")
    for job in list(cluster.engine.jobs):
        await cluster.finished(job)
    assert cluster.config.disk("tuesday")


async def test_a_disk_whose_name_is_several_is_commanded_by_its_uuid(browser):
    cluster = browser.door.cluster
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web9",
        disk_template="plain",
        disks=[{"size": 64, "name": "data1"}],
        pnode="node1",
        no_install=True,
        start=False,
    )
    (disk,) = cluster.config.disks_of(cluster.config.instance("web9"))
    form = await browser.open(f"/ui/do/disk/grow?on={disk.uuid}")
    assert f"gnt-disk grow {disk.uuid}" in form.words
    assert (
        f"gnt-disk info {disk.uuid}"
        in (await browser.open(f"/ui/disk/{disk.uuid}")).words
    )
    walk = await browser.open(f"/ui/walk?disk={disk.uuid}")
    assert f"gnt-disk story {disk.uuid}" in walk.words
    page = await browser.open("/ui/do/disk/grow?on=data1")
    assert page.status == 400
    assert "several disks are called 'data1'" in page.words


async def test_a_disk_without_a_name_is_commanded_by_its_uuid(browser):
    cluster = browser.door.cluster
    await cluster.run(
        "OP_INSTANCE_CREATE",
        instance_name="web9",
        disk_template="plain",
        disks=[{"size": 64}],
        pnode="node1",
        no_install=True,
        start=False,
    )
    (disk,) = cluster.config.disks_of(cluster.config.instance("web9"))
    page = await browser.open(f"/ui/disk/{disk.uuid}")
    assert f"gnt-disk info {disk.uuid}" in page.words


async def test_a_second_click_makes_no_second_job(browser):
    form = await browser.open("/ui/do/disk/snapshot?on=data1")
    where, name = "/ui/do/disk/snapshot", "monday"
    plan = await browser.fill(form, where, step="look", new_name=name)
    for _ in range(2):
        await browser.fill(plan, where, step="do", new_name=name)
    summaries = [
        job.ops[0].summary for job in browser.door.cluster.engine.jobs.values()
    ]
    assert summaries.count("DISK_SNAPSHOT(data1)") == 2  # the look is one


async def test_what_the_master_refuses_is_told_with_its_hint(browser):
    form = await browser.open("/ui/do/disk/attach?on=root1")
    plan = await browser.fill(
        form, "/ui/do/disk/attach", step="look", instance_name="web2"
    )
    assert "disk root1 is attached to instance web1" in plan.words
    assert "gnt-disk detach root1" in plan.words
    assert 'value="do"' not in plan.text


async def test_a_field_that_is_none_changes_nothing(browser):
    form = await browser.open("/ui/do/disk/grow?on=data1")
    assert "512M, 10G or 1.5T" in form.words
    page = await browser.fill(form, "/ui/do/disk/grow", step="do", amount="much")
    assert page.status == 400
    assert "'much' is not a size" in page.words
    assert 'value="much"' in page.text


async def test_a_deed_for_several_makes_a_job_for_each(browser):
    picked = await browser.open("/ui/do/instance?deed=add-tags&on=web1&on=web2")
    assert "Add tags: 2 instances" in picked.words
    path, on = "/ui/do/instance/add-tags", ["web1", "web2"]
    plan = await browser.fill(picked, path, step="look", on=on, tags="blue green")
    page = await browser.fill(plan, path, step="do", on=on, tags="blue green")
    line = "gnt-instance add-tags web{} blue green"
    assert f"<code>{line.format(1)}\n{line.format(2)}</code>" in plan.text
    assert line.format(2) not in page.words
    assert rows(page)
    for job in list(browser.door.cluster.engine.jobs):
        await browser.door.cluster.finished(job)
    config = browser.door.cluster.config
    assert {"blue", "green"} <= set(config.instance("web1").tags)
    assert {"blue", "green"} <= set(config.instance("web2").tags)


async def test_an_instance_is_made_by_its_form(browser):
    form = await browser.open("/ui/do/instance/add")
    fields = {
        "instance_name": "web3",
        "pnode": "node3",
        "no_install": "on",
        "beparams.memory": "2G",
        "disks.0.size": "1G",
        "disks.0.provider": "san",
        "disk_template": "ext",
    }
    form = await browser.fill(form, "/ui/do/instance/add", step="more", **fields)
    assert "Disk 1 Size" in form.words
    fields |= {"disks.1.size": "2G", "disks.1.provider": "san"}
    plan = await browser.fill(form, "/ui/do/instance/add", step="look", **fields)
    line = "gnt-instance add -n node3 --no-install -t ext -B memory=2G"
    disks = "--disk 0:size=1G,provider=san --disk 1:size=2G,provider=san"
    assert f"{line} {disks} web3" in plan.words
    assert "start web3 on node3" in plan.words
    before = len(browser.door.cluster.engine.jobs)
    await browser.fill(plan, "/ui/do/instance/add", step="do", **fields)
    await browser.door.cluster.finished(before + 1)
    page = await browser.open("/ui/instance/web3")
    assert "running" in page.words
    assert "2.0G" in page.words


async def test_a_job_comes_sooner_and_is_cancelled(browser):
    cluster, go = browser.door.cluster, asyncio.Event()
    cluster.extra_point = lambda _name: go.wait()
    number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web2")
    page = await browser.open(f"/ui/job/{number}")
    assert "Cancel the job" in page.words
    sooner = {"step": "priority", "priority": "-5"}
    await browser.fill(page, f"/ui/job/{number}", **sooner)
    assert cluster.engine.job(number).priority == -5
    odd = await browser.fill(page, f"/ui/job/{number}", step="priority", priority="x")
    assert "a priority is a number from -20 to 19" in odd.words
    await browser.fill(page, f"/ui/job/{number}", step="cancel")
    go.set()
    await cluster.finished(number)
    page = await browser.open(f"/ui/job/{number}")
    assert "canceled" in page.words
    assert "Cancel the job" not in page.words


@pytest.mark.parametrize("user", ["eye", "op", "guest"])
async def test_what_a_role_may_not_do_is_shown_as_such(door, user):
    browser = Browser(door)
    await browser.sign_in(user)
    page = await browser.open("/ui/instance/web1")
    if user == "guest":
        assert page.status == 403
        return
    assert "this takes write" in page.words
    form = await browser.open("/ui/do/instance/remove?on=web1")
    assert "this takes write" in form.words
    assert 'value="do"' not in form.text
    refused = await browser.post(
        "/ui/do/instance/remove", {**form.hidden, "step": "do"}
    )
    assert refused.status in (200, 403)
    assert door.cluster.config.instance("web1")
