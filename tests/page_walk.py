# SPDX-License-Identifier: BSD-2-Clause
"""The main ways through the page by clicks, on any cluster: what a person sees decides.

The cluster has three nodes. On the first one runs ``web1``; ``web2`` stands still on
the second one, and the disk ``data1`` belongs to nobody.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.async_api import async_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
BESIDE = ("status of 40", "ERR_NETWORK_CHANGED")
"""What is no fault of a page: answers that say so, and cables that others lay."""


class Site(NamedTuple):
    """A cluster to walk on.

    Attributes
    ----------
    url
        Of its door.
    disks
        What the form of an instance gets for each of its disks, and for all.
    lose
        Takes the power of a node.
    busy
        Makes a job that lasts; returns its number, and what lets it end.
    greets, says, answers
        What the console of web1 says unasked, what is typed, and what it says to that.
    """

    url: str
    disk: Mapping[str, str]
    disks: Mapping[str, str]
    lose: Callable[[str], Awaitable[None]]
    busy: Callable[[], Awaitable[tuple[int, Callable[[], None]]]]
    greets: str
    says: str
    answers: str


@asynccontextmanager
async def chromium() -> AsyncIterator[Any]:
    """Start a browser."""
    async with async_playwright() as play:
        made = await play.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield made
        await made.close()


@asynccontextmanager
async def somebody(
    browser: Any, url: str, *, script: bool = True, patience: int = 30_000, **look: Any
) -> AsyncIterator[Any]:
    """Sign in; whatever the console complains of fails the test."""
    look.setdefault("viewport", {"width": 1280, "height": 850})
    context = await browser.new_context(
        ignore_https_errors=True, java_script_enabled=script, base_url=url, **look
    )
    page, wrong = await context.new_page(), list[str]()
    page.set_default_timeout(patience)
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
    assert [one for one in wrong if not any(part in one for part in BESIDE)] == []
    await context.close()


async def until(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    """Look until something is seen: the policy of content lets no string be run."""
    async with asyncio.timeout(60):
        while await look() != wanted:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0.1)


async def open_object(page: Any, kind: str, name: str) -> None:
    """Go to an object by its table."""
    await page.click(f"nav >> text={kind}")
    await page.click(f"th >> text={name}")
    await page.wait_for_selector(f"h1:has-text('{name}')")


async def deed(page: Any, label: str) -> None:
    """Choose what is to be done with the object of this page."""
    await page.click(f".deeds a:text-is('{label}')")
    await page.wait_for_selector(".deed-form")


async def walk(page: Any, site: Site) -> None:
    """Walk the ways of a day on which nothing is lost."""
    assert "All is well" in await page.inner_text("main")
    await make_an_instance(page, site)
    await migrate(page)
    await attach_to_another(page)
    await console(page, site)
    await cancel(page, site)
    await balance(page)


async def looks(page: Any) -> str:
    """Look what would be done; return the command that does the same."""
    await page.click("text=Show what it would do")
    await page.wait_for_selector("button.main[value=do]")
    return str(await page.inner_text(".command code"))


async def does(page: Any) -> None:
    """Do what was looked at, and wait until it is done: the stream tells it."""
    await page.click("button.main[value=do]")
    await page.wait_for_selector("h1 + .state.good")


async def make_an_instance(page: Any, site: Site) -> None:
    """Make web3 with two disks."""
    await page.click("nav >> text=Instances")
    await page.click("text=Make an instance")
    await page.fill("[name=instance_name]", "web3")
    await page.fill("[name=pnode]", "node1")
    await page.check("[name=no_install]")
    await page.fill("[name='beparams.memory']", "128M")
    await page.click("text=One more disk")
    for number in (0, 1):
        for name, words in site.disk.items():
            await page.fill(f"[name='disks.{number}.{name}']", words)
    for name, words in site.disks.items():
        await page.fill(f"[name='{name}']", words)
    assert "--disk 1:" in await looks(page)
    await does(page)
    await open_object(page, "Instances", "web3")
    assert await page.locator("section:has(#disks) tbody tr").count() == 2


async def migrate(page: Any) -> None:
    """Migrate web1 to node2."""
    await open_object(page, "Instances", "web1")
    await deed(page, "Migrate")
    await page.fill("[name=target_node]", "node2")
    assert "-n node2 web1" in await looks(page)
    await does(page)
    assert await home(page) == "node2"


async def home(page: Any) -> str:
    """Go to web1; return its node."""
    await open_object(page, "Instances", "web1")
    node = "[aria-label=Place] div:has(dt:text-is('Node')) dd"
    return str(await page.inner_text(node)).strip()


async def attach_to_another(page: Any) -> None:
    """Attach data1 to web1, and then to web3: it must be detached between."""
    for name in ("web1", "web3"):
        await open_object(page, "Disks", "data1")
        await deed(page, "Attach")
        await page.fill("[name=instance_name]", name)
        await looks(page)
        await does(page)
        await open_object(page, "Disks", "data1")
        await page.wait_for_selector(f"[aria-label=Owner] >> text={name}")
        if name == "web1":
            assert f"{name} has it" in await page.inner_text(".deeds")
            await page.click(".deeds .why >> text=Detach")
            await looks(page)
            await does(page)


async def console(page: Any, site: Site) -> None:
    """Type to web1."""
    await open_object(page, "Instances", "web1")
    await page.click(".deeds >> text=Console")
    await page.click("text=Open it")
    await page.wait_for_selector("text=Connected to web1 on node2; Ctrl-] leaves.")
    if site.greets:
        await page.wait_for_selector(f".xterm-rows >> text={site.greets}")
    await page.keyboard.type(site.says)
    await page.wait_for_selector(f".xterm-rows >> text={site.answers}")
    await leave(page)


async def leave(page: Any) -> None:
    """Leave a line by the keyboard: all other keys are the guest's."""
    await page.keyboard.press("Control+]")
    await page.wait_for_selector("text=The line to web1 has ended.")
    await page.wait_for_selector("[data-open]:focus")


