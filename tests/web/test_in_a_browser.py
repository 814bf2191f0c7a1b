# SPDX-License-Identifier: BSD-2-Clause
"""The main ways by clicks in a real browser; what axe finds; all without JavaScript.

One browser for all of it. It needs Debian's chromium. On the way it makes the pictures
of the docs, where `MOORAGE_PICTURES` says (`make pictures`).
"""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import async_playwright

from moorage.web.kinds import KINDS

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
PAGES = (
    *("/ui", "/ui/disk/root1", "/ui/instance/web1", "/ui/node/node1", "/ui/job/1"),
    *(f"/ui/{kind}" for kind in KINDS),
    *("/ui/do/instance/migrate?on=web1", "/ui/do/disk/attach?on=data1"),
    *("/ui/instance?filter=status+%3D%3D", "/ui/instance/absent"),
    *("/ui/survival", "/ui/survival?lost=node/node1", "/ui/balance"),
    *("/ui/pools-by-nodes", "/ui/walk?disk=root1", "/ui/do/instance/add"),
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no chromium"),
]


@asynccontextmanager
async def chromium():
    async with async_playwright() as play:
        made = await play.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield made
        await made.close()


@asynccontextmanager
async def somebody(browser, door, *, script=True, **look):
    """Sign in; whatever the console complains of fails the test."""
    look.setdefault("viewport", {"width": 1280, "height": 850})
    context = await browser.new_context(
        ignore_https_errors=True,
        java_script_enabled=script,
        base_url=f"https://localhost:{door.port}",
        **look,
    )
    page, wrong = await context.new_page(), []
    page.set_default_timeout(30_000)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda said: wrong.append(said.text) if said.type == "error" else 0
    )
    await page.goto("/ui")
    await page.fill("#name", "root")
    await page.fill("#password", "secret")
    await page.click("button.main")
    await page.wait_for_selector("header.bar")
    yield page
    assert [one for one in wrong if "status of 40" not in one] == []
    await context.close()


async def walk(page, cluster):
    """Migrate an instance, attach a disk, follow a job and cancel it."""
    await page.click("nav >> text=Instances")
    await page.click("th >> text=web1")
    await page.click(".deeds >> text=Migrate")
    await page.fill("#f-target_node", "node2")
    await page.click("text=Show what it would do")
    assert "-n node2 web1" in await page.inner_text(".command code")
    await page.click("button.main")
    await page.wait_for_selector("h1 + .state.good", timeout=30_000)  # by the stream
    assert cluster.config.home(cluster.config.instance("web1")).name == "node2"
    await page.click("nav >> text=Disks")
    await page.click("th >> text=data1")
    await page.click(".deeds >> text=Attach")
    await page.fill("#f-instance_name", "web1")
    await page.click("text=Show what it would do")
    await page.click("button.main")
    await page.wait_for_selector("h1 + .state.good")
    go = asyncio.Event()
    cluster.extra_point = lambda _name: go.wait()
    number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web2")
    await page.goto("/ui/disk")
    await page.click(".strip .line")
    assert f"Job {number}" in await page.inner_text("h1")
    await page.click("text=Cancel the job")
    go.set()
    await page.wait_for_selector(".state >> text=canceled")
    await stays(page, cluster)


async def stays(page, cluster):
    """Choose a deed and an instance; both stay so when the table is put in anew."""
    await page.goto("/ui/instance")
    await page.select_option("#deed", "reboot")
    await page.check("[name=on][value=web1]")
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    await page.wait_for_selector("tr:has-text('web1') >> text=ADMIN_down")
    assert await page.input_value("#deed") == "reboot"
    assert await page.is_checked("[name=on][value=web1]")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")


PICTURES = {
    "overview": "/ui",
    "survival": "/ui/survival",
    "disk": "/ui/disk/data1",
    "deed": "/ui/do/instance/migrate?on=web1",
}
LARGEST = 300_000
"""Bytes of a picture in the docs."""


async def pictures(browser, door, where):
    """Make the pictures of the docs, of this cluster as it is after the walk."""
    size = {"width": 1280, "height": 640}
    async with somebody(browser, door, viewport=size) as page:
        for name, path in PICTURES.items():
            await page.goto(path)
            if name == "deed":
                await page.fill("#f-target_node", "node3")
                await page.click("text=Show what it would do")
                await page.wait_for_selector("button.main")
            picture = where / f"page-{name}.png"
            await page.screenshot(path=picture, full_page=True)
            assert 10_000 < picture.stat().st_size < LARGEST


async def unreadable(browser, door, scheme, pages):
    """Yield what axe finds on pages."""
    async with somebody(browser, door, color_scheme=scheme) as page:
        for path in pages:
            await page.goto(path, wait_until="domcontentloaded")
            told = await Axe().run(page)
            if told.violations_count:
                yield path, told.generate_report()


async def test_the_main_ways_by_clicks_and_what_axe_finds(door, tmp_path):
    async with chromium() as browser:
        async with somebody(browser, door) as page:
            await walk(page, door.cluster)
        where = Path(os.environ.get("MOORAGE_PICTURES") or tmp_path)
        await pictures(browser, door, where)
        found = [
            f"{path}, {scheme}\n{told}"
            for scheme, pages in (("light", PAGES), ("dark", PAGES[:5]))
            async for path, told in unreadable(browser, door, scheme, pages)
        ]
        assert not found, "\n".join(found)
        narrow = {"viewport": {"width": 390, "height": 850}}
        async with somebody(browser, door, script=False, **narrow) as page:
            for path in PAGES:
                await page.goto(path)
                assert (await page.inner_text("h1")).strip()
                width = await page.locator("main").bounding_box()
                assert width["x"] + width["width"] <= 390, path
