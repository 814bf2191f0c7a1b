# SPDX-License-Identifier: BSD-2-Clause
"""Makes pictures of every page, narrow and wide, light and dark, for eyes to look at.

By hand: ``make looks WHERE=DIR``. What was seen stands in
``tests/web/looked.md``. The small
cluster has three nodes and something of everything; the large one is that of the
benchmarks, with 300 nodes.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from urllib.parse import quote

from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from choosing import Hands
from fleet import Fleet, fleet

from moorage.api.luxi import LuxiClient
from moorage.testing.cluster import SimCluster
from rapi_door import rapi_door
from support.rapi_process import RapiProcess

CHROMIUM = "/usr/bin/chromium"
WIDTHS = (390, 1280, 1920)
SCHEMES = ("light", "dark")
RUNNING = 'status == "running"'
PAGES = {
    "overview": "/ui",
    "instances": "/ui/instance",
    "filtered": f"/ui/instance?filter={quote(RUNNING)}",
    "misread": f"/ui/instance?filter={quote('status ==')}",
    "disks": "/ui/disk",
    "nodes": "/ui/node",
    "groups": "/ui/group",
    "networks": "/ui/network",
    "pools": "/ui/pool",
    "jobs": "/ui/job",
    "instance": "/ui/instance/{instance}",
    "disk": "/ui/disk/{disk}",
    "node": "/ui/node/node1",
    "group": "/ui/group/default",
    "network": "/ui/network/lan",
    "pool": "/ui/pool/fast",
    "job": "/ui/job/{job}",
    "failed-job": "/ui/job/{failed}",
    "migrate": "/ui/do/instance/migrate?on={instance}",
    "several": "/ui/do/instance/add-tags?on={instance}&on={other}",
    "attach": "/ui/do/disk/attach?on={free}",
    "remove": "/ui/do/disk/remove?on={free}",
    "add-instance": "/ui/do/instance/add",
    "add-disk": "/ui/do/disk/add",
    "survival": "/ui/survival",
    "a-loss": "/ui/survival?lost=node/node1",
    "balance": "/ui/balance",
    "pools-by-nodes": "/ui/pools-by-nodes",
    "walk": "/ui/walk?disk={disk}",
    "no-page": "/ui/instance/absent",
}
LOOKED = ("migrate", "several", "remove")
"""Forms in which somebody has looked at what they would do."""


async def looks(
    browser: Browser,
    port: int,
    where: Path,
    names: dict[str, str],
    asked: argparse.Namespace,
) -> None:
    """Make the pictures of one cluster."""
    for scheme, width in product(SCHEMES, asked.widths):
        context = await browser.new_context(
            ignore_https_errors=True,
            base_url=f"https://localhost:{port}",
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
        )
        page = await context.new_page()
        page.set_default_timeout(120_000)
        await page.goto("/ui/sign-in")
        await page.screenshot(path=where / f"sign-in-{width}-{scheme}.png")
        await page.fill("#name", "root")
        await page.fill("#password", "secret")
        await page.click("button.main")
        await page.wait_for_selector("header.bar")
        for name in asked.only or PAGES:
            await page.goto(PAGES[name].format(**names), wait_until="domcontentloaded")
            await _look(page, name)
            wide = await page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                print(f"{name} at {width} is {wide} wide", flush=True)
            file = where / f"{name}-{width}-{scheme}.png"
            await page.screenshot(path=file, full_page=True)
        await context.close()


async def _look(page: Page, name: str) -> None:
    """Have a form say what it would do."""
    if name not in LOOKED:
        return
    if name == "several":
        await page.fill("#f-tags", "gold silver")
    await page.click("text=Show what it would do")
    await page.wait_for_selector("#plan")


@asynccontextmanager
async def small(directory: Path) -> AsyncIterator[tuple[int, dict[str, str]]]:
    """Yield the port of a cluster of three nodes, and names of what is there."""
    cluster = await SimCluster.start(directory / "sim")
    does = cluster.run
    await does("OP_STORAGE_POOL_ADD", pool_name="fast", disk_template="ext",
               provider="san", groups=["default"])  # fmt: skip
    await does("OP_NETWORK_ADD", network_name="lan", network="10.0.0.0/24",
               gateway="10.0.0.1")  # fmt: skip
    await does("OP_NETWORK_CONNECT", network_name="lan", group_name="default",
               network_mode="bridged", network_link="br0")  # fmt: skip
    for number, node in enumerate(("node1", "node2", "node3", "node1"), 1):
        disk = {"size": 1024 * 2**number, "name": f"root{number}", "pool": "fast"}
        await does(
            "OP_INSTANCE_CREATE",
            instance_name=f"web{number}.example.org",
            disk_template="ext",
            disks=[disk],
            pnode=node,
            start=number != 3,
            no_install=True,
            tags=["gold", "customer:anna"] if number < 3 else [],
        )
    await does("OP_DISK_ADD", name="data1", size=10240, disk_template="ext",
               provider="san")  # fmt: skip
    await does("OP_DISK_ATTACH", disk="data1", instance_name="web1.example.org")
    await does("OP_INSTANCE_MIGRATE", instance_name="web1.example.org",
               target_node="node3")  # fmt: skip
    await does("OP_DISK_DETACH", disk="data1")
    await does("OP_DISK_ATTACH", disk="data1", instance_name="web2.example.org")
    await does("OP_DISK_GROW", disk="data1", amount=2048)
    await does("OP_DISK_ADD", name="spare", size=64, disk_template="ext", pool="fast")
    failed = await cluster.submit("OP_DISK_ATTACH", disk="data1",
                                  instance_name="web1.example.org")  # fmt: skip
    await cluster.finished(failed)
    names = {
        "instance": "web1.example.org",
        "other": "web2.example.org",
        "disk": "data1",
        "free": "spare",
        "job": str(failed - 5),
        "failed": str(failed),
    }
    async with rapi_door(cluster, directory) as door:
        yield door.port, names
    await cluster.stop()


@asynccontextmanager
async def large(directory: Path) -> AsyncIterator[tuple[int, dict[str, str]]]:
    """Yield the same of a cluster of 300 nodes with 34 instances each."""
    made = fleet(directory, 300, 34)
    cluster = await asyncio.to_thread(made.__enter__)  # it has a loop of its own
    names = await asyncio.to_thread(_furnished, cluster)
    door = RapiProcess(directory / "door", Path(cluster.socket).with_name("door.sock"))
    try:
        yield door.port, names
    finally:
        door.kill()
        made.__exit__(None, None, None)


def _furnished(cluster: Fleet) -> dict[str, str]:
    """Make something of everything; return names of what is there."""
    hands = Hands(cluster.socket)
    hands.wait()
    cluster.rest()

    def does(op: str, **fields: object) -> None:
        hands.run({"OP_ID": op, **fields})

    for name in ("fast", "slow", "archive"):
        does("OP_STORAGE_POOL_ADD", pool_name=name, disk_template="plain",
             groups=["default"])  # fmt: skip
    does("OP_NETWORK_ADD", network_name="lan", network="10.0.0.0/16")
    does("OP_DISK_ADD", name="spare", size=64, disk_template="ext", provider="san")
    does("OP_NODE_SET_PARAMS", node_name="node30", drained=True)
    with LuxiClient(cluster.socket) as luxi:
        attach = {"disk": "d0", "instance_name": "old1"}
        failed = luxi.submit_job([{"OP_ID": "OP_DISK_ATTACH", **attach}])
    return {
        "instance": "old77",
        "other": "old78",
        "disk": "d77",
        "free": "spare",
        "job": str(failed - 2),
        "failed": str(failed),
    }


async def run(asked: argparse.Namespace) -> None:
    """Make all pictures."""
    clusters = {"small": small, "large": large}
    async with async_playwright() as play:
        browser = await play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for size in asked.sizes:
            (asked.where / size).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="moorage-looks-") as at:
                async with clusters[size](Path(at)) as (port, names):
                    await looks(browser, port, asked.where / size, names, asked)
        await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", type=Path)
    parser.add_argument("--sizes", nargs="+", default=["small", "large"])
    parser.add_argument("--only", nargs="+", default=[], choices=list(PAGES))
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    asyncio.run(run(parser.parse_args()))
