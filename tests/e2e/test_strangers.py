# SPDX-License-Identifier: BSD-2-Clause
"""Strangers at the ports of an agent that is a process of its own."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from moorage import durable
from moorage.daemons import agent, process
from moorage.daemons.paths import NodePlaces
from moorage.model import Node
from moorage.model.token import from_text
from moorage.node.calling import letting_in
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.protocol import GetFacts
from support.ports import free_port

MANY = 3000
HERE = "127.0.0.1"
GROWTH = 150
"""MiB that they may cost: a place in TLS is a third of one, and there are 128."""
LOG = 100_000
"""Bytes that an agent may have to say about it."""

pytestmark = pytest.mark.slow


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def places(tmp_path: Path, port: int) -> NodePlaces:
    found = NodePlaces(tmp_path / "node1")
    settings = agent.Settings(address=HERE, port=port, hypervisor="fake")
    agent.write_settings(found, settings)
    found.logs.mkdir()
    return found


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "master").mkdir()
    return Authority.make(tmp_path / "master", "one")


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority)
    yield found
    await found.close()


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Allow this process all the connections that it makes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MANY + 1000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def started(places: NodePlaces, sign: Path) -> int:
    """Start the agent; return its pid when the file is there that tells it is up."""
    pid = process.spawn(["agent", str(places.root)], places.log)
    assert process.wait_until(sign.exists, 60), places.log.read_text()
    return pid


@pytest.fixture
def pid(places: NodePlaces, authority: Authority) -> Iterator[int]:
    """Run an agent that belongs to a cluster; return its process."""
    durable.make(places.keys)
    key = tls.new_key()
    signed = authority.sign_node(tls.self_signed(key, "node1"), "node1")
    durable.write(places.keys / "node.key", tls.key_pem(key))
    durable.write(places.keys / "ca.pem", tls.pem(authority.own))
    durable.write(places.keys / "name", b"node1")
    durable.write(places.keys / "node.pem", tls.pem(signed))
    found = started(places, places.serving)
    yield found
    process.end(found)


@pytest.fixture
def newcomer(places: NodePlaces) -> Iterator[int]:
    """Run an agent that waits to be let in; return its process."""
    found = started(places, places.token)
    yield found
    process.end(found)


def memory(pid: int) -> int:
    """Return what a process has in memory, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (one for one in status.splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


async def crowd(stack: ExitStack, port: int, said: bytes = b"") -> None:
    """Come with thousands, and stay; some say something that begins well."""
    for number in range(MANY):
        one = stack.enter_context(socket.socket())
        one.settimeout(30)
        with suppress(OSError):
            one.connect((HERE, port))
            if number % 2:
                one.send(said)
        if not number % 100:
            await asyncio.sleep(0)


async def ask(nodes: HttpNodes, port: int) -> None:
    fields = {"primary_ip": HERE, "secondary_ip": HERE, "group": "g"}
    node = Node(uuid="node1", name="node1", port=port, **fields)
    facts = await nodes.call(node, GetFacts(), 1, lambda *_: None)
    assert facts.version


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02"], ids=["silent", "half TLS"])
@pytest.mark.usefixtures("descriptors")
async def test_thousands_of_strangers_do_not_keep_the_master_out(
    places: NodePlaces, pid: int, port: int, nodes: HttpNodes, said: bytes
) -> None:
    """A master asks within the limits of its request, and the agent stays small."""
    await ask(nodes, port)
    before = memory(pid)
    with ExitStack() as stack:
        await crowd(stack, port, said)
        await nodes.close()  # its connection was there before the strangers
        await ask(nodes, port)
        assert memory(pid) < before + GROWTH
    assert places.log.stat().st_size < LOG


@pytest.mark.usefixtures("descriptors")
async def test_strangers_cannot_use_up_the_descriptors(
    places: NodePlaces, pid: int, port: int, nodes: HttpNodes
) -> None:
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (200, 200))
    with ExitStack() as stack:
        await crowd(stack, port)
        await ask(nodes, port)
    assert places.log.stat().st_size < LOG


@pytest.mark.usefixtures("descriptors")
async def test_strangers_do_not_keep_a_node_from_joining(
    places: NodePlaces, newcomer: int, port: int, authority: Authority
) -> None:
    before = memory(newcomer)
    with ExitStack() as stack:
        await crowd(stack, port, b"\x16\x03\x01\x02")
        token = from_text(places.token.read_text().strip())
        await letting_in.let_in(authority, token, "node1")
        assert memory(newcomer) < before + GROWTH
        assert process.wait_until(places.serving.exists, 60)
