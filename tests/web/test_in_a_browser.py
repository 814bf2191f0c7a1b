# SPDX-License-Identifier: BSD-2-Clause
"""The main ways by clicks in a real browser; what axe finds; all without JavaScript.

One browser and one cluster for all of it. It needs Debian's chromium. On the way it
makes the pictures of the docs, where `MOORAGE_PICTURES` says (`make pictures`). The
same ways are walked on real guests by `make clicks`.
"""

import asyncio
import os
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe

from moorage.testing.screens import COLOURS
from moorage.web.kinds import KINDS
from page_walk import (
    CHROMIUM,
    Site,
    chromium,
    home,
    lose_a_node,
    open_object,
    screen,
    somebody,
    until,
    walk,
)
from support.own_network import own_network

PAGES = (
    *("/ui", "/ui/disk/root1", "/ui/instance/web1", "/ui/node/node1", "/ui/job/1"),
    *(f"/ui/{kind}" for kind in KINDS),
    *("/ui/do/instance/migrate?on=web1", "/ui/do/disk/attach?on=data1"),
    *("/ui/instance?filter=status+%3D%3D", "/ui/instance/absent"),
    *("/ui/survival", "/ui/survival?lost=node/node1", "/ui/balance"),
    *("/ui/pools-by-nodes", "/ui/walk?disk=root1", "/ui/do/instance/add"),
    *("/ui/console/web1", "/ui/screen/web1", "/ui/moves?jobs=1,2"),
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no chromium"),
]


@pytest.fixture(scope="module", autouse=True)
def _alone():
    with own_network():
        yield


def site(door):
    cluster = door.cluster

    async def lose(node):
        cluster.nodes.cut_power(node)

    async def busy():
        go = asyncio.Event()
        cluster.extra_point = lambda _name: go.wait()
        number = await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web2")
        return number, go.set

    return Site(
        url=f"https://localhost:{door.port}",
        disk={"size": "1G", "provider": "san"},
        disks={"disk_template": "ext"},
        lose=lose,
        busy=busy,
        greets="web1 serial:",
        says="hello",
        answers="hello",
    )


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


WATCHED = """
window.sent = 0;
window.links = [];
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (typeof data !== "string") window.sent += 1;
  if (!window.links.includes(this)) window.links.push(this);
  return send.call(this, data);
};
window.open = () => { window.opened = true; };
null;
"""
"""Counts what a page types to a guest."""


def evil():
    """Return all that terminals answer, or do more for than show something.

    Every control sequence as often as can be, and with each prefix, some parameters and
    what may stand between; every command for the terminal (OSC), with questions and
    without; strings (DCS, APC, PM); and some of these by one character of C1.
    """
    found = ["\x05", "\x1bZ", "\x1b[?1004h", "\x1b[?1003;1006h"]
    for final in map(chr, range(0x40, 0x7F)):
        found.append(f"\x1b[2147483647{final}")  # as often as a browser lives
        found += [
            f"\x1b[{prefix}{number}{between}{final}"
            for prefix in ("", "?", ">", "=", "<")
            for between in ("", " ", "!", '"', "#", "$", "'", "*", "+", ",")
            for number in ("", "0", "1", "5", "6", "15", "18", "21", "996")
            # It waits up to a second for the end of what it shows at once.
            if final not in "hl" or number != "2026"
        ]
    for number in (*range(121), 633, 777, 1337):
        for text in ("?", "0;?", ";https://evil.example.org", "c;aGVsbG8=", "p0;?"):
            found += [f"\x1b]{number};{text}\x07", f"\x9d{number};{text}\x9c"]
    for text in ("$qm", "$qr", '$q"p', "$q q", "+q544e", ">|", "?1;2c"):
        found += [f"\x1bP{text}\x1b\\", f"\x1b_{text}\x1b\\", f"\x1b^{text}\x1b\\"]
    found += ["\x9b6n", "\x9bc", "\x9b>c"]
    return "".join(found).encode()


async def completes(page):
    """Type a filter; it is completed word by word, and the table is that."""
    await page.goto("/ui/instance")
    for typed, whole in (("sta", "status"), ('status == "run', 'status == "running"')):
        await page.fill("#filter", typed)
        option = f"#fields option[value='{whole}']"
        await page.wait_for_selector(option, state="attached")
    await page.fill("#filter", 'status == "running"')
    await page.press("#filter", "Enter")
    assert "gnt-instance list --filter" in await page.inner_text(".command code")


