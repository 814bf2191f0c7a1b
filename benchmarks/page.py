# SPDX-License-Identifier: BSD-2-Clause
"""What the page in the browser costs with 10,000 instances on 300 nodes, and its size.

The master and the door are real ones, each a process of its own; the nodes simulate
(:mod:`fleet`). Pages come over HTTPS, on one connection, as to a browser that has
signed in. Figures are CPU, which a busy machine disturbs less than it does time: the
least of some rounds, in ms of master and door together.

list
    ``gnt-instance list`` of all: the command and the master.
table
    The instances' first fifty rows of all.
filtered
    A filter that fifty of all fit, by a part of their names.
status
    A filter by what nodes say, which all of them are asked for.
overview, one
    The overview, which knows each instance's status; and the page of one instance.
live, one; live, fifty
    The master's, of a change that one open page of that table shows, and of one that
    fifty pages of as many browsers show: each hears of it, and fetches table and strip.
survival
    The first look at what losses would do, with nothing kept. Meanwhile somebody else
    opens a node, again and again: the longest that this takes is told.

The bars: a table, and one that is filtered, cost less than the list, and fifty live
pages cost the master at most a fifth more than one. No page has more than 300 kB.
"""

import argparse
import asyncio
import http.client
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import quote, urlencode

import aiohttp
from choosing import Hands
from fleet import Fleet, fleet

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.rapi_process import RapiProcess, trusting

NODES, PER_NODE = 300, 34
PAGES, SHARE, LARGEST = 50, 1.2, 300_000
_CPU_CLOCK = 2
_TICKS = os.sysconf("SC_CLK_TCK")
_SETTLED = 0.4
"""Seconds after a change at which a page is fetched, as the script has it."""
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_SCRIPT = {"Sec-Fetch-Mode": "cors"}
"""Tells what a page's script fetches."""
_LIMITS = "under_way = 1000\n"
_TABLE = "/ui/instance"
_FILTERED = f"{_TABLE}?filter=old77"
_STATUS = f"{_TABLE}?filter=status+%3D%3D+%22running%22"


_OPENED = {
    "table": _TABLE,
    "filtered": _FILTERED,
    "status": _STATUS,
    "overview": "/ui",
    "one": "/ui/instance/old77",
}
_BARRED = ("table", "filtered")


class Reader:
    """A browser that has signed in, and keeps its connection."""

    def __init__(self, port: int) -> None:
        self._link = http.client.HTTPSConnection(
            "127.0.0.1", port, context=trusting(), timeout=1800
        )
        words = urlencode({"name": "root", "password": "secret"})
        self._link.request("POST", "/ui/sign-in", words, _FORM)
        answer = self._link.getresponse()
        answer.read()
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def open(self, path: str) -> bytes:
        """Return a page."""
        self._link.request("GET", path, headers={"Cookie": self.cookie})
        answer = self._link.getresponse()
        told = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"{path}: {answer.status} {told[-500:]!r}")
        return told


class Costs:
    """CPU of the master and of the door."""

    def __init__(self, cluster: Fleet, door: RapiProcess) -> None:
        self.master = cluster.cpu
        self._door = door.pid

    def both(self) -> float:
        """Return seconds of both, with what the door has started and that has ended."""
        words = Path(f"/proc/{self._door}/stat").read_text().rpartition(")")[2].split()
        ended = sum(map(int, words[13:15])) / _TICKS
        own = time.clock_gettime((~self._door << 3) | _CPU_CLOCK)
        return self.master() + own + ended


def least(cpu: Callable[[], float], rounds: int, work: Callable[[], object]) -> float:
    """Return the least CPU seconds of a work."""
    took = []
    for _ in range(rounds):
        before = cpu()
        work()
        took.append(cpu() - before)
    return min(took)


def _listed(cluster: Fleet, rounds: int) -> float:
    """Return CPU seconds of ``gnt-instance list``, its own and the master's."""

    def cpu() -> float:
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cluster.cpu() + own.ru_utime + own.ru_stime

    told = {**os.environ, "MOORAGE_SOCKET": cluster.socket}
    argv = [Path(sys.executable).with_name("gnt-instance"), "list"]
    command = partial(subprocess.run, env=told, stdout=subprocess.DEVNULL, check=True)
    return least(cpu, rounds, lambda: command(argv))


# -- pages that are live ---------------------------------------------------------------


