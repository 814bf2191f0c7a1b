# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``, typed at a simulated cluster with guests of Ganeti's."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from desk import Desk, desk_at
from moorage.testing.scenarios import harbour


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    """Type at a cluster whose web1 runs in a process that Ganeti started."""
    async with desk_at(harbour) as found:
        ganeti_started(found, "web1")
        yield found


def key(at: Desk, name: str) -> str:
    uuid = at.cluster.config.instance(name).uuid
    (found,) = (one for one in at.cluster.nodes.san.guests if one.endswith(uuid))
    return str(found)


def ganeti_started(at: Desk, name: str, **other: Any) -> None:
    guests = at.cluster.nodes.san.guests
    found = guests[key(at, name)]
    state = found["state"] | {"origin": "foreign"} | other
    guests[key(at, name)] = found | {"state": state}


async def wrong(at: Desk, word: str) -> list[str]:
    told = json.loads((await at.screen("gnt-cluster verify --json")).out)
    found = [*told["errors"], *told.get("warnings", [])]
    return [one["message"] for one in found if word in one["message"]]


async def test_a_guest_is_taken_over_and_stopped(at: Desk) -> None:
    shown = await at.screen("moorage adopt-guests --dry-run")
    assert shown.status == 1
    assert shown.out.split()[-5:] == ["node1", "web1", "1", "ready", "-"]
    assert await wrong(at, "nobody has taken over")
    assert "by Ganeti, and nobody" in await at.types("gnt-instance info web1")
    assert "process of Ganeti's" in await at.refused("gnt-instance shutdown web1")
    assert "adopt-guests" in await at.refused("gnt-instance migrate -f web1")

    taken = await at.screen("moorage adopt-guests --yes")
    assert taken.status == 0
    assert "Took over guest web1" in taken.out + taken.err
    listed = "gnt-instance list --no-headers -o name,status web1"
    assert (await at.types(listed)).split() == ["web1", "running"]
    assert "adopted" in await at.types("moorage adopt-guests")
    assert not await wrong(at, "nobody has taken over")
    (told,) = await wrong(at, "as Ganeti started it")
    assert told.startswith("1 guest runs (web1)")
    assert "and taken over" in await at.types("gnt-instance info web1")
    said = await at.refused("gnt-instance migrate -f web1")
    assert "a migration needs a start of its own first" in said

    before = dict(at.cluster.config.objects)
    for line in (
        "gnt-instance grow-disk web1 0 64m",
        "gnt-instance modify --disk 0:detach web1",
        "gnt-instance modify --net add web1",
        "gnt-disk attach spare web1",
    ):
        assert "needs a start of its own first" in await at.refused(line)
    assert dict(at.cluster.config.objects) == before
    await at.types("gnt-instance reboot web1")
    assert "No node" in await at.types("moorage adopt-guests")
    await at.types("gnt-instance shutdown web1")


async def test_nothing_starts_it_a_second_time(at: Desk) -> None:
    """Not the watcher, not a person; not where its record is elsewhere, either."""
    before = dict(at.cluster.nodes.san.guests)
    await at.types("moorage watcher")
    await at.types("gnt-instance startup web1")
    for line in ("reboot", "failover -f", "remove -f"):
        await at.refused(f"gnt-instance {line} web1")
    assert dict(at.cluster.nodes.san.guests) == before
    assert not at.cluster.nodes.san.broken


async def test_what_has_other_disks_is_left_alone(at: Desk) -> None:
    ganeti_started(at, "web1", disks=["0a1b2c3d-0000-4000-8000-000000000000"])
    said = await at.refused("moorage adopt-guests --yes web1")
    assert "not on record" in said
    assert at.cluster.nodes.san.guests[key(at, "web1")]["state"]["origin"] == "foreign"
    assert "no node has a guest web2" in await at.refused("moorage adopt-guests web2")
