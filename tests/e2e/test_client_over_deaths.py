# SPDX-License-Identifier: BSD-2-Clause
"""Doors and masters are killed while clients work: reads go on, changes happen once."""

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from moorage.client import Client, Door, MoorageError, Socket, door
from moorage.client.aio import AsyncClient
from moorage.client.asks import is_lost
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from support.masters import kill, on
from support.ports import free_port

pytestmark = pytest.mark.slow
ADD = {"OP_ID": "OP_DISK_ADD", "disk_template": "sharedfile", "size": 1}
PATIENCE = 90.0
KILLS = 1
EACH = 3
"""Disks that each worker makes from one death to the next."""


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 2 --hypervisor fake")


class DoorProcess:
    """A door of a cluster, as a process."""

    def __init__(self, town: Scratch) -> None:
        root = town.master.root
        self.settings = root / "rapi.toml"
        self.port = free_port()
        self.settings.write_text(
            f'address = "127.0.0.1"\nport = {self.port}\nsocket = "{root}/door.sock"\n'
            f'certificate = "{root}/rapi.pem"\nusers = "{root}/users"\n'
            f'tokens = "{root}/tokens"\n'
        )
        hands = on(town, "node1")
        common = f"--settings {self.settings}"
        hands.type(f"moorage rapi certificate localhost {common}")
        token = hands.type(f"moorage rapi add-token robot --role write {common}")
        ca = f"{root}/keys/ca.pem"
        self.place: Door
        self.place = door(f"https://localhost:{self.port}", token=token.strip(), ca=ca)
        self.start()

    def start(self) -> None:
        words = ("rapi", "run", "--settings", str(self.settings))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moorage.cli.moorage", *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def gate(town: Scratch) -> Iterator[DoorProcess]:
    found = DoorProcess(town)
    yield found
    found.kill()


class Worker(threading.Thread):
    """Adds disks, one after the other, and looks at each."""

    def __init__(self, at: Door | Socket, name: str, *, waits: bool) -> None:
        super().__init__(name=name, daemon=True)
        self.over = False
        self.made: list[str] = []
        self.asked: list[str] = []
        self.error: BaseException | None = None
        self._at = at
        self._works = self._async if waits else self._blocking

    def run(self) -> None:
        try:
            self._works()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.error = error

    def _names(self) -> Iterator[str]:
        for number in count():
            if self.over:
                return
            name = f"{self.name}-{number}"
            self.asked.append(name)
            yield name

    def _took(self, name: str, error: MoorageError) -> None:
        """Raise what no death explains: a job that was cut short ends as failed."""
        if is_lost(error) or not error.facts.get("job"):
            raise AssertionError(f"{name}: {error!r}") from error

    def _blocking(self) -> None:
        with Client(self._at, patience=PATIENCE) as client:
            for name in self._names():
                try:
                    client.run(ADD | {"name": name}, key=name, timeout=PATIENCE)
                except MoorageError as error:
                    self._took(name, error)
                    continue
                (row,) = client.query("disk", ["name"], ["==", "name", name]).objects()
                self.made.append(row["name"])

    def _async(self) -> None:
        asyncio.run(self._awaits())

    async def _awaits(self) -> None:
        async with AsyncClient(self._at, patience=PATIENCE) as client:
            for name in self._names():
                try:
                    await client.run(ADD | {"name": name}, key=name, timeout=PATIENCE)
                except MoorageError as error:
                    self._took(name, error)
                    continue
                table = await client.query("disk", ["name"], ["==", "name", name])
                self.made += [row["name"] for row in table.objects()]


def go_on(workers: list[Worker]) -> None:
    """Wait until each worker has made more disks."""
    wanted = [(one, len(one.made) + EACH) for one in workers]

    def done() -> bool:
        return all(one.error or len(one.made) >= number for one, number in wanted)

    assert process.wait_until(done, 120), wanted
    check(workers)


def check(workers: list[Worker]) -> None:
    for one in workers:
        if one.error:
            raise one.error


def test_reads_are_repeated_and_changes_happen_once(
    town: Scratch, gate: DoorProcess
) -> None:
    master = Socket(str(town.master.socket))
    workers = [
        Worker(gate.place, "https", waits=False),
        Worker(gate.place, "https-async", waits=True),
        Worker(master, "luxi", waits=False),
        Worker(master, "luxi-async", waits=True),
    ]
    for one in workers:
        one.start()
    go_on(workers)
    for _ in range(KILLS):
        gate.kill()
        gate.start()
        go_on(workers)
        kill(town.master)
        on(town, "node1").type("moorage master start")
        go_on(workers)
    for one in workers:
        one.over = True
    for one in workers:
        one.join(PATIENCE)
    check(workers)
    with Client(master) as client:
        rows = client.jobs(None, ["summary"])
        disks = {one["name"] for one in client.query("disk", ["name"]).objects()}
    jobs = Counter(summary for row in rows if row for summary in row[0])
    asked = [f"DISK_ADD({name})" for one in workers for name in one.asked]
    assert [jobs[summary] for summary in asked] == [1] * len(asked)
    assert disks >= {name for one in workers for name in one.made}
