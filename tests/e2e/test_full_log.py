# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor starts the master again, whatever stands in its way for a moment."""

import asyncio
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import process, supervisor
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow


def test_a_full_log_does_not_end_the_supervisor(
    scratch_of: Callable[[str], Scratch],
) -> None:
    town = scratch_of("--nodes 1 --hypervisor sim")
    hands = Typist(town.environment(), io.StringIO())
    hands.type("moorage master stop")
    argv = process.command("master", "run", "--restart", "--dir", str(town.master.root))
    with Path("/dev/full").open("wb") as full:
        watching = subprocess.Popen(argv, stderr=full)
    try:
        hands.type("moorage master start")
        first = process.holder(town.master.lock)
        assert first
        os.kill(first, signal.SIGKILL)
        assert process.wait_until(lambda: not process.alive(first), 30)
        assert process.wait_until(
            lambda: process.holder(town.master.lock) not in (None, first), 30
        )
        hands.type("moorage master start")
        assert watching.poll() is None
        hands.type("moorage master stop")
        assert watching.wait(30) == 0
    finally:
        watching.kill()
        watching.wait()


async def test_a_program_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    """It is being replaced, or there is no memory for another process."""
    program, stopped = tmp_path / "program", asyncio.Event()
    assert await supervisor.lived([str(program)], stopped) == os.EX_OSERR
    program.write_text("#!/bin/sh\nexit 75\n")
    program.chmod(0o755)
    assert await supervisor.lived([str(program)], stopped) == os.EX_TEMPFAIL


HURRIED = """
import os, signal, sys
from pathlib import Path
from moorage.daemons import supervisor
from moorage.daemons.paths import MasterPlaces

def hurried(begun):
    begun.close()
    os.kill(os.getpid(), signal.SIGHUP)
    return 0

supervisor.asyncio.run = hurried
sys.exit(supervisor.run(MasterPlaces(Path(sys.argv[1]))))
"""


def test_who_starts_a_master_ends_no_supervisor_that_has_just_begun(
    tmp_path: Path,
) -> None:
    """Two start it at once: one sees the other's lock before its first moment."""
    done = subprocess.run([sys.executable, "-c", HURRIED, tmp_path], check=False)
    assert done.returncode == 0
