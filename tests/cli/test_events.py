# SPDX-License-Identifier: BSD-2-Clause
"""What happens, as ``moorage events`` prints it, and who asked for it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desk import Desk, desk_at
from moorage.api import deeds
from moorage.api.query import Sources
from moorage.model.caller import Caller
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def typing() -> AsyncIterator[Desk]:
    async def make(directory: Path) -> SimCluster:
        return await SimCluster.start(directory, ClusterBuilder().instance("web"))

    async with desk_at(make) as found:
        yield found


async def entries(typing: Desk, after: int) -> list[dict[str, Any]]:
    out = await typing.types(f"moorage events --json --no-wait --after {after}")
    return [json.loads(line) for line in out.splitlines()]


async def test_a_disk_that_is_made_is_told_with_its_job(typing: Desk) -> None:
    start = typing.cluster.config_store.feed.last
    await typing.types("gnt-disk add -t ext -p san -s 8M new")
    found = await entries(typing, start)
    told = [event for entry in found for event in entry["events"]]
    statuses = [one["status"] for one in told if one["kind"] == "job"]
    assert statuses == ["queued", "running", "success"]
    (made,) = [one for one in told if one["kind"] == "disk"]
    assert (made["event"], made["name"]) == ("added", "new")
    (entry,) = [one for one in found if made in one["events"]]
    assert entry["job"] == 1
    numbers = [one["number"] for one in found]
    assert numbers == sorted(set(numbers))


async def test_people_read_one_line_an_event(typing: Desk) -> None:
    start = typing.cluster.config_store.feed.last
    await typing.types("gnt-disk add -t ext -p san -s 8M new")
    out = await typing.types(f"moorage events --no-wait --after {start}")
    assert "job 1 queued: DISK_ADD(new)" in out
    assert "disk new added by job 1" in out


async def test_a_job_that_is_put_away_is_told(typing: Desk) -> None:
    await typing.types("gnt-disk add -t ext -p san -s 8M new")
    start = typing.cluster.config_store.feed.last
    await typing.types("gnt-job archive 1")
    (entry,) = await entries(typing, start)
    assert [(one["event"], one["job"]) for one in entry["events"]] == [("removed", 1)]


async def test_who_was_away_over_a_restart_misses_nothing(typing: Desk) -> None:
    start = typing.cluster.config_store.feed.last
    await typing.types("gnt-disk add -t ext -p san -s 8M one")
    before = await entries(typing, start)
    await typing.cluster.crash()
    await typing.cluster.boot()
    found = [
        json.loads(one) for one in typing.cluster.config_store.feed.after(start) or ()
    ]
    assert found == before


async def test_an_entry_that_is_not_there_is_said_to_be_so(typing: Desk) -> None:
    screen = await typing.screen("moorage events --no-wait --after 7")
    assert screen.status == 0
    assert "what happened behind entry 7 is not kept any more" in screen.err
    assert "not the number of an entry" in await typing.refused(
        "moorage events --after soon"
    )


async def test_who_asked_is_known_to_job_story_and_reason_trail(typing: Desk) -> None:
    await typing.types("gnt-disk add --reason because -t ext -p san -s 8M new")
    job = typing.cluster.engine.job(1)
    who = str(job.caller)
    assert who.endswith(" by luxi")
    rows = await typing.types("gnt-job list --no-headers -o id,caller")
    assert rows.split() == ["1", *who.split()]
    sources = [entry[0] for entry in job.ops[0].input["reason"]]
    assert sources == ["gnt:user", "gnt:client:gnt-disk", "moorage:caller"]
    assert who in await typing.types("gnt-disk story new")


async def test_nobody_says_in_the_trail_that_somebody_else_asked(typing: Desk) -> None:
    at, word = typing.cluster, "moorage:caller"
    sources = Sources(at.config_store, at.nodes, at.engine, clock=at.clock)
    forged = [["gnt:user", "because", 1], [word, "anna by rapi", 2]]
    ops = [{"OP_ID": "OP_TEST_DELAY", "duration": 0.0, "reason": forged}]
    number = await deeds.submit(sources, ops, Caller("bert", "rapi"))
    job = await at.finished(number)
    trail = [entry[:2] for entry in job.ops[0].input["reason"]]
    assert trail == [["gnt:user", "because"], [word, "bert by rapi"]]
