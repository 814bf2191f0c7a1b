# SPDX-License-Identifier: BSD-2-Clause
"""The whole tour, as a person types it; and that nothing is left of it."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.daemons import devcluster

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def moorage(*words: str | Path) -> str:
    run = [BIN / "moorage", *words]
    done = subprocess.run(
        run, capture_output=True, text=True, check=False, cwd=ROOT, timeout=1000
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.requirement("S0-05", "S0-11", "S0-13", "S3-01", "S3-24", "S3-51", "S3-53")
def test_the_tour_and_its_end(
    leftovers: Callable[[Path], list[str]], town: Any
) -> None:
    """Another cluster lives beside it all the while."""
    at = Path(tempfile.mkdtemp(prefix="tour-")) / "t"
    try:
        told = moorage("tour", at)
        assert "All 11 steps hold" in told
        assert "guests are executed by " in told
        alive = leftovers(at)
        for what in ("qemu-system-x86_64", "moorage agent", "moorage master"):
            assert any(what in line for line in alive), what
        moorage("down", at)
        assert leftovers(at) == []
        assert not at.exists()
    finally:
        if at.exists():
            devcluster.down(at)
        at.parent.rmdir()
    assert town.healthy()
