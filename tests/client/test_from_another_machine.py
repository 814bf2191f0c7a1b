# SPDX-License-Identifier: BSD-2-Clause
"""The command line on a machine that has nothing of the cluster but its URL."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desk import Desk, Screen
from moorage.cli.command import programs
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

HERE = {
    *("gnt-cluster init", "gnt-cluster destroy", "gnt-cluster master-failover"),
    *(
        "gnt-instance console",
        "moorage backup",
        "moorage export-config",
        "moorage import-config",
        "moorage restore",
        "moorage store move",
        "moorage watcher",
    ),
    *("moorage rapi add-token", "moorage rapi list-tokens"),
    "moorage rapi remove-token",
}
"""What works on a machine of the cluster alone."""


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder(4)
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.fixture
async def far(door: RapiDoor) -> Desk:
    """Return a desk on another machine, with a token that somebody sent there."""
    near = Desk(door.cluster, door.directory)
    settings = door.directory / "rapi.toml"
    settings.write_text(f'tokens = "{door.directory}/tokens"\n')
    add = f"moorage rapi add-token robot --role write --settings {settings}"
    token = door.directory / "robot.token"
    token.write_text(await near.types(add))
    desk = Desk(door.cluster, door.directory)
    desk.environ = {
        "MOORAGE_URL": f"https://localhost:{door.port}",
        "MOORAGE_TOKEN_FILE": str(token),
        "MOORAGE_CA": f"{door.directory}/rapi.pem",
        "TERM": "dumb",
    }
    return desk


async def starts(desk: Desk, program: str, *words: str) -> Screen:
    """Start a planner as a process; return what it left."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name(program)),
        *words,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **desk.environ},
    )
    out, err = await process.communicate()
    return Screen(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.requirement("S3-02", "S3-51")
async def test_a_whole_life(far: Desk, door: RapiDoor) -> None:
    add = "gnt-instance add -t ext --disk 0:size=128M,provider=san -o tiny -n node1"
    for name in ("web1", "web2", "web3"):
        assert f"Added instance {name}" in await far.types(f"{add} {name}")
    told = await far.types("gnt-instance list --no-headers -o name,pnode,status")
    assert told.split()[:3] == ["web1", "node1", "running"]
    await far.types("gnt-disk add -t ext -p san -s 64M data1")
    attached = await far.types("gnt-disk attach data1 web1")
    assert "Attached disk data1 to instance web1" in attached
    await far.types("gnt-disk add-tags data1 gold")
    await far.types("gnt-disk detach data1")
    listed = "gnt-disk list --no-headers -o name,status,tags data1"
    assert (await far.types(listed)).split() == ["data1", "detached", "gold"]
    uuid = (await far.types("gnt-disk list --no-headers -o uuid data1")).strip()
    disks = (await door.ask("GET", "/2/disks")).body
    assert {"id": uuid, "uri": f"/2/disks/{uuid}"} in disks
    found = await far.types("gnt-cluster search-tags ^gold$")
    assert found == f"/disks/{uuid} gold\n"
    await far.types("gnt-disk attach data1 web1")
    await far.types("gnt-instance modify --disk 1:detach web1")
    assert (await far.types(listed)).split()[1] == "detached"
    await far.types("gnt-disk snapshot data1 --name copy")
    assert "by rapi)" in await far.types("gnt-disk story data1")
    await far.types("gnt-disk remove -f copy")


async def test_jobs(far: Desk) -> None:
    start = far.cluster.config_store.feed.last
    told = await far.screen("gnt-debug delay --submit 0.3")
    assert told.err == "JobID: 1\n"
    assert "Output from job 1 follows" in await far.types("gnt-job watch 1")
    await far.types("gnt-job wait 1")
    assert "1 success" in await far.types("gnt-job list --no-headers -o id,status")
    assert "Status: success" in await far.types("gnt-job info 1")
    rows = await far.types("gnt-job list --no-headers -o caller")
    assert rows == "robot by rapi\n"
    await far.types("gnt-cluster queue drain")
    assert "is set" in await far.types("gnt-cluster queue info")
    assert "drained" in await far.refused("gnt-debug delay 0")
    await far.types("gnt-cluster queue undrain")
    await far.types("gnt-cluster watcher pause 1h")
    assert "paused until" in await far.types("gnt-cluster watcher info")
    await far.types("gnt-job archive 1")
    assert "Status: success" in await far.types("gnt-job info 1")
    assert "99" in await far.refused("gnt-job info 99")
    assert "as it should be" in await far.types("gnt-debug test-jobqueue")
    assert "Archived" in await far.types("gnt-job autoarchive all")
    assert await far.types("gnt-cluster getmaster") == "node1\n"
    told = await far.types(f"moorage events --no-wait --after {start}")
    assert "job 1 success: TEST_DELAY" in told
    assert "submit job 1 " in await far.types("moorage audit list")
    many = await far.screen("gnt-instance startup web7 web8")
    assert many.status
    assert "instance 'web8' is not known" in many.err


@pytest.mark.slow
async def test_planners(far: Desk) -> None:
    add = "gnt-instance add -t ext --disk 0:size=128M,provider=san -o tiny -n node1"
    for name in ("web1", "web2", "web3"):
        await far.types(f"{add} {name}")
    for program in ("hinfo", "hspace", "hcheck", "hroller"):
        screen = await starts(far, program, "-L")
        assert screen.status in {0, 1}, screen
        assert not screen.err, screen
        assert screen.out
    screen = await starts(far, "hbal", "-L", "-X")
    assert screen.status == 0, screen
    assert "Got job IDs" in screen.out
    nodes = await far.types("gnt-instance list --no-headers -o pnode")
    assert len(set(nodes.split())) > 1


def test_what_works_here_alone_is_declared() -> None:
    marked = {
        f"{program.name} {command.name}"
        for program in programs()
        for command in program.commands
        if command.here
    }
    assert marked == HERE


WORDS = {
    "gnt-cluster init": "demo",
    "gnt-instance console": "web1",
    "moorage backup": "file",
    "moorage export-config": "file",
    "moorage import-config": "file",
    "moorage restore": "file",
    "moorage store move": "sqlite",
    "moorage rapi add-token": "robot",
    "moorage rapi remove-token": "robot",
}


@pytest.mark.parametrize("line", sorted(HERE))
async def test_what_works_here_alone_says_why(far: Desk, line: str) -> None:
    told = await far.refused(f"{line} {WORDS.get(line, '')}")
    assert f"{line} does not work over MOORAGE_URL: " in told


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MOORAGE_SOCKET": "/run/luxi.sock"}, "each name a cluster"),
        ({"MOORAGE_TOKEN_FILE": "/no/such/file"}, "the token's file /no/such/file can"),
        ({"MOORAGE_TOKEN_FILE": ""}, "a token, or user and password, is needed"),
        ({"MOORAGE_TOKEN": "guess"}, "the door does not know this token"),
        ({"MOORAGE_URL": "localhost"}, "'localhost' is no address of a cluster"),
        ({"MOORAGE_URL": "https://localhost:1"}, "nobody answers at https://localhost"),
        ({"MOORAGE_CA": ""}, "hint: name the file of the authority that signed it"),
        ({"MOORAGE_CA": "/no/such/file"}, "no certificates can be read in /no/such"),
    ],
)
async def test_what_is_off_is_said(far: Desk, environ, words: str) -> None:
    far.environ |= environ
    told = await far.refused("gnt-instance list")
    assert words in told


