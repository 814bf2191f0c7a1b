# SPDX-License-Identifier: BSD-2-Clause
"""Orders, lines and offers of somebody whose key is taken back, or who hung up."""

import asyncio
import os
import socket
from pathlib import Path

import aiohttp
import pytest
from msgspec import convert, json

from moorage import protocol
from moorage.model.export import Dump, Export, Form
from moorage.node.carrying import Carrier
from moorage.node.certificates.authority import Authority
from moorage.protocol import to_wire
from moorage.protocol.line import LineRequest
from moorage.units import Mib

from .conftest import Served
from .gate import (
    ASKS,
    MANY,
    TERM,
    WEB,
    Gate,
    gate_at,
    order,
    post,
)

pytestmark = pytest.mark.memory


@pytest.fixture
async def gate(served: Served, authority: Authority, tmp_path: Path) -> Gate:
    return await gate_at(served, authority, tmp_path)


@pytest.mark.parametrize("who", ["candidate", "former", "demoted", "copied"])
async def test_an_order_is_refused_when_its_sender_has_hung_up(
    gate: Gate, who: str
) -> None:
    """What was sent goes on without its caller, and not without the caller's key."""
    async with gate.connected(who) as writer:  # a key can be taken back later
        await gate.take_back()
        writer.write(post([ASKS] * MANY + [order(who)]))
    async with gate.connected("leader") as writer:
        writer.write(post([ASKS] * MANY + [order("leader")]))
    async with asyncio.timeout(60):
        while "vol-leader" not in gate.made:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.01)
    assert gate.made == {"vol-leader"}


async def test_a_line_is_refused_when_its_sender_has_hung_up(gate: Gate) -> None:
    """Else a term could be raised by who is not even heard."""
    async with gate.connected("former") as writer:
        writer.write(said_at_once(LineRequest(WEB, TERM + 1)))
    async with gate.connected("leader") as writer:
        writer.write(said_at_once(LineRequest(WEB, TERM)))
        await asyncio.sleep(0.2)
    assert gate.term == TERM


async def test_a_key_that_is_taken_back_gets_no_line_that_it_began(gate: Gate) -> None:
    async with gate.link("copied") as link:
        await gate.take_back()
        await link.send_bytes(json.encode(LineRequest(WEB, TERM)))
        told = json.decode(await link.receive_bytes(timeout=60))
    assert told["error"]["code"] == "stale"


async def test_a_line_ends_when_the_key_that_opened_it_is_taken_back(
    gate: Gate,
) -> None:
    """Else who had it would go on to type at a guest's console, for ever."""
    running = {"uuid": "web1", "name": "web1", "state": "running", "memory": 64}
    running |= {"vcpus": 1, "disks": [], "ports": {}}
    gate.served.san.guests["node1 web1"] = {"state": running}
    async with gate.link("copied") as link:
        await link.send_bytes(json.encode(LineRequest(WEB, TERM)))
        assert json.decode(await link.receive_bytes(timeout=60)) == {"result": None}
        await link.send_bytes(b"whoami")
        async with asyncio.timeout(60):
            while b"whoami" not in await link.receive_bytes():
                pass
            await gate.take_back()
            while (await link.receive()).type is not aiohttp.WSMsgType.CLOSE:
                pass


def said_at_once(asked: LineRequest) -> bytes:
    """Return what opens a web socket and says the first word, in one piece."""
    head = (
        "GET /line HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket"
        "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
        "\r\n\r\n"
    )
    body = json.encode(asked)
    mask = bytes(4)
    return head.encode() + b"\x82\xfe" + len(body).to_bytes(2, "big") + mask + body


class Door:
    """A door for an export, whose dump is a file of the test."""

    def __init__(self, gate: Gate, dump: Path) -> None:
        dump.write_bytes(b"0123456789")
        self._dump = dump
        self._gate = gate
        machine = gate.served.machine
        self.carrier = Carrier(self)
        for name in ("offer", "keep", "adopt"):
            setattr(machine, name, getattr(self.carrier, name))
        file = Dump(file="d", form=Form.RAW, size=Mib(1), dev_type="file", bytes=10)
        self.export = Export(name="x", uuid="x1", dumps=(file,))
        said = json.encode(self.export).decode()
        path = f"{machine.exports}/x/manifest.json"
        found = {"size": len(said), "data": said}
        san = machine._san
        san.files[san.key("node1", path)] = found

    def open(self, _path: str, flags: int) -> int:
        return os.open(self._dump, flags)

    def create(self, path: str) -> int:
        raise AssertionError(path)

    async def opened(self, who: str) -> protocol.Door:
        call = protocol.OfferExport(
            name="x", offer="o", export=self.export, address="127.0.0.1", port=8200
        )
        verb, args = to_wire(call)
        told = await self._gate.said(who, [{"verb": verb, "args": args, "term": TERM}])
        return convert(told[0]["result"], protocol.Door)

    @staticmethod
    async def is_open(door: protocol.Door) -> bool:
        await asyncio.sleep(0.05)  # who waits no more ends in its next turn
        with socket.socket() as link:
            return link.connect_ex(("127.0.0.1", door.port)) == 0


@pytest.mark.parametrize("who", ["copied", "leader"])
async def test_an_offer_of_an_export_ends_with_the_key_that_ordered_it(
    gate: Gate, tmp_path: Path, who: str
) -> None:
    """Else a thief's door would stay open when all keys are new."""
    place = Door(gate, tmp_path / "dump")
    door = await place.opened(who)
    await gate.tell("candidate")  # gnt-node modify -C no
    assert await place.is_open(door)
    await gate.take_back()
    assert not await place.is_open(door)


async def test_an_offer_that_its_master_knows_outlives_a_renewal(
    gate: Gate, tmp_path: Path
) -> None:
    place = Door(gate, tmp_path / "dump")
    door = await place.opened("leader")
    await gate.take_back(doors=(door.digest,))
    assert await place.is_open(door)
    await gate.take_back()
    assert not await place.is_open(door)
