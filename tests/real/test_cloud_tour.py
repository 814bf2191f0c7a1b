# SPDX-License-Identifier: BSD-2-Clause
"""The cloud's tour with real guests, as a page shows it; nothing is left of it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.daemons import devcloud
from moorage.testing.guest_image import usual_place

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import tour  # noqa: E402 - a program of the docs, not in the package

pytestmark = pytest.mark.real

BIN = Path(sys.executable).parent


def test_a_volume_goes_from_a_guest_to_another_clusters(
    leftovers: Callable[[Path], list[str]],
) -> None:
    at = Path(tempfile.mkdtemp(prefix="cloud-")) / "c"
    run = [BIN / "moorage", "tour", at, "--cloud"]
    try:
        done = subprocess.run(
            run, capture_output=True, text=True, check=False, cwd=ROOT, timeout=1000
        )
        assert done.returncode == 0, done.stdout + done.stderr
        guest = usual_place(os.environ)
        assert tour.differences(done.stdout, at, guest, tour.CLOUD) == []
        assert any("qemu-system-x86_64" in line for line in leftovers(at))
    finally:
        if devcloud.is_one(at):
            devcloud.down(at)
        assert leftovers(at) == []
        at.parent.rmdir()
