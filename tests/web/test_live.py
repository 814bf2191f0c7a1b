# SPDX-License-Identifier: BSD-2-Clause
"""What keeps pages live."""

import asyncio
import json

from browsing import COOKIE, Browser
from moorage.web.shared import TOGETHER


async def heard(browser, door):
    """Listen; yield what is told."""
    url = f"https://127.0.0.1:{door.port}/ui/events"
    headers = {"Cookie": f"{COOKIE}={browser.cookie}"}
    async with door._session.get(url, headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        async for line in answer.content:
            if line.startswith((b"data: ", b": here")):
                yield line


async def test_a_stream_says_what_changed_and_ends_with_the_session(door, browser):
    lines = heard(browser, door)
    assert (await anext(lines)).startswith(b": here")
    await door.cluster.run("OP_DISK_RENAME", disk="data1", new_name="data2")
    kinds = set()
    while "disk" not in kinds:
        line = await anext(lines)
        kinds |= set(json.loads(line.removeprefix(b"data: "))["kinds"])
    door.users.write_text("eye secret read\n")
    number = await door.cluster.submit("OP_DISK_RENAME", disk="data2", new_name="data1")
    await door.cluster.finished(number)
    told = [json.loads(line.removeprefix(b"data: ")) async for line in lines]
    assert all(number not in one["jobs"] for one in told)


async def test_who_may_less_from_now_on_hears_no_more(door, browser):
    lines = heard(browser, door)
    await anext(lines)
    door.users.write_text("root secret\n")
    await door.cluster.run("OP_DISK_RENAME", disk="data1", new_name="data2")
    assert [line async for line in lines if b"disk" in line] == []


async def test_a_stranger_hears_nothing(door):
    browser = Browser(door)
    for path in ("/ui/events", "/ui/strip"):
        assert (await browser.send("GET", path)).status == 401


async def test_who_may_not_look_hears_nothing(door):
    browser = Browser(door)
    await browser.sign_in("guest")
    for path in ("/ui/events", "/ui/strip"):
        assert (await browser.send("GET", path)).status == 403


async def test_the_strip_has_what_runs(door, browser):
    go = asyncio.Event()
    door.cluster.extra_point = lambda _name: go.wait()
    assert "INSTANCE" not in (await browser.open("/ui/strip")).words
    number = await door.cluster.submit("OP_INSTANCE_STARTUP", instance_name="web2")
    page = await browser.open("/ui/strip")
    assert f"{number} INSTANCE_STARTUP(web2)" in page.words
    go.set()
    await door.cluster.finished(number)
    assert "INSTANCE_STARTUP" not in (await browser.open("/ui/strip")).words


SCRIPT = {"Sec-Fetch-Mode": "cors"}
"""Of what a page's script fetches."""


async def test_pages_that_are_live_ask_the_master_once_for_all(door, browser):
    """Also for another one with the same role; what is opened is always asked anew."""
    path = "/ui/instance?filter=web"
    other = Browser(door)
    await other.sign_in("root")
    lines = heard(browser, door)
    await anext(lines)
    asked = door.cluster.nodes.calls
    await browser.send("GET", path, headers=SCRIPT)
    once = len(asked)
    for one in (browser, other) * 5:
        seen = await one.send("GET", path, headers=SCRIPT)
        assert "web2" in seen.words
    assert len(asked) == once
    await browser.open(path)
    assert len(asked) > once


async def test_a_page_that_is_fetched_for_a_change_shows_it(door, browser):
    lines = heard(browser, door)
    await anext(lines)
    path = "/ui/disk?filter=a"
    assert "data1" in (await browser.send("GET", path, headers=SCRIPT)).words
    await door.cluster.run("OP_DISK_RENAME", disk="data1", new_name="data2")
    while b"disk" not in await anext(lines):
        pass
    await asyncio.sleep(TOGETHER)  # the script waits for longer
    assert "data2" in (await browser.send("GET", path, headers=SCRIPT)).words
