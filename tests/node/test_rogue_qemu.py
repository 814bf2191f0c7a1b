# SPDX-License-Identifier: BSD-2-Clause
"""A guest that has taken its QEMU over answers the agent, which is root, with anything.

Whatever it says is about this guest alone: the others of the node are seen as ever.
"""

import asyncio
import json
import os
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.model import GuestState
from moorage.model.standstill import NO_ANSWER
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm import Kvm, monitor, observing
from moorage.node.hypervisors.kvm.guest_dir import _BOOT, Home
from moorage.node.hypervisors.kvm.shapes import Migration, Ram
from moorage.node.machine.proc import START
from moorage.protocol import GetFacts, GetGuest, ListGuests, Verb
from moorage.units import Mib

GREETING = b'{"QMP": {"version": {}, "capabilities": []}}\n'
WIDE = "x" * 200_000
HONEST = {
    "query-status": {"status": "running"},
    "query-balloon": {"actual": 1 << 40},
    "qom-list": [{"name": "type", "type": "string"}],
}
DISK = {"name": f"disk-{'d' * 36}", "type": "child"}


def reply(number: object, **said: object) -> bytes:
    return json.dumps({"id": number, **said}).encode() + b"\n"


def answer(number: object, value: object) -> bytes:
    return reply(number, **{"return": value})


ANSWERS = {
    "a-list": {"query-status": ["running"]},
    "nothing": {"query-status": None},
    "no-status": {"query-status": {"running": True}},
    "long-status": {"query-status": {"status": WIDE}},
    "terminal": {"query-status": {"status": "\x1b]52;c;AAAA\x07"}},
    "surrogate": {"query-status": {"status": "\ud800"}},
    "migration": {"query-status": {"status": "postmigrate"}, "query-migrate": 5},
    "endless-time": {
        "query-status": {"status": "postmigrate"},
        "query-migrate": {"status": "completed", "total-time": 1 << 80},
    },
    "balloon-5": {"query-balloon": 5},
    "balloon-below-nothing": {"query-balloon": {"actual": -1}},
    "devices-5": {"qom-list": 5},
    "devices-of-5": {"qom-list": [5]},
    "nameless": {"qom-list": [{"type": "child"}]},
    "name-5": {"qom-list": [{"name": 5}]},
    "bus-5": {"qom-list": [DISK], "qom-get": 5},
    "bus-list": {"qom-list": [DISK], "qom-get": ["/port1"]},
    "bus-for-slot": {"qom-list": [DISK], "qom-get": "/machine/i440fx/pci.0"},
    "far-port": {"qom-list": [DISK], "qom-get": "/port" + "9" * 5000},
    "many-disks": {
        "qom-list": [{"name": f"{DISK['name']}{n}"} for n in range(20_000)],
        "qom-get": "/port1",
    },
    "wide-disk": {"qom-list": [{"name": f"disk-{WIDE}"}], "qom-get": "/port1"},
}
"""What an answer may be instead."""
LINES = {
    "id-list": b'{"id": [], "return": {}}\n',
    "id-dict": b'{"id": {}, "return": {}}\n',
    "nested": b'{"return": ' + b"[" * 200_000 + b"\n",
    "bytes": b"\xff\xfe\n",
    "number": b"5\n",
    "no-json": b"}{\n",
    "error-5": b'{"error": 5}\n',
    "event-5": b'{"event": 5}\n',
    "end": b"",
}
"""What may come instead of an answer; the connection ends with it."""


