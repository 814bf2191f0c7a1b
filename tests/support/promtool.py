# SPDX-License-Identifier: BSD-2-Clause
"""Prometheus' own tool, which reads rules and tries them."""

import subprocess
from pathlib import Path

import pytest

from peers import unpacked


def promtool(directory: Path, *words: str) -> str:
    """Run it in a directory; return what it prints. Without it the test is skipped."""
    place = unpacked(["prometheus"])
    if place is None:
        pytest.skip("Debian's package prometheus cannot be had here")
    done = subprocess.run(
        [place / "usr/bin/promtool", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
