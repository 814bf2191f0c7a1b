# SPDX-License-Identifier: BSD-2-Clause
"""The providers in ``share/extstorage`` tell a real agent what they have, and room."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
STRAY = "0a1b2c3d-0000-4000-8000-000000000000.ext.disk0"


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 1 --hypervisor fake")


def types(town: Scratch, line: str, status: int = 0) -> str:
    socket = {"MOORAGE_SOCKET": f"{town.root}/master/luxi.sock"}
    program, *words = line.split()
    done = subprocess.run(
        [BIN / program, *words],
        env={**os.environ, **socket},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def not_set_up(town: Scratch, name: str) -> None:
    """They are in the path of each node: where nobody set them up, that is no news."""
    file = town.path / "extstorage" / name / "etc" / "settings.sh"
    text = file.read_text()
    file.write_text(
        re.sub("^IMAGE_DIR=.*", "IMAGE_DIR=/nowhere", text, flags=re.MULTILINE)
    )
    rows = types(town, "gnt-node list-storage --no-headers -o type,name,free")
    assert f"ext {name} -" in " ".join(rows.split())
    assert "capacity" not in town.node("node1").log.read_text()
    file.write_text(text)


def test_the_examples_list_their_volumes_and_tell_their_room(
    town: Scratch,
) -> None:
    for name in ("loop", "qsd"):
        not_set_up(town, name)
        images, run = (town.path / "shared" / f"{one}-{name}" for one in ("i", "r"))
        images.mkdir()
        run.mkdir()
        where = f"dir={images},run={run}"
        types(town, f"gnt-storage pool add -p {name} -D {where} -g default {name}")
        for disk in ("kept", "gone"):
            types(town, f"gnt-disk add --pool {name} -s 8M {disk}-{name}")
        volume = types(town, f"gnt-disk list --no-headers -o volume gone-{name}")
        (images / volume.strip()).unlink()
        (images / STRAY).write_bytes(bytes(5 << 20))
        (images / f"{STRAY}.part").touch()  # what a killed snapshot left
    found = json.loads(types(town, "gnt-storage reconcile --all --json", status=1))
    told = {
        (one["volume"].partition("/")[0], one["state"], one["size"])
        for one in found["volumes"]
        if one["template"] == "ext" and not one["volume"].endswith(".info")
    }
    assert told == {
        (name, *what)
        for name in ("loop", "qsd")
        for what in (("forgotten", 5), ("referenced", 8))
    }
    assert {one["name"] for one in found["missing"]} == {"gone-loop", "gone-qsd"}
    free = types(town, "gnt-storage pool list --no-headers --units=m -o free").split()
    assert len(free) == 2
    assert all(int(room) > 0 for room in free)
