# SPDX-License-Identifier: BSD-2-Clause
"""The whole tour, as a person types it and a page shows it; nothing is left of it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.daemons import devcluster
from moorage.testing.guest_image import usual_place

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import tour  # noqa: E402 - a program of the docs, not in the package

pytestmark = pytest.mark.real

BIN = Path(sys.executable).parent


def moorage(*words: str | Path) -> str:
    run = [BIN / "moorage", *words]
    done = subprocess.run(
        run, capture_output=True, text=True, check=False, cwd=ROOT, timeout=1000
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def typed_as_the_first_page_says(cluster: Path) -> str:
    """Type what README says to do in the cluster of the tour; return what it prints."""
    page = (ROOT / "README.md").read_text()
    text = "eval " + page.partition("```sh\neval ")[2].partition("```")[0]
    line = ["bash", "-euc", text.replace(".build/run", str(cluster))]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
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
        assert tour.differences(told, at, usual_place(os.environ)) == []
        assert "instance: (none) -> web1" in typed_as_the_first_page_says(at)
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
