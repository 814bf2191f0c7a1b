# SPDX-License-Identifier: BSD-2-Clause
"""Fifty thousand requests that nobody should send; see ``run.py`` beside this."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nobody_dies_swells_or_keeps_others_waiting() -> None:
    done = subprocess.run(
        [sys.executable, RUN, "--seed", "1", "--requests", "50000"],
        capture_output=True,
        text=True,
        timeout=880,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert "no fault: 50000 requests" in done.stdout
