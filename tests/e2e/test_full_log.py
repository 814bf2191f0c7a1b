# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor whose log is on a full disk starts the master again all the same."""

import io
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import process
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
        supervisor = subprocess.Popen(argv, stderr=full)
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
        assert supervisor.poll() is None
        hands.type("moorage master stop")
        assert supervisor.wait(30) == 0
    finally:
        supervisor.kill()
        supervisor.wait()
