# SPDX-License-Identifier: BSD-2-Clause
"""Listeners hear of each change once, in order, whoever dies and whoever leads.

Half of them ask the master over LUXI, half listen at doors: each machine has one, in
front of the master that is there.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from moorage.errors import MoorageError
from support.masters import Account, copied, kill, on, places
from support.rapi_process import LOGIN, RapiProcess, trusting

pytestmark = pytest.mark.slow
LISTENERS = 20


class Listener(threading.Thread):
    """Asks whoever leads for what comes behind the last entry that it heard."""

    def __init__(self, sockets: list[Path]) -> None:
        super().__init__(daemon=True)
        self.entries: list[dict[str, Any]] = []
        self.resets = 0
        self.over = False
        self.number: int | None = None
        self._sockets = sockets

    def run(self) -> None:
        while not self.over:
            for socket in self._sockets:
                with suppress(MoorageError), LuxiClient(str(socket), 20.0) as luxi:
                    while not self.over:
                        told = luxi.call("WaitForEvents", self.number, 1.0)
                        self.entries += told["entries"]
                        self.resets += told["reset"]
                        self.number = told["number"]
            time.sleep(0.05)


class Streamed(Listener):
    """Listens at whatever door tells it something, from where it was."""

    def __init__(self, doors: Sequence[RapiProcess]) -> None:
        super().__init__([])
        self._doors = doors

    def run(self) -> None:
        while not self.over:
            for door in self._doors:
                with suppress(OSError, http.client.HTTPException):
                    self._listen(door.port)
            time.sleep(0.05)

    def _listen(self, port: int) -> None:
        last = {} if self.number is None else {"Last-Event-ID": str(self.number)}
        link = http.client.HTTPSConnection(
            "127.0.0.1", port, context=trusting(), timeout=20
        )
        try:
            link.request("GET", "/2/events", headers={"Authorization": LOGIN, **last})
            answer = link.getresponse()
            if answer.status == 200:
                for block in _blocks(answer):
                    self._take(block)
                    if self.over:
                        return
        finally:
            link.close()

    def _take(self, block: dict[str, str]) -> None:
        if "id" not in block:
            return  # the door says that it lives
        if block.get("event") == "change":
            self.entries.append(json.loads(block["data"]))
        self.resets += block.get("event") == "start" and self.number is not None
        self.number = int(block["id"])


def _blocks(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    """Yield whole blocks of a stream; one that was cut off is none."""
    found: dict[str, str] = {}
    while line := answer.readline().decode():
        if line != "\n":
            name, _, value = line.rstrip("\n").partition(": ")
            found[name] = value
            continue
        yield found
        found = {}


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 3 --hypervisor fake")


@pytest.fixture
def doors(town: Scratch) -> Iterator[list[RapiProcess]]:
    with ExitStack() as stack:
        found = []
        for name in ("node1", "node2"):
            at = places(town, name).door
            found.append(RapiProcess(town.path / f"rapi-{name}", at))
            stack.callback(found[-1].kill)
        yield found


def test_each_change_is_heard_once_over_a_crash_and_a_failover(
    town: Scratch, doors: list[RapiProcess]
) -> None:
    first, second = on(town, "node1"), on(town, "node2")
    assert process.wait_until(lambda: copied(first, "node2", "node3"), 60)
    sockets = [places(town, name).socket for name in ("node1", "node2")]
    asking = [Listener(sockets) for _ in range(LISTENERS)]
    listeners = [*asking, *(Streamed(doors) for _ in range(LISTENERS))]
    for one in listeners:
        one.start()
    assert process.wait_until(lambda: all(one.number for one in listeners), 60)

    account = Account(town.master)
    assert process.wait_until(lambda: len(account.acknowledged) >= 2, 120)
    doors[0].kill()
    assert process.wait_until(lambda: len(account.acknowledged) >= 3, 120)
    doors[0].start()
    kill(town.master)
    account.ended()
    first.type("moorage master start")
    account = Account(town.master, account)
    assert process.wait_until(lambda: len(account.acknowledged) >= 6, 120)
    assert process.wait_until(lambda: copied(first, "node2"), 60)
    kill(town.master)
    account.ended()
    second.type("gnt-cluster master-failover --yes-do-it")
    second.type("gnt-disk add --size 1m -t sharedfile --name last")
    expected = {*account.acknowledged, "last"}

    def heard(one: Listener) -> list[str]:
        return [
            event["name"]
            for entry in one.entries
            for event in entry["events"]
            if event["kind"] == "disk" and event["event"] == "added"
        ]

    assert process.wait_until(lambda: all("last" in heard(x) for x in listeners), 60)
    for one in listeners:
        one.over = True
    for one in listeners:
        numbers = [entry["number"] for entry in one.entries]
        assert numbers == sorted(set(numbers))
        assert expected <= set(heard(one))
        assert len(heard(one)) == len(set(heard(one)))
        assert one.resets == 0
    assert len({str(heard(one)) for one in listeners}) == 1
