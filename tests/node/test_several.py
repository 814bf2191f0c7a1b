# SPDX-License-Identifier: BSD-2-Clause
"""Several questions to one node: in one request, and on one connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from msgspec import json

from moorage.errors import BadInput, NotFound, Stale, Unreachable
from moorage.model import NodeFacts
from moorage.node import wire
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.protocol import (
    GetDevices,
    GetFacts,
    GetGuest,
    ListGuests,
    ListSystems,
    Verb,
)
from moorage.protocol.sender import Sender

pytestmark = pytest.mark.memory

ASKED = (ListGuests(), ListSystems())


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=2, silence=1)
    yield found
    await found.close()


class Stranger:
    """Answers in the agent's place, and notes what it was asked.

    Attributes
    ----------
    bodies
        Of the requests.
    connections
        On which they came.
    """

    def __init__(self, newest: int, answer: bytes = b"") -> None:
        self.bodies: list[bytes] = []
        self.connections: set[Any] = set()
        self._told = json.encode(Sender(newest=newest)).decode()
        self._answer = answer

    async def call(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.connections.add(request.transport)
        self.look(self.requests[-1])
        told = web.StreamResponse(headers={wire.SENDER: self._told})
        await told.prepare(request)
        asked = self.bodies[-1].split(b"\n")
        await told.write(self._answer or b'{"result": []}\n' * len(asked))
        await told.write_eof()
        return told

    def look(self, count: int) -> None:
        """Become another one, perhaps, when so many calls come."""

    async def serve(self, port: int, context: ssl.SSLContext) -> web.AppRunner:
        app = web.Application()
        app.add_routes([web.post("/call", self.call)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        return runner

    @property
    def requests(self) -> list[int]:
        """How many calls came in each request."""
        return [len(body.split(b"\n")) for body in self.bodies]


class Downgraded(Stranger):
    """Gives its place to an older one as soon as several calls come."""

    def look(self, count: int) -> None:
        if count > 1:
            self._told = json.encode(Sender(newest=2)).decode()
            no_call = BadInput("the request is not JSON").to_json()
            self._answer = json.encode({"error": no_call}) + b"\n"
        else:
            self._answer = b""


async def ask_stranger(
    served: Any,
    nodes: HttpNodes,
    stranger: Stranger,
    times: int,
    asked: Sequence[Verb[object]] = ASKED,
) -> list[list[object]]:
    await served.stop()
    runner = await stranger.serve(served.port, tls.serving(served.keys))
    try:
        return [await nodes.ask(served.node, asked, 1) for _ in range(times)]
    finally:
        await runner.cleanup()


async def test_they_go_together_to_a_node_that_takes_them_so(
    served: Any, nodes: HttpNodes
) -> None:
    """What it takes it says with each answer; until then it is asked one by one."""
    stranger = Stranger(newest=3)
    assert await ask_stranger(served, nodes, stranger, 3) == [[[], []]] * 3
    assert stranger.requests == [1, 1, 2, 2]
    assert len(stranger.connections) == 1


async def test_an_older_node_is_asked_one_by_one(served: Any, nodes: HttpNodes) -> None:
    stranger = Stranger(newest=2)
    assert await ask_stranger(served, nodes, stranger, 2) == [[[], []]] * 2
    assert stranger.requests == [1, 1, 1, 1]


async def test_what_was_said_before_the_line_broke_counts(
    served: Any, nodes: HttpNodes
) -> None:
    stranger = Stranger(newest=3, answer=b'{"result": []}\n')
    _, (first, second) = await ask_stranger(served, nodes, stranger, 2)
    assert isinstance(second, Unreachable)
    assert second.facts["sent"] is True
    assert first == []


async def test_a_call_that_fails_does_not_keep_the_others_from_an_answer(
    served: Any, nodes: HttpNodes
) -> None:
    refusal = {"error": NotFound("no such guest").to_json()}
    told = json.encode(refusal) + b'\n{"result": []}\n'
    stranger = Stranger(newest=3, answer=told)
    _, (refused, systems) = await ask_stranger(served, nodes, stranger, 2)
    assert isinstance(refused, NotFound)
    assert refused.message == "no such guest"
    assert systems == []


async def test_an_agent_answers_each(served: Any, nodes: HttpNodes) -> None:
    for _ in range(2):  # one by one, then together
        guests, facts = await nodes.ask(served.node, (ListGuests(), GetFacts()), 1)
        assert guests == []
        assert isinstance(facts, NodeFacts)
        assert facts.certificate_ends  # it comes from the connection


async def test_a_later_master_is_told_of_by_every_answer(
    served: Any, nodes: HttpNodes
) -> None:
    await nodes.ask(served.node, ASKED, 8)
    for error in await nodes.ask(served.node, ASKED, 7):
        assert isinstance(error, Stale)
        assert error.message.startswith("node node1 refuses this master")


async def test_a_line_that_is_no_call_is_refused_alone(
    served: Any, nodes: HttpNodes, authority: Authority
) -> None:
    """It is in its place among the answers, so that none is taken for another's."""
    good = nodes.exchange._request(ListGuests(), 1)
    made = nodes.exchange._open()
    at = f"https://127.0.0.1:{served.port}/call"
    body, context = good + b"\n{\n" + good, authority.asking()
    async with made.post(at, data=body, ssl=context, server_hostname="node1") as told:
        lines = [json.decode(line) for line in (await told.read()).splitlines()]
    assert [list(one) for one in lines] == [["result"], ["error"], ["result"]]
    assert lines[1]["error"]["code"] == BadInput.code


async def test_an_agent_that_became_an_older_one_is_asked_again_one_by_one(
    served: Any, nodes: HttpNodes
) -> None:
    """It takes several for one that is no JSON, and says so once."""
    stranger = Downgraded(newest=3)
    first, second = await ask_stranger(served, nodes, stranger, 2)
    assert first == second == [[], []]
    assert stranger.requests == [1, 1, 2, 1, 1]


async def test_each_answer_is_bounded_by_its_own_verb(
    served: Any, nodes: HttpNodes
) -> None:
    asked = (ListGuests(), GetGuest(uuid="u"))
    long = b'{"alive": true, "x": "' + b"x" * (2 << 20) + b'"}\n'
    told = long + b'{"result": []}\n' + long + b'{"result": null}\n'
    stranger = Stranger(newest=3, answer=told)
    _, (guests, refused) = await ask_stranger(served, nodes, stranger, 2, asked)
    assert guests == []
    assert isinstance(refused, Unreachable)
    assert "a line is longer than 1 MiB" in refused.message


async def test_each_call_has_a_limit_of_its_own(
    served: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that does not come has no more time when others were asked for, too."""
    nodes = HttpNodes(authority)  # with patience for an agent that shows it is alive

    done = asyncio.Event()

    async def hang(_path: str) -> None:
        await done.wait()

    await nodes.ask(served.node, ASKED, 1)
    monkeypatch.setattr(GetDevices, "limit", 0.2)
    monkeypatch.setattr(served.machine, "device", hang)
    async with asyncio.timeout(5):
        asked = (ListGuests(), GetDevices(paths=("/dev/a",)))
        guests, devices = await nodes.ask(served.node, asked, 1)
    done.set()
    await nodes.close()
    assert guests == []
    assert isinstance(devices, Unreachable)
    assert devices.facts["sent"] is True
