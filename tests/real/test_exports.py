# SPDX-License-Identifier: BSD-2-Clause
"""Disks that have a URI only, as files: by the real storage daemon, over FUSE."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.errors import Failed
from moorage.node.exports import Exports
from moorage.node.scripts import Scripts

pytestmark = pytest.mark.real
MIB = 1024 * 1024
_HANGING = """
import asyncio, sys
from pathlib import Path
from moorage.node.exports import Exports
from moorage.node.scripts import Scripts

async def main(top):
    exports = Exports(top / "exports", Scripts(top / "scripts"))
    async with exports.served(f"file:{top}/image", writable=True) as path:
        print(path, flush=True)
        await asyncio.sleep(600)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def top(tmp_path: Path) -> Path:
    with (tmp_path / "image").open("wb") as image:
        image.truncate(8 * MIB)
    return tmp_path


def mounts(top: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f"{top}/" in line]


def started(top: Path) -> Exports:
    return Exports(top / "exports", Scripts(top / "scripts"))


@pytest.mark.requirement("S0-72")
async def test_a_uri_is_a_file_of_the_same_size_meanwhile(top: Path) -> None:
    uri = f"file:{top}/image"
    async with started(top).served(uri, writable=True) as path:
        assert Path(path).stat().st_size == 8 * MIB
        with Path(path).open("r+b") as file:  # noqa: ASYNC230 - a test may block
            file.seek(MIB)
            file.write(b"hello")
    assert (top / "image").read_bytes()[MIB : MIB + 5] == b"hello"
    assert mounts(top) == []
    assert list((top / "exports").iterdir()) == []


async def test_one_that_is_only_read_cannot_be_written(top: Path) -> None:
    async with started(top).served(f"file:{top}/image", writable=False) as path:
        with pytest.raises(OSError, match=r"denied|permitted|Read-only|Bad file"):
            os.pwrite(os.open(path, os.O_RDWR), b"x", 0)


async def test_what_cannot_be_reached_is_told(top: Path) -> None:
    with pytest.raises(Failed, match=r"cannot be served as a file: .*No such file"):
        async with started(top).served(f"file:{top}/nothing", writable=True):
            raise AssertionError
    assert list((top / "exports").iterdir()) == []


async def test_an_agent_that_was_killed_leaves_nothing_behind(top: Path) -> None:
    """Its daemon ends, and its mount is taken away, when the next one starts."""
    words = (sys.executable, "-c", _HANGING, str(top))
    agent = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
    assert agent.stdout
    path = (await agent.stdout.readline()).decode().strip()
    pid = int(Path(f"{path}.pid").read_text())
    agent.kill()
    await agent.wait()
    assert mounts(top)
    scripts = Scripts(top / "scripts")
    Exports(top / "exports", scripts)
    assert mounts(top) == []
    for _ in range(600):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or ") Z " in state.read_text():
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError
    assert list((top / "exports").iterdir()) == []
