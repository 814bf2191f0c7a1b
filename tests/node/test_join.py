# SPDX-License-Identifier: BSD-2-Clause
"""The door that a node opens once, to whoever holds its token."""

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, Failed, MoorageError, Unreachable
from moorage.model import Node
from moorage.model.token import Token, from_text, to_text
from moorage.node import server
from moorage.node.agent import Agent
from moorage.node.calling import letting_in
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.doors import enrolment
from moorage.protocol import EnrolNode
from moorage.testing.machine import SimMachine
from moorage.testing.storage import San
from support.ports import free_port


@dataclass
class Door:
    """A node that waits to be let in."""

    keys: Path
    shown: Path
    task: asyncio.Task[None]

    @property
    def token(self) -> Token:
        return from_text(self.shown.read_text())


async def opened(directory: Path, port: int) -> Door:
    keys, shown = directory / "keys", directory / "token"
    directory.mkdir(exist_ok=True)
    coming = enrolment.open_door(keys, "127.0.0.1", port, shown)
    task = asyncio.create_task(coming)
    while not shown.exists():
        await asyncio.sleep(0.01)
        if task.done():
            task.result()
    return Door(keys, shown, task)


async def shut(door: Door) -> None:
    door.task.cancel()
    await asyncio.wait({door.task})


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    found = await opened(tmp_path / "node", free_port())
    yield found
    await shut(found)


async def said(door: Door, path: str, **more: Any) -> tuple[int, str]:
    """Return the door's answer to a request of whoever found its port."""
    url = f"https://127.0.0.1:{door.token.port}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, ssl=False, **more) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_node_is_let_in_once(door: Door, authority: Authority) -> None:
    token = door.token
    assert not enrolment.joined(door.keys)
    await letting_in.let_in(authority, token, "node7")
    await asyncio.wait_for(door.task, 60)
    assert enrolment.joined(door.keys)
    assert (door.keys / "name").read_text() == "node7"
    assert not door.shown.exists()
    assert {path.name for path in door.keys.iterdir()} == {
        *("ca.pem", "issued", "name", "node.key", "node.pem")
    }
    with pytest.raises(Unreachable) as caught:
        await letting_in.let_in(authority, token, "node8")
    assert "node node8 does not open its door at 127.0.0.1:" in caught.value.message
    assert caught.value.hint.startswith("is its agent running")


