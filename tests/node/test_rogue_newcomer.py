# SPDX-License-Identifier: BSD-2-Clause
"""A new node that means harm before it is let in: its door answers anything."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from moorage import durable
from moorage.errors import MoorageError
from moorage.model.token import Token
from moorage.node.calling import letting_in
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
BOMB = gzip.compress(bytes(200_000_000), 1)


@asynccontextmanager
async def door(top: Path, answer: bytes, more: bytes = b"") -> AsyncIterator[Token]:
    """Serve at a door of one's own; `more` is said again and again."""
    key = tls.new_key()
    certificate = tls.self_signed(key, "newcomer")
    durable.write(top / "key.pem", tls.key_pem(key))
    durable.write(top / "door.pem", tls.pem(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(top / "door.pem", top / "key.pem")

    async def meet(reader: Any, writer: Any) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            while more:
                writer.write(more)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(meet, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        yield Token("127.0.0.1", port, tls.pin(key.public_key()), "secret")


def head(length: int, *more: bytes) -> bytes:
    return b"\r\n".join([OK + b"Content-Length: %d" % length, *more, b"", b""])


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        (OK + b"\r\n", b"x" * 65536),
        (head(len(BOMB), b"Content-Encoding: gzip") + BOMB, b""),
        (OK + b"\r\n" + b"[" * 60_000, b""),
        (OK + b"\r\n" + json.encode({"certificate": 5}), b""),
        (OK + b"\r\n" + json.encode({"certificate": "none"}), b""),
        (OK + b"\r\n" + b"\xff\xfe", b""),
        (b"HTTP/1.1 500 Sorry\r\n\r\n", b""),
    ],
    ids=["endless", "gzip", "nested", "number", "no PEM", "no text", "refused"],
)
async def test_a_door_that_answers_anything_is_one_sentence(
    tmp_path: Path, authority: Authority, answer: bytes, more: bytes
) -> None:
    async with door(tmp_path, answer, more) as token:
        with pytest.raises(MoorageError) as caught:
            async with asyncio.timeout(15):  # less than a door's own patience
                await letting_in.let_in(authority, token, "node9")
    assert "node node9" in caught.value.message
    assert "\n" not in caught.value.message


async def test_nothing_that_a_door_shows_is_unpacked(
    tmp_path: Path, authority: Authority
) -> None:
    certificate = tls.pem(tls.self_signed(tls.new_key(), "newcomer")).decode()
    said = json.encode({"certificate": certificate})
    for body, more in ((said, ()), (gzip.compress(said), (b"Content-Encoding: gzip",))):
        async with door(tmp_path, head(len(body), *more) + body) as token:
            if not more:  # the same in clear is taken
                await letting_in.let_in(authority, token, "node9")
                continue
            with pytest.raises(MoorageError, match="no certificate"):
                await letting_in.let_in(authority, token, "node9")


async def test_a_door_leads_nowhere_else(tmp_path: Path, authority: Authority) -> None:
    asked = asyncio.Event()
    elsewhere = await asyncio.start_server(lambda *_: asked.set(), "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    led = f"HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:{port}/\r\n\r\n"
    async with door(tmp_path, led.encode()) as token:
        with pytest.raises(MoorageError, match="HTTP 302"):
            await letting_in.let_in(authority, token, "node9")
    elsewhere.close()
    assert not asked.is_set()