async def screen(page: Any, _site: Site) -> None:
    """Look at the screen of web1."""
    await open_object(page, "Instances", "web1")
    await page.click(".deeds >> text=Screen")
    await page.click("text=Open it")
    await page.wait_for_selector("text=This is the screen of web1")
    await page.wait_for_selector("[data-screen] canvas")
    await leave(page)


async def cancel(page: Any, site: Site) -> None:
    """Follow a job from the strip, and cancel it."""
    await page.goto("/ui/disk")
    number, let_go = await site.busy()
    await page.click(f".strip .line >> text={number} ")
    assert f"Job {number}" in await page.inner_text("h1")
    await page.click("text=Cancel the job")
    let_go()
    await page.wait_for_selector(".state >> text=canceled")


async def balance(page: Any) -> None:
    """Carry out a plan; watch it move."""
    await page.goto("/ui/balance")
    assert "take the score from" in await page.inner_text("main")
    await page.click("text=Do these steps")
    await page.wait_for_selector("text=All of them succeeded.")
    await page.goto("/ui/balance")
    assert "Nothing to do" in await page.inner_text("main")


async def lose_a_node(page: Any, site: Site) -> None:
    """Lose the node of web1, mark it offline, and fail over who was there."""
    if (lost := await home(page)) == "node1":  # there is the master
        await migrate(page)
        lost = "node2"
    await site.lose(lost)
    await page.goto("/ui")
    await page.click(f"text=Node {lost} does not answer")
    await deed(page, "Mark offline")
    await looks(page)
    await does(page)
    await page.click("nav >> text=Instances")
    await page.fill("#filter", f'pnode == "{lost}"')
    await page.click(".filter button")
    await page.wait_for_selector("tbody tr")
    boxes = page.locator("[name=on]")  # the table may be put in anew meanwhile
    for at in range(await boxes.count()):
        await boxes.nth(at).check()
    await page.select_option("#deed", "failover")
    await page.click(".all button")
    await page.check("[name=ignore_consistency]")
    await looks(page)
    await page.click("button.main[value=do]")
    await until(lambda: page.locator(".state.busy").count(), 0)
    await until(lambda: page.locator(".state.quiet").count(), 0)
    assert await home(page) != lost
    await page.wait_for_selector("h1 + .state.good")