async def test_the_token_and_the_keys_are_private(door: Door) -> None:
    for path in (door.shown, *door.keys.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_another_cluster_may_not_use_it_after_that(
    door: Door, authority: Authority, other_authority: Authority
) -> None:
    token = door.token
    both = [
        letting_in.let_in(one, token, name)
        for one, name in ((authority, "node1"), (other_authority, "node1"))
    ]
    ended = await asyncio.gather(*both, return_exceptions=True)
    assert sum(one is None for one in ended) == 1
    (refused,) = (one for one in ended if one is not None)
    assert isinstance(refused, Failed)
    winner = (authority, other_authority)[ended.index(None)]
    assert (door.keys / "ca.pem").read_bytes() == tls.pem(winner.own)


async def test_a_wrong_secret_opens_nothing(door: Door, authority: Authority) -> None:
    wrong = replace(door.token, secret="x" * 32)
    with pytest.raises(Failed, match="node1 does not accept the token") as caught:
        await letting_in.let_in(authority, wrong, "node1")
    assert not isinstance(caught.value, Unreachable)
    assert not enrolment.joined(door.keys)
    await letting_in.let_in(authority, door.token, "node1")


async def test_a_token_of_an_earlier_start_is_over(
    door: Door, authority: Authority, tmp_path: Path
) -> None:
    old = door.token
    await shut(door)
    assert not door.shown.exists()
    again = await opened(tmp_path / "node", old.port)
    try:
        with pytest.raises(Unreachable, match="does not open its door") as caught:
            await letting_in.let_in(authority, old, "node1")
        assert caught.value.facts["sent"] is False
        assert not enrolment.joined(again.keys)
    finally:
        await shut(again)


async def test_somebody_else_at_the_address_learns_no_secret(
    door: Door, authority: Authority, tmp_path: Path
) -> None:
    impostor = await opened(tmp_path / "impostor", free_port())
    try:
        led = replace(door.token, port=impostor.token.port)
        with pytest.raises(Unreachable):
            await letting_in.let_in(authority, led, "node1")
    finally:
        await shut(impostor)


def broken() -> list[Token]:
    good = Token("127.0.0.1", 9, "00" * 32, "secret")
    return [
        replace(good, fingerprint="no hex"),
        replace(good, fingerprint="00"),
        replace(good, fingerprint=""),
        replace(good, port=99_999_999),
        replace(good, port=-1),
        replace(good, address="no address/at all"),
        replace(good, address=""),
        replace(good, address="nowhere.invalid"),
    ]


@pytest.mark.parametrize("token", broken(), ids=str)
async def test_a_token_that_somebody_tampered_with_is_one_sentence(
    token: Token, authority: Authority
) -> None:
    with pytest.raises(MoorageError) as caught:
        await letting_in.let_in(authority, from_text(to_text(token)), "node1")
    assert caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("word", ["", "x", "no token", "e30", "ÄÖÜ", "AAAA" * 9])
def test_a_garbled_token_is_bad_input(word: str) -> None:
    with pytest.raises(BadInput, match="that is no token of a node") as caught:
        from_text(word)
    assert "join-token" in caught.value.hint


def bodies(secret: str) -> list[tuple[str, dict[str, Any], int]]:
    right = {"secret": secret}
    return [
        ("/show", {"data": b"\xff\x00"}, 400),
        ("/show", {"json": ["secret"]}, 400),
        ("/show", {"json": {}}, 403),
        ("/show", {"json": {"secret": None}}, 403),
        ("/show", {"json": {"secret": "Ä"}}, 403),
        ("/take", {"json": {"secret": "x"}}, 403),
        ("/take", {"json": right}, 400),
        ("/take", {"json": right | taken(name=7)}, 400),
        ("/take", {"json": right | taken(certificate="none")}, 400),
        ("/take", {"json": right | taken(authority="none")}, 400),
        ("/call", {"json": right}, 404),
    ]


def taken(**off: Any) -> dict[str, Any]:
    key = tls.new_key()
    good = tls.pem(tls.self_signed(key, "x")).decode()
    return {"name": "node1", "authority": good, "certificate": good} | off


async def test_a_malformed_request_is_one_sentence_and_changes_nothing(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    for path, more, expected in bodies(door.token.secret):
        status, text = await said(door, path, **more)
        assert (status, len(text.splitlines())) == (expected, 1), (path, more, text)
    assert not enrolment.joined(door.keys)
    assert {path.name for path in door.keys.iterdir()} == {"door.pem", "node.key"}
    assert "Traceback" not in caplog.text


async def test_a_certificate_for_another_key_is_not_taken(
    door: Door, authority: Authority
) -> None:
    key = tls.new_key()
    signed = authority.sign_node(tls.self_signed(key, "node1"), "node1")
    given = {
        "secret": door.token.secret,
        "name": "node1",
        "authority": tls.pem(authority.certificate).decode(),
        "certificate": tls.pem(signed).decode(),
    }
    status, text = await said(door, "/take", json=given)
    assert (status, text) == (400, "the certificate is for another key")
    assert not enrolment.joined(door.keys)


async def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken_already:
        taken_already.bind(("127.0.0.1", 0))
        taken_already.listen()
        port = taken_already.getsockname()[1]
        shown = tmp_path / "token"
        with pytest.raises(Failed, match=f"cannot listen at 127.0.0.1:{port}"):
            await enrolment.open_door(tmp_path / "keys", "127.0.0.1", port, shown)
    assert not shown.exists()


async def test_enrolling_through_the_masters_way(
    authority: Authority, tmp_path: Path
) -> None:
    door = await opened(tmp_path / "node", free_port())
    word, port = door.shown.read_text(), door.token.port

    async def go_in() -> Any:
        await door.task
        await asyncio.sleep(0.2)  # a process needs a moment to turn round
        agent = Agent("node3", tmp_path / "run", SimMachine("node3", San()), {})
        return await server.serve(agent, Keys(door.keys), "127.0.0.1", port)

    nodes = HttpNodes(authority)
    ip = "127.0.0.1"
    node = Node(
        uuid="u", name="node3", primary_ip=ip, secondary_ip=ip, group="g", port=port
    )
    serving = asyncio.create_task(go_in())
    call = EnrolNode(token=word)
    try:
        found = await nodes.call(node, call, 1, lambda *_: None)
    finally:
        await nodes.close()
        await (await serving).cleanup()
    assert found.version
