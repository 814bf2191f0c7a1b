# SPDX-License-Identifier: BSD-2-Clause
"""Guests that no instance is are ended by a command; all others are not."""

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy

import pytest

from desk import Desk, desk_at
from moorage.testing.scenarios import harbour

LOST = "0a1b2c3d-0000-4000-8000-000000000000"


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    """Give node1 a guest that nobody knows, with the name of an instance of node3."""
    async with desk_at(harbour) as found:
        strand(found, LOST, "web3")
        yield found


def strand(at: Desk, uuid: str, name: str) -> None:
    guests = at.cluster.nodes.san.guests
    known = at.cluster.config.instance("web1").uuid
    lost = deepcopy(guests[f"node1 {known}"])
    lost["state"] |= {"uuid": uuid, "name": name, "disks": [], "ports": {}}
    guests[f"node1 {uuid}"] = lost | {"drives": {}, "wires": {}}


def alive(at: Desk, uuid: str = LOST) -> bool:
    return f"node1 {uuid}" in at.cluster.nodes.san.guests


async def test_one_that_nobody_knows_is_ended_when_somebody_is_sure(at: Desk) -> None:
    out = (await at.screen("gnt-cluster verify")).out
    (hint,) = [line.partition("hint: ")[2] for line in out.splitlines() if LOST in line]
    assert "Power down guest" in await at.refused(hint)
    assert alive(at)
    told = await at.types(f"{hint} -f -m 5")
    assert told == f"Guest {LOST} of node node1 is ended\n"
    assert not alive(at)
    assert "web3" not in (await at.screen("gnt-cluster verify")).out
    assert f"has no guest '{LOST}'" in await at.refused(f"{hint} -f")


async def test_one_that_is_an_instance_is_not_ended(at: Desk) -> None:
    """Neither by its uuid nor by its name; a name of two is none."""
    known = at.cluster.config.instance("web1").uuid
    for word in ("web1", known):
        said = await at.refused(f"gnt-node shutdown-orphan -f node1 {word}")
        assert f"guest {word} of node node1 is instance web1" in said
        assert "hint: gnt-instance shutdown web1" in said
    said = await at.refused("gnt-node shutdown-orphan -f node1 web3")
    assert "more than one guest is called 'web3'" in said
    assert f"hint: gnt-node shutdown-orphan node1 {LOST}" in said
    assert alive(at)
    assert alive(at, known)
    strand(at, LOST, "lost")
    await at.types("gnt-node shutdown-orphan -f node1 lost")
    assert alive(at, known)


async def test_one_that_is_being_made_is_waited_for(at: Desk) -> None:
    """It runs before it is on record; the node is held, so the record comes first."""
    cluster = at.cluster
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def hold(point: str) -> None:
        if point.startswith("before record") or "record new1" in point:
            begun.set()
            await go_on.wait()

    cluster.extra_point = hold
    job = await cluster.submit(
        "OP_INSTANCE_CREATE",
        instance_name="new1",
        disk_template="diskless",
        pnode="node1",
        nics=[],
        no_install=True,
    )
    await begun.wait()
    (uuid,) = [
        key.removeprefix("node1 ")
        for key, one in cluster.nodes.san.guests.items()
        if one["state"]["name"] == "new1"
    ]
    line = f"gnt-node shutdown-orphan -f node1 {uuid}"
    typed = asyncio.create_task(at.refused(line))
    done, _ = await asyncio.wait([typed], timeout=0.3)
    assert not done
    go_on.set()
    assert (await cluster.finished(job)).status == "success"
    assert "is instance new1" in await typed
    assert alive(at, uuid)


async def test_a_node_that_is_off_is_not_asked(at: Desk) -> None:
    at.cluster.nodes.nodes["node1"].powered = False
    said = await at.refused(f"gnt-node shutdown-orphan -f node1 {LOST}")
    assert "node node1 does not answer" in said
    at.cluster.nodes.nodes["node1"].powered = True
    assert alive(at)
