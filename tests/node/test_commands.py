# SPDX-License-Identifier: BSD-2-Clause
"""The runner of commands: real programs, but nothing that needs root."""

# ruff: noqa: ASYNC110 - a test may block and poll

import asyncio
import os
import signal
import time
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from moorage.errors import CommandFailed
from moorage.model import Disk, Provider
from moorage.node.machine.commands import run
from moorage.node.verbs.context import drive
from moorage.storage import Command, Output, Progress, Site, template_named
from moorage.units import Mib


def sh(script: str, **more) -> Command:
    return Command(("sh", "-c", script), **more)


@pytest.fixture
def go(tmp_path: Path):
    return partial(run, log_dir=tmp_path, timeout=30)


async def failure(running) -> str:
    with pytest.raises(CommandFailed) as caught:
        await running
    return caught.value.message


@pytest.mark.requirement("S0-37")
async def test_the_environment_is_clean(go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    told = await go(Command(("env",), env={"VOL_NAME": "v"}))
    found = dict(line.split("=", 1) for line in told.stdout.splitlines())
    path = found.pop("PATH").split(":")
    assert {"/sbin", "/usr/sbin", "/bin", "/usr/bin"} <= set(path)
    assert found == {"VOL_NAME": "v", "LC_ALL": "C"}


async def test_a_command_has_its_directory_and_no_input(go, tmp_path: Path) -> None:
    told = await go(sh("pwd; cat; umask", cwd=str(tmp_path)))
    assert told == Output(stdout=f"{tmp_path}\n0077\n")
    assert (await go(sh("pwd"))).stdout == "/\n"


async def test_a_status_that_is_asked_for_is_no_failure(go) -> None:
    assert await go(sh("echo no; exit 3", check=False)) == Output("no\n", 3)


async def test_a_secret_is_in_no_error(go) -> None:
    """A job keeps what an error says, and shows it to whoever asks."""
    word = "ab" * 20
    for command in (
        Command(("sh", "-c", 'echo "$0"; exit 3', f"--shared-secret={word}")),
        Command(("no-such-program", f"--shared-secret={word}")),
    ):
        with pytest.raises(CommandFailed) as caught:
            await go(replace(command, secrets=(word,)))
        assert word not in f"{caught.value.to_json()}"
        assert "--shared-secret=hidden" in caught.value.facts["argv"]


@pytest.mark.requirement("S0-50", "S0-52")
async def test_a_failure_shows_the_last_lines(go) -> None:
    told = await failure(
        go(sh("seq 30; exit 4", failure="External storage's x script"))
    )
    head, *lines = told.split("\n")
    assert head == (
        "External storage's x script failed (exited with exit code 4), "
        "last lines of output:"
    )
    assert lines == [str(number) for number in range(11, 31)]


async def test_how_far_a_program_was_is_no_reason(go) -> None:
    """QEMU's programs write percentages over each other, and then say what is wrong."""
    said = r"printf '    (0.00/100%%)\r    (3.12/100%%)\r'; echo no room >&2; exit 1"
    told = await failure(go(sh(said, progress=Progress("copied", 8, "MiB"))))
    assert told.split("\n")[1:] == ["no room"]
    apart = sh("echo 12%; exit 1", progress=Progress("made", variable="VOL_PROGRESS"))
    assert "12%" in await failure(go(apart))


async def test_stderr_is_no_answer_but_is_shown(go) -> None:
    assert await go(sh("echo noise >&2; echo /dev/x")) == Output("/dev/x\n")
    assert "noise" in await failure(go(sh("echo noise >&2; exit 1")))


async def test_a_signal_is_named(go) -> None:
    assert "(terminated by signal 9)" in await failure(go(sh("kill -9 $$")))


@pytest.mark.requirement("S0-50")
async def test_output_goes_to_a_log(go, tmp_path: Path) -> None:
    log = "create-nas-v1.ext.disk0"
    told = await go(sh("echo out; echo err >&2", log=log))
    assert told == Output()
    (written,) = tmp_path.glob(f"{log}-*.log")
    assert written.read_text() == "out\nerr\n"
    assert abs(int(written.stem.rpartition("-")[2]) - time.time()) < 60
    assert "\nlast words" in await failure(go(sh("echo last words; exit 1", log=log)))


async def test_no_directory_for_logs(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    touched = tmp_path / "touched"
    running = run(sh(f"touch {touched}", log="x"), log_dir=gone, timeout=60)
    assert await failure(running) == f"Cannot find log directory: {gone}"
    assert not touched.exists()


async def test_a_program_that_is_not_there(go, tmp_path: Path) -> None:
    told = await failure(go(Command((f"{tmp_path}/gone",))))
    assert "cannot be run: No such file or directory" in told
    (tmp_path / "plain").write_text("hello")
    told = await failure(go(Command((f"{tmp_path}/plain",), failure="The script")))
    assert told.startswith("The script cannot be run: Permission denied")


async def test_time_is_limited_for_the_whole_group(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $! $$ > {pids}; echo begun; wait"
    told = await failure(run(sh(script), log_dir=tmp_path, timeout=2))
    assert "did not end within 2 s" in told
    assert told.endswith("begun")
    for pid in pids.read_text().split():
        await gone(int(pid))


async def test_a_command_that_nobody_waits_for_is_ended(go, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    running = asyncio.create_task(go(sh(f"echo $$ > {pid}; exec sleep 60")))
    while not (pid.exists() and pid.read_text()):
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await gone(int(pid.read_text()))


async def gone(pid: int) -> None:
    async with asyncio.timeout(120):
        while alive(pid):
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_a_daemon_that_holds_the_output_is_not_waited_for(
    go, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    begin = time.monotonic()
    told = await go(sh(f"echo; sleep 60 & echo $! > {pid}; echo kvm:x"))
    try:
        assert time.monotonic() - begin < 300
        assert told.stdout == "\nkvm:x\n"
        assert alive(int(pid.read_text()))
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


# -- drive -----------------------------------------------------------------------------


def careful(cleans: bool) -> Generator[Command, Output, str]:
    told = yield sh("echo one")
    try:
        yield sh("exit 1")
    except CommandFailed:
        cleaned = yield sh("echo cleaned")
        if not cleans:
            raise
        return told.stdout + cleaned.stdout
    return "not reached"


async def test_a_failure_is_thrown_into_the_steps(go) -> None:
    assert await drive(careful(cleans=True), go) == "one\ncleaned\n"
    assert "exited with exit code 1" in await failure(drive(careful(cleans=False), go))


async def test_steps_that_are_cancelled_are_closed() -> None:
    closed = []

    def steps() -> Generator[Command, Output, None]:
        try:
            yield Command(("never",))
        finally:
            closed.append(True)

    async def hang(command: Command) -> Output:
        del command
        return await asyncio.Event().wait()  # type: ignore[return-value]

    running = asyncio.create_task(drive(steps(), hang))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert closed == [True]


# -- the environment of every script, as a script sees it ------------------------------

COMMON = {
    "VOL_NAME": "v1.ext.disk0",
    "VOL_UUID": "u1",
    "VOL_CNAME": "data",
    "EXTP_PROVIDER": "dump",
    "EXTP_ACCESS": "kernelspace",
    "EXTP_TIER": "a b",
    "VOL_EPOCH": "7",
    "VOL_NODE": "node1",
}
EXTRA = {
    "create": {"VOL_SIZE": "1024"},
    "attach": {},
    "detach": {},
    "remove": {},
    "grow": {"VOL_SIZE": "1024", "VOL_NEW_SIZE": "1536"},
    "setinfo": {"VOL_METADATA": "originstname+web1"},
    "snapshot": {"VOL_SNAPSHOT_NAME": "v1.snap", "VOL_SNAPSHOT_SIZE": "1024"},
    "open": {"VOL_OPEN_EXCLUSIVE": "True"},
    "close": {},
}
ARGUMENTS = {
    "grow": ((Mib(1536),), {}),
    "setinfo": (("originstname+web1",), {}),
    "snapshot": (("v1.snap", Mib(1024)), {}),
    "open": ((), {"exclusive": True}),
}


@pytest.mark.parametrize("action", EXTRA)
@pytest.mark.requirement(
    "S0-35", "S0-36", "S0-37", "S0-38", "S0-39", "S0-40", "S0-41", "S0-42",
    "S0-43", "S0-44", "S0-45", "S0-46", "S0-49", "S0-61",
)  # fmt: skip
async def test_each_script_sees_its_variables_and_no_others(
    go, tmp_path: Path, action: str
) -> None:
    script = tmp_path / action
    dump = tmp_path / "seen"
    script.write_text(
        f"#!/bin/sh\nenv >{dump}\necho $# $PWD >>{dump}\nprintf '\\nkvm:x'"
    )
    script.chmod(0o755)
    provider = Provider(
        name="dump", path=str(tmp_path), optional=("snapshot", "open", "close")
    )
    disk = Disk(
        uuid="u1",
        name="data",
        dev_type="ext",
        logical_id=("dump", "v1.ext.disk0"),
        size=Mib(1024),
        params={"provider": "dump", "tier": "a b"},
        epoch=7,
    )
    site = Site(node="node1", providers={"dump": provider})
    given, named = ARGUMENTS.get(action, ((), {}))
    verb = getattr(template_named("ext")(site), action)
    await drive(verb(disk, *given, **named), go)
    *lines, last = dump.read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    for ours in ("PATH", "LC_ALL", "PWD", "VOL_PROGRESS"):
        seen.pop(ours)
    assert seen == COMMON | EXTRA[action]
    assert last == f"0 {tmp_path}"


async def test_files_for_real(go, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    file = template_named("file")(
        Site(node="n", settings={"file_storage_dir": str(tmp_path / "d")})
    )
    path = tmp_path / "d/web1/v.file.disk0"
    for params in ({}, {"preallocate": True}):
        disk = Disk(
            uuid="u",
            dev_type="file",
            logical_id=("loop", str(path)),
            size=Mib(4),
            params=params,
        )
        for _ in range(2):
            await drive(file.create(disk), go)
        path.write_bytes(b"x" + path.read_bytes()[1:])
        for _ in range(2):
            await drive(file.grow(disk, Mib(8)), go)
            await drive(file.snapshot(disk, "v.snap", Mib(8)), go)
        assert await drive(file.measure(disk), go) == 8
        assert path.stat().st_size == 8 << 20
        assert (path.stat().st_blocks * 512 >= 8 << 20) == bool(params)
        copy = path.with_name("v.snap")
        assert copy.read_bytes() == path.read_bytes()
        copy.unlink()
        assert (await drive(file.attach(disk), go)).path == str(path)
        for _ in range(2):
            await drive(file.remove(disk), go)
        assert list((tmp_path / "d").iterdir()) == []
