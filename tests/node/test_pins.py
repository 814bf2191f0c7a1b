# SPDX-License-Identifier: BSD-2-Clause
"""A node is known by its key, which nobody else has."""

import asyncio
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from moorage.errors import Unreachable
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates.authority import Authority
from moorage.protocol import Call

from .conftest import Served, lodge
from .pinned import DAY, call, known, pin_of, rogue, unreachable

pytestmark = pytest.mark.memory


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
