# SPDX-License-Identifier: BSD-2-Clause
"""Keys and certificates of nodes and masters have their time."""

import asyncio
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage import durable
from moorage.errors import BadInput, Failed, WrongState
from moorage.node import server
from moorage.node.agent import Agent
from moorage.node.calling import key_issuing
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.doors import listening
from moorage.protocol import GetFacts, ListGuests, RequestKey

from .conftest import Served
from .pinned import DAY, call, known, renewed, unreachable

pytestmark = pytest.mark.memory


async def test_a_node_takes_a_new_key_while_it_serves(
    served: Served, nodes: HttpNodes
) -> None:
    node = known(served)
    after = await renewed(nodes, node)
    assert after.pins != node.pins
    await call(nodes, after)
    await unreachable(nodes, node)
    assert {path.name for path in served.keys.iterdir()} == {"ca.pem", "node.pem"}
    await served.stop()
    await served.start()  # it is the key on its disk, too
    await call(nodes, await renewed(nodes, after))


async def test_verbs_under_way_survive_a_new_key(
    served: Served, nodes: HttpNodes
) -> None:
    node = known(served)
    lasting = asyncio.create_task(call(nodes, node, "delay", seconds=0.4))
    await asyncio.sleep(0.1)
    await renewed(nodes, node)
    await lasting


async def test_a_request_is_the_same_until_it_was_granted(
    served: Served, nodes: HttpNodes
) -> None:
    node = known(served)
    first = await call(nodes, node, "authority.request")
    await served.stop()
    await served.start()
    assert (await call(nodes, node, "authority.request")).pin == first.pin
    done = await renewed(nodes, node)
    again = await call(nodes, done, "authority.sign", request=first.request)
    assert again is None  # a step that comes twice
    assert (await call(nodes, done, "authority.request")).pin != first.pin


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_power_cut_leaves_the_old_pair_or_the_new_one(
    cut: str, served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    node = known(served)
    asked = await call(nodes, node, "authority.request")
    both = replace(node, pins=(asked.shown, asked.pin))
    if cut == "after":  # node.pem was written, and nothing else
        signed = authority.sign_node(tls.load_request(asked.request.encode()), "node1")
        pair = (served.keys / "next.key").read_bytes() + tls.pem(signed)
        durable.write(served.keys / "node.pem", pair)
    await served.stop()
    await served.start()
    await call(nodes, both)
    await call(nodes, await renewed(nodes, both))


async def test_a_certificate_for_another_key_is_not_taken(
    served: Served, authority: Authority
) -> None:
    keys = Keys(served.keys)
    other = authority.sign_node(tls.self_signed(tls.new_key(), "x"), "node1")
    before = (served.keys / "node.pem").read_bytes()
    for text in (tls.pem(other).decode(), "no certificate"):
        with pytest.raises(BadInput):
            keys.take(text)
    for authorities in ((), ("no certificate",)):
        with pytest.raises(BadInput):
            keys.trust(authorities)
    assert (served.keys / "node.pem").read_bytes() == before


def test_a_request_of_somebody_else_is_not_signed(authority: Authority) -> None:
    text = tls.request_pem(tls.request(tls.new_key(), "x")).decode()
    lines = text.splitlines()
    forged = "\n".join([*lines[:-2], "A" * len(lines[-2]), lines[-1]])
    with pytest.raises(BadInput, match="what node node1 wants to have signed"):
        key_issuing.incoming(authority, "node1", RequestKey(), forged, "")


async def test_nodes_certificates_live_a_year_and_those_of_masters_ten(
    authority: Authority,
) -> None:
    now = authority.clock()
    signed = authority.sign_node(tls.self_signed(tls.new_key(), "n"), "n")
    for certificate, days in (
        (signed, 365),
        (authority.own, 3650),
        (authority.certificate, 3650),
    ):
        assert round((tls.ends(certificate) - now) / DAY) == days


async def test_an_expired_node_is_named_and_can_be_renewed(
    served: Served, tmp_path: Path
) -> None:
    now = Authority(tmp_path / "master").clock()
    later = HttpNodes(Authority(tmp_path / "master", lambda: now + 400 * DAY))
    node = known(served)
    try:
        error = await unreachable(later, node)
        assert "no trust in its certificate: it expired on " in error.message
        assert error.hint == "gnt-cluster renew-crypto --new-node-certificates"
        assert await call(later, node, "guests") == []
        await call(later, await renewed(later, node))
    finally:
        await later.close()


async def test_a_stranger_gets_no_certificate_because_the_old_one_expired(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """Without a pin nobody knows whose key an expired certificate is for."""
    now = authority.clock()
    later = HttpNodes(Authority(tmp_path / "master", lambda: now + 400 * DAY))
    try:
        await unreachable(later, served.node, "authority.request")
    finally:
        await later.close()


async def test_the_master_renews_its_own_certificate_in_time(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    now = authority.clock()
    clock = [now]
    aging = Authority(tmp_path / "master", lambda: clock[0])
    nodes = HttpNodes(aging)
    try:
        first = aging.own
        await call(nodes, known(served), "guests")
        assert aging.own == first
        clock[0] = now + (3650 - 119) * DAY
        await call(nodes, known(served), "guests")
        assert aging.own != first
    finally:
        await nodes.close()


def test_a_renewal_that_is_carried_on_late_gives_what_was_promised(
    authority: Authority,
) -> None:
    """Nodes and the record know that key, and no other one that may follow."""
    promised = tls.pem(authority.prepare_master()).decode()
    os.utime(authority.directory / "next-master.pem", (0, 0))
    authority.renew_master(promised)
    assert authority.own_text()[0] == promised


async def test_it_is_renewed_for_questions_that_go_together(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    now = authority.clock()
    clock = [now]
    aging = Authority(tmp_path / "master", lambda: clock[0])
    nodes, asked = HttpNodes(aging), (ListGuests(), ListGuests())
    try:
        await nodes.ask(known(served), asked, 1)  # from now on they go together
        first = aging.own
        clock[0] = now + (3650 - 119) * DAY
        assert await nodes.ask(known(served), asked, 1) == [[], []]
        assert aging.own != first
    finally:
        await nodes.close()


class ReadOnly(Authority):
    """An authority on a file system that takes nothing any more."""

    def renew_master(self, promised: str = "") -> None:  # noqa: ARG002
        raise OSError(30, "Read-only file system")


async def test_an_expired_master_says_that_it_is_itself(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    now = authority.clock()
    nodes = HttpNodes(ReadOnly(tmp_path / "master", lambda: now + 3651 * DAY))
    try:
        with pytest.raises(Failed, match="the master's own certificate expired on"):
            await call(nodes, known(served))
        (error,) = await nodes.ask(known(served), [GetFacts()], 1)
        assert isinstance(error, Failed)
    finally:
        await nodes.close()


async def test_a_node_says_that_the_masters_certificate_is_over(
    tmp_path: Path, served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    """Its clock is another one, so the master does not see it."""
    await served.stop()
    now = authority.clock()
    keys = Keys(served.keys)
    agent = Agent("node1", tmp_path, served.machine, {}, keys=keys)
    app = server.application(agent, clock=lambda: now + 3651 * DAY)
    runner = server.web.AppRunner(app)
    await runner.setup()
    await listening.listen(
        runner, "127.0.0.1", served.port, keys.context, server.STRANGERS
    )
    try:
        with pytest.raises(WrongState, match="the master's certificate expired on"):
            await call(nodes, known(served))
    finally:
        await runner.cleanup()
