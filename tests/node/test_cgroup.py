# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that leave their process group, and what becomes of what they started."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from moorage.errors import CommandFailed
from moorage.node.machine import cgroup
from moorage.node.machine.commands import run
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.turns import CURRENT, Step, Work
from moorage.storage import Command

AGENT = """
import asyncio, sys
from pathlib import Path
from moorage.node.machine import cgroup
from moorage.node.machine.commands import run
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.turns import CURRENT, Step, Work
from moorage.storage import Command
CURRENT.set(Work(frozenset(["d1"]), Step(1, 1)))
top = Path(sys.argv[1])
scripts = Scripts(top / "scripts", cgroup.own())
command = Command(("sh", "-c", sys.argv[2]))
asyncio.run(run(command, log_dir=top, timeout=90, scripts=scripts))
"""
RUNAWAY = "setsid sh -c 'echo $$ >{0}/runaway; exec sleep 600' & echo $$ >{0}/script; "

_skip = pytest.mark.skipif(
    cgroup.own() is None, reason="no cgroup v2 that this process may make groups in"
)


def needs_cgroups(test: Any) -> Any:
    """Mark a test that makes cgroups, as root may on a machine of its own."""
    return pytest.mark.real(_skip(test))


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def pid_in(path: Path) -> int:
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(path.read_text())


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def ours() -> list[Path]:
    """Return the cgroups that this process has made."""
    groups = cgroup.own()
    assert groups is not None
    return list(groups.glob(f"moorage-{os.getpid()}-*"))


async def script(top: Path, text: str, seconds: float) -> None:
    CURRENT.set(Work(frozenset(["d1"]), Step(1, 1)))
    scripts = Scripts(top / "scripts", cgroup.own())
    command = Command(("sh", "-c", text.format(top)))
    await run(command, log_dir=top, timeout=seconds, scripts=scripts)


@needs_cgroups
async def test_what_left_the_process_group_ends_with_its_script(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="did not end within 2 s"):
        await script(tmp_path, RUNAWAY + "sleep 600", 2)
    assert gone(pid_in(tmp_path / "runaway"))
    assert ours() == []


@needs_cgroups
async def test_a_group_below_its_own_is_no_way_out(tmp_path: Path) -> None:
    hide = """
    own={1}$(sed -n s/^0:://p /proc/self/cgroup); mkdir $own/deeper
    echo 0 >$own/deeper/cgroup.procs; """
    top = str(cgroup.own()).removesuffix("/")
    mount = top.removesuffix(_name().rstrip("/"))
    text = hide.replace("{1}", mount) + RUNAWAY + "sleep 600"
    with pytest.raises(CommandFailed, match="did not end within 2 s"):
        await script(tmp_path, text, 2)
    assert gone(pid_in(tmp_path / "runaway"))
    assert ours() == []


def _name() -> str:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next(line[3:] for line in lines if line.startswith("0::"))


@needs_cgroups
async def test_a_daemon_of_a_script_that_ends_goes_on(tmp_path: Path) -> None:
    """It may serve a volume."""
    await script(tmp_path, RUNAWAY + "while [ ! -s {0}/runaway ]; do :; done", 60)
    daemon = pid_in(tmp_path / "runaway")
    assert alive(daemon)
    assert ours() == []
    os.kill(daemon, signal.SIGKILL)


def left_by_a_dead_agent(top: Path) -> tuple[int, list[int]]:
    """Kill an agent in the middle of a script; return its pid, and the script's."""
    argv = [sys.executable, "-c", AGENT, str(top), RUNAWAY.format(top) + "sleep 600"]
    with subprocess.Popen(argv) as agent:
        found = [pid_in(top / name) for name in ("script", "runaway")]
        agent.kill()
    return agent.pid, found


@needs_cgroups
async def test_the_next_agent_ends_what_left_the_process_group(tmp_path: Path) -> None:
    agent, found = left_by_a_dead_agent(tmp_path)
    assert all(map(alive, found))
    scripts = Scripts(tmp_path / "scripts", cgroup.own())
    await asyncio.wait_for(scripts.settle(["d1"]), 120)
    assert not any(map(alive, found))
    assert list((tmp_path / "scripts").iterdir()) == []
    groups = cgroup.own()
    assert groups is not None
    assert list(groups.glob(f"moorage-{agent}-*")) == []


@pytest.mark.parametrize(
    ("mountinfo", "groups"),
    [
        ("", "0::/\n"),
        ("41 31 0:38 / {0} rw - cgroup2 cgroup2 rw\n", "8:pids:/\n"),
        ("41 31 0:38 / {0} rw - cgroup2 cgroup2 rw\n", "0::/../../elsewhere\n"),
        ("41 31 0:38 / {0}/none rw - cgroup2 cgroup2 rw\n", "0::/x\n"),
        ("41 31 0:38 / {0} rw - cgroup cgroup rw\n", "0::/\n"),
    ],
)
def test_where_there_are_none_process_groups_must_do(
    tmp_path: Path, mountinfo: str, groups: str
) -> None:
    (tmp_path / "mountinfo").write_text(mountinfo.format(tmp_path))
    (tmp_path / "cgroup").write_text(groups)
    assert cgroup.own(tmp_path) is None


def test_the_group_of_this_process(tmp_path: Path) -> None:
    line = f"41 31 0:38 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    (tmp_path / "mountinfo").write_text(line)
    (tmp_path / "cgroup").write_text("1:name=systemd:/y\n0::/x\n")
    (tmp_path / "x").mkdir()
    assert cgroup.own(tmp_path) == tmp_path / "x"


async def test_without_groups_scripts_run_all_the_same(tmp_path: Path) -> None:
    CURRENT.set(Work(frozenset(["d1"]), Step(1, 1)))
    scripts = Scripts(tmp_path / "scripts", tmp_path / "nowhere")
    command = Command(("sh", "-c", "echo done"))
    told = await run(command, log_dir=tmp_path, timeout=60, scripts=scripts)
    assert told.stdout == "done\n"
