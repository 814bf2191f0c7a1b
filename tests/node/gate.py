# SPDX-License-Identifier: BSD-2-Clause
"""A node whose leader is known, and others who had keys, at its door."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from msgspec import json

from moorage import durable
from moorage.model import Disk
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.verbs import VERBS
from moorage.protocol import CreateDisk, TrustMasters, name_of, to_wire
from moorage.protocol.line import GuestLine
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


async def gate_at(served: Served, authority: Authority, path: Path) -> Gate:
    """Return the gate of a node; what others have lies below `path`."""
    others = {
        who: vouched(authority, path / who)
        for who in ("candidate", "former", "demoted")
    }
    shutil.copytree(authority.directory, path / "copied")
    copied = Authority(path / "copied")
    found = Gate(served, {"leader": authority, "copied": copied} | others)
    await found.tell("candidate", "demoted")
    return found
