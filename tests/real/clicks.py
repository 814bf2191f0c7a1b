# SPDX-License-Identifier: BSD-2-Clause
"""Walk the main ways through the page by clicks, on real guests (``make clicks``).

It starts a cluster of three nodes on this machine, with guests of QEMU, a door and a
browser, and leaves nothing behind. `tests/web` walks the same on simulated nodes.
"""

import asyncio
import io
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from moorage.cli.tour.stage import Stage
from moorage.cli.tour.steps import KERNEL
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster as scratches
from moorage.daemons import process
from page_walk import Site, chromium, lose_a_node, screen, somebody, walk

BIN = Path(sys.executable).parent
GUEST = Path(__file__).parents[2] / ".build" / "guest"
_PORT = 15080
_PATIENCE = 240_000
"""Milliseconds: emulated guests on a busy machine."""


@contextmanager
def town() -> Iterator[Stage]:
    """Start a cluster with the guests that the walk begins with."""
    at = Path(tempfile.mkdtemp(prefix="clicks-")) / "t"
    hands = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
    try:
        hands.type(f"moorage up {at} --nodes 3 --guest {GUEST}")
        scratch = scratches.read(at)
        stage = Stage(scratch, Typist(scratch.environment(), io.StringIO()))
        kernel = KERNEL.format(scratch.guest).removeprefix("kvm:")
        stage.typist.type(f"gnt-cluster modify -H kvm:{kernel},vga=std -B memory=128M")
        for name, node, more in (("web1", 1, ""), ("web2", 2, "--no-start")):
            disk = f"-t sharedfile --disk 0:size=16M,name=root-{name} --no-install"
            given = f"{disk} --no-nics -n node{node} {more}"
            stage.typist.type(f"gnt-instance add {given} {name}")
        stage.typist.type("gnt-disk add -t sharedfile -s 16M data1")
        yield stage
    finally:
        if at.exists():
            scratches.down(at)
        at.parent.rmdir()


@contextmanager
def door(at: Stage) -> Iterator[str]:
    """Open the door of a cluster; its user is ``root``."""
    place = Path(at.scratch.path)
    address = at.scratch.address("node1")
    settings = {
        "address": address,
        "socket": f"{place}/master/door.sock",
        "certificate": f"{place}/rapi.pem",
        "users": f"{place}/rapi.users",
        "tokens": f"{place}/rapi.tokens",
    }
    lines = [f'{key} = "{value}"\n' for key, value in settings.items()]
    (place / "rapi.toml").write_text("".join([f"port = {_PORT}\n", *lines]))
    (place / "rapi.users").touch(mode=0o600)
    (place / "rapi.users").write_text("root secret write\n")
    at.typist.type(f"moorage rapi certificate --settings {place}/rapi.toml {address}")
    words = ["rapi", "run", "--settings", f"{place}/rapi.toml"]
    pid = process.spawn(words, place / "rapi.log", place / "rapi.pid")
    try:
        at.until(lambda: _answers(address), 60, "the door answers")
        yield f"https://{address}:{_PORT}"
    finally:
        os.kill(pid, 15)


def _answers(address: str) -> bool:
    with socket.socket() as link:
        return not link.connect_ex((address, _PORT))


def site(at: Stage, url: str) -> Site:
    """Return the cluster as the walk needs it."""

    async def lose(node: str) -> None:
        await asyncio.to_thread(at.lose_power, node)

    async def busy() -> tuple[int, Callable[[], None]]:
        return await asyncio.to_thread(_delay, at), lambda: None

    return Site(
        url=url,
        disk={"size": "16M"},
        disks={"disk_template": "sharedfile"},
        lose=lose,
        busy=busy,
        greets="",
        says="\necho ans''wered\n",
        answers="answered",
    )


def _delay(at: Stage) -> int:
    with at.client() as client:
        return client.submit({"OP_ID": "OP_TEST_DELAY", "duration": 600.0})


async def clicks(at: Stage, url: str) -> None:
    """Walk."""
    found, began = site(at, url), time.monotonic()
    async with (
        chromium() as browser,
        somebody(browser, url, patience=_PATIENCE) as page,
    ):
        for way in (walk, screen, lose_a_node):
            await way(page, found)
            told = (way.__doc__ or "").partition("\n")[0]
            print(f"{time.monotonic() - began:6.1f} s  {told}", flush=True)


def main() -> None:
    """Start all of it, walk, and say how long it took."""
    with town() as at, door(at) as url:
        print(f"Guests of QEMU ({at.accelerator()}), the page at {url}/ui", flush=True)
        asyncio.run(clicks(at, url))
    print("All ways were walked, and the browser complained of nothing.")


if __name__ == "__main__":
    main()
