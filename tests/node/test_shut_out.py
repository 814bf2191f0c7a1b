# SPDX-License-Identifier: BSD-2-Clause
"""Who knows a key that leads no more, or does not lead yet, and is at a node's door."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec import convert, json
from msgspec.structs import replace

from moorage import durable, protocol
from moorage.model import Disk
from moorage.model.export import Dump, Export, Form
from moorage.node.calling import key_issuing
from moorage.node.calling.client import HttpNodes
from moorage.node.carrying import Carrier
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.verbs import VERBS
from moorage.protocol import CreateDisk, TrustMasters, name_of, to_wire
from moorage.protocol.line import GuestLine, LineRequest
from moorage.protocol.sender import ourselves
from moorage.units import Mib

from .conftest import Served
from .every_verb import filled

TERM = 7
MANY = 600
"""Lines that keep a node busy for longer than it takes to hang up."""
WEB = GuestLine(uuid="web1", name="web1")
ASKS = {"verb": "state.standing", "args": {}, "term": 0}


def order(name: str = "d") -> dict[str, Any]:
    """Return what makes a volume, in the leader's term."""
    disk = Disk(
        uuid=name,
        name=name,
        dev_type="ext",
        logical_id=("san", f"vol-{name}"),
        params={"provider": "san"},
        size=Mib(64),
    )
    verb, args = to_wire(CreateDisk(disk=disk))
    return {"verb": verb, "args": args, "term": TERM}


