# SPDX-License-Identifier: BSD-2-Clause
"""Programs that outlive their agent, print without end, or are to be ended."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moorage.errors import CommandFailed
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine import commands
from moorage.node.machine.commands import run
from moorage.node.machine.images import Images
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.turns import CURRENT, Step, Work
from moorage.storage import Command

AGENT = """
import asyncio, sys
from pathlib import Path
from moorage.node.machine.commands import run
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.turns import CURRENT, Step, Work
from moorage.storage import Command
CURRENT.set(Work(frozenset(["d1"]), Step(1, 1)))
top = Path(sys.argv[1])
command = Command(("sh", "-c", sys.argv[2]))
asyncio.run(run(command, log_dir=top, timeout=90, scripts=Scripts(top / "scripts")))
"""


def sh(script: str, **more) -> Command:
    return Command(("sh", "-c", script), **more)


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def wait_for(path: Path, words: int) -> list[int]:
    """Wait until a file has so many words; return them as numbers."""
    deadline = time.monotonic() + 60
    while not path.exists() or len(path.read_text().split()) < words:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [int(word) for word in path.read_text().split()]


def left_by_a_dead_agent(top: Path) -> list[int]:
    """Kill an agent in the middle of a script; return the script's processes."""
    pids = top / "pids"
    script = f"sleep 600 & echo $! $$ >{pids}; wait"
    argv = [sys.executable, "-c", AGENT, str(top), script]
    with subprocess.Popen(argv) as agent:
        found = wait_for(pids, 2)
        agent.kill()
    assert all(map(alive, found))
    return found


async def test_the_next_agent_ends_what_the_last_one_left(tmp_path: Path) -> None:
    left = left_by_a_dead_agent(tmp_path)
    scripts = Scripts(tmp_path / "scripts")
    await asyncio.wait_for(scripts.settle(["d1"]), 120)
    assert not any(map(alive, left))
    assert list((tmp_path / "scripts").iterdir()) == []


async def test_other_objects_are_not_kept_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may hang where not even a signal reaches it."""
    with monkeypatch.context() as patched:
        left = left_by_a_dead_agent(tmp_path)
        patched.setattr(os, "killpg", lambda *_: None)
        scripts = Scripts(tmp_path / "scripts")
        await asyncio.wait_for(scripts.settle(["d2"]), 120)
        waiting = asyncio.create_task(scripts.settle(["d1"]))
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        os.kill(left[1], signal.SIGKILL)  # what the script began goes on
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
    os.killpg(left[1], signal.SIGKILL)
    await asyncio.wait_for(waiting, 120)


def test_a_number_that_another_process_got_is_not_killed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        stat = Path(f"/proc/{other.pid}/stat").read_text()
        name, _, fields = stat.rpartition(")")
        others = fields.split()
        others[19] = "1"  # it started long before
        (tmp_path / "1-1").write_text(f'["d1"]\n{name}) {" ".join(others)}\n')
        (tmp_path / "1-2").write_text('["d1"]\n')  # it died before it noted itself
        (tmp_path / "1-3").write_text("")
        asyncio.run(asyncio.wait_for(Scripts(tmp_path).settle(["d1"]), 120))
        assert list(tmp_path.iterdir()) == []
        spared = alive(other.pid)
        other.kill()
    assert spared


async def test_a_program_is_noted_while_it_runs(tmp_path: Path) -> None:
    CURRENT.set(Work(frozenset(["d1"]), Step(1, 7)))
    scripts = Scripts(tmp_path / "scripts")
    told = await run(
        sh(f"cat {tmp_path}/scripts/*; ls /proc/self/fd"),
        log_dir=tmp_path,
        timeout=60,
        scripts=scripts,
    )
    objects, stat, *handles = told.stdout.splitlines()
    assert objects == '{"objects":["d1"]}'
    assert int(stat.split()[0]) > 0
    assert len(handles) <= 4  # nothing of ours leaks into it
    assert list((tmp_path / "scripts").iterdir()) == []


async def test_a_master_ends_what_earlier_steps_began(tmp_path: Path) -> None:
    images = Images("node1", tmp_path / "file-storage-paths")
    scripts = Scripts(tmp_path / "scripts")
    machine = LocalMachine(tmp_path, Providers([]), [], images, scripts)
    CURRENT.set(Work(frozenset(["d1", "v1"]), Step(1, 7)))
    running = asyncio.create_task(
        machine.run(sh(f"echo $$ >{tmp_path}/pid; sleep 600"), 90)
    )
    await asyncio.to_thread(wait_for, tmp_path / "pid", 1)
    for objects, step in ((["d2"], Step(1, 8)), (["d1"], Step(1, 6))):
        CURRENT.set(Work(step=step))
        assert machine.kill(objects) == 0
    CURRENT.set(Work(step=Step(1, 8)))
    assert machine.kill(["d1"]) == 1
    with pytest.raises(CommandFailed, match="terminated by signal 9") as caught:
        await running
    assert caught.value.facts["killed"] is True


@pytest.mark.parametrize("log", ["", "create-nas-v1"])
async def test_a_script_that_prints_without_end_is_ended(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_MOST", 1 << 20)
    with pytest.raises(
        CommandFailed, match="printed more than 1 MiB and was"
    ) as caught:
        await run(sh("yes noise", log=log), log_dir=tmp_path, timeout=600)
    assert caught.value.facts["killed"] is True
    assert caught.value.message.count("\nnoise") >= 19
    assert all(path.stat().st_size <= 1 << 20 for path in tmp_path.iterdir())


async def test_the_log_of_a_script_that_took_too_long_stays(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="did not end within"):
        await run(sh("echo begun; sleep 60", log="x"), log_dir=tmp_path, timeout=2)
    (log,) = tmp_path.iterdir()
    assert log.read_text() == "begun\n"


async def test_long_lines_are_cut_and_terminals_obey_nobody(tmp_path: Path) -> None:
    script = r"printf 'x%.0s' $(seq 3000); printf '\n\033]0;title\007\n'; exit 1"
    with pytest.raises(CommandFailed) as caught:
        await run(sh(script), log_dir=tmp_path, timeout=60)
    _, long, title = caught.value.message.split("\n")
    assert long == "x" * 500
    assert title == r"\x1b]0;title\x07"


def test_old_logs_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_LOGS", 3)
    now = time.time()
    for number in range(5):
        path = tmp_path / f"create-{number}.log"
        path.touch()
        os.utime(path, (now - number, now - number))
    ancient = tmp_path / "remove-9.log"
    ancient.touch()
    os.utime(ancient, (1, 1))
    commands.prune(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        f"create-{number}.log" for number in range(3)
    ]
    os.utime(tmp_path / "create-0.log", (1, 1))
    commands.prune(tmp_path)
    assert not (tmp_path / "create-0.log").exists()


def test_a_note_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # as on a full disk
    try:
        with pytest.raises(OSError, match="too large"), scripts.noted():
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
