# SPDX-License-Identifier: BSD-2-Clause
"""A node whose key the master knows, and one that has others at its address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from moorage.errors import Unreachable, may_be_off
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.protocol import Call

from .conftest import Served

DAY = 86400.0


def pin_of(keys: Path) -> str:
    certificate = tls.load_certificate((keys / "node.pem").read_bytes())
    return tls.pin(tls.public(certificate))


def known(served: Served) -> Any:
    """Return the node's record, with the key that it serves with."""
    return replace(served.node, pins=(pin_of(served.keys),))


async def call(nodes: HttpNodes, node: Any, verb: str = "facts", **args: Any) -> Any:
    return await nodes.call(
        node, convert({"verb": verb, **args}, Call), 1, lambda *_: None
    )


async def unreachable(nodes: HttpNodes, node: Any, verb: str = "facts") -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        await call(nodes, node, verb)
    assert not may_be_off(caught.value)  # somebody is there: it is not marked offline
    assert caught.value.facts["sent"] is False
    return caught.value


@asynccontextmanager
async def rogue(served: Served, keys: Path) -> AsyncIterator[list[bytes]]:
    """Serve at the node's address with other keys; yields what was sent there."""
    await served.stop()
    heard: list[bytes] = []

    async def meet(reader: asyncio.StreamReader, writer: Any) -> None:
        heard.append(await reader.read(100))
        writer.close()

    context = tls.serving(keys)
    other = await asyncio.start_server(meet, "127.0.0.1", served.port, ssl=context)
    try:
        yield heard
    finally:
        other.close()
        await other.wait_closed()


async def renewed(nodes: HttpNodes, node: Any, **more: Any) -> Any:
    """Give a node a new key; return its record with that one alone."""
    asked = await call(nodes, node, "authority.request")
    both = replace(node, pins=(asked.shown, asked.pin))
    await call(nodes, both, "authority.sign", request=asked.request, **more)
    return replace(node, pins=(asked.pin,))