@dataclass
class Gate:
    """A node whose leader is known, and others who had keys.

    Attributes
    ----------
    keys
        Of each, by who it is: the ``leader``; who ``copied`` its key before it was
        renewed; a ``candidate``; one ``demoted``; a ``former`` master.
    """

    served: Served
    keys: dict[str, Authority]

    def certificates(self, *who: str) -> tuple[str, ...]:
        return tuple(tls.pem(self.keys[one].own).decode() for one in who)

    async def tell(self, *who: str, doors: tuple[str, ...] = ()) -> None:
        """Let the leader say whose orders are taken, its own among them."""
        former = self.certificates("former")
        known = self.certificates("leader", *who)
        nodes = HttpNodes(self.keys["leader"])
        call = TrustMasters(certificates=known, former=former, doors=doors)
        nodes.exchange.mark, nodes.exchange.sender = "1" * 32, ourselves("m")
        try:
            await nodes.call(self.served.node, call, TERM, lambda *_: None)
        finally:
            await nodes.close()

    async def take_back(self, doors: tuple[str, ...] = ()) -> None:
        """Shut out all but the leader, with a new key, and the candidate."""
        self.keys["leader"].renew_master()
        await self.tell("candidate", doors=doors)

    @asynccontextmanager
    async def session(self, who: str) -> AsyncIterator[aiohttp.ClientSession]:
        """Connect with somebody's key, once."""
        connector = aiohttp.TCPConnector(ssl=self.keys[who].asking(), limit=1)
        async with aiohttp.ClientSession(connector=connector) as found:
            yield found

    async def said(
        self,
        who: str,
        lines: Iterable[Any],
        session: aiohttp.ClientSession | None = None,
    ) -> list[Any]:
        """Return what the node answers to the lines of one request."""
        if session is None:
            async with self.session(who) as found:
                return await self.said(who, lines, found)
        url = f"https://127.0.0.1:{self.served.port}/call"
        posted = session.post(url, data=text(lines), server_hostname="node1")
        async with posted as answer:
            assert answer.status == 200
            told = [json.decode(one) for one in (await answer.read()).splitlines()]
            return [one for one in told if not {"progress", "alive"} & one.keys()]

    async def line(self, asked: Any, session: aiohttp.ClientSession) -> Any:
        """Return the error that a request for a line is answered with."""
        url = f"https://127.0.0.1:{self.served.port}/line"
        async with session.ws_connect(url, server_hostname="node1") as link:
            await link.send_bytes(json.encode(asked))
            return json.decode(await link.receive_bytes(timeout=60))["error"]

    @asynccontextmanager
    async def connected(self, who: str) -> AsyncIterator[asyncio.StreamWriter]:
        """Connect, and hang up without waiting for anything."""
        context = self.keys[who].asking()
        place = ("127.0.0.1", self.served.port)
        _, writer = await asyncio.open_connection(
            *place, ssl=context, server_hostname="node1"
        )
        try:
            yield writer
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def link(self, who: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a web socket for a line, and say nothing yet."""
        connector = aiohttp.TCPConnector(ssl=self.keys[who].asking())
        url = f"https://127.0.0.1:{self.served.port}/line"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.ws_connect(url, server_hostname="node1") as found,
        ):
            yield found

    @property
    def term(self) -> int:
        """The highest that the node has heard."""
        return int((self.served.top / "run" / "fence" / "term").read_text())

    @property
    def kept(self) -> dict[str, bytes]:
        """What is on the node's disk."""
        files = (one for one in self.served.top.rglob("*") if one.is_file())
        return {str(one): one.read_bytes() for one in files}

    @property
    def made(self) -> set[str]:
        """Names of the volumes that were made."""
        return {one.env["VOL_NAME"] for one in self.served.machine.ran}


def text(lines: Iterable[Any]) -> bytes:
    return b"\n".join(json.encode(one) for one in lines)


def post(lines: Iterable[Any]) -> bytes:
    body = text(lines)
    head = f"POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def vouched(by: Authority, place: Path) -> Authority:
    """Return the key of another master, which one has let in."""
    key = tls.new_key()
    signed = by.sign_master(tls.request(key, "moorage-master"))
    return lodged(by, place, key, signed)


def lodged(
    by: Authority, place: Path, key: tls.Key, signed: tls.Certificate
) -> Authority:
    durable.make(place)
    shutil.copy(by.directory / "ca.pem", place / "ca.pem")
    durable.write(place / "master.pem", tls.key_pem(key) + tls.pem(signed))
    return Authority(place)


@pytest.fixture
async def gate(served: Served, authority: Authority, tmp_path: Path) -> Gate:
    others = {
        who: vouched(authority, tmp_path / who)
        for who in ("candidate", "former", "demoted")
    }
    shutil.copytree(authority.directory, tmp_path / "copied")
    copied = Authority(tmp_path / "copied")
    found = Gate(served, {"leader": authority, "copied": copied} | others)
    await found.tell("candidate", "demoted")
    return found


# -- every verb ------------------------------------------------------------------------

CALLS = [to_wire(filled(kind)) for kind, _ in VERBS.values()]
ASKED = {name_of(kind) for kind, _ in VERBS.values() if not kind.heeds_term}
"""What a candidate may ask while another one leads."""


def every(*terms: int, marks: tuple[str, ...] = ("",)) -> list[dict[str, Any]]:
    """Return a call of each verb that the agent has, in each of the terms."""
    return [
        {"verb": verb, "args": args, "term": term, "mark": mark}
        for verb, args in CALLS
        for term in terms
        for mark in marks
    ]


@pytest.mark.parametrize("who", ["former", "demoted", "copied"])
async def test_who_leads_no_more_is_told_who_does_and_nothing_else(
    gate: Gate, who: str
) -> None:
    """Whatever it asks for, and however far it counts."""
    asked = every(0, TERM, TERM + 1000, (1 << 53) - 1, marks=("", "2" * 32))
    nonsense = [{}, 7, {"verb": "facts"}, {"verb": "x", "args": {}, "term": 1 << 53}]
    async with gate.session(who) as session:
        await gate.said(who, [ASKS], session)  # connected, while its key may be good
        await gate.take_back()
        before = gate.kept
        told = await gate.said(who, [*asked, *nonsense], session)
        assert len(told) == len(asked) + len(nonsense)
        assert {one["error"]["code"] for one in told} == {"stale"}
        for one in told:
            assert one["error"]["facts"] == {"term": TERM, "led": TERM, "leader": "m"}
        # A web socket takes the connection; who is not even former gets no other one.
        wanted = [
            LineRequest(replace(WEB, kind=kind), term)
            for kind in ("serial", "vnc")
            for term in (0, TERM, TERM + 1000, 1 << 62)
        ]
        for one in wanted if who == "former" else wanted[:1]:
            assert (await gate.line(one, session))["code"] == "stale"
    assert gate.kept == before
    assert gate.served.machine.ran == []


async def test_a_candidate_gives_no_order_while_another_leads(gate: Gate) -> None:
    before = gate.kept
    told = await gate.said("candidate", every(TERM, marks=("", "2" * 32)))
    asked = zip(every(TERM, marks=("", "2" * 32)), told, strict=True)
    for call, one in asked:
        if one.keys() == {"result"}:
            assert call["verb"] in ASKED, call
        elif call["verb"] not in ASKED:
            assert one["error"]["code"] == "stale", call
    taken = [one for one in await gate.said("candidate", every(0)) if "result" in one]
    assert len(taken) <= len(ASKED)
    async with gate.session("candidate") as session:
        wanted = LineRequest(WEB, TERM)
        assert (await gate.line(wanted, session))["code"] == "stale"
    assert gate.kept == before
    assert gate.served.machine.ran == []


async def test_the_leader_is_refused_none_of_these(gate: Gate) -> None:
    """Else the tests above would show nothing."""
    told = await gate.said("leader", every(TERM))
    for call, one in zip(every(TERM), told, strict=True):
        if call["verb"] == "state.heed":  # a promise is no order
            continue
        assert one.get("error", {}).get("code") != "stale", call
    async with gate.session("leader") as session:
        found = await gate.line(LineRequest(WEB, TERM), session)
    assert found["code"] != "stale"


# -- terms -----------------------------------------------------------------------------

NO_TERMS = (-1, -(1 << 63), 1 << 53, 1 << 63, 1 << 64, 7.5, "7", None)
MOST = (1 << 53) - 1


@pytest.mark.parametrize("who", ["leader", "candidate"])
async def test_what_is_no_term_is_refused_at_each_door(gate: Gate, who: str) -> None:
    """One that no request can carry would shut out all masters."""
    lines = [call | {"term": one} for call in every(0) for one in NO_TERMS]
    told = await gate.said(who, lines)
    assert {one["error"]["code"] for one in told} == {"bad-input"}
    async with gate.session(who) as session:
        for one in NO_TERMS:
            asked = {"line": {"uuid": "web1", "name": "web1"}, "term": one}
            assert (await gate.line(asked, session))["code"] == "bad-input"
        for mark in ("x\n8 y", "a" * 33):
            asked = {"line": {"uuid": "x", "name": "x"}, "term": TERM, "mark": mark}
            assert (await gate.line(asked, session))["code"] == "bad-input"
    assert gate.term == TERM


async def test_of_two_candidates_one_is_promised_a_term(gate: Gate) -> None:
    """And the other gives no order in it, whatever it says first."""
    claim = {"verb": "state.heed", "args": {}, "term": TERM + 100}
    both = ("candidate", "demoted")  # a candidate still
    told = await asyncio.gather(*(gate.said(who, [claim]) for who in both))
    won = [who for who, (one,) in zip(both, told, strict=True) if "result" in one]
    assert len(won) == 1
    (lost,) = {*both} - {*won}
    for who in (lost, "leader"):
        for call in (claim, claim | {"mark": "2" * 32}, order() | {"term": TERM + 100}):
            (said,) = await gate.said(who, [call])
            assert said["error"]["code"] == "stale", who
    (said,) = await gate.said(won[0], [order() | {"term": TERM + 100}])
    assert said.keys() == {"result"}


# -- lists -----------------------------------------------------------------------------


async def test_a_list_is_taken_of_nobody_but_who_leads(gate: Gate) -> None:
    """Whether it is one of before, of another cluster, or the present one."""
    before = gate.kept
    own = gate.certificates("candidate")
    lists = (own, gate.certificates("leader", "candidate"), gate.certificates("former"))
    for certificates in lists:
        for kind in ("keys.masters", "keys.trust"):
            name = "certificates" if kind == "keys.masters" else "authorities"
            call = {"verb": kind, "args": {name: certificates}}
            for term in (TERM - 1, TERM):
                (said,) = await gate.said("candidate", [call | {"term": term}])
                assert said["error"]["code"] == "stale"
    strange = {"certificates": gate.certificates("former"), "issued": 1 << 60}
    (said,) = await gate.said(
        "leader", [{"verb": "keys.masters", "args": strange, "term": TERM}]
    )
    assert "without the one that tells it" in said["error"]["message"]
    assert gate.kept == before


async def test_of_two_lists_the_later_one_counts_whichever_comes_last(
    gate: Gate,
) -> None:
    """One that was held up on its way would let in again who was taken back."""
    early = {"certificates": gate.certificates("leader", "candidate", "demoted")}
    late = {"certificates": gate.certificates("leader", "candidate")}
    call = {"verb": "keys.masters", "term": TERM, "mark": "1" * 32}
    (said,) = await gate.said("leader", [call | {"args": late, "number": 1002}])
    assert said.keys() == {"result"}
    (said,) = await gate.said("leader", [call | {"args": early, "number": 1001}])
    assert said["error"]["code"] == "stale"
    (said,) = await gate.said("demoted", [ASKS])
    assert said["error"]["code"] == "stale"


async def test_whom_a_key_let_in_that_was_taken_back_goes_with_it(
    gate: Gate, tmp_path: Path
) -> None:
    """A thief who is a candidate may sign as many keys as it likes, of any date."""
    ahead = Authority(gate.keys["demoted"].directory, lambda: 9e9)
    gate.keys["child"] = vouched(ahead, tmp_path / "child")
    async with gate.session("child") as session:
        (said,) = await gate.said("child", [ASKS], session)
        assert said.keys() == {"result"}  # as long as its parent is one
        await gate.take_back()
        (said,) = await gate.said("child", [ASKS], session)
        assert said["error"]["code"] == "stale"
    with pytest.raises(aiohttp.ClientError):
        await gate.said("child", [ASKS])


async def test_a_candidate_lets_nobody_in_as_the_leader(
    gate: Gate, tmp_path: Path
) -> None:
    """A key that follows another one has its rights: whose it is, the signer says."""
    candidate, leader = gate.keys["candidate"], gate.keys["leader"]
    key = tls.new_key()
    later = Authority(candidate.directory, lambda: 9e9)
    signed = later._sign(key.public_key(), tls.who(leader.own))
    gate.keys["false"] = lodged(candidate, tmp_path / "false", key, signed)
    told = await gate.said("false", every(TERM))
    for call, one in zip(every(TERM), told, strict=True):
        assert call["verb"] in ASKED or one["error"]["code"] == "stale", call


async def test_another_clusters_master_is_nobody(
    gate: Gate, other_authority: Authority
) -> None:
    others = other_authority.directory / "ca.pem"
    others.write_bytes((gate.keys["leader"].directory / "ca.pem").read_bytes())
    gate.keys["stranger"] = Authority(other_authority.directory)
    with pytest.raises(aiohttp.ClientError):
        await gate.said("stranger", [ASKS])


async def test_a_clock_that_was_ahead_lets_nobody_in_again(
    gate: Gate, authority: Authority, tmp_path: Path
) -> None:
    """Who was let in while it was, has a later date than the list without it."""
    ahead = Authority(authority.directory, lambda: authority.clock() + 86400.0)
    gate.keys["ahead"] = vouched(ahead, tmp_path / "ahead")
    (said,) = await gate.said("ahead", [ASKS])  # the master vouches for it
    assert said.keys() == {"result"}
    gate.keys["leader"] = Authority(authority.directory)  # as after a start
    await gate.tell("candidate")
    (said,) = await gate.said("ahead", [ASKS])
    assert said["error"]["code"] == "stale"


def test_the_next_master_knows_the_dates_of_those_on_record(
    authority: Authority, tmp_path: Path
) -> None:
    """It tells all nodes who is on record before it takes anybody back."""
    ahead = Authority(authority.directory, lambda: authority.clock() + 86400.0)
    late, other = (vouched(ahead, tmp_path / name) for name in ("late", "next"))
    texts = tuple(tls.pem(one.own).decode() for one in (other, late))
    issued = [
        key_issuing.outgoing(other, "n", TrustMasters(certificates=known)).issued
        for known in (texts, texts[:1])
    ]
    assert min(issued) >= late.own.serial_number >> tls.RANDOM_BITS
    assert max(issued) < 2 * min(issued)


# -- who hangs up ----------------------------------------------------------------------


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


# -- what was opened by order of a key -------------------------------------------------


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
