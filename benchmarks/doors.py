# SPDX-License-Identifier: BSD-2-Clause
"""RAPI beside Ganeti's own daemon, in front of the same master, in one run.

The master is the real one, in a process of its own, with 10,000 instances on nodes that
simulate (:mod:`fleet`). Before it stand our door and Ganeti's daemon (Debian's package,
unpacked), each with HTTPS; both are asked in turns by the same client, with a new
connection for each request, as Ganeti's client has. Each figure is the least of all
rounds: whatever else the machine does, it adds.

list
    All instances, whole (``/2/instances?bulk=1``), in ms.
one
    One instance, whole, in ms.
jobs
    Eight clients submit jobs and wait for their end, one after the other; ms a job.
waiters
    200 clients wait for one job; from its end until the last one is told, in ms.
events
    The master's CPU of jobs while one client listens to ``/2/events``, and while 1,000
    do, in ms a job.

The bars: list and one take Ganeti's daemon at least twice as long, jobs and waiters as
long or longer, and 1,000 listeners cost the master at most a fifth more than one.
"""

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from choosing import Hands
from fleet import Fleet, fleet

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from peers import GANETI, as_ganetis_users, ganetis_node, unpacked
from support.rapi_process import LOGIN, RapiProcess, free_port, trusting

NODES = 1_000
CLIENTS, JOBS, WAITERS, LISTENERS = 8, 5, 200, 1_000
_DELAY = 6.0
"""Seconds that the job lasts which many wait for."""
BARS = {"list": 2.0, "one": 2.0, "jobs": 1.0, "waiters": 1.0}
EVENTS = 1.2
_LIMITS = "under_way = 4000\nconnections = 10000\n"
_TRUST = trusting()
_LISTEN = (
    f"GET /2/events HTTP/1.1\r\nHost: x\r\nAuthorization: {LOGIN}\r\n\r\n".encode()
)


class Daemon(NamedTuple):
    """A door of either kind."""

    name: str
    port: int

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        """Return the answer's JSON."""
        link = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=_TRUST, timeout=120
        )
        try:
            text = None if body is None else json.dumps(body)
            headers = {"Authorization": LOGIN, "Content-Type": "application/json"}
            link.request(method, path, text, headers)
            answer = link.getresponse()
            told = answer.read()
            if answer.status != http.HTTPStatus.OK:
                raise SystemExit(f"{self.name}: {path}: {answer.status} {told!r}")
            return json.loads(told)
        finally:
            link.close()


@contextmanager
def ganetis(directory: Path, master: Path) -> Iterator[Daemon]:
    """Serve a master by Ganeti's daemon."""
    place = unpacked(GANETI)
    if place is None:
        raise SystemExit("Debian's packages of Ganeti cannot be had")
    node, port = directory / "node1", free_port()
    env = ganetis_node(place, node, master) | as_ganetis_users(place, directory)
    (node / "var/lib/ganeti/ssconf_master_node").write_text("node1\n")
    (node / "var/lib/ganeti/rapi/users").write_text("top secret write\n")
    key = directory / "ours/rapi.pem"
    running = subprocess.Popen(
        [
            *(f"{place}/usr/share/ganeti/3.0/ganeti-rapi", "-f", "-b", "127.0.0.1"),
            *("-p", str(port), "-K", key, "-C", key, "--max-clients", "1000"),
        ],
        env=env,
        stderr=subprocess.DEVNULL,
    )
    found = Daemon("Ganeti's daemon", port)
    try:
        if not process.wait_until(partial(_serves, found), 30):
            raise SystemExit("Ganeti's daemon does not serve")
        yield found
    finally:
        running.terminate()
        running.wait()


def _serves(daemon: Daemon) -> bool:
    try:
        return bool(daemon.ask("GET", "/version"))
    except OSError:
        return False


# -- what is measured ------------------------------------------------------------------


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _list(daemon: Daemon, _master: str) -> float:
    return _timed(lambda: daemon.ask("GET", "/2/instances?bulk=1"))


def _one(daemon: Daemon, _master: str) -> float:
    ask = partial(daemon.ask, "GET", "/2/instances/old77")
    return min(_timed(ask) for _ in range(10))


def _jobs(daemon: Daemon, _master: str) -> float:
    """Return seconds a job, of several clients at once."""

    def work(client: int) -> None:
        for number in range(JOBS):
            path = f"/2/instances/old{client}/tags?tag=t{number}"
            for method in ("PUT", "DELETE"):
                _ended(daemon, daemon.ask(method, path))

    with ThreadPoolExecutor(CLIENTS) as pool:
        took = _timed(lambda: list(pool.map(work, range(CLIENTS))))
    return took / (2 * JOBS * CLIENTS)


def _ended(daemon: Daemon, job: int) -> None:
    seen: list[Any] | None = None
    while not seen or seen[0] not in ("success", "error", "canceled"):
        wanted = {"fields": ["status"], "previous_job_info": seen}
        told = daemon.ask(
            "GET", f"/2/jobs/{job}/wait", {**wanted, "previous_log_serial": None}
        )
        seen = told["job_info"] if told else seen