async def test_a_certificate_for_another_name_is_told_so(far: Desk, door) -> None:
    far.environ["MOORAGE_URL"] = f"https://127.0.0.1:{door.port}"
    told = await far.refused("gnt-instance list")
    assert "is not believed: IP address mismatch" in told
    assert "hint: ask by a name that it has" in told


async def test_a_planner_that_names_nobody_is_told_how(far: Desk, door) -> None:
    """``-m`` is Ganeti's way in, which knows no tokens."""
    screen = await starts(far, "hinfo", "-m", f"https://localhost:{door.port}")
    assert f"https://localhost:{door.port}/" in screen.err
    assert "answered 401 Unauthorized" in screen.err
    assert "https://NAME:PASSWORD@HOST:PORT" in screen.err


async def test_a_password_opens_it_too(far: Desk, door: RapiDoor) -> None:
    del far.environ["MOORAGE_TOKEN_FILE"]
    far.environ |= {"MOORAGE_USER": "eye", "MOORAGE_PASSWORD": "secret"}
    await far.types("gnt-instance list")
    told = await far.refused("gnt-disk add -t ext -p san -s 64M data1")
    assert "takes write" in told
    assert await far.types("gnt-os list") == "Name\ntiny\n"
    told = await far.refused("gnt-cluster queue drain")
    assert "eye has the role read: this takes write" in told
    far.environ |= {"MOORAGE_URL": f"https://op:secret@localhost:{door.port}"}
    await far.types("gnt-instance list")