class Live(threading.Thread):
    """So many browsers with a table open, each with its session and its stream."""

    def __init__(self, port: int, cookies: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._root = f"https://127.0.0.1:{port}"
        self._cookies = cookies
        self.ready = threading.Event()
        self.fetched = 0

    def run(self) -> None:
        """Show what changes until it is to end."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Close all pages."""
        self._loop.call_soon_threadsafe(self._over.set)
        self.join()

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        known = asyncio.Semaphore(0)
        most = aiohttp.TCPConnector(ssl=trusting(), limit=0)
        async with aiohttp.ClientSession(connector=most) as session:
            pages = [
                asyncio.create_task(self._page(session, one, known))
                for one in self._cookies
            ]
            for _ in pages:
                await known.acquire()
            self.ready.set()
            await self._over.wait()
            for one in pages:
                one.cancel()
            await asyncio.gather(*pages, return_exceptions=True)

    async def _page(
        self, session: aiohttp.ClientSession, cookie: str, known: asyncio.Semaphore
    ) -> None:
        headers = {"Cookie": cookie}
        url = f"{self._root}/ui/events"
        endless = aiohttp.ClientTimeout(total=None)
        async with session.get(url, headers=headers, timeout=endless) as told:
            waits: asyncio.Task[None] | None = None
            told.raise_for_status()
            async for line in told.content:
                if line.startswith(b": here"):
                    known.release()  # also of one that lives, later
                if line.startswith(b"data:") and b"instance" in line:
                    if waits and not waits.done():
                        waits.cancel()
                    waits = asyncio.create_task(self._settle(session, headers))

    async def _settle(
        self, session: aiohttp.ClientSession, headers: dict[str, str]
    ) -> None:
        await asyncio.sleep(_SETTLED)
        for path in ("/ui/strip", _FILTERED):
            url = f"{self._root}{path}"
            async with session.get(url, headers=headers | _SCRIPT) as told:
                told.raise_for_status()
                await told.read()
        self.fetched += 1


def live(cluster: Fleet, port: int, cookies: Sequence[str], rounds: int) -> float:
    """Return the master's CPU seconds of a change that so many pages show."""
    pages = Live(port, cookies)
    pages.start()
    pages.ready.wait()
    hands, numbers = Hands(cluster.socket), count()

    def change() -> None:
        before = pages.fetched
        tags = [f"t{len(cookies)}-{next(numbers)}"]
        what = {"kind": "instance", "name": "old77", "tags": tags}
        hands.run({"OP_ID": "OP_TAGS_SET", **what})
        while pages.fetched < before + len(cookies):
            time.sleep(0.05)

    took = least(cluster.cpu, rounds, change)
    pages.stop()
    return took


# -- sizes, and who waits --------------------------------------------------------------


def _addresses() -> list[str]:
    """Return pages of all kinds."""
    on = urlencode([("on", f"old{number}") for number in range(200)])
    forms = (
        *("instance/migrate?on=old0", f"instance/migrate?{on}", "disk/attach?on=d0"),
        *("instance/add", "disk/add", f"instance/add-tags?{on}"),
    )
    kinds = ("instance", "disk", "node", "group", "network", "pool", "job")
    objects = ("instance/old0", "disk/d0", "node/node1", "group/default", "job/1")
    pictures = ("survival", "survival?lost=node/node1", "balance", "pools-by-nodes")
    return [
        *("/ui", _FILTERED, _STATUS),
        *(f"/ui/{one}" for one in (*kinds, *objects, *pictures, "walk?disk=d0")),
        *(f"/ui/do/{one}" for one in forms),
    ]


def sizes(reader: Reader, only: str = "") -> bool:
    """Print the size of each page, the largest last; return whether all are small."""
    asked = [one for one in _addresses() if only in one]
    found = sorted((len(reader.open(one)), one) for one in asked)
    for size, address in found:
        missed = "" if size <= LARGEST else "  missed"
        print(f"{address[:60]:62}{size / 1e3:8.0f} kB{missed}")
    return found[-1][0] <= LARGEST


def survival(costs: Costs, reader: Reader, other: Reader) -> tuple[float, float]:
    """Return CPU seconds of a first look, and the longest that another one waits."""
    over, longest = threading.Event(), [0.0]

    def look() -> None:
        while not over.wait(2.0):
            began = time.perf_counter()
            other.open(f"/ui/node/{quote('node7')}")
            longest[0] = max(longest[0], time.perf_counter() - began)

    looking = threading.Thread(target=look)
    looking.start()
    before = costs.both()
    try:
        reader.open("/ui/survival")
        return costs.both() - before, longest[0]
    finally:
        over.set()
        looking.join()


def main() -> int:
    """Measure, print, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with ExitStack() as stack:
        at = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-"))
        )
        cluster = stack.enter_context(fleet(at, asked.nodes, PER_NODE))
        Hands(cluster.socket).wait()
        cluster.rest()
        socket = Path(cluster.socket)
        door = RapiProcess(at / "door", socket.with_name("door.sock"), _LIMITS)
        stack.callback(door.kill)
        held = _measured(cluster, door, asked.rounds)
    return 0 if held else 1


def _measured(cluster: Fleet, door: RapiProcess, rounds: int) -> bool:
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms of CPU")
    costs, reader = Costs(cluster, door), Reader(door.port)
    bar = _told("list", _listed(cluster, rounds))
    held = []
    for name, path in _OPENED.items():
        reader.open(path)
        took = least(costs.both, rounds, partial(reader.open, path))
        barred = name in _BARRED
        held.append(not barred or took < bar)
        _told(name, took, bar if barred else None)
    cookies = [Reader(door.port).cookie for _ in range(PAGES // 2)]
    cookies += [reader.cookie] * (PAGES - len(cookies))
    one = _told("live, one", live(cluster, door.port, cookies[:1], rounds))
    many = live(cluster, door.port, cookies, rounds)
    held.append(_told("live, fifty", many, SHARE * one) <= SHARE * one)
    took, longest = survival(costs, reader, Reader(door.port))
    _told("survival", took)
    print(f"{'':14}meanwhile another one waited {longest * 1e3:.0f} ms at most")
    held.append(sizes(reader))
    return all(held)


def _told(name: str, took: float, bar: float | None = None) -> float:
    """Print a line; return what was measured."""
    missed = "  missed" if bar is not None and took > bar else ""
    told = "" if bar is None else f"{bar * 1e3:10.0f}"
    print(f"{name:14}{took * 1e3:10.1f}{told}{missed}", flush=True)
    return took


if __name__ == "__main__":
    sys.exit(main())