async def harmless(page):
    """A guest types all of it; nothing of it is answered, opened, named or copied."""
    asked = []
    page.on("dialog", lambda one: asked.append(one.message))
    await open_object(page, "Instances", "web1")
    await page.click(".deeds >> text=Console")
    await page.evaluate(WATCHED)
    await page.click("text=Open it")
    await page.wait_for_selector(".xterm-rows >> text=web1 serial:")
    title = await page.title()
    said, piece = evil(), 1 << 15
    # What is sent, the guest says again.
    await page.keyboard.type("x")
    for at in range(0, len(said), piece):
        part = list(said[at : at + piece])
        await page.evaluate("(one) => links[0].send(new Uint8Array(one))", part)
    link = (
        "\x1bc\x1b]8;;https://evil.example.org\x07press me\x1b]8;;\x07 and still here"
    )
    await page.evaluate("(one) => links[0].send(new TextEncoder().encode(one))", link)
    await page.click(".xterm-rows >> text=press me and still here", force=True)
    pieces = -(-len(said) // piece) + 2
    assert await page.evaluate("sent") == pieces
    assert await page.title() == title
    assert await page.locator(".xterm-rows a").count() == 0
    assert await page.evaluate("window.opened") is None
    assert asked == []


async def the_screen(page):
    """Type at a guest's screen: it gets another colour."""
    await page.click("text=Open it")
    await page.wait_for_selector("[data-screen] canvas")
    look = "document.querySelector('canvas').getContext('2d').getImageData(9, 9, 1, 1)"
    for colour in COLOURS:
        wanted = list(colour.to_bytes(4, "little")[:3])
        await until(lambda: page.evaluate(f"[...{look}.data].slice(0, 3)"), wanted)
        await page.keyboard.press("a")


PICTURES = {
    "overview": "/ui",
    "survival": "/ui/survival",
    "disk": "/ui/disk/data1",
    "deed": "/ui/do/instance/migrate?on=web1",
    "console": "/ui/console/web1",
}
LARGEST = 300_000
"""Bytes of a picture in the docs."""


async def pictures(browser, url, where):
    """Make the pictures of the docs, of this cluster as it is after the walk."""
    size = {"width": 1280, "height": 640}
    async with somebody(browser, url, viewport=size) as page:
        for name, path in PICTURES.items():
            await page.goto(path)
            if name == "deed":
                other = "node2" if await home(page) == "node3" else "node3"
                await page.goto(path)
                await page.fill("#f-target_node", other)
                await page.click("text=Show what it would do")
                await page.wait_for_selector("button.main")
            if name == "console":
                await page.click("text=Open it")
                await page.wait_for_selector(".xterm-rows >> text=web1 serial:")
                await page.keyboard.type("what is typed here")
                await page.wait_for_selector(".xterm-rows >> text=is typed here")
            picture = where / f"page-{name}.png"
            await page.screenshot(path=picture, full_page=True)
            assert 10_000 < picture.stat().st_size < LARGEST


async def unreadable(browser, url, scheme, pages):
    """Yield what axe finds on pages."""
    async with somebody(browser, url, color_scheme=scheme) as page:
        for path in pages:
            await page.goto(path, wait_until="domcontentloaded")
            told = await Axe().run(page)
            if told.violations_count:
                yield path, told.generate_report()


async def test_the_main_ways_by_clicks_and_what_axe_finds(door, tmp_path):
    at = site(door)
    async with chromium() as browser:
        async with somebody(browser, at.url) as page:
            await walk(page, at)
            await harmless(page)
            await screen(page, at)
            await the_screen(page)
            await stays(page, door.cluster)
            await completes(page)
        where = Path(os.environ.get("MOORAGE_PICTURES") or tmp_path)
        await pictures(browser, at.url, where)
        found = [
            f"{path}, {scheme}\n{told}"
            for scheme, pages in (("light", PAGES), ("dark", PAGES[:5]))
            async for path, told in unreadable(browser, at.url, scheme, pages)
        ]
        assert not found, "\n".join(found)
        narrow = {"viewport": {"width": 390, "height": 850}}
        async with somebody(browser, at.url, script=False, **narrow) as page:
            for path in PAGES:
                await page.goto(path)
                assert (await page.inner_text("h1")).strip()
                width = await page.locator("main").bounding_box()
                assert width["x"] + width["width"] <= 390, path
        async with somebody(browser, at.url) as page:
            await lose_a_node(page, at)