class Rogue:
    """A QEMU that answers as it likes."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.answers: dict[str, object] = {}
        self.line: bytes | None = None
        self.silent = False
        self.flood = False
        self.refusal = ""

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            writer.write(GREETING)
            while request := await reader.read(1 << 16):
                asked = json.loads(request)  # one at a time, and without a newline
                command = asked["execute"]
                if command == "qmp_capabilities":
                    writer.write(b'{"return": {}}\n')
                elif self.flood:
                    await self._flood(writer)
                elif self.refusal:
                    told = {"class": "GenericError", "desc": self.refusal}
                    writer.write(reply(asked["id"], error=told))
                elif self.line is not None:
                    writer.write(self.line)
                    break
                elif not self.silent:
                    found = self.answers.get(command, HONEST.get(command, {}))
                    writer.write(answer(asked["id"], found))
                await writer.drain()
            writer.close()

    async def _flood(self, writer: asyncio.StreamWriter) -> None:
        event = json.dumps({"event": "X", "data": WIDE, "timestamp": {}}).encode()
        while True:
            writer.write(event + b"\n")
            await writer.drain()


@asynccontextmanager
async def guest(run: Path, uuid: str) -> AsyncIterator[Rogue]:
    """Run a guest whose QEMU is a part of this process."""
    home = Home(run, uuid)
    held = home.claim()
    assert held is not None
    home.write_spec(GuestSpec(uuid=uuid, name=f"{uuid}.example", memory=Mib(64)))
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    home.write("pid", f"{os.getpid()} {words[START]} {_BOOT.read_text().strip()}")
    rogue = Rogue(home)
    server = await asyncio.start_unix_server(rogue.serve, str(home.file("monitor")))
    try:
        async with server:
            yield rogue
    finally:
        os.close(held)


@asynccontextmanager
async def town(run: Path) -> AsyncIterator[tuple[Kvm, Rogue]]:
    """Yield a node with an honest guest, and one that is not."""
    async with guest(run, "honest"), guest(run, "rogue") as rogue:
        yield Kvm(run), rogue


async def seen(node: Kvm) -> GuestState:
    """Return the rogue as the node tells of it; the honest guest must be there."""
    async with asyncio.timeout(60):
        found = {one.uuid: one for one in await node.guests()}
    assert found["honest"].state == "running"
    assert found["honest"].now == found["honest"].memory  # whatever QEMU says
    told = found["rogue"]
    assert len(repr(told)) < 1000
    assert "\x1b" not in told.cause
    return told


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_of_another_shape(tmp_path: Path, name: str) -> None:
    async with town(tmp_path) as (node, rogue):
        rogue.answers = ANSWERS[name]
        told = await seen(node)
        assert told.state == "paused" or not told.disks


@pytest.mark.parametrize("name", LINES)
async def test_what_is_no_answer(tmp_path: Path, name: str) -> None:
    async with town(tmp_path) as (node, rogue):
        rogue.line = LINES[name]
        told = await seen(node)
        assert (told.state, told.cause) == ("paused", NO_ANSWER)


async def test_one_that_says_no_more_after_its_greeting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "_LOOK", 0.5)
    async with town(tmp_path) as (node, rogue):
        rogue.silent = True
        told = await seen(node)
        assert (told.state, told.cause) == ("paused", NO_ANSWER)


@pytest.mark.parametrize("asked", [GetFacts, GetGuest, ListGuests])
def test_one_that_says_no_more_is_told_of_before_the_master_gives_up(
    asked: type[Verb[object]],
) -> None:
    """Or it would hide the other guests of its node, which starts them elsewhere."""
    assert asked.limit > observing._LOOK + monitor._FAREWELL


async def test_a_flood_of_events_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "_LOOK", 1.0)
    async with town(tmp_path) as (node, rogue):
        rogue.flood = True
        tracemalloc.start()
        try:
            assert (await seen(node)).cause == NO_ANSWER
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


async def test_a_command_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_ANSWER", 0.2)
    async with guest(tmp_path, "rogue") as rogue:
        rogue.silent = True
        with pytest.raises(Failed, match="gave no answer to cont in"):
            async with monitor.conversation(rogue.home) as talk:
                await talk.ask("cont")


async def test_a_refusal_is_short_and_obeyed_by_no_terminal(tmp_path: Path) -> None:
    async with guest(tmp_path, "rogue") as rogue:
        rogue.refusal = f"\x1b]0;{WIDE}"
        with pytest.raises(Failed) as told:
            async with monitor.conversation(rogue.home) as talk:
                await talk.ask("cont")
        assert len(told.value.message) < 3000
        assert "\x1b" not in told.value.message


async def test_what_an_honest_one_says_of_its_migration(tmp_path: Path) -> None:
    async with guest(tmp_path, "honest") as honest:
        honest.answers = {"query-migrate": {}}
        async with monitor.conversation(honest.home) as talk:
            assert await talk.read(Migration, "query-migrate") == Migration()
            ram = {"total": 4096, "remaining": 1024, "dirty-sync-count": 2, "more": "x"}
            told = {"status": "active", "total-time": 7, "ram": ram, "vfio": {}}
            honest.answers = {"query-migrate": told}
            found = await talk.read(Migration, "query-migrate")
    assert (found.status, found.total_time) == ("active", 7)
    assert found.ram == Ram(total=4096, remaining=1024, dirty_sync_count=2)
