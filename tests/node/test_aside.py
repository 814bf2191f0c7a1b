# SPDX-License-Identifier: BSD-2-Clause
"""Agents that are asked from another thread: as from the loop itself."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, Stale, Unreachable
from moorage.model import Disk, Provider
from moorage.node.calling.aside import NodesAside
from moorage.node.certificates import tls
from moorage.protocol import (
    CreateDisk,
    GetFacts,
    ListGuests,
    ListProviders,
    MakeRequest,
    RunHooks,
    silent,
)
from moorage.protocol.line import GuestLine
from moorage.protocol.sender import ourselves
from moorage.units import Mib

pytestmark = pytest.mark.memory

DISK = Disk(uuid="d", dev_type="ext", size=Mib(1), logical_id=("san", "vol-d"))


@pytest.fixture
async def nodes(served: Any) -> AsyncIterator[NodesAside]:
    found = NodesAside(served.authority, ourselves())
    yield found
    await found.close()


async def test_answers_and_errors_come_back(served: Any, nodes: NodesAside) -> None:
    assert (await nodes.call(served.node, GetFacts(), 7, silent)).memory_total
    facts, guests = await nodes.ask(served.node, [GetFacts(), ListGuests()], 7)
    assert facts.memory_total
    assert guests == []
    with pytest.raises(Stale):
        await nodes.call(served.node, GetFacts(), 6, silent)
    await served.stop()
    with pytest.raises(Unreachable):
        await nodes.call(served.node, GetFacts(), 7, silent)


async def test_no_node_hears_a_master_that_looks_and_leads_no_more(served: Any) -> None:
    over = False

    def look() -> None:
        if over:
            raise ConnectionAbortedError("the lead is over")

    nodes = NodesAside(served.authority, ourselves(), look)
    await nodes.call(served.node, GetFacts(), 7, silent)
    over = True
    for call in (GetFacts(), CreateDisk(disk=DISK)):
        with pytest.raises(Unreachable):
            await nodes.call(served.node, call, 8, silent)
    with pytest.raises(Unreachable):
        await nodes.line(
            served.node, GuestLine(uuid="u", name="i", hypervisor="fake"), 8
        )
    over = False
    await nodes.call(served.node, GetFacts(), 7, silent)  # it has heard no later term
    await nodes.close()


async def test_what_a_node_reports_is_told_before_its_answer_by_the_one_who_asked(
    served: Any, nodes: NodesAside
) -> None:
    told = []

    def report(_done: int, _total: int, _unit: str, note: str) -> None:
        told.append((threading.current_thread(), note))

    ran = served.machine.run

    async def run(command: Any, limit: float, say: Any) -> Any:
        for number in range(100):
            say(0, 0, "log", str(number))
        return await ran(command, limit, say)

    served.machine.run = run
    await nodes.call(served.node, CreateDisk(disk=DISK), 1, report)
    assert [note for _, note in told][:100] == [str(number) for number in range(100)]
    assert {thread for thread, _ in told} == {threading.current_thread()}


async def test_who_waits_no_longer_is_let_go(served: Any, nodes: NodesAside) -> None:
    served.machine.go_on.clear()
    making = asyncio.create_task(
        nodes.call(served.node, CreateDisk(disk=DISK), 1, silent)
    )
    await served.machine.started.wait()
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    served.machine.go_on.set()
    assert await nodes.ask(served.node, [ListGuests()], 1) == [[]]


async def test_what_is_under_way_when_it_closes_is_given_up(
    served: Any, caplog: Any
) -> None:
    nodes = NodesAside(served.authority, ourselves())
    served.machine.go_on.clear()
    making = asyncio.create_task(
        nodes.call(served.node, CreateDisk(disk=DISK), 1, silent)
    )
    await served.machine.started.wait()
    await nodes.close()
    await asyncio.wait([making])
    assert making.cancelled()
    assert "nodes" not in {one.name for one in threading.enumerate()}
    served.machine.go_on.set()
    said = {"was destroyed", "is closed", "never awaited"}
    assert not [one for one in said if one in caplog.text]


async def test_a_line_is_carried_by_the_loop_that_asked(
    served: Any, nodes: NodesAside
) -> None:
    running = {"uuid": "web1", "name": "web1", "state": "running", "memory": 64}
    running |= {"vcpus": 1, "disks": [], "ports": {}}
    served.san.guests[f"{served.name} web1"] = {"state": running}
    await nodes.call(served.node, GetFacts(), 1, silent)
    line = await nodes.line(served.node, GuestLine(uuid="web1", name="web1"), 1)
    await line.write(b"hello")
    assert await line.read()
    await line.close()
    assert (await nodes.call(served.node, GetFacts(), 1, silent)).memory_total


async def test_certificates_are_renewed_by_one_thread_alone(
    served: Any, nodes: NodesAside
) -> None:
    threads, ends = set(), tls.ends(served.authority.own)
    give = served.authority.renew_master

    def renew() -> None:
        threads.add(threading.current_thread().name)
        give()

    served.authority.renew_master = renew
    served.authority.clock = lambda: ends - 86400  # years after the node's own is over
    with pytest.raises(Unreachable, match="it expired on"):
        await nodes.line(served.node, GuestLine(uuid="web1", name="web1"), 1)
    assert threads == {"nodes"}


async def test_a_thread_that_breaks_is_told_of(
    served: Any, nodes: NodesAside, caplog: Any
) -> None:
    def breaks() -> bool:
        asyncio.get_running_loop().call_later(0.2, sys.exit, 3)
        raise BadInput("no keys")

    served.authority.keep = breaks
    with pytest.raises(BadInput):
        await nodes.call(served.node, GetFacts(), 1, silent)
    async with asyncio.timeout(60):
        await nodes.broken.wait()
    assert "nodes can be asked no more" in caplog.text


def kept(nodes: NodesAside) -> list[Any]:
    """Return the connections that are kept for the next call."""
    session = nodes._nodes.exchange._session
    assert session is not None
    assert session.connector is not None
    return [one for many in session.connector._conns.values() for one, _ in many]


async def test_a_kept_connection_takes_little_memory_and_carries_much(
    served: Any, nodes: NodesAside
) -> None:
    """A later Python may have other buffers: then this tells that they are large."""
    many = [Provider(name=f"p{number}", path="/" + "x" * 900) for number in range(900)]
    served.machine.providers = lambda: many
    assert await nodes.call(served.node, ListProviders(), 1, silent) == many
    (connection,) = kept(nodes)
    assert len(connection.transport._ssl_protocol.get_buffer(-1)) <= 4 * 1024


async def test_a_long_request_is_written_bit_by_bit(
    served: Any, nodes: NodesAside
) -> None:
    """The connection keeps room for what it wrote at once.

    The environment of hooks names all nodes, and goes to each of them.
    """
    await nodes.call(served.node, GetFacts(), 1, silent)
    (connection,) = kept(nodes)
    wire = connection.transport._ssl_protocol._transport
    sizes = []

    def write(data: bytes) -> None:
        sizes.append(len(data))
        type(wire).write(wire, data)

    wire.write = write
    env = {"NODE_LIST": " ".join(f"node{number}" for number in range(10_000))}
    asked = RunHooks(operation="1-0", paths=("x",), phase="pre", env=env)
    await nodes.call(served.node, asked, 1, silent)
    assert kept(nodes) == [connection]
    assert sum(sizes) > len(env["NODE_LIST"])
    assert max(sizes) < 6 * 1024


async def test_all_questions_to_a_node_go_by_one_connection(
    served: Any, nodes: NodesAside
) -> None:
    """Those that may be asked of a node whose certificate is over, too."""
    certificate = tls.load_certificate((served.keys / "node.pem").read_bytes())
    pinned = replace(served.node, pins=(tls.pin_of(certificate),))
    for _ in range(2):
        for question in (GetFacts(), ListGuests(), MakeRequest(), ListProviders()):
            await nodes.call(pinned, question, 1, silent)
    assert len(kept(nodes)) == 1


async def test_what_is_asked_at_once_leaves_one_connection(
    served: Any, nodes: NodesAside
) -> None:
    """Each of a thousand takes memory, and what one node is asked at once is rare."""
    asked = (nodes.call(served.node, GetFacts(), 1, silent) for _ in range(5))
    await asyncio.gather(*asked)
    (connection,) = kept(nodes)
    await nodes.call(served.node, GetFacts(), 1, silent)
    assert kept(nodes) == [connection]
