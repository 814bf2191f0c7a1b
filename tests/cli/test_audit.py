# SPDX-License-Identifier: BSD-2-Clause
"""Who had what changed, as ``moorage audit`` shows it, and whoever tampers with it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desk import Desk, desk_at
from moorage.testing.cluster import ClusterBuilder, SimCluster


@pytest.fixture
async def typing() -> AsyncIterator[Desk]:
    async def make(directory: Path) -> SimCluster:
        builder = ClusterBuilder().instance("web")
        return await SimCluster.start(directory, builder)

    async with desk_at(make) as found:
        yield found


async def entries(typing: Desk, more: str = "") -> list[dict[str, Any]]:
    out = await typing.types(f"moorage audit list --json {more}")
    return [json.loads(line) for line in out.splitlines()]


async def test_a_job_is_told_when_it_is_queued_and_when_it_ends(typing: Desk) -> None:
    await typing.types("gnt-disk add --reason because -t ext -p san -s 8M new")
    submitted, ended = await entries(typing)
    assert (submitted["what"], submitted["job"]) == ("submit", 1)
    (op,) = submitted["ops"]
    assert (op["OP_ID"], op["name"]) == ("OP_DISK_ADD", "new")
    assert "reason" not in op
    assert (submitted["door"], submitted["role"]) == ("luxi", "root")
    assert "pid" in submitted["origin"]
    assert (ended["what"], ended["status"]) == ("end", "success")
    assert ended["about"] == "DISK_ADD(new)"
    out = await typing.types("moorage audit list")
    assert "1 submit job 1 (DISK_ADD(new)): " in out
    assert "2 end job 1 success (DISK_ADD(new)): " in out


async def test_who_only_looks_is_not_in_it(typing: Desk) -> None:
    await typing.types("gnt-cluster verify")
    await typing.types("gnt-instance info web")
    assert await entries(typing) == []


async def test_a_job_that_fails_is_told_so(typing: Desk) -> None:
    await typing.types("gnt-disk add -t ext -p san -s 8M new")
    await typing.screen("gnt-disk add -t ext -p san -s 8M new")
    assert (await entries(typing))[-1]["status"] == "error"


async def test_what_is_done_with_the_queue_is_told(typing: Desk) -> None:
    await typing.types("gnt-debug delay --submit 30")
    for _ in range(3):  # nothing is changed by the second: it pushes nothing out
        await typing.types("gnt-job change-priority --force --priority low 1")
    await typing.types("gnt-job cancel --force 1")
    await typing.cluster.finished(1)
    await typing.types("gnt-job archive 1")
    await typing.types("gnt-cluster queue drain")
    await typing.types("gnt-cluster queue undrain")
    told = [(one["what"], one.get("status")) for one in await entries(typing)]
    assert told == [
        ("submit", None),
        ("priority", "10"),
        ("cancel", None),
        ("end", "canceled"),
        ("archive", None),
        ("drain", None),
        ("undrain", None),
    ]
    assert len(await entries(typing, "--after 5")) == 2
    assert len(await entries(typing, "--job 1")) == 5
    assert await entries(typing, "--user nobody-is-called-so") == []


async def test_secrets_and_what_is_long_are_not_in_it(typing: Desk) -> None:
    add = "gnt-instance add -t ext -s 8M --no-install -n node1 -o noop -B memory=64M"
    await typing.screen(f"{add} --os-parameters-secret word=hush! --submit web7")
    tags = " ".join(f"t{number}" for number in range(400))
    await typing.types(f"gnt-instance add-tags web {tags}")
    out = await typing.types("moorage audit list --json")
    assert "hush!" not in out
    assert "web7" in out
    (long,) = [json.loads(one) for one in out.splitlines() if "digest" in one]
    assert long["ops"] == [{"OP_ID": "OP_TAGS_SET"}]
    assert re.fullmatch("[0-9a-f]{64}", long["digest"])


async def test_it_goes_on_over_a_restart_and_is_found_whole(typing: Desk) -> None:
    await typing.types("gnt-disk add -t ext -p san -s 8M one")
    await typing.cluster.crash()
    await typing.cluster.boot()
    assert len(await entries(typing)) == 2
    out = await typing.types("moorage audit check")
    assert "No fault found in entries 1 to 2\nHead: 2:" in out
    head = out.split("Head: ")[1].strip()
    await typing.types(f"moorage audit check --head {head}")


async def test_what_is_saved_is_checked_and_goes_on(typing: Desk) -> None:
    saved = typing.directory / "audit.jsonl"
    await typing.types("gnt-disk add -t ext -p san -s 8M one")
    await typing.types(f"moorage audit save {saved}")
    await typing.types("gnt-disk add -t ext -p san -s 8M two")
    out = await typing.types(f"moorage audit save {saved}")
    assert "entries 1 to 4" in out
    assert await typing.types(f"moorage audit save {saved}") == out
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "1 to 4" in await typing.types(f"moorage audit check {saved}")
    saved.write_text(saved.read_text().replace('"one"', '"two"', 1))
    screen = await typing.screen(f"moorage audit check {saved}")
    assert screen.status == 1
    assert "entry 1 is not what was written" in screen.out
    said = await typing.refused(f"moorage audit save {saved}")
    assert "is not what was saved" in said


async def test_a_tail_that_was_cut_is_found_by_what_was_noted(typing: Desk) -> None:
    saved = typing.directory / "audit.jsonl"
    await typing.types("gnt-disk add -t ext -p san -s 8M one")
    await typing.types(f"moorage audit save {saved}")
    out = await typing.types("moorage audit check")
    head = out.split("Head: ")[1].strip()
    lines = saved.read_text().splitlines(keepends=True)
    saved.write_text("".join(lines[:-1]))
    assert "No fault" in await typing.types(f"moorage audit check {saved}")
    screen = await typing.screen(f"moorage audit check {saved} --head {head}")
    assert (screen.status, "some are cut" in screen.out) == (1, True)
    other = head[:-1] + ("0" if head[-1] != "0" else "1")
    screen = await typing.screen(f"moorage audit check --head {other}")
    assert (screen.status, "is not the one that was noted" in screen.out) == (1, True)
    assert "a head is" in await typing.refused("moorage audit check --head soon")


async def test_nothing_and_what_is_no_log_are_told_apart(typing: Desk) -> None:
    assert "is empty" in await typing.types("moorage audit check")
    assert "cannot be read" in await typing.refused("moorage audit check /nowhere")
    file = typing.directory / "file"
    file.write_text("hello\n")
    assert (await typing.screen(f"moorage audit check {file}")).status == 1
