# SPDX-License-Identifier: BSD-2-Clause
"""A bounded run of the chaos driver; ``make chaos SEED=7 KILLS=1000`` is the long one.

Twelve clients or a few, on a cluster of real processes behind proxies: masters and
agents are killed and stopped, the master's disk fills up, replies are cut and requests
come late. In quiet, storage, guests, agents and configuration tell one story, and it is
the one that was acknowledged.
"""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run.py"
GUEST = Path(__file__).parents[2] / ".build" / "guest"


def broken(*options: str) -> str:
    """Return what the driver says; fail if it found a fault."""
    done = subprocess.run(
        [sys.executable, RUN, *options],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(960)
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_doubled_or_left(seed: int) -> None:
    told = broken("--seed", f"{seed}", "--kills", "6", "--clients", "8")
    assert "no fault" in told


@pytest.mark.real
@pytest.mark.timeout(960)
def test_nothing_is_lost_doubled_or_left_with_real_guests() -> None:
    told = broken(
        "--seed", "1", "--kills", "3", "--clients", "3", "--guest", f"{GUEST}"
    )
    assert "no fault" in told