def _waiters(daemon: Daemon, master: str) -> float:
    """Return seconds from a job's end until the last of many has heard of it."""
    with LuxiClient(master) as luxi:
        job = luxi.submit_job([{"OP_ID": "OP_TEST_DELAY", "duration": _DELAY}])
        with ThreadPoolExecutor(WAITERS) as pool:
            list(pool.map(lambda _: _ended(daemon, job), range(WAITERS)))
            heard = time.time()
        ((end,),) = luxi.query_jobs([job], ["end_ts"])
    return heard - (end[0] + end[1] / 1e6)


WORKS = {"list": _list, "one": _one, "jobs": _jobs, "waiters": _waiters}


# -- who listens -----------------------------------------------------------------------


class Listeners(threading.Thread):
    """So many clients of the stream of events, in a loop of their own."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self._port, self._number = port, number
        self.ready = threading.Event()
        self.heard = 0

    def run(self) -> None:
        """Listen until everybody is hung up on."""
        asyncio.run(self._listen())

    def stop(self) -> None:
        """Hang up."""
        self._loop.call_soon_threadsafe(self._over.set)
        self.join()

    async def _listen(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        few = asyncio.Semaphore(20)
        begun = [asyncio.Event() for _ in range(self._number)]
        tasks = [asyncio.create_task(self._one(few, one)) for one in begun]
        for one in begun:
            await one.wait()
        self.ready.set()
        await self._over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, few: asyncio.Semaphore, begun: asyncio.Event) -> None:
        async with few:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self._port, ssl=_TRUST
            )
            writer.write(_LISTEN)
            await reader.readuntil(b"event: start")
        begun.set()
        try:
            while await reader.read(65536):
                self.heard += 1
        finally:
            writer.close()


def events(cluster: Fleet, port: int, listeners: int) -> float:
    """Return the master's CPU seconds a job while so many listen."""
    listening = Listeners(port, listeners)
    listening.start()
    listening.ready.wait()
    hands = Hands(cluster.socket)
    ops = [
        {"OP_ID": op, "kind": "instance", "name": "old3", "tags": [f"e{number}"]}
        for number in range(10)
        for op in ("OP_TAGS_SET", "OP_TAGS_DEL")
    ]
    before = cluster.cpu()
    for one in ops:
        hands.run(one)
    took = cluster.cpu() - before
    listening.stop()
    if listening.heard < listeners:
        raise SystemExit("who listens has heard nothing")
    return took / len(ops)


# -- the run ---------------------------------------------------------------------------


def main() -> int:
    """Measure, print ratios, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(WORKS), default=list(WORKS))
    asked = parser.parse_args()
    with ExitStack() as stack:
        at = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="moorage-bench-"))
        )
        cluster = stack.enter_context(fleet(at, asked.nodes))
        Hands(cluster.socket).wait()
        cluster.rest()
        socket = Path(cluster.socket)
        ours = RapiProcess(at / "ours", socket.with_name("door.sock"), _LIMITS)
        stack.callback(ours.kill)
        doors = (
            Daemon("ours", ours.port),
            stack.enter_context(ganetis(at, socket)),
        )
        told = _beside(cluster, doors, asked.rounds, asked.only)
        held = [_told(*one) for one in told]
        if len(asked.only) == len(WORKS):
            held.append(_heard(cluster, ours.port, asked.rounds))
    return 0 if all(held) else 1


def _beside(
    cluster: Fleet, doors: tuple[Daemon, Daemon], rounds: int, only: Sequence[str]
) -> Iterator[tuple[str, float, float]]:
    """Yield what each kind of work takes ours, and Ganeti's: seconds, the least."""
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; ms")
    print(f"{'':10}{'ours':>10}{'Ganeti':>10}{'ratio':>8}{'bar':>6}")
    for name in only:
        least = [float("inf")] * 2
        for _ in range(rounds):
            for number, daemon in enumerate(doors):
                took = WORKS[name](daemon, cluster.socket)
                least[number] = min(least[number], took)
        yield name, *least


def _told(name: str, ours: float, theirs: float) -> bool:
    """Print a line; return whether its bar holds."""
    ratio, bar = theirs / ours, BARS[name]
    line = f"{ours * 1e3:10.1f}{theirs * 1e3:10.1f}{ratio:8.2f}{bar:6.1f}"
    print(f"{name:10}{line}{'' if ratio >= bar else '  missed'}", flush=True)
    return ratio >= bar


def _heard(cluster: Fleet, port: int, rounds: int) -> bool:
    """Print what listeners cost the master; return whether the bar holds."""
    one = many = float("inf")
    for _ in range(rounds):
        one = min(one, events(cluster, port, 1))
        many = min(many, events(cluster, port, LISTENERS))
    ratio = many / one
    print(f"{'events':10}{one * 1e3:10.1f}{many * 1e3:10.1f}{ratio:8.2f}{EVENTS:6.1f}")
    return ratio <= EVENTS


if __name__ == "__main__":
    sys.exit(main())
