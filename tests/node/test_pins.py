# SPDX-License-Identifier: BSD-2-Clause
"""A node is known by its key, and keys and certificates have their time."""

import asyncio
import os
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from moorage import durable
from moorage.errors import BadInput, Failed, Stale, Unreachable, WrongState, may_be_off
from moorage.node import server
from moorage.node.agent import Agent
from moorage.node.calling import key_issuing
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.doors import listening
from moorage.protocol import Call, GetFacts, ListGuests, RequestKey

from .conftest import Served, lodge

DAY = 86400.0


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=2, silence=5)
    yield found
    await found.close()


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


# -- the pin -------------------------------------------------------------------------


async def test_an_old_key_is_shut_out_before_a_word_is_said(
    served: Served, nodes: HttpNodes, authority: Authority, tmp_path: Path
) -> None:
    """It is of the cluster's authority, of the node's name, and good for years."""
    stolen = tmp_path / "stolen"
    lodge(authority, stolen, served.name)
    async with rogue(served, stolen) as heard:
        error = await unreachable(nodes, known(served))
    assert b"".join(heard) == b""
    assert "node node1" in error.message
    assert "is not the one that the cluster knows of node1" in error.message
    assert error.hint.endswith("gnt-node add --readd --token-file join-token node1")


async def test_a_node_that_a_new_authority_shut_out_has_a_way_back(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "newer").mkdir()
    newer = HttpNodes(Authority.make(tmp_path / "newer", "two"))
    try:
        error = await unreachable(newer, served.node)
    finally:
        await newer.close()
    assert "empty its directory keys" in error.hint
    assert error.hint.endswith("gnt-node add --readd --token-file join-token node1")


async def test_a_key_is_revoked_on_a_connection_that_is_open(
    served: Served, nodes: HttpNodes
) -> None:
    node = known(served)
    await call(nodes, node)
    error = await unreachable(nodes, replace(node, pins=("0" * 64,)))
    assert "is not the one that the cluster knows" in error.message
    await call(nodes, node)


