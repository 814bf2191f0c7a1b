# SPDX-License-Identifier: BSD-2-Clause
"""With the hypervisor ``fake`` guests are pretended, and data is not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
MIB = 1 << 20


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 1 --hypervisor fake")


@pytest.fixture
def types(town: Scratch) -> Callable[[str], str]:

    def types_(line: str) -> str:
        program, *words = line.split()
        done = subprocess.run(
            [BIN / program, *words],
            env={**os.environ, "MOORAGE_SOCKET": f"{town.root}/master/luxi.sock"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return types_


def test_what_a_running_guests_disk_holds_is_really_copied(
    types: Callable[[str], str], town: Scratch
) -> None:
    """Its copy, its other storage, and the export of what is reached by a URI alone."""

    def volume(disk: str) -> Path:
        return Path(types(f"gnt-disk list --no-headers -o volume {disk}").strip())

    data = os.urandom(8 * MIB)
    new = "--disk 0:size=8M,name=d1 --no-nics -n node1 w1"
    types(f"gnt-instance add -t sharedfile {new}")
    volume("d1").write_bytes(data)
    types("gnt-disk clone --name c1 d1")
    assert volume("c1").read_bytes() == data
    images, run = (town.path / "shared" / name for name in ("images", "run"))
    images.mkdir()
    run.mkdir()
    types(f"gnt-disk convert -t ext -p qsd -D dir={images},run={run} d1")
    assert (images / volume("d1").name).read_bytes() == data
    types("gnt-disk detach d1")
    types("gnt-backup export --disk d1")
