# SPDX-License-Identifier: BSD-2-Clause
"""The clocks that are wrong are so, and no other one."""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import clocks
import pytest

pytestmark = pytest.mark.real
_HOUR = 3600
_TELL = """
import sys, threading, time
for _ in sys.stdin:
    threading.Event().wait(0.01)  # waits go on by the other clock
    machine = time.clock_gettime(time.CLOCK_BOOTTIME)
    print(time.time(), time.monotonic(), machine, flush=True)
"""


def _boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_wall_clock_jumps_while_its_process_runs_and_others_do_not(
    tmp_path: Path,
) -> None:
    wall = clocks.Wall(tmp_path / "clock", clocks.library(tmp_path / "clock.so"))
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    argv, environ = [sys.executable, "-c", _TELL], os.environ | wall.environ
    with subprocess.Popen(argv, env=environ, **pipe) as told:
        for wrong in (0, 11 * _HOUR, -11 * _HOUR, 0):
            wall.set(wrong)
            told.stdin.write("\n")
            told.stdin.flush()
            found, monotonic, machine = map(float, told.stdout.readline().split())
            assert found == pytest.approx(time.time() + wrong, abs=10)
            assert monotonic == pytest.approx(time.monotonic(), abs=10)
            assert machine == pytest.approx(_boot(), abs=10)
        told.stdin.close()


def test_who_starts_with_another_monotonic_clock_has_the_right_wall_clock() -> None:
    words = clocks.other_start(Random(1))  # noqa: S311 - any will do
    argv = [*words, sys.executable, "-c", _TELL]
    told = subprocess.run(argv, input="\n", capture_output=True, text=True, check=True)
    found, monotonic, machine = map(float, told.stdout.split())
    assert found == pytest.approx(time.time(), abs=10)
    by = int(words[-1].rpartition("=")[2])
    assert by
    assert monotonic == pytest.approx(time.monotonic() + by, abs=10)
    assert machine == pytest.approx(_boot() + by, abs=10)