async def test_a_certificate_comes_to_its_end_on_a_connection_that_is_open(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    clock = [authority.clock()]
    nodes = HttpNodes(Authority(tmp_path / "master", lambda: clock[0]))
    try:
        for days in (0, 250):  # in between the master's own is renewed, not the node's
            clock[0] += days * DAY
            await call(nodes, known(served))
        clock[0] += 116 * DAY
        error = await unreachable(nodes, known(served))
    finally:
        await nodes.close()
    assert error.facts["expired"] is True


async def test_both_keys_are_believed_while_one_follows_the_other(
    served: Served, nodes: HttpNodes
) -> None:
    node = known(served)
    await call(nodes, replace(node, pins=("0" * 64, *node.pins)))


async def test_the_key_that_a_node_showed_is_known_whatever_is_asked_meanwhile(
    served: Served, nodes: HttpNodes
) -> None:
    """Its record would name no key at all, and nobody could speak with it again."""
    node = known(served)
    for way in ({}, {"any_key": True}):
        asked = asyncio.create_task(call(nodes, node, "authority.request", **way))
        while not asked.done():
            await asyncio.sleep(0)
            await call(nodes, node, "authority.facts")
            nodes._way(node, convert({"verb": "facts"}, Call))
        assert (await asked).shown == pin_of(served.keys)


async def test_a_person_can_say_that_the_certificate_is_enough(
    served: Served, nodes: HttpNodes, other_authority: Authority, tmp_path: Path
) -> None:
    """And that it is the authority's, is looked at all the same."""
    unknown = replace(served.node, pins=("0" * 64,))
    found = await call(nodes, unknown, "authority.request", any_key=True)
    assert found.shown == pin_of(served.keys)
    lodge(other_authority, tmp_path / "strange", served.name)
    async with rogue(served, tmp_path / "strange"):
        with pytest.raises(Unreachable, match="certificate"):
            await call(nodes, unknown, "authority.request", any_key=True)


# -- a new key -------------------------------------------------------------------------


async def renewed(nodes: HttpNodes, node: Any, **more: Any) -> Any:
    """Give a node a new key; return its record with that one alone."""
    asked = await call(nodes, node, "authority.request")
    both = replace(node, pins=(asked.shown, asked.pin))
    await call(nodes, both, "authority.sign", request=asked.request, **more)
    return replace(node, pins=(asked.pin,))


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


# -- dates -----------------------------------------------------------------------------


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


# -- the authority ---------------------------------------------------------------------


async def test_an_authority_follows_another_while_nodes_serve(
    served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    node, old = known(served), authority.certificate
    await call(nodes, node, "authority.prepare")
    await call(nodes, node, "authority.announce")
    node = await renewed(nodes, node, by_next=True)
    await call(nodes, node)
    await call(nodes, node, "authority.switch")
    await call(nodes, node)
    assert authority.certificate != old
    await call(nodes, node, "authority.retire")
    await call(nodes, node)
    assert authority.trusted == [authority.certificate]


async def test_a_masters_key_is_revoked_on_a_connection_that_is_open(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """Who stole it may have been connected before anybody knew."""
    stolen = tmp_path / "stolen"
    shutil.copytree(tmp_path / "master", stolen)
    thief = HttpNodes(Authority(stolen), leads=False)
    nodes, node = HttpNodes(authority), known(served)
    try:
        await call(thief, served.node)
        await call(nodes, node, "authority.renew-master")
        await call(nodes, node)  # the old key vouches for the new one
        await call(thief, served.node)
        await call(nodes, node, "authority.announce")
        with pytest.raises(Stale, match="orders of this master's key no more"):
            await call(thief, served.node)
        await call(nodes, node)
    finally:
        await thief.close()
        await nodes.close()


async def test_an_expired_authority_stops_nothing_and_can_be_followed(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """It is an error of verify, not the end of the cluster."""
    now = authority.clock()
    later = Authority(tmp_path / "master", lambda: now + 3700 * DAY)
    assert tls.ends(later.certificate) < later.clock()
    await served.stop()
    old = tls.load_certificate((served.keys / "node.pem").read_bytes())
    durable.write(served.keys / "node.pem", tls.pem(later.sign_node(old, "node1")))
    await served.start()
    nodes, node = HttpNodes(later), known(served)
    try:
        await call(nodes, node)
        await call(nodes, node, "authority.prepare")
        await call(nodes, node, "authority.announce")
        node = await renewed(nodes, node, by_next=True)
        await call(nodes, node, "authority.switch")
        await call(nodes, node, "authority.retire")
        await call(nodes, node)
    finally:
        await nodes.close()
    assert tls.ends(later.certificate) > later.clock()


async def test_each_step_of_the_authority_can_be_repeated(
    served: Served, nodes: HttpNodes, authority: Authority, tmp_path: Path
) -> None:
    node = known(served)
    for verb in ("prepare", "prepare", "abandon", "abandon", "prepare"):
        await call(nodes, node, f"authority.{verb}")
        again = Authority(tmp_path / "master")
        assert again.certificate == authority.certificate
        await call(nodes, node)
    for verb in ("switch", "switch", "retire", "retire"):
        await call(nodes, node, f"authority.{verb}")
        Authority(tmp_path / "master").asking()


async def test_a_cluster_that_was_made_long_ago_is_read(
    served: Served, authority: Authority, tmp_path: Path
) -> None:
    """Its keys and certificates were in two files each."""
    old = tmp_path / "old"
    for name in ("ca", "master"):
        source = "ca.key" if name == "ca" else "master.pem"
        text = (authority.directory / source).read_bytes()
        key, _, signed = text.partition(b"-----BEGIN CERTIFICATE")
        durable.write(old / f"{name}.key", key)
        durable.write(old / f"{name}.pem", b"-----BEGIN CERTIFICATE" + signed)
    nodes = HttpNodes(Authority(old))
    try:
        await call(nodes, served.node)
        await call(nodes, served.node, "authority.renew-master")
        await call(nodes, served.node)
    finally:
        await nodes.close()
    assert not (old / "master.key").exists()


def test_a_context_that_changes_stands_for_the_newest(
    served_keys: Path,
) -> None:
    keys = Keys(served_keys)
    first = keys.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    keys.trust(((served_keys / "ca.pem").read_text(),))
    second = keys.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)
    assert first.context is not second.context


@pytest.fixture
def served_keys(authority: Authority, tmp_path: Path) -> Path:
    lodge(authority, tmp_path / "alone", "node1")
    return tmp_path / "alone"


async def test_all_nodes_share_one_context_until_the_masters_key_is_another(
    served: Served, nodes: HttpNodes, authority: Authority
) -> None:
    """It takes 25 KiB, and a master may have a thousand nodes."""
    made: list[ssl.SSLContext] = []
    make = authority.asking

    def asking() -> ssl.SSLContext:
        made.append(make())
        return made[-1]

    authority.asking = asking  # type: ignore[method-assign]
    for number in range(6):
        if number == 3:
            authority.renew_master()
        await call(nodes, replace(known(served), uuid=f"uuid-{number}"))
    assert len(made) == 2
