# SPDX-License-Identifier: BSD-2-Clause
"""How far a program is: told by those that tell, and by nobody else."""

from functools import partial
from pathlib import Path

import pytest

from moorage.errors import CommandFailed
from moorage.model import Disk
from moorage.node.agent import Agent
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.commands import run
from moorage.node.machine.images import Images
from moorage.node.machine.progress import latest
from moorage.protocol import CreateDisk, to_wire
from moorage.storage import Command, Progress
from moorage.storage.provider import SCRIPTS
from moorage.units import Mib

SCRIPT = Progress("create disk d", variable="VOL_PROGRESS")
IMAGE = Progress("copy", total=8, unit="MiB")

Told = list[tuple[int, int, str, str]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def go(tmp_path: Path, told: Told):
    def report(*progress) -> None:
        told.append(progress)

    return partial(run, log_dir=tmp_path, timeout=60, report=report)


def sh(script: str, **more) -> Command:
    return Command(("sh", "-c", script), progress=SCRIPT, **more)


async def test_a_script_tells_by_the_file_that_it_is_given(go, told: Told) -> None:
    """A line overwrites or follows the last one; a child of a child may write it."""
    long = (
        "echo '1 4 GiB' >\"$VOL_PROGRESS\"; sleep 0.6; sh -c 'echo 75% >>$VOL_PROGRESS'"
    )
    await go(sh(long, log="create-shelf-d"))
    assert told == [(1, 4, "GiB", "create disk d"), (75, 100, "%", "create disk d")]


async def test_a_script_that_knows_nothing_of_it_is_as_it_was(go, told: Told) -> None:
    answer = await go(sh("echo '1 4 GiB'; echo 12%"))
    assert answer.stdout == "1 4 GiB\n12%\n"
    assert told == []


@pytest.mark.real
async def test_qemu_img_tells_on_its_output(go, told: Told, tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(b"x" * 8 * 1024 * 1024)
    words = ("qemu-img", "convert", "-p", "-f", "raw", "-O", "raw")
    paths = (f"{tmp_path}/from", f"{tmp_path}/to")
    await go(Command((*words, *paths), progress=IMAGE))
    assert told[-1] == (8, 8, "MiB", "copy")


async def test_what_is_no_progress_is_not_told(go, told: Told) -> None:
    lies = r"printf '5 0\n9 99999999999999999\n-1 4\n999999%%%%\n\033[31m1 2\n'"
    await go(sh(f'{lies} >"$VOL_PROGRESS"'))
    assert told == []


async def test_one_that_writes_without_end_is_ended(go) -> None:
    with pytest.raises(CommandFailed, match="printed more than 64 MiB"):
        await go(sh('yes "1 2" >"$VOL_PROGRESS"'))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("", None),
        ("3 12\n4 12", (4, 12, "%")),
        ("13 12 s\n", (12, 12, "s")),
        ("1 2 MiB\nhello", (1, 2, "MiB")),
        ("    (50.00/100%)\r", (50, 100, "%")),
        ("400%", (100, 100, "%")),
        ("1 2 \x1b[31mMiB", (1, 2, r"\x1b[31mMiB")),
    ],
)
def test_the_last_line_that_tells_counts(written: str, found: object) -> None:
    assert latest(written, Progress()) == found


async def test_what_a_provider_tells_is_the_progress_of_its_verb(
    tmp_path: Path, told: Told
) -> None:
    home = tmp_path / "ext" / "shelf"
    home.mkdir(parents=True)
    for name in SCRIPTS:
        (home / name).write_text('#!/bin/sh\necho 3 12 GiB >"$VOL_PROGRESS"\n')
        (home / name).chmod(0o755)
    (home / "parameters.list").touch()
    machine = LocalMachine(
        tmp_path / "log", Providers([tmp_path / "ext"]), [], Images("n", home)
    )
    agent = Agent("node1", tmp_path / "run", machine, {})
    volume = ("shelf", "v1.ext.disk0")
    disk = Disk(
        uuid="u1", name="data", dev_type="ext", logical_id=volume, size=Mib(12288)
    )
    verb, args = to_wire(CreateDisk(disk=disk))
    await agent.handle(verb, args, 1, lambda *progress: told.append(progress))
    assert told == [(3, 12, "GiB", "create disk data")]
